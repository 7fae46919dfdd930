"""The loss of one sample with other numbers in the parameters' place, from the model that ran.

Many sets of numbers go through one forward pass side by side: a pass of one small sample is mostly waiting between its
operations, so a loss costs a tenth of what the definitions in NumPy would take for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, vmap

from ..model import Decoder
from .record import Sample, call_of, patching

Array = np.ndarray[Any, np.dtype[Any]]
Losses = Callable[[Iterable[Mapping[str, Array]]], list[float]]
"""From sets of parameters, by id, to the loss with each set in the place of the model's own."""

CELLS_AT_ONCE = 500_000
"""How many cells the sets of one forward pass have together: 4 MB in float64."""

ROWS_AT_ONCE = 768
"""How many rows one forward pass of all that is tried together has: as many as a small batch, so that memory stays small."""


def losses_with(model: Decoder, sample: Sample, replaced: Iterable[Mapping[str, Array]]) -> list[float]:
    """The loss of ``sample`` with each of ``replaced`` in the place of parameters of ``model``, which is left alone.

    Each maps ids of parameters to arrays of their shape; what it does not name stays. A loss that leaves float64 is
    infinite or NaN. The explicit arithmetic runs, as in a recorded pass.
    """
    old = {id: p.detach() for id, p in model.named_parameters()}
    cells = sum(tensor.numel() for tensor in old.values())
    at_once = max(1, min(CELLS_AT_ONCE // cells, ROWS_AT_ONCE // sample.length))
    # One batch after the other is taken from ``replaced``, so that sets which are made as they are asked for need no room.
    sets, found = iter(replaced), list[float]()
    while part := list(itertools.islice(sets, at_once)):
        stacks = {
            id: torch.stack([torch.from_numpy(np.asarray(own[id])) if id in own else old[id] for own in part])
            for id in old
            if any(id in own for own in part)
        }
        found += side_by_side(model, sample, stacks, len(part)).tolist()
    return found


def side_by_side(model: Decoder, sample: Sample, stacks: Mapping[str, torch.Tensor], count: int) -> torch.Tensor:
    """The losses ``(count)`` of ``sample`` with the parameters ``stacks``, each ``(count, ...)``, in one forward pass."""

    def one(moved: dict[str, torch.Tensor]) -> torch.Tensor:
        return functional_call(model, moved, *call_of(sample, patching({}))).loss

    if not stacks:
        return one({}).detach().expand(count)
    # A model in training mode draws masks even where it is given some; elsewhere chance has no business here.
    with torch.no_grad():
        return vmap(one, randomness="same" if sample.masks else "error")(dict(stacks))
