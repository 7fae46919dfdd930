"""Distribution: logits are numbers, and what is made of them is a probability, however large they are."""

from __future__ import annotations

import math

from ...bilingual import words
from ..bench import Bench
from ..law import Family, Law, Probe
from ..losses import LOSS_ROUNDING, cross_entropy, evaluate, reported, scored
from ..runs import Inputs
from ..subjects.base import Kind, Offer
from ..subjects.training import Loss
from ..verdict import Finding, NotSupported
from . import loss_functions

SIZE = 1e4


def sums(bench: Bench) -> Finding:
    """Over the whole vocabulary probabilities add up to 1, after a shift of all logits too."""
    logits = evaluate(bench, Inputs(ids=bench.texts(2))).logits.detach()
    N, given = bench.subject.facts.vocab_size, logits.shape[-1]
    bad = int((~logits.isfinite()).sum())
    p, shifted = logits.softmax(-1), (logits.double() + SIZE).softmax(-1)
    off = max(float((p.sum(-1) - 1).abs().max()), float((p.double() - shifted).abs().max()))
    facts = {"not_finite": bad, "vocabulary": N, "columns": given, "seed": bench.seed}
    measured = math.inf if bad or given < N else off
    return Finding(measured=measured, bound=max(1e-5, bench.tolerance), unit="probability", witness=facts)


def large(bench: Bench) -> Finding:
    """The model's own loss where logits reach 1e4."""
    bench.subject.require(Offer.LABELS)
    ids = bench.texts(2)
    labels = bench.other(ids) if bench.subject.kind is Kind.MASKED else ids
    usual = reported(scored(bench, ids, labels))
    gain, outputs = 1.0, None
    for _ in range(4):
        outputs = evaluate(bench, Inputs(ids=ids, labels=labels), gain=gain)
        top = float(outputs.logits.abs().max())
        if not math.isfinite(top):
            raise NotSupported("the logits overflow under large weights", "权重放大后 logits 溢出")
        if top >= SIZE:
            break
        gain *= 2.0 ** math.ceil(math.log2(max(2.0, min(64.0, 1.1 * SIZE / max(top, 1e-9)))))  # undone without rounding
    assert outputs is not None
    top, loss = float(outputs.logits.abs().max()), float(reported(outputs))
    if top < SIZE:
        raise NotSupported(
            f"larger weights do not make logits larger than {top:.3g}", f"放大权重后 logits 不超过 {top:.3g}"
        )
    facts = {"largest_logit": top, "loss": loss, "usual_loss": float(usual), "gain": gain, "seed": bench.seed}
    # Whether the number is right is for `alignment`; that it is one at all, and of this size, is for this law.
    expected = float(cross_entropy(outputs.logits, labels, bench.subject.kind))
    finite = math.isfinite(loss) and abs(loss) <= 4 * ids.numel() * (top + abs(expected)) * (1 + LOSS_ROUNDING)
    return Finding(measured=0.0 if finite else math.inf, bound=0.0, unit="losses that are no number", witness=facts)


def function(loss: Loss) -> Finding:
    """A loss alone at logits of 1e4, with and without a shift."""
    return loss_functions.large(loss)


DISTRIBUTION = Law(
    id="distribution",
    statement=words(
        "Probabilities add up to 1, do not change when all logits shift, and are numbers at logits of 1e4.",
        "概率之和为 1，所有 logits 平移时不变，logits 达 1e4 时仍为有限数。",
    ),
    formula=r"\sum_w p_w = 1, \quad \mathrm{softmax}(\ell + c) = \mathrm{softmax}(\ell)",
    conditions=words("Logits over the whole vocabulary.", "logits 覆盖整个词表。"),
    why=words(
        "A softmax without its largest logit taken off overflows only when a model has become confident.",
        "不减去最大 logit 的 softmax 只在模型变得自信时才溢出。",
    ),
    chapter="7.2",
    probes=(
        Probe(id="distribution.sums", does=words("sum and shift", "求和与平移"), run=sums),
        Probe(id="distribution.large", does=words("the model's own loss at 1e4", "logits 达 1e4 时的损失"), run=large),
        Probe(
            id="distribution.function", does=words("a loss alone at 1e4", "单独的损失函数"), run=function,
            family=Family.LOSS,
        ),
    ),
)  # fmt: skip
