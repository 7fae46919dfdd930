"""``glassformer explain``: how one number came about, and the way from it to the loss, the parameters and the tokens."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from .console import both_names, write
from .output import refuse_existing
from .subject import Language, Request, open_subject
from .trace import Cells, Chosen, Dropout, Eta, Subject, Target, Tokens, rate_of

if TYPE_CHECKING:
    from ..tracing import Trace
    from ..tracing.explanation import Explanation
    from ..tracing.walk import Path as Way


class Format(StrEnum):
    """The forms of an explanation."""

    text = "text"
    latex = "latex"
    markdown = "markdown"
    csv = "csv"


def explain_command(
    subject: Subject,
    cell: Annotated[
        str,
        typer.Argument(
            metavar="CELL", help='A cell, one number per axis, counted from 0: "A[0,1,0]", "S.grad[0,1,0]".'
        ),
    ],
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The text to look at (for a run).")] = None,
    layer: Annotated[
        int | None, typer.Option(metavar="N", help="The layer, from 0, where several have the quantity.")
    ] = None,
    path: Annotated[bool, typer.Option("--path", help="Walk on to the loss, the parameters and the tokens.")] = False,
    form: Annotated[Format, typer.Option("--format", help="What to write.")] = Format.text,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file instead.")] = None,
    cells: Cells = None,
    tokens: Tokens = None,
    target: Target = None,
    eta: Eta = None,
    optimizer: Chosen = None,
    dropout: Dropout = False,
    lang: Annotated[Language, typer.Option(help="Language of names.")] = Language.en,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Show one number: formula, this run's operands, result, what was recorded, and three witnesses for a gradient."""
    refuse_existing(out, force)
    trace = open_subject(
        Request(subject, text, tuple(cells or ()), tokens, target, rate_of(eta), optimizer, dropout=dropout)
    )
    told = _explained(trace, cell, layer)
    found = told.path() if path else told
    name = both_names(trace.program.quantities[told.id].quantity, lang.value) if out is None else None
    if out is None:
        # No token text holds a line break any more, so the lines are those of the format, whatever ends them.
        write(_written(found, form, lang.value, name).replace("\r\n", "\n").rstrip("\n").split("\n"))
        return
    from ..tracing.file import write_whole

    write_whole(out, _written(found, form, lang.value, name).encode("utf-8"), replace=force)


def _explained(trace: Trace, cell: str, layer: int | None) -> Explanation:
    """The explanation of ``cell``. Raises ``UserError`` for what is no cell of the run."""
    from ..tracing.explanation import explain

    id, face, index = trace.program.reference(cell, layer)
    if index is None:
        shape = trace.program.shape(id)
        if shape:
            raise UserError(
                f'"{cell}" is a whole tensor.',
                f"Its shape is {' × '.join(map(str, shape))}; one cell is explained at a time.",
                f'Write for example "{trace.program.example(id, face)}".',
            )
        index = ()
    return explain(trace, id, face, index)


def _written(found: Explanation | Way, form: Format, lang: str, name: str | None) -> str:
    match form:
        case Format.text:
            return "\n".join(found.text(lang, name)) + "\n"
        case Format.latex:
            return found.latex() + "\n"
        case Format.markdown:
            return found.markdown(lang)
        case Format.csv:
            return found.csv()
