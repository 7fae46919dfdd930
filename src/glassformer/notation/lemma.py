"""Lemmas: statements about definitions that are no gradient line, as checked lines with their assumptions.

A chain (``chain.py``) lives in the program of a model and ends in one of its gradient lines. A lemma brings a small
program of its own, made of real groups wherever it speaks of the model, and types every line. What it assumes is either
that a quantity is what its definition says, as in a chain, or a *premise*: a property of the operands that no definition
can grant (two variables are independent, no row may read a later one). A premise knows how to make operands have it.

``check_lemma`` asks of every step what ``check_chain`` asks: it holds when what it relies on is granted, and fails when
any one thing of that is not. So a step that names an assumption it does not need, or needs one it does not name, is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from .chain import line_json
from .differentiate import derivative, inline
from .legend import LETTERS
from .operands import Array, complete, draw
from .parse import NotationError, parse_expression
from .program import LettersOf, Program
from .steps import ChainReport, Line, Step, compare
from .symbols import style_of
from .tree import Expr, Idx, bound_letters, refs, rename_names

Operands: TypeAlias = dict[str, Array]


@dataclass(frozen=True, slots=True)
class Premise:
    """An assumption about operands, and ``impose``, which gives operands that have it.

    ``impose`` gets operands by short name and a generator, and returns the ones it changes.
    """

    name: str
    en: str
    zh: str
    impose: Callable[[Mapping[str, Array], np.random.Generator], Operands]


@dataclass(frozen=True, slots=True)
class Lemma:
    """A statement: its lines, one below the other, are equal in every cell of ``letters``.

    ``program`` makes the program whose quantities the lines name, by short name or as ``names`` says. Premises are
    imposed in the order in which they are listed. ``derivative``, a pair of a short name and a cell with letters
    (``("X", "R[i,q]")``), supplies the first line, whose text is then empty: what mechanical differentiation makes of the
    definition, everything in between opened.
    """

    id: str
    en: str
    zh: str
    source: str
    program: Callable[[], Program]
    letters: str
    steps: tuple[Step, ...]
    premises: tuple[Premise, ...] = ()
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    derivative: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PlacedLemma:
    """A lemma with global ids: its program, its letters with their dimensions, its lines."""

    lemma: Lemma
    program: Program
    letters: LettersOf
    lines: tuple[Line, ...]
    names: Mapping[str, str]


def place_lemma(lemma: Lemma) -> PlacedLemma:
    """``lemma`` with global ids. Raises ``NotationError`` for a name or premise that it does not have."""
    program = lemma.program()
    names = _names(lemma, program)
    letters = tuple((letter, names.get(LETTERS[letter], LETTERS[letter])) for letter in lemma.letters.split())
    known = {premise.name for premise in lemma.premises}
    lines = []
    for step in lemma.steps:
        expr = _opening(lemma, program, names) if not step.text else _expr(step.text, lemma, names)
        wanted = tuple(name if name in known else _key(name, lemma, names) for name in step.relies_on)
        lines.append(Line(expr, step.en, step.zh, wanted))
    return PlacedLemma(lemma, program, letters, tuple(lines), names)


def check_lemma(lemma: Lemma, rng: np.random.Generator) -> ChainReport:
    """Evaluate every line on random float64 operands and compare it with the line above.

    Raises ``NotationError`` for a line that cannot be read; a wrong step is reported, not raised.
    """
    placed = place_lemma(lemma)
    return compare(lemma.id, placed.lines, placed.letters, placed.program, lambda names: grant(placed, names, rng))


def grant(placed: PlacedLemma, names: Collection[str], rng: np.random.Generator) -> Operands:
    """Random operands for every line of which just ``names`` (premises, keys of quantities) are granted."""
    program, lemma = placed.program, placed.lemma
    named = {name for line in placed.lines for name in line.names}
    # Operands of definitions as well: a premise may be about what a definition reads.
    read = (*(line.expr for line in placed.lines), *(s.expr for s in program.forward))
    free = draw(read, program, rng, loose=named)
    short = {id: name for name, id in placed.names.items()}
    for premise in lemma.premises:
        if premise.name in names:
            changed = premise.impose({short.get(id, id): value for id, value in free.items()}, rng)
            free.update({placed.names[name]: value for name, value in changed.items()})
    return complete(free, set(names) - {premise.name for premise in lemma.premises}, program, rng)


def lemma_json(lemma: Lemma) -> dict[str, Any]:
    """A lemma as plain data: lines with trees and LaTeX, reasons, and what each premise says."""
    placed = place_lemma(lemma)
    style = style_of(placed.program)
    said = {premise.name: {"en": premise.en, "zh": premise.zh} for premise in lemma.premises}
    return {
        "id": lemma.id,
        "title": {"en": lemma.en, "zh": lemma.zh},
        "status": "derivation",
        "source": lemma.source,
        "letters": [list(pair) for pair in placed.letters],
        "premises": said,
        "steps": [
            {**line_json(line, style), "premises": [name for name in line.names if name in said]}
            for line in placed.lines
        ],
    }


def _names(lemma: Lemma, program: Program) -> dict[str, str]:
    """Short names, dimensions included, to what they are in ``program``; those that ``lemma.names`` gives come first."""
    names: dict[str, str] = {}
    for placed in program.quantities.values():
        # Dimensions may have been renamed where a group was placed; quantities keep their own short name.
        names |= {local: id for local, id in placed.names.items() if local in LETTERS.values()}
        names.setdefault(placed.quantity.name, placed.id)
    return {**names, **lemma.names}


def _key(name: str, lemma: Lemma, names: Mapping[str, str]) -> str:
    if name not in names:
        raise NotationError(f"{lemma.id} relies on {name!r}, which is neither a quantity nor a premise of it")
    return names[name]


def _expr(text: str, lemma: Lemma, names: Mapping[str, str]) -> Expr:
    local = parse_expression(text)
    for ref in refs(local):
        if ref.name not in names:
            raise NotationError(f"{lemma.id} speaks of {ref.name!r}, which is not a quantity of it")
    return rename_names(local, names)


def _opening(lemma: Lemma, program: Program, names: Mapping[str, str]) -> Expr:
    """The derivative of a cell of one quantity by a cell of another, everything between them opened."""
    if lemma.derivative is None:
        raise NotationError(f"{lemma.id} has a line without text and nothing to differentiate")
    name, cell = lemma.derivative
    (wanted,) = refs(parse_expression(cell))
    statement, wrt = program.definition(names[name]), names[wanted.name]
    if statement is None:
        raise NotationError(f"{lemma.id}: {name} has no definition to differentiate")
    between = {s.target: s for s in program.forward if s.target != wrt}
    taken = {*lemma.letters.split(), *bound_letters(statement.expr)}
    opened = inline(statement.expr, between, taken)
    clash = bound_letters(opened) & {index.letter for index in wanted.indices if isinstance(index, Idx)}
    if clash:
        raise NotationError(f"{lemma.id}: the letter {', '.join(clash)} is bound inside {name}")
    return derivative(opened, wrt, wanted.indices)
