"""Alignment: logits at i are scored against the text at i + 1, each token once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ...bilingual import words
from ..bench import Bench
from ..law import Family, Law, Probe
from ..losses import IGNORED, aligned, cross_entropy, learning, loss_bound, reported, scored
from ..subjects.base import Kind
from ..subjects.training import Loss
from ..verdict import Finding, NotSupported
from . import collators, loss_functions


def partly(bench: Bench, ids: Tensor) -> Tensor:
    """Labels for ``ids (3, n)``: all of the first row, half of the second, none of the third but two."""
    labels, n = ids.clone(), ids.shape[1]
    if bench.subject.kind is Kind.MASKED:
        labels = bench.other(ids)
    labels[1, : (n + 1) // 2] = IGNORED
    labels[2, : n - 2] = IGNORED
    return labels


def value(bench: Bench) -> Finding:
    """The reported loss on rows with unequal numbers of scored tokens."""
    ids = bench.texts(3)
    if ids.shape[1] < 4:
        raise NotSupported("the context is too short", "上下文太短")
    labels = partly(bench, ids)
    outputs = scored(bench, ids, labels)
    loss = float(reported(outputs))
    kind, smoothing = bench.subject.kind, float(bench.subject.facts.settings.get("smoothing", 0.0))
    expected = float(cross_entropy(outputs.logits, labels, kind, smoothing))
    bound = loss_bound(outputs.logits)
    facts: dict[str, Any] = {"loss": loss, "expected": expected, "seed": bench.seed, "length": ids.shape[1]}
    if abs(loss - expected) > bound:
        facts |= _explained(bench, ids, (outputs.logits, labels), (loss, expected), bound)
    measured = 0.0 if facts.get("explained") else abs(loss - expected)
    return Finding(measured=measured, bound=bound, unit="nat", witness=facts)


def _explained(
    bench: Bench, ids: Tensor, seen: tuple[Tensor, Tensor], losses: tuple[float, float], bound: float
) -> dict[str, Any]:
    """Why a loss may rightly be another number: a sum, smoothing, a part of its own; or which fault it looks like."""
    (logits, labels), (loss, expected), kind = seen, losses, bench.subject.kind
    count = len(aligned(logits, labels, kind)[1])
    again = torch.where(labels == IGNORED, IGNORED, bench.other(labels.clamp(min=0)))
    outputs = scored(bench, ids, again)
    second, other = float(reported(outputs)), float(cross_entropy(outputs.logits, again, kind))
    if max(abs(loss - count * expected), abs(second - count * other)) <= count * bound:
        return {"explained": "the sum over the scored tokens"}
    if abs((loss - expected) - (second - other)) <= bound:
        raise NotSupported(
            f"beside the cross-entropy the loss has a part of {loss - expected:.3g} that no label touches",
            f"除交叉熵外，损失还含有与标签无关的部分 {loss - expected:.3g}",
        )
    uniform = -float(aligned(logits.double().log_softmax(-1), labels, kind)[0].mean())
    share = (loss - expected) / (uniform - expected)
    if 0 < share < 1 and abs((1 - share) * other + share * uniform - second) <= bound:
        return {"explained": f"smoothed by {share:.3g}"}
    like = [name for name, wrong in WRONG.items() if abs(float(wrong(logits.double(), labels)) - loss) <= bound]
    if not like and not _from_logits(bench, ids, labels):
        raise NotSupported("the loss is not made from the logits that are returned", "损失并非由返回的 logits 算出")
    return {"as_if": like[0]} if like else {}


def _from_logits(bench: Bench, ids: Tensor, labels: Tensor) -> bool:
    """Whether the loss hangs on the logits that are returned: some models score further predictions beside them."""
    learning(bench.module)
    outputs = scored(bench, ids, labels, grad=True)
    loss = reported(outputs)
    if not (loss.requires_grad and outputs.logits.requires_grad):
        return False
    return torch.autograd.grad(loss, outputs.logits, allow_unused=True)[0] is not None


def _per_token(logits: Tensor, labels: Tensor) -> Tensor:
    """``(b, n)``: -ln p of each label, 0 where not scored."""
    return functional.cross_entropy(logits.transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")


def _row_means(logits: Tensor, labels: Tensor) -> Tensor:
    nll, count = _per_token(logits[:, :-1], labels[:, 1:]).sum(1), (labels[:, 1:] != IGNORED).sum(1)
    return (nll / count.clamp(min=1)).mean()


WRONG: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "not shifted: each token scored where it stands": lambda x, y: _per_token(x, y).sum() / (y != IGNORED).sum(),
    "shifted twice": lambda x, y: _per_token(x[:, :-2], y[:, 2:]).sum() / (y[:, 2:] != IGNORED).sum(),
    "the last position scored against the first token": lambda x, y: (
        _per_token(x, y.roll(-1, 1)).sum() / (y.roll(-1, 1) != IGNORED).sum()
    ),
    "divided by all positions": lambda x, y: _per_token(x[:, :-1], y[:, 1:]).mean(),
    "a mean of the rows' means": _row_means,
}
"""Losses that public code has reported in the place of the right one."""


def function(loss: Loss) -> Finding:
    """A loss alone, on logits and labels with unequal rows."""
    logits, labels = loss_functions.drawn(loss)
    expected, found = (
        float(loss_functions.defined(loss, logits, labels)),
        float(loss_functions.called(loss, logits, labels)),
    )
    return Finding(
        measured=abs(found - expected),
        bound=loss_functions.bound(logits, labels, loss),
        unit="nat",
        witness={"loss": found, "expected": expected},
    )


ALIGNMENT = Law(
    id="alignment",
    statement=words(
        "Logits at i are scored against the token at i + 1, each scored token exactly once.",
        "位置 i 的 logits 对照第 i + 1 个词元计分，每个计分词元恰好一次。",
    ),
    formula=r"L = -\frac{1}{|T|}\sum_{i+1 \in T} \ln p_i(t_{i+1})",
    conditions=words(
        "A model that takes labels, or a loss. A model that fills in what was hidden scores position i itself.",
        "接受标签的模型，或损失函数。填空式模型对照位置 i 本身计分。",
    ),
    why=words(
        "A loss shifted by one teaches to copy, or to skip a token; weights other than the count favour short rows.",
        "错位的损失教会复制或跳过词元；不按词元数加权会偏向短行。",
    ),
    chapter="9.2",
    probes=(
        Probe(id="alignment.value", does=words("the model's own loss", "模型自报的损失"), run=value, fast=True),
        Probe(id="alignment.function", does=words("a loss alone", "单独的损失函数"), run=function, family=Family.LOSS),
        Probe(
            id="alignment.collator", does=words("labels that a collator makes", "整理器给出的标签"),
            run=collators.stand_where_their_token_stands, family=Family.COLLATOR,
        ),
    ),
)  # fmt: skip
