"""Loss masks: a target that is ignored has no part in the loss, whatever stands there."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...bilingual import words
from ..bench import Bench
from ..law import Family, Law, Probe
from ..losses import IGNORED, aligned, backward, cross_entropy, learning, loss_bound, reported, scored
from ..subjects.base import Kind, Offer
from ..subjects.training import Loss
from ..verdict import Finding, NotApplicable, NotSupported
from . import collators, loss_functions

COLUMNS = 3


def _labels(bench: Bench, ids: Tensor) -> Tensor:
    return bench.other(ids) if bench.subject.kind is Kind.MASKED else ids.clone()


def columns(bench: Bench) -> Finding:
    """Columns that are not scored, added on the right."""
    n = bench.length - COLUMNS
    if n < 3:
        raise NotSupported("the context is too short", "上下文太短")
    ids = bench.texts(2)
    labels = _labels(bench, ids)
    labels[:, n:] = IGNORED
    labels[1, : n // 2] = IGNORED
    mask = None
    if bench.subject.kind is Kind.MASKED:
        bench.need_mask()
        mask = (torch.arange(n + COLUMNS) < n).long().expand(2, -1)
    longer = scored(bench, ids, labels, mask)
    alone = scored(bench, ids[:, :n], labels[:, :n])
    off = float((longer.logits[:, :n] - alone.logits).abs().max())
    bound = loss_bound(longer.logits, off)
    if off > bench.tolerance * bench.spread:
        raise NotSupported("the logits themselves depend on the added columns", "logits 本身依赖新增的列")
    with_, without = float(reported(longer)), float(reported(alone))
    facts = {"columns": COLUMNS, "loss": with_, "loss_without": without, "seed": bench.seed}
    return Finding(measured=abs(with_ - without), bound=bound, unit="nat", witness=facts)


def parts(bench: Bench) -> Finding:
    """The loss of two sets of targets together is their mean, weighted by how many there are; or their sum."""
    ids = bench.texts(2)
    if ids.shape[1] < 4:
        raise NotSupported("the context is too short", "上下文太短")
    whole = _labels(bench, ids)
    first = torch.zeros_like(whole, dtype=torch.bool)
    first[0], first[1, 1::3] = True, True
    outputs, counts = [], []
    for labels in (whole, torch.where(first, whole, IGNORED), torch.where(first, IGNORED, whole)):
        outputs.append(scored(bench, ids, labels))
        counts.append(len(aligned(outputs[-1].logits, labels, bench.subject.kind)[1]))
    together, *each = [float(reported(output)) for output in outputs]
    mean = sum(loss * count for loss, count in zip(each, counts[1:], strict=True)) / counts[0]
    bound = loss_bound(outputs[0].logits)
    facts = {"loss": together, "parts": each, "counts": counts, "seed": bench.seed}
    measured = min(abs(together - mean), abs(together - sum(each)) / counts[0])
    return Finding(measured=measured, bound=bound, unit="nat", witness=facts)


def nothing(bench: Bench) -> Finding:
    """No target at all: an error, or a number and gradients that are numbers."""
    bench.subject.require(Offer.LABELS)
    ids = bench.texts(2)
    known = reported(scored(bench, ids, _labels(bench, ids)))  # so that what raises is the missing target
    learning(bench.module)
    try:
        loss = reported(scored(bench, ids, torch.full_like(ids, IGNORED), grad=True))
    except NotSupported:
        raise
    except Exception as error:  # noqa: BLE001 - an error is what the law asks for
        return Finding(
            measured=0.0, bound=0.0, unit="numbers that are not finite", witness={"raised": str(error)[:200]}
        )
    bad = int(not math.isfinite(float(loss.detach())))
    if loss.requires_grad:
        bad += sum(int((~g.isfinite()).sum()) for g in backward(bench, loss).values())
    facts = {"loss": float(loss.detach()), "loss_with_targets": float(known), "seed": bench.seed}
    return Finding(measured=float(bad), bound=0.0, unit="numbers that are not finite", witness=facts)


def end(bench: Bench) -> Finding:
    """Where padding and end of text share an id, that id is a target like any other."""
    end, pad = bench.subject.facts.settings.get("eos"), bench.subject.facts.pad
    if end is None or end != pad:
        raise NotApplicable("padding and the end of a text are not known to share an id", "未知填充与文末是否共用编号")
    ids = bench.texts(2)
    if ids.shape[1] < 4:
        raise NotSupported("the context is too short", "上下文太短")
    labels = _labels(bench, ids)
    ids[:, -2], labels[:, -2] = end, end
    counts, outputs = [], []
    for each in (labels, torch.where(labels == end, IGNORED, labels)):
        outputs.append(scored(bench, ids, each))
        counts.append(len(aligned(outputs[-1].logits, each, bench.subject.kind)[1]))
    with_, without = (float(reported(output)) for output in outputs)
    # Independent of smoothing and of the scale: scored or not, the end of the text must make the difference it makes.
    defined = [
        float(cross_entropy(output.logits, each, bench.subject.kind))
        for output, each in zip(outputs, (labels, torch.where(labels == end, IGNORED, labels)), strict=True)
    ]
    bound = 1e-3 * abs(defined[0] - defined[1])
    facts = {"id": end, "loss": with_, "loss_where_ignored": without, "by_definition": defined, "seed": bench.seed}
    return Finding(measured=abs(with_ - without), bound=bound, unit="nat", at_least=True, witness=facts)


def ignored_targets(loss: Loss) -> Finding:
    """Rows and columns that are not scored, added to what a loss is given."""
    return loss_functions.added_columns(loss)


def no_target(loss: Loss) -> Finding:
    """A loss without any target."""
    return loss_functions.without_targets(loss)


LOSS_MASK = Law(
    id="loss-mask",
    statement=words(
        "Ignored targets contribute neither to sum, count nor smoothing.",
        "被忽略的目标既不进入总和，也不进入计数与平滑。",
    ),
    formula=r"\partial L / \partial\,\mathrm{logits}_i = 0 \quad (i+1 \notin T)",
    conditions=words(
        "A model that takes labels, a loss, or what makes labels. Position decides, never the id.",
        "接受标签的模型、损失函数或标签的制作者。由位置而非编号决定。",
    ),
    why=words(
        "Pads in the loss make it depend on the batch; ends masked by id teach a model never to stop.",
        "填充计入损失会使其依赖于批；按编号掩去文末则模型学不会停止。",
    ),
    chapter="9.2",
    probes=(
        Probe(id="loss-mask.columns", does=words("columns added", "增加列"), run=columns),
        Probe(id="loss-mask.parts", does=words("two sets of targets", "两组目标"), run=parts),
        Probe(id="loss-mask.nothing", does=words("no target at all", "没有任何目标"), run=nothing),
        Probe(id="loss-mask.end", does=words("the end of a text is a target", "文末也是目标"), run=end),
        Probe(
            id="loss-mask.function-columns", does=words("columns added to a loss", "给损失函数增加列"),
            run=ignored_targets, family=Family.LOSS,
        ),
        Probe(
            id="loss-mask.function-nothing", does=words("a loss without a target", "没有目标的损失函数"),
            run=no_target, family=Family.LOSS,
        ),
        Probe(
            id="loss-mask.collator-tokens", does=words("every token and no padding", "所有词元而非填充"),
            run=collators.score_tokens_alone, family=Family.COLLATOR,
        ),
        Probe(
            id="loss-mask.collator-end", does=words("the end of each document", "每个文档的末尾"),
            run=collators.score_every_end, family=Family.COLLATOR,
        ),
        Probe(
            id="loss-mask.collator-seams", does=words("no target across two documents", "不跨文档计分"),
            run=collators.score_no_seam, family=Family.COLLATOR,
        ),
    ),
)  # fmt: skip
