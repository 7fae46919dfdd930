"""A live example: a small program of definitions, the numbers that readers edit, and what is drawn of it.

Python computes an example when the book is built; the page computes it again at every edit, from the same definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ..bilingual import Words
from ..notation import Group, Program, build_program, place, run
from ..notation.symbols import style_of
from ..notation.tree import Cmp, Idx, Ref, walk
from ..tracing.header import quantity_json, statement_json

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Cell: TypeAlias = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Slider:
    """One input cell that a reader moves from ``low`` to ``high`` in steps of ``step``."""

    cell: Cell
    low: float
    high: float
    step: float


@dataclass(frozen=True, slots=True)
class Curve:
    """How cells ``ys`` go with the ``slider``-th slider, all else as it stands."""

    title: Words
    slider: int
    ys: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """``show`` names the quantities drawn, in order; those of ``inputs`` can be edited, the others are computed.

    ``labels`` gives texts for the positions of a dimension (the tokens of ``n``), ``notes`` a line under a quantity.
    ``planes`` draws points ``(k, 2)`` with their hull and one point that is read from them. ``places`` names quantities
    that tell places, besides those that ``places_in`` finds: readers see them counted from 1.
    """

    id: str
    title: Words
    program: Callable[[], Program]
    inputs: Mapping[str, Array]
    show: tuple[str, ...]
    sliders: tuple[Slider, ...] = ()
    curves: tuple[Curve, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    planes: tuple[tuple[str, str], ...] = ()
    notes: Mapping[str, Words] = field(default_factory=lambda: MappingProxyType({}))
    places: tuple[str, ...] = ()

    def values(self) -> dict[str, Array]:
        """Every quantity by id, float64."""
        program = self.program()
        given = {id: np.asarray(x, dtype=np.float64) for id, x in self.inputs.items()}
        for id, x in given.items():
            if x.shape != program.shape(id):
                raise ValueError(f"{self.id}: {id} has shape {x.shape}, not {program.shape(id)}")
        return dict(run(program.forward, given, program.scalars))

    def plain(self) -> dict[str, Any]:
        """What the page computes from: definitions, scalars, numbers; strict JSON but for infinities, which are null."""
        program = self.program()
        values = self.values()
        return {
            "id": self.id,
            "title": dict(self.title),
            **program_plain(program, self.places),
            "inputs": {id: np.asarray(x, dtype=np.float64).tolist() for id, x in self.inputs.items()},
            "values": {id: values[id].tolist() for id in program.quantities},
            "show": list(self.show),
            "sliders": [
                {"id": s.cell[0], "index": list(s.cell[1]), "low": s.low, "high": s.high, "step": s.step}
                for s in self.sliders
            ],
            "curves": [
                {"title": dict(c.title), "slider": c.slider, "ys": [{"id": id, "index": list(i)} for id, i in c.ys]}
                for c in self.curves
            ],
            "labels": {dimension: list(texts) for dimension, texts in self.labels.items()},
            "planes": [{"points": points, "point": point} for points, point in self.planes],
            "notes": {id: dict(words) for id, words in self.notes.items()},
        }


def places_in(program: Program) -> set[str]:
    """Ids of the quantities whose numbers are places (token ids, targets, rows), counted from 0 as programs do.

    A number is one where a definition looks something up with it or compares it with a letter.
    """
    found: set[str] = set()
    for node in (node for s in program.forward for node in walk(s.expr)):
        match node:
            case Ref(indices=indices):
                found |= {index.name for index in indices if isinstance(index, Ref)}
            case Cmp(op="==" | "!=", a=Ref(name=name), b=Idx()) | Cmp(op="==" | "!=", a=Idx(), b=Ref(name=name)):
                found.add(name)
            case _:
                pass
    return found


def program_plain(program: Program, places: Iterable[str] = ()) -> dict[str, Any]:
    """What the page computes ``program`` from: sizes, quantities, forward definitions with their formulas.

    The page shows what is among ``places`` of the result counted from 1.
    """
    style = style_of(program)
    if faces := [id for id in program.quantities if id.rpartition(".")[2] in ("grad", "new", "after")]:
        raise ValueError(f"{faces[0]}: the page reads that name as a face of another quantity; call it something else")
    return {
        "scalars": dict(program.scalars),
        "quantities": [quantity_json(placed, style) for placed in program.quantities.values()],
        "statements": [statement_json(s, program, style) for s in program.forward],
        "places": sorted(places_in(program).union(places)),
    }


def small_program(part: Group, sizes: Mapping[str, float], **names: str) -> Callable[[], Program]:
    """A program of one group at ``ex``: its quantities are ``ex.NAME``."""
    return lambda: build_program([place(part, "ex", None, **names)], sizes)
