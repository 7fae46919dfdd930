"""The lines of a derivation and how two neighbours are compared: what chains and lemmas have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .evaluate import EvaluationError, evaluate
from .operands import Array
from .program import LettersOf, Program
from .tree import Expr

AGREE = 1e-12
DIFFER = 1e-6
DRAWS = 8
"""How often operands that break a condition are drawn at most: a random table may keep it by luck."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a derivation and why it equals the line before.

    ``text`` is an expression in the short names of the part (empty for a line that the program supplies). ``relies_on``
    names what the step uses: quantities (``p``) or gradients (``S.grad``) that must be what their definitions say, in a
    lemma also premises. With any, the reason is a condition.
    """

    text: str
    en: str
    zh: str
    relies_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A step with global ids.

    ``names`` are the keys (or premises) that a condition relies on; ``structural`` marks the condition that nothing
    else reads the target of a chain.
    """

    expr: Expr
    en: str
    zh: str
    names: tuple[str, ...]
    structural: bool = False

    @property
    def condition(self) -> bool:
        return bool(self.names) or self.structural


@dataclass(frozen=True, slots=True)
class StepReport:
    """``err`` between a line and the one above; ``broken`` the same with the condition broken (None for a rule)."""

    index: int
    err: float
    broken: float | None


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What became of a derivation; ``problems`` is empty when every step holds."""

    id: str
    steps: tuple[StepReport, ...]
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.problems


def compare(
    id: str,
    lines: Sequence[Line],
    letters: LettersOf,
    program: Program,
    operands: Callable[[Collection[str]], Mapping[str, Array]],
) -> ChainReport:
    """Each of ``lines`` against the one above, on ``operands(names)``: random but for what ``names`` demand.

    A line must agree when all it relies on is granted, and must differ when any one thing of that is not.
    """
    steps: list[StepReport] = []
    problems: list[str] = []
    for index in range(1, len(lines)):
        above, line = lines[index - 1], lines[index]
        err = distance(above.expr, line.expr, letters, operands(line.names), program)
        broken = None
        if not err <= AGREE:
            problems.append(f"{id}: line {index} differs from the line above by {err:.3g}")
        for name in line.names:
            rest = tuple(other for other in line.names if other != name)
            draws = (distance(above.expr, line.expr, letters, operands(rest), program) for _ in range(DRAWS))
            differ = next((found for found in draws if found > DIFFER), 0.0)
            broken = differ if broken is None else min(broken, differ)
            if not differ > DIFFER:
                problems.append(f"{id}: line {index} does not need {name}")
        steps.append(StepReport(index, err, broken))
    return ChainReport(id, tuple(steps), tuple(problems))


def distance(a: Expr, b: Expr, letters: LettersOf, values: Mapping[str, Array], program: Program) -> float:
    """``max|a - b| / max|b|``; infinite where either cannot be computed.

    Where ``b`` is exactly 0 the difference itself is measured: a line that says "nothing is left" has no size.
    """
    try:
        x = evaluate(a, letters, values, program.scalars)
        y = evaluate(b, letters, values, program.scalars)
    except EvaluationError:
        return float("inf")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return float("inf")
    size = float(np.max(np.abs(y), initial=0.0)) or 1.0
    return float(np.max(np.abs(x - y), initial=0.0) / size)
