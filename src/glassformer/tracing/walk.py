"""The way on from a number: to the loss, and down to parameters and tokens, one cell of each quantity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ..notation.arithmetic import Operand
from ..notation.cell import latex_lines
from ..notation.tree import Idx, Ref, refs
from .explanation import Explanation, aligned, explain
from .formats import csv_text, markdown, section

if TYPE_CHECKING:
    from .trace import Trace

Cell = tuple[str, str, tuple[int, ...]]

STEPS = 60
"""The longest way; a deep model has more quantities than anybody reads."""

HEADINGS = MappingProxyType(
    {
        "en": ("on to the loss", "the way down, one cell of each quantity", "… and further: the way is cut after {} steps"),
        "zh": ("通往损失", "继续追溯，每个量取一个元素", "……还有更多：此处只显示 {} 步"),
    }
)  # fmt: skip


@dataclass(frozen=True)
class Path:
    """``start``, then ``to_loss`` (for a forward number) and ``below`` (every quantity it was computed from).

    Where a sum reads a quantity in several cells, the way follows the largest term. ``cut`` tells that there are more
    than ``STEPS`` steps below.
    """

    start: Explanation
    to_loss: tuple[Explanation, ...]
    below: tuple[Explanation, ...]
    cut: bool

    def steps(self) -> tuple[Explanation, ...]:
        """Every number of the way, the start first."""
        return (self.start, *self.to_loss, *self.below)

    def text(self, lang: str = "en", name: str | None = None) -> list[str]:
        """The way as lines for a terminal: the start in full, then the arithmetic of each step."""
        to_loss, below, more = HEADINGS[lang]
        lines = self.start.text(lang, name)
        for heading, steps in ((to_loss, self.to_loss), (below, self.below)):
            if steps:
                lines += ["", f"── {heading} " + "─" * 30]
            for step in steps:
                lines += ["", *step.lines(lang, whole_id=True)]
        return [*lines, "", more.format(STEPS)] if self.cut else lines

    def __str__(self) -> str:
        return "\n".join(self.text())

    def latex(self) -> str:
        """The start in full, then the arithmetic of each step, a block each."""
        return "\n\n".join([self.start.latex(), *(aligned(latex_lines(x.cell)) for x in self.steps()[1:])])

    def markdown(self, lang: str = "en") -> str:
        """The start in full, then the arithmetic of each step, a section each."""
        return "\n".join([markdown(self.start, lang), *(section(x, lang) for x in self.steps()[1:])])

    def csv(self) -> str:
        """One table: for each step its result, then its operands."""
        return csv_text(self.steps())


def path_of(start: Explanation) -> Path:
    """The way on from ``start``: from a forward number to the loss first, then down."""
    below, cut = _below(start)
    to_loss = tuple(_to_the_loss(start)) if start.face == "" else ()
    return Path(start, to_loss, below, cut)


def _below(start: Explanation) -> tuple[tuple[Explanation, ...], bool]:
    """One cell of every quantity and face below ``start``, breadth first; a gradient of zero leads nowhere."""
    trace = start.trace
    seen = {(start.id, start.face)}
    queue, found = [start], list[Explanation]()
    while queue:
        told = queue.pop(0)
        if told is not start:
            if len(found) == STEPS:
                return tuple(found), True
            found.append(told)
        for operand in _leading(told):
            name = (operand.id, operand.face)
            if name not in seen and not (operand.face == "grad" and operand.value == 0):
                seen.add(name)
                queue.append(explain(trace, operand.id, operand.face, operand.index))
    return tuple(found), False


def _leading(told: Explanation) -> Iterator[Operand]:
    """The operands of ``told``: those outside its sums as they are read, then those of each sum's terms, largest first."""
    for part in told.cell.parts:
        for formula in (*(c.test for c in part.conditions), *part.tables, part.formula):
            yield from formula.operands
        for series in part.series:
            # The sort is stable: of equal terms the one that is written first.
            for term in sorted(series.terms, key=lambda term: -abs(term.value)):
                yield from term.operands


def _to_the_loss(start: Explanation) -> Iterator[Explanation]:
    """On the way to the loss, the reader of each cell through which the loss depends on it most."""
    trace, cell = start.trace, (start.id, start.face, start.index)
    for _ in range(STEPS):
        readers = list(_readers(trace, cell))
        if not readers:
            return
        cell = max(readers, key=lambda reader: abs(float(trace.face(reader[0], "grad")[reader[2]])))
        yield explain(trace, *cell)


def _readers(trace: Trace, cell: Cell) -> Iterator[Cell]:
    """For each quantity that reads ``cell`` and sends a gradient back: its reading cell of the largest gradient."""
    id, _, index = cell
    answering = {s.consumer for s in trace.program.contributions(id)}
    for statement in trace.program.forward:
        if statement.target not in answering or not trace.recorded(statement.target, "grad"):
            continue
        gradient = np.abs(trace.face(statement.target, "grad"))
        letters = [letter for letter, _ in statement.letters]
        for ref in refs(statement.expr):
            for at in _solutions(trace, ref, index) if ref.name == id else ():
                view = gradient[tuple(slice(at[a], at[a] + 1) if a in at else slice(None) for a in letters)]
                largest = np.unravel_index(int(view.argmax()), view.shape) if letters else ()
                yield statement.target, "", tuple(at.get(a, int(k)) for a, k in zip(letters, largest, strict=True))


def _solutions(trace: Trace, ref: Ref, index: tuple[int, ...]) -> list[dict[str, int]]:
    """The positions of letters for which ``ref`` reads the cell ``index``: direct ones, and all that a table sends there."""
    found: list[dict[str, int]] = [{}]
    for part, where in zip(ref.indices, index, strict=True):
        if isinstance(part, Idx):
            found = [{**at, part.letter: where} for at in found]
        elif isinstance(part, Ref) and len(part.indices) == 1 and isinstance(part.indices[0], Idx):
            letter, sent = part.indices[0].letter, np.flatnonzero(trace.face(part.name, "") == where)
            found = [{**at, letter: int(k)} for at in found for k in sent]
    return found
