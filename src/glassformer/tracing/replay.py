"""The replay law: every recorded number equals its own definition, evaluated on the recorded operands.

The tolerance of each cell is the magnitude bound of the same definition (``notation.magnitude``), so a formula and the
code that runs it cannot drift apart, and no tolerance is set by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..notation import REPLAY_FACTOR, UNIT_ROUNDOFF, Program, Statement, evaluate, key, magnitude
from ..notation.evaluate import softmax_letter
from ..notation.tree import Div

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Replay:
    """``worst`` per key in multiples of ``u * mag``; the law holds while all are at most 64."""

    worst: Mapping[str, float]
    cells: int

    @property
    def holds(self) -> bool:
        return all(multiple <= REPLAY_FACTOR for multiple in self.worst.values())

    @property
    def largest(self) -> float:
        return max(self.worst.values(), default=0.0)

    def violations(self) -> dict[str, float]:
        return {name: multiple for name, multiple in self.worst.items() if multiple > REPLAY_FACTOR}


def replay(
    program: Program, update: Iterable[Statement], values: Mapping[str, Array], dtype: str = "float64"
) -> Replay:
    """Compare forward, gradients, updated parameters and the forward pass after the update with their definitions."""
    unit = UNIT_ROUNDOFF[dtype]
    worst: dict[str, float] = {}
    after = {**values, **{id: values[key(id, "new")] for id in program.quantities if key(id, "new") in values}}
    after.update({id: values[key(id, "after")] for id in program.quantities if key(id, "after") in values})
    cells = 0
    for statement in (*program.forward, *update):
        cells += _compare(worst, key(statement.target, statement.face), [statement], values, program, unit)
    for id in program.quantities:
        if key(id, "grad") in values and program.contributions(id):
            cells += _compare(worst, key(id, "grad"), program.contributions(id), values, program, unit)
    for statement in program.forward:
        if key(statement.target, "after") in values:
            cells += _compare(worst, key(statement.target, "after"), [statement], after, program, unit)
    return Replay(worst, cells)


def _compare(
    worst: dict[str, float],
    name: str,
    statements: Iterable[Statement],
    values: Mapping[str, Array],
    program: Program,
    unit: float,
) -> int:
    """Record under ``name`` the largest difference in multiples of ``u * mag``; return how many cells were compared."""
    statements = tuple(statements)
    own = statements[0].target if name.endswith(".after") else name
    recorded = np.asarray(values[own], dtype=np.float64)
    defined = np.sum([evaluate(s.expr, s.letters, values, program.scalars) for s in statements], axis=0)
    softmaxes = _softmaxes(program) if name.endswith(".grad") else frozenset()
    bound = np.sum([magnitude(s.expr, s.letters, values, program.scalars, softmaxes) for s in statements], axis=0)
    # Minus infinity minus itself is not a number; equal cells differ by nothing, whatever they are.
    with np.errstate(invalid="ignore"):
        apart = np.where(recorded == defined, 0.0, np.abs(recorded - defined))
    apart = np.where(np.isnan(apart), np.inf, apart)
    with np.errstate(divide="ignore", invalid="ignore"):
        multiples = np.where(apart == 0, 0.0, apart / (unit * bound))
    worst[name] = float(multiples.max(initial=0.0))
    return int(recorded.size)


def _softmaxes(program: Program) -> frozenset[str]:
    """The quantities that are softmaxes: what the gradient of a loss may be computed from without reading them."""
    return frozenset(s.target for s in program.forward if isinstance(s.expr, Div) and softmax_letter(s.expr))
