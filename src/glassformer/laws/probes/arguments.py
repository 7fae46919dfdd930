"""Arguments: what is accepted has an effect, what is unknown is refused."""

from __future__ import annotations

import inspect
import math

import torch
from torch import Tensor

from ...bilingual import words
from ..bench import EFFECT, Bench
from ..law import Law, Probe
from ..losses import evaluate
from ..runs import Inputs, once
from ..subjects.base import Kind, Offer
from ..verdict import Finding, NotApplicable, NotSupported

MISSPELT = ("atention_mask", "use_cahe", "lables")
"""Words that nobody means."""


def unknown(bench: Bench) -> Finding:
    """An argument that does not exist."""
    takes = inspect.signature(bench.module.forward).parameters.values()
    facts = {"argument": MISSPELT[0], "seed": bench.seed}
    if not any(p.kind is p.VAR_KEYWORD for p in takes):
        return Finding(measured=0.0, bound=0.0, unit="arguments swallowed", witness=facts)
    if bench.subject.kind is Kind.SEQUENCE_TO_SEQUENCE:
        raise NotSupported("a model with a source is not called by hand", "带源文本的模型不作手动调用")
    ids = bench.texts(1)
    with torch.no_grad():
        bench.module(ids)  # so that what raises below is the argument
    bench.spent.forwards += 1 + len(MISSPELT)
    swallowed = [name for name in MISSPELT if _takes(bench, ids, name)]
    return Finding(
        measured=float(len(swallowed)), bound=0.0, unit="arguments swallowed", witness={**facts, "swallowed": swallowed}
    )


def _takes(bench: Bench, ids: Tensor, name: str) -> bool:
    try:
        with torch.no_grad():
            bench.module(ids, **{name: torch.ones_like(ids)})
    except Exception:  # noqa: BLE001 - whatever it raises, it did not swallow
        return False
    return True


def mask(bench: Bench) -> Finding:
    """Masking all tokens between the first and the last moves the last logits, where those tokens do."""
    argument = bench.subject.require(Offer.MASK)
    if bench.subject.kind is Kind.SEQUENCE_TO_SEQUENCE:
        raise NotSupported("the mask belongs to the source", "掩码属于源文本")
    ids = bench.texts(2)
    n = ids.shape[1]
    if n < 3:
        raise NotSupported("the context is too short", "上下文太短")
    changed = ids.clone()
    changed[:, 1:-1] = bench.other(ids)[:, 1:-1]
    plain = bench.logits(once(ids))[:, -1]
    if float((bench.logits(once(changed))[:, -1] - plain).abs().max()) < EFFECT * bench.spread:
        raise NotApplicable("earlier tokens have no effect", "之前的词元没有影响")
    ends = (torch.arange(n) % (n - 1) == 0).long().expand(2, -1)  # the first stays: no row is without a key
    masked = evaluate(bench, Inputs(ids=ids, mask=ends)).logits.detach().double()[:, -1]
    moved = float((masked - plain).abs().max())
    if not math.isfinite(moved):
        raise NotSupported("masked logits are no numbers", "掩码后的 logits 不是数")
    facts = {"argument": argument, "length": n, "seed": bench.seed}
    return Finding(measured=moved, bound=EFFECT * bench.spread, at_least=True, witness=facts)


def labels(bench: Bench) -> Finding:
    """Labels give a loss that depends on them."""
    argument = bench.subject.require(Offer.LABELS)
    ids = bench.texts(2)
    found = [
        evaluate(bench, Inputs(ids=ids, labels=each)).loss for each in (ids, bench.other(ids))
    ]  # fmt: skip
    if any(loss is None for loss in found):
        raise NotSupported("labels are taken and no loss is returned", "接受标签，却不返回损失")
    first, second = (float(loss.sum()) for loss in found if loss is not None)
    facts = {"argument": argument, "losses": [first, second], "seed": bench.seed}
    return Finding(measured=abs(first - second), bound=EFFECT, at_least=True, unit="nat", witness=facts)


ARGUMENTS = Law(
    id="arguments",
    statement=words(
        "An accepted argument has an effect; an unknown one is an error.", "接受的参数有效果；未知的参数报错。"
    ),
    formula=r"f(x, a) \ne f(x, b), \quad f(x, \text{unknown}) = \text{error}",
    conditions=words("Masks where earlier tokens have an effect; labels.", "之前词元有影响时的掩码；标签。"),
    why=words(
        "A misspelt mask that is swallowed gives results as if nothing had been masked.",
        "拼错的掩码若被默默吞下，结果就如同什么都没有掩去。",
    ),
    chapter="7.4",
    probes=(
        Probe(id="arguments.unknown", does=words("a misspelt name", "拼错的名字"), run=unknown, exact=True),
        Probe(id="arguments.mask", does=words("a mask", "掩码"), run=mask),
        Probe(id="arguments.labels", does=words("labels", "标签"), run=labels),
    ),
)
