"""The loss of one sample with other numbers in the parameters' place, from the model that ran.

Many sets of numbers go through one forward pass side by side: a pass of one small sample is mostly waiting between its
operations, so a loss costs a tenth of what the definitions in NumPy would take for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, vmap

from ..model import Decoder, Resume
from .record import Sample, call_of, patching

Array = np.ndarray[Any, np.dtype[Any]]
Losses = Callable[[Sequence[Mapping[str, Array]]], list[float]]
"""From sets of parameters, by id, to the loss with each set in the place of the model's own."""

CELLS_AT_ONCE = 1_000_000
"""How many cells the sets of one forward pass have together: 8 MB in float64."""

ROWS_AT_ONCE = 1152
"""How many rows one forward pass of all that is tried together has: as many as a small batch, so that memory stays small."""


def losses_with(model: Decoder, sample: Sample, replaced: Sequence[Mapping[str, Array]]) -> list[float]:
    """The loss of ``sample`` with each of ``replaced`` in the place of parameters of ``model``, which is left alone.

    Each maps ids of parameters to arrays of their shape; what it does not name stays. A loss that leaves float64 is
    infinite or NaN. The explicit arithmetic runs, as in a recorded pass.
    """
    ids = [id for id in dict(model.named_parameters()) if any(id in own for own in replaced)]
    old = {id: model.get_parameter(id).detach() for id in ids}
    cells = max(1, sum(tensor.numel() for tensor in old.values()))
    at_once = max(1, min(CELLS_AT_ONCE // cells, ROWS_AT_ONCE // sample.length))
    found: list[float] = []
    for start in range(0, len(replaced), at_once):
        part = replaced[start : start + at_once]
        stacks = {
            id: torch.stack([torch.from_numpy(np.asarray(own[id])) if id in own else old[id] for own in part])
            for id in ids
        }
        found += side_by_side(model, sample, stacks, len(part)).tolist()
    return found


def side_by_side(
    model: Decoder, sample: Sample, stacks: Mapping[str, torch.Tensor], count: int, resume: Resume | None = None
) -> torch.Tensor:
    """The losses ``(count)`` of ``sample`` with the parameters ``stacks``, each ``(count, ...)``, in one forward pass.

    With ``resume`` the pass begins there.
    """

    def one(moved: dict[str, torch.Tensor]) -> torch.Tensor:
        return functional_call(model, moved, *call_of(sample, patching({}), resume)).loss

    if not stacks:
        return one({}).detach().expand(count)
    # A model in training mode draws masks even where it is given some; elsewhere chance has no business here.
    with torch.no_grad():
        return vmap(one, randomness="same" if sample.masks else "error")(dict(stacks))
