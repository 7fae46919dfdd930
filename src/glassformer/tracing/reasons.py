"""What a step did to the numbers a reader looks at, and which equal gradients are equal only for now."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..notation import EvaluationError, Program, key, run

Array = np.ndarray[Any, np.dtype[Any]]

HEADS = 4
"""How many heads are told of, those whose attention changed most, where there are more."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One cell before and after the step; ``index`` counts from 0."""

    id: str
    index: tuple[int, ...]
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Coincidence:
    """Two parameters with the same gradient, and how far apart those are once the step is made (NaN: it left float64)."""

    a: str
    b: str
    apart_after: float


def watched(program: Program, values: Mapping[str, Array]) -> tuple[Watched, ...]:
    """Of the last scored row: the attention of its heads to the first token, and the probability of the target.

    Where the first token is out of reach (a window, another text of a packed row), its attention is 0 before and after.
    """
    row = int(np.flatnonzero(values["loss.scored"])[-1])
    cells = []
    for id in (id for id in program.quantities if id.endswith(".attn.A")):
        letters = [letter for letter, _ in program.quantities[id].axes]
        for head in range(values[id].shape[letters.index("h")]):
            at = {"h": head, "i": row}
            index = tuple(at.get(letter, 0) for letter in letters)
            cells.append(_watched(values, id, index))
    most = sorted(cells, key=lambda cell: -abs(cell.change))[:HEADS]
    target = _watched(values, "head.p", (row, int(values["loss.y"][row])))
    return (*(cell for cell in cells if cell in most), target)


def _watched(values: Mapping[str, Array], id: str, index: tuple[int, ...]) -> Watched:
    return Watched(id, index, float(values[id][index]), float(values[key(id, "after")][index]))


def coincidences(
    program: Program, parameters: Sequence[str], values: Mapping[str, Array], leaves: Mapping[str, Array]
) -> tuple[Coincidence, ...]:
    """Pairs of parameters whose gradients are equal up to rounding and not zero, with what is left of that afterwards.

    ``leaves`` are what the forward pass reads at the old parameters.
    """
    # Axes of one cell do not count: with one head, W_V and W_O are both matrices.
    before = {id: values[key(id, "grad")].squeeze() for id in parameters}
    pairs = [(a, b) for a, b in itertools.combinations(parameters, 2) if _equal(before[a], before[b])]
    if not pairs:
        return ()
    moved = {**leaves, **{id: values[key(id, "new")] for id in parameters}}
    try:
        after = run(program.statements, {**moved, "loss.L.grad": np.ones(())}, program.scalars)
    except EvaluationError:  # the step left float64
        return tuple(Coincidence(a, b, math.nan) for a, b in pairs)
    gradient = {id: after[key(id, "grad")].squeeze() for pair in pairs for id in pair}
    return tuple(Coincidence(a, b, float(np.abs(gradient[a] - gradient[b]).max())) for a, b in pairs)


def _equal(a: Array, b: Array) -> bool:
    if a.shape != b.shape:
        return False
    largest = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    # Gradients that are zero up to rounding agree about nothing.
    return largest > 1e-12 and bool((np.abs(a - b) <= 1e-12 * largest).all())
