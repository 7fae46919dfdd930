"""Exercises: numbers to compute, fresh at each try, or statements to choose among.

The page draws the numbers, computes the answers from the same definitions as an example, and checks what is typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..bilingual import Words
from ..notation import Program, run
from .example import Array, program_plain

Asked: TypeAlias = str | tuple[str, tuple[int, ...]]
"""A whole quantity by id, or one cell of it, counted from 0."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Whole numbers from ``low`` to ``high``, both possible, in steps of ``step``: one for each cell of an input."""

    low: int
    high: int
    step: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """The reader computes what is asked from inputs that are drawn anew at each try."""

    id: str
    title: Words
    program: Callable[[], Program]
    draw: Mapping[str, Draw]
    ask: tuple[Asked, ...]
    text: Words

    def drawn(self, rng: np.random.Generator) -> dict[str, Array]:
        """One draw of every input, float64."""
        program = self.program()
        return {
            id: np.asarray(
                d.low + d.step * rng.integers(0, (d.high - d.low) // d.step + 1, program.shape(id)), np.float64
            )
            for id, d in self.draw.items()
        }

    def values(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Every quantity by id, float64, for these inputs."""
        program = self.program()
        return dict(run(program.forward, inputs, program.scalars))

    def plain(self) -> dict[str, Any]:
        """What the page draws, computes and asks."""
        return {
            "kind": "compute",
            "id": self.id,
            "title": dict(self.title),
            "program": program_plain(self.program()),
            "draw": {id: {"low": d.low, "high": d.high, "step": d.step} for id, d in self.draw.items()},
            "ask": [a if isinstance(a, str) else {"id": a[0], "index": list(a[1])} for a in self.ask],
            "text": dict(self.text),
        }


@dataclass(frozen=True, slots=True)
class Option:
    """One statement to choose, whether it is right, and why."""

    text: Words
    right: bool
    why: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """The reader chooses every right statement among ``options``; the page shuffles them."""

    id: str
    text: Words
    options: tuple[Option, ...]

    def plain(self) -> dict[str, Any]:
        """What the page shows and checks."""
        return {
            "kind": "choose",
            "id": self.id,
            "text": dict(self.text),
            "options": [{"text": dict(o.text), "right": o.right, "why": dict(o.why)} for o in self.options],
        }


Exercise: TypeAlias = Compute | Choose
