"""Cross-entropy over the scored positions.

| symbol | axes | |
|---|---|---|
| ``logits``, ``p`` | ``(b, i, w)`` | scores and probabilities |
| ``y`` | ``(b, i)`` | target id of each row; read only where scored |
| ``scored`` | ``(b, i)`` | whether the row counts (the set ``I``) |
| ``count`` | ``()`` | number of scored rows |
| ``nll`` | ``(b, i)`` | minus the logarithm of the target's probability, in nats; 0 where not scored |
| ``L`` | ``()`` | mean of ``nll`` over the scored rows |

A loss mask says which rows count; it is not the attention mask, which says what a row may read.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from glassformer.notation import Kind, Place, Say, group, quantity

from .shapes import Bool, Float, Int

TARGETS = quantity("y", "y", "target ids", "目标编号", Kind.INPUT, "y[i]")
SCORED = quantity("scored", "I", "scored positions", "计分位置", Kind.INPUT, "scored[i]")
COUNT = quantity("count", r"\lvert I\rvert", "number of scored positions", "计分位置数", Kind.INTERMEDIATE, """
count = sum(1 if scored[i] else 0 for i in n)
""")  # fmt: skip
# From the logits, not from p: the probability of the target can underflow, its logarithm cannot.
POSITION_LOSS = quantity("nll", r"\mathcal{L}", "loss of one position", "单个位置的损失", Kind.LOSS, """
nll[i] = ln(sum(exp(logits[i,v]) for v in N)) - logits[i,y[i]] if scored[i] else 0
logits.grad[i,w] += nll.grad[i]*(p[i,w] - (1 if w == y[i] else 0)) if scored[i] else 0
""")  # fmt: skip
MEAN_LOSS = quantity("L", "L", "loss", "损失", Kind.LOSS, """
L = sum(nll[i] for i in n)/count
nll.grad[i] += L.grad/count
""")  # fmt: skip

LOSS = group("loss", TARGETS, SCORED, COUNT, POSITION_LOSS, MEAN_LOSS)

_NOT_SCORED = -100  # any number outside the vocabulary


def explicit_cross_entropy(
    logits: Float[Tensor, "b i w"], y: Int[Tensor, "b i"], scored: Bool[Tensor, "b i"], say: Say, at: Place
) -> Float[Tensor, ""]:
    """``L ()`` from ``logits (b, i, w)``, ``y (b, i)`` int64 and ``scored (b, i)`` bool, saying each step.

    At least one row must be scored; ``y`` may hold anything where not scored. Logits of less than 32 bits are widened,
    so ``L`` is never narrower than float32.
    """
    count = say(COUNT, scored.sum(), at)
    logits = _at_least_float32(logits)
    target = torch.where(scored, y, 0)
    logit = logits.gather(-1, target[..., None]).squeeze(-1)
    nll = say(POSITION_LOSS, torch.where(scored, torch.logsumexp(logits, -1) - logit, 0.0), at)
    return say(MEAN_LOSS, nll.sum() / count, at)


def fused_cross_entropy(
    logits: Float[Tensor, "b i w"], y: Int[Tensor, "b i"], scored: Bool[Tensor, "b i"], say: Say, at: Place
) -> Float[Tensor, ""]:
    """The same ``L`` from torch's fused kernel, which never shows single positions; ``say`` hears ``L`` only."""
    target = torch.where(scored, y, _NOT_SCORED)
    L = functional.cross_entropy(_at_least_float32(logits).flatten(0, -2), target.flatten(), ignore_index=_NOT_SCORED)
    return say(MEAN_LOSS, L, at)


def _at_least_float32(logits: Tensor) -> Tensor:
    # Eight bits of a log-sum-exp near 100 are off by 0.25, and every probability in the gradient by a quarter.
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
