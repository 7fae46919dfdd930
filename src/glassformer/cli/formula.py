"""``glassformer formula``: what a name means, before any number: symbol, both formulas, axes, definition, place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError, did_you_mean
from .console import both_names, write
from .subject import Language
from .words import AXES, FORMULA

if TYPE_CHECKING:
    from ..notation import Placed, Program, Quantity, Statement


def formula_command(
    name: Annotated[
        str, typer.Argument(metavar="QUANTITY", help="A name such as S, W_Q or attn.A; S.grad for its gradient.")
    ],
    lang: Annotated[Language, typer.Option(help="Language of names.")] = Language.en,
) -> None:
    """Show a quantity's axes, formula, symbol and formulas as LaTeX, definition, variants, and where it is written."""
    write(formula_lines(name, lang.value))


def formula_lines(name: str, lang: str) -> list[str]:
    """The description as lines. Raises ``UserError`` for a name that no quantity has."""
    _refuse_cells(name.strip())
    base, _, face = name.strip().rpartition(".")
    base, face = (base, face) if face in ("grad", "new") and base else (name.strip(), "")
    found: dict[Quantity, tuple[Program, list[Placed]]] = {}
    known: dict[str, None] = {}
    for program in _programs():
        for placed in program.quantities.values():
            known.setdefault(placed.quantity.name)
            if _named(placed, base, program):
                found.setdefault(placed.quantity, (program, []))[1].append(placed)
    if not found:
        raise UserError(f'There is no quantity "{base}".', "", did_you_mean(base, known))
    lines: list[str] = []
    for k, (quantity, (program, places)) in enumerate(found.items()):
        lines += ([""] if k else []) + list(_describe(quantity, program, places, face, lang, f"{k + 1}/{len(found)}"))
    return lines


def _refuse_cells(name: str) -> None:
    """Raise ``UserError`` for what has no formula of its own: one cell, or a quantity in the forward pass after a step."""
    whole, bracket, _ = name.partition("[")
    if bracket and whole:
        raise UserError(
            f'"{name}" is one cell.',
            "A formula holds for every cell of a quantity.",
            f'Ask for "{whole}", or for the numbers of the cell: glassformer explain toy24 "{name}"',
        )
    base, _, face = name.rpartition(".")
    if face == "after" and base:
        raise UserError(
            f'"{name}" has the formula of "{base}".',
            "The forward pass after the update is the same one with the new parameters.",
            f'Ask for "{base}".',
        )


def _programs() -> Iterator[Program]:
    """One decoder for each variant of a part, every option switched on."""
    from ..model import definitions, read_config

    whole: dict[str, Any] = {
        "vocab_size": 5,
        "context": 4,
        "d": 4,
        "norm": {},
        "head": {"bias": True},
    }
    attention = {"heads": 2, "d_k": 6, "d_v": 5, "bias": True}

    def layer(**changes: dict[str, Any]) -> dict[str, Any]:
        return {"layers": [{"attention": attention, "ffn": {"d_ff": 6}, **changes}]}

    variants: tuple[dict[str, Any], ...] = (
        {},
        {"norm": {"kind": "rmsnorm"}},
        layer(attention={**attention, "heads": 4, "kv_heads": 2}),
        layer(attention={**attention, "window": 2}),
        layer(attention={**attention, "qk_norm": True}),
        {"dropout": {"embedding": 0.1, "attention": 0.1, "residual": 0.1}},
        {"head": {"bias": True, "tied": True}},
        {"position": {"kind": "sinusoidal"}},
        {"position": {"kind": "rope"}},
        *(layer(ffn={"d_ff": 6, "activation": name}) for name in ("gelu_tanh", "silu", "relu", "relu2")),
        layer(ffn={"d_ff": 6, "gated": True}),
    )
    for changes in variants:
        yield definitions(read_config({**whole, **layer(), **changes}), 3, dropout=True).with_scalars(eta=0.1)
    for changes in ({}, layer(attention={**attention, "window": 2})):
        yield definitions(read_config({**whole, **layer(), **changes}), 3, packed=True).with_scalars(eta=0.1)


def _named(placed: Placed, name: str, program: Program) -> bool:
    return name == placed.id or placed.id.endswith(f".{name}") or program.aliases.get(name) == placed.id


def _describe(
    quantity: Quantity, program: Program, places: list[Placed], face: str, lang: str, variant: str
) -> Iterator[str]:
    from ..notation import Kind
    from ..notation.latex import symbol_latex
    from ..notation.plain import index_text
    from ..notation.symbols import short_names
    from ..tracing.header import place_of

    words, placed = FORMULA[lang], places[0]
    note = "" if variant == "1/1" else f"   ({words['variant']} {variant})"
    kind = Kind.GRADIENT if face == "grad" else quantity.kind
    yield f"{quantity.name}{'.' + face if face else ''}  {both_names(quantity, lang)}  [{kind.value}]{note}"
    axes = " × ".join(f"{a}: {AXES[lang].get(dim, dim)} ({dim})" for a, dim in placed.axes)
    rows = [(words["axes"], axes or words["scalar"])]
    statements = _statements(program, placed.id, face)
    names = short_names(program, placed.path)
    rows += [(words["formula"], index_text(s, names, partly=len(statements) > 1)) for s in statements]
    rows.append((words["symbol"], symbol_latex(placed.id, face, program)))
    rows += _formulas(statements, program, words)
    if face:
        rows += [(words["definition"], line) for s in statements for line in _written(s)]
        places_written = [f"{place_of(s.quantity.file)}:{s.line}" for s in statements]
    else:
        rows += [(words["definition"], line) for line in quantity.text.strip().splitlines()]
        places_written = [f"{place_of(quantity.file)}:{quantity.line}"]
    rows.append((words["where"], ", ".join(dict.fromkeys(p.id for p in places))))
    rows += [(words["place"], written) for written in places_written]
    yield from _aligned(rows)


def _written(s: Statement) -> Iterator[str]:
    """The lines of the statement as it stands in the source: to the end of its parentheses."""
    open_parentheses = 0
    for line in s.quantity.text.splitlines()[s.line - s.quantity.line :]:
        yield line
        open_parentheses += line.count("(") - line.count(")")
        if not open_parentheses:
            return


def _statements(program: Program, id: str, face: str) -> tuple[Statement, ...]:
    from ..training.descent import update_statements

    if face == "grad":
        return program.contributions(id)
    if face == "new":
        return tuple(s for s in update_statements(program) if s.target == id)
    definition = program.definition(id)
    return () if definition is None else (definition,)


def _formulas(statements: tuple[Statement, ...], program: Program, words: dict[str, str]) -> Iterator[tuple[str, str]]:
    from ..notation.latex import index_latex
    from ..notation.matrix import matrix_face
    from ..notation.matrix_numbers import mask_latex
    from ..notation.symbols import style_of

    for statement in statements:
        if len(statements) > 1:
            yield words["from"], statement.consumer
        face = matrix_face(statement, program)
        yield words["matrix"], words["none"] if face is None else face.latex(program)
        mask = None if face is None else mask_latex(face, style_of(program))
        if mask is not None:
            yield words["mask"], mask
        yield words["index"], index_latex(statement, program)


def _aligned(rows: list[tuple[str, str]]) -> Iterator[str]:
    from rich.cells import cell_len

    width = max(cell_len(label) for label, _ in rows)
    last = None
    for label, text in rows:
        shown = "" if label == last else label
        last = label
        yield "  " + shown + " " * (width - cell_len(shown) + 2) + text
