"""One step on several samples at once: what it did to the batch, and to each sample.

The step follows the gradient of the loss of the batch, the mean over all scored positions. A sample whose own gradient
points elsewhere pays for it: its loss may rise while that of the batch falls. First order says which: the sample's
gradient times the step.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import UserError
from ..model import Decoder
from ..notation import SaidTwice
from .optimizers import SGD, Update, take
from .record import saying_once
from .traceable import require_traceable, said_again


@dataclass(frozen=True, slots=True)
class SampleChange:
    """The loss of one sample (mean over its ``scored`` positions), before and after, and its first-order change."""

    scored: int
    before: float
    after: float
    predicted: float

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class BatchChange:
    """The loss of a batch before and after one step, its first-order change, and the same of each sample."""

    before: float
    after: float
    predicted: float
    samples: tuple[SampleChange, ...]

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def rising(self) -> tuple[int, ...]:
        """The samples, counted from 0, whose loss rose."""
        return tuple(k for k, sample in enumerate(self.samples) if sample.change > 0)


def update_batch(
    model: Decoder,
    tokens: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    scored: Sequence[Sequence[bool]] | None = None,
    *,
    update: Update | None = None,
) -> BatchChange:
    """Make one step of ``update`` (``SGD(lr=0.1)``) on a batch of ``b`` rows of one length, in float64.

    ``tokens``, ``targets`` and ``scored`` (None: every position) are ``b`` rows of ``n``. ``model`` is copied, never
    changed. Raises ``UserError`` for rows of different lengths, a row in which nothing is scored, or a model that cannot be
    traced (``traceable.py``).
    """
    require_traceable(model)
    scored = [[True] * len(row) for row in tokens] if scored is None else scored
    lengths = {len(row) for rows in (tokens, targets, scored) for row in rows}
    if len(lengths) != 1 or not len(tokens) == len(targets) == len(scored):
        raise UserError("The rows of a batch have one length.", f"These have {sorted(lengths)}.", "Cut or split them.")
    if not all(any(row) for row in scored):
        raise UserError("A row has no scored position.", "Its loss is a mean over scored positions.", "Score one.")
    observed = copy.deepcopy(model).cpu().double().eval().requires_grad_(True)
    parameters = dict(observed.named_parameters())
    rows = [torch.tensor([list(row) for row in part]) for part in (tokens, targets, scored)]
    every = slice(0, len(tokens))
    each = [slice(k, k + 1) for k in range(len(tokens))]
    before = [_loss_and_gradient(observed, rows, cut) for cut in (every, *each)]
    new = take(update or SGD(), {id: p.detach() for id, p in parameters.items()}, before[0][1], _nobody)
    steps = {id: new[id] - p.detach() for id, p in parameters.items()}
    with torch.no_grad():
        for id, theta in parameters.items():
            theta.copy_(new[id])
    after = [_loss_and_gradient(observed, rows, cut)[0] for cut in (every, *each)]
    predicted = [sum(float((g * steps[id]).sum()) for id, g in gradient.items()) for _, gradient in before]
    counts = [int(row.sum()) for row in rows[2]]
    samples = tuple(
        SampleChange(count, loss, then, first)
        for count, (loss, _), then, first in zip(counts, before[1:], after[1:], predicted[1:], strict=True)
    )
    return BatchChange(before[0][0], after[0], predicted[0], samples)


def _loss_and_gradient(model: Decoder, rows: Sequence[Tensor], cut: slice) -> tuple[float, dict[str, Tensor]]:
    tokens, targets, scored = (part[cut] for part in rows)
    model.zero_grad(set_to_none=True)
    loss = model(tokens, targets, scored, say=saying_once()).loss
    assert loss is not None
    try:
        loss.backward()
    except SaidTwice as again:
        raise said_again(again) from None
    named = model.named_parameters()
    return float(loss.detach()), {id: torch.zeros_like(p) if p.grad is None else p.grad.clone() for id, p in named}


def _nobody(_: str, __: Tensor) -> None:
    """Hears nothing: the lines of the step are not asked for."""
