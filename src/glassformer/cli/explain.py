"""``glassformer explain``: how one number came about, and the way from it to the loss, the parameters and the tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ..errors import UserError
from ..notation import Kind
from ..notation.tree import Idx, Ref, refs
from ..text.visible import visible
from .console import both_names, number, write
from .subject import Language, Request, open_subject
from .trace import Cells, Chosen, Eta, Subject, Target, Tokens, rate_of
from .words import EXPLAIN

if TYPE_CHECKING:
    from ..tracing import Trace

Cell = tuple[str, str, tuple[int, ...]]

STEPS = 60
"""The longest way that ``--path`` prints; a deep model has more quantities than anybody reads in a terminal."""


def explain_command(
    subject: Subject,
    cell: Annotated[str, typer.Argument(metavar="CELL", help='A cell, counted from 0: "W_Q.grad[1,0]", "A[0,1,0]".')],
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The text to look at (for a run).")] = None,
    path: Annotated[bool, typer.Option("--path", help="Walk on to the loss, the parameters and the tokens.")] = False,
    cells: Cells = None,
    tokens: Tokens = None,
    target: Target = None,
    eta: Eta = None,
    optimizer: Chosen = None,
    lang: Annotated[Language, typer.Option(help="Language of names.")] = Language.en,
) -> None:
    """Show one number: formula, this run's operands, result, what was recorded, and three witnesses for a gradient."""
    trace = open_subject(Request(subject, text, tuple(cells or ()), tokens, target, rate_of(eta), optimizer))
    id, face, index = trace.program.reference(cell)
    if index is None:
        shape = trace.program.shape(id)
        if shape:
            example = ",".join(["0"] * len(shape))
            raise UserError(
                f'"{cell}" is a whole tensor.',
                f"Its shape is {' × '.join(map(str, shape))}; one cell is explained at a time.",
                f'Write for example "{cell}[{example}]".',
            )
        index = ()
    write(walk(trace, (id, face, index), lang.value) if path else explanation(trace, (id, face, index), lang.value))


def explanation(trace: Trace, cell: Cell, lang: str) -> list[str]:
    """One number with formulas, arithmetic, and witnesses where it is a gradient."""
    id, face, index = cell
    quantity = trace.program.quantities[id].quantity
    words = EXPLAIN[lang]
    kind = Kind.GRADIENT if face == "grad" else quantity.kind
    of = f"{words[face]} " if face else ""
    lines = [f"{of}{both_names(quantity, lang)}  [{kind.value}]  {id}{'.' + face if face else ''}"]
    lines += _arithmetic(trace, cell, lang)
    lines += [f"{words['formula']} (LaTeX): {line}" for line in _formulas(trace, id, face)]
    if face == "grad" and id in trace.witnesses:
        lines += _witnesses(trace, id, index, lang)
    return lines


def _arithmetic(trace: Trace, cell: Cell, lang: str) -> list[str]:
    from ..notation.cell import explain_cell, text_lines

    id, face, index = cell
    told = explain_cell(trace.program, id, face, index, trace.values, updates=trace.update)
    return [*text_lines(told, lang=lang), *_token_notes(trace, cell, lang)]


def _token_notes(trace: Trace, cell: Cell, lang: str) -> list[str]:
    """Which tokens the cell's positions and vocabulary entries are."""
    id, _, index = cell
    texts, word = trace.text.vocabulary, EXPLAIN[lang]["token"]
    notes = []
    for (letter, dim), at in zip(trace.program.quantities[id].axes, index, strict=True):
        if dim in ("n", "n_k"):
            notes.append(f"{letter} = {at}: {word} “{visible(texts[int(trace.values['embed.t'][at])], keep='')}”")
        elif dim == "N":
            notes.append(f"{letter} = {at}: {word} “{visible(texts[at], keep='')}”")
    return [f"  ({';  '.join(notes)})"] if notes else []


def _formulas(trace: Trace, id: str, face: str) -> Iterator[str]:
    from ..notation.latex import index_latex
    from ..notation.matrix import matrix_face

    statements = [s for s in (*trace.program.statements, *trace.update) if s.target == id and s.face == face]
    for statement in statements:
        matrix = matrix_face(statement, trace.program)
        if matrix is not None:
            yield matrix.latex(trace.program)
        yield index_latex(statement, trace.program)


def _witnesses(trace: Trace, id: str, index: tuple[int, ...], lang: str) -> list[str]:
    from ..tracing.witnesses import gradients_by_definition

    words, witness = EXPLAIN[lang], trace.witnesses[id]
    defined = gradients_by_definition(trace.program, trace.values)[f"{id}.grad"]
    flat = int(np.ravel_multi_index(index, defined.shape)) if index else 0
    sampled = dict(witness.central.cells)
    measured = number(sampled[flat], 12) if flat in sampled else words["not sampled"]
    zero = f"  ({words['zero']})" if witness.zero_in_theory else ""
    return [
        f"{words['witnesses']}:{zero}",
        f"  {words['definition']}  {number(float(defined[index]), 12)}",
        f"  {words['autograd']}  {number(float(trace.values[f'{id}.grad'][index]), 12)}",
        f"  {words['central']}  {measured}",
    ]


def walk(trace: Trace, start: Cell, lang: str) -> list[str]:
    """The number, then every number it was computed from, one cell per quantity, down to parameters, tokens and the loss.

    From a forward number the way on goes to the loss first. Where a quantity is read in several cells, the way follows
    the first one shown.
    """
    lines = explanation(trace, start, lang)
    words = EXPLAIN[lang]
    if start[1] == "":
        onward = list(_to_the_loss(trace, start))
        if onward:
            lines += ["", f"── {words['to loss']} " + "─" * 30]
            for cell in onward:
                lines += ["", *_arithmetic(trace, cell, lang)]
    lines += ["", f"── {words['path']} " + "─" * 30]
    for cell in _operands_below(trace, start):
        lines += ["", *_arithmetic(trace, cell, lang)]
    return lines


def _operands_below(trace: Trace, start: Cell) -> Iterator[Cell]:
    """One cell of every quantity and face below ``start``, breadth first; a gradient of zero leads nowhere."""
    from ..notation.cell import explain_cell

    seen, queue, steps = {start[:2]}, [start], 0
    while queue and steps < STEPS:
        id, face, index = queue.pop(0)
        if (id, face, index) != start:
            steps += 1
            yield id, face, index
        told = explain_cell(trace.program, id, face, index, trace.values, updates=trace.update)
        for operand in told.operands:
            dead = operand.face == "grad" and operand.value == 0
            if not dead and (operand.id, operand.face) not in seen:
                seen.add((operand.id, operand.face))
                queue.append((operand.id, operand.face, operand.index))


def _to_the_loss(trace: Trace, start: Cell) -> Iterator[Cell]:
    """For a forward number: on the way to the loss, the reader of each cell through which the loss depends on it most."""
    cell = start
    for _ in range(STEPS):
        readers = list(_readers(trace, cell))
        if not readers:
            return
        cell = max(readers, key=lambda reader: abs(float(trace.face(reader[0], "grad")[reader[2]])))
        yield cell


def _readers(trace: Trace, cell: Cell) -> Iterator[Cell]:
    """For each quantity that reads ``cell`` and sends a gradient back: its reading cell of the largest gradient."""
    id, _, index = cell
    answering = {s.consumer for s in trace.program.contributions(id)}
    for statement in trace.program.forward:
        if statement.target not in answering or not trace.recorded(statement.target, "grad"):
            continue
        for ref in refs(statement.expr):
            if ref.name == id:
                at = _solve(trace, ref, index)
                gradient = np.abs(trace.face(statement.target, "grad"))
                letters = [letter for letter, _ in statement.letters]
                view = gradient[tuple(slice(at[a], at[a] + 1) if a in at else slice(None) for a in letters)]
                largest = np.unravel_index(int(view.argmax()), view.shape) if letters else ()
                yield statement.target, "", tuple(at.get(a, int(k)) for a, k in zip(letters, largest, strict=True))


def _solve(trace: Trace, ref: Ref, index: tuple[int, ...]) -> dict[str, int]:
    """Letters for which ``ref`` reads the cell ``index``: direct ones, and a position that a table sends there."""
    at: dict[str, int] = {}
    for part, where in zip(ref.indices, index, strict=True):
        if isinstance(part, Idx):
            at[part.letter] = where
        elif isinstance(part, Ref) and len(part.indices) == 1 and isinstance(part.indices[0], Idx):
            positions = np.flatnonzero(trace.face(part.name, "") == where)
            if positions.size:
                at[part.indices[0].letter] = int(positions[0])
    return at
