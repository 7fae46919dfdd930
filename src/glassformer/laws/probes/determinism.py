"""Determinism: in evaluation mode a call is a function of what it is given, and of nothing before it."""

from __future__ import annotations

import torch

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..runs import Claim, block, chunked, once
from ..subjects.base import Kind, Offer
from ..verdict import Finding
from .causality import with_


def twice(bench: Bench) -> Finding:
    """Two calls under different random numbers."""
    ids = bench.texts(2, seed=61)
    at = block(range(2), range(ids.shape[1]))
    left = once(ids)
    claim = Claim(left=left, right=with_(once(ids), seed=1), left_at=at, facts={"random_seeds": [0, 1]})
    return bench.test([claim], unsteady=True)


def history(bench: Bench) -> Finding:
    """A text before and after others: longer ones, and through a cache where there is one."""
    context = bench.subject.facts.context
    ids = bench.texts(1, max(1, bench.length - 3), 62)
    between = [once(bench.texts(2, min(2 * bench.length, context or 2 * bench.length), 63))]
    if Offer.CACHE in bench.subject.offers and bench.subject.kind is not Kind.MASKED:
        text = bench.texts(1, seed=64)
        between.append(chunked(text, [text.shape[1] - 1, 1]))
    first, last = once(ids), once(ids)
    before = bench.logits(first)
    for run in between:
        bench.logits(run)
    # `logits` keeps what ran last; the first is among these.
    assert before is bench.logits(first)
    claim = Claim(
        left=first, right=last, left_at=block([0], range(ids.shape[1])), facts={"calls_between": len(between)}
    )
    return bench.test([claim], unsteady=True)


def weights(bench: Bench) -> Finding:
    """The parameters before and after a call, bit by bit."""
    before = {name: p.detach().clone() for name, p in bench.module.named_parameters()}
    bench.logits(once(bench.texts(1, seed=65)))
    changed = [name for name, p in bench.module.named_parameters() if not torch.equal(p, before[name])]
    witness = {"changed_parameters": changed[:5], "seed": bench.seed}
    return Finding(measured=float(len(changed)), bound=0.0, unit="parameter", witness=witness)


DETERMINISM = Law(
    id="determinism",
    statement=words(
        "In evaluation mode two calls with the same inputs agree, whatever was called before.",
        "评估模式下，相同输入的两次调用结果一致，与之前的调用无关。",
    ),
    formula=r"f(x) = f(x)",
    conditions=words("Any model in evaluation mode.", "评估模式下的任何模型。"),
    why=words(
        "Dropout that stays on, or a table that an earlier call has stretched, makes every measurement a matter of chance.",
        "未关闭的 dropout，或被先前调用改动的表，会使每次测量都成为偶然。",
    ),
    chapter="1.2",
    probes=(
        Probe(id="determinism.twice", does=words("two calls", "两次调用"), run=twice),
        Probe(id="determinism.history", does=words("before and after other texts", "在其他文本前后"), run=history),
        Probe(id="determinism.weights", does=words("a call changes no parameter", "调用不改变参数"), run=weights),
    ),
)
