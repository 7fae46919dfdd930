"""Initial loss: a model that has learned nothing knows nothing."""

from __future__ import annotations

import math

import torch

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..losses import cross_entropy, evaluate
from ..runs import Inputs
from ..subjects.base import Kind
from ..verdict import Finding, NotApplicable

WIDE = 0.5
"""How much above or below ln N the first loss may lie, as a share of it; at least one nat."""


def untrained(bench: Bench) -> Finding:
    """Random tokens, the weights as they are."""
    if not bench.subject.facts.settings.get("untrained"):
        raise NotApplicable("the model is not known to be untrained", "未知该模型未经训练")
    module = bench.subject.copied().to(bench.dtype)
    ids, N = bench.texts(4), bench.subject.facts.vocab_size
    labels = bench.other(ids) if bench.subject.kind is Kind.MASKED else ids
    with torch.no_grad():
        loss = float(cross_entropy(evaluate(bench, Inputs(ids=ids), module=module).logits, labels, bench.subject.kind))
    facts = {"loss": loss, "ln_N": math.log(N), "vocabulary": N, "seed": bench.seed}
    return Finding(measured=abs(loss - math.log(N)), bound=max(1.0, WIDE * math.log(N)), unit="nat", witness=facts)


INITIAL_LOSS = Law(
    id="initial-loss",
    statement=words("An untrained model has a loss near ln N.", "未训练模型的损失接近 ln N。"),
    formula=r"L_0 \approx \ln N",
    conditions=words(
        "A model known to be untrained. The bound is wide: half of ln N, at least one nat.",
        "已知未经训练的模型。界限较宽：ln N 的一半，至少一奈特。",
    ),
    why=words(
        "Far above, the first steps go into unlearning the start; far below, something has seen the answer.",
        "远高于此，最初的训练都用来抹去初值；远低于此，说明看到了答案。",
    ),
    chapter="9.2",
    probes=(Probe(id="initial-loss.untrained", does=words("random tokens", "随机词元"), run=untrained),),
)
