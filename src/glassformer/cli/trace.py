"""``glassformer trace``: every number of one step, as a table, JSON, a page, or a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..errors import UserError
from .console import aside, write
from .output import emit_json, refuse_existing
from .subject import TOY, Language, Optimizer, Request, open_subject

if TYPE_CHECKING:
    from ..tracing import Trace

Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="toy24, the folder of a run, or a trace file.")]
Cells = Annotated[
    list[str] | None, typer.Option("--set", metavar="CELL=NUMBER", help='Set a parameter first: "W_Q[1,0]=0.7".')
]
Tokens = Annotated[str | None, typer.Option(metavar="A,B", help="Input tokens of toy24.")]
Target = Annotated[str | None, typer.Option(metavar="C", help="Target of toy24's last position.")]
Eta = Annotated[
    str | None,
    typer.Option("--eta", "--lr", metavar="NUMBER", help="Learning rate of the step (0.1; 0.01 for adamw)."),
]
Chosen = Annotated[
    Optimizer | None,
    typer.Option(help="Whose step: gradient_descent (the default), adamw from rest, or the run's own as it stands."),
]
Dropout = Annotated[
    bool,
    typer.Option("--dropout", help="Look at a step of training mode, whose masks are recorded (a model with dropout)."),
]


def trace_command(
    subject: Subject,
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The text to look at (for a run).")] = None,
    json_path: Annotated[
        str | None, typer.Option("--json", metavar="PATH|-", help="Write every number as JSON.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write the interactive page, one offline file.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the trace file.")] = None,
    cells: Cells = None,
    tokens: Tokens = None,
    target: Target = None,
    eta: Eta = None,
    optimizer: Chosen = None,
    probes: Annotated[
        bool | None, typer.Option("--probes/--no-probes", help="Record what the probes find (on for toy24).")
    ] = None,
    dropout: Dropout = False,
    page_size: Annotated[
        int, typer.Option(metavar="MB", min=1, help="The most numbers that the page holds, in megabytes.")
    ] = 100,
    lang: Annotated[Language, typer.Option(help="Language of names and of the page.")] = Language.en,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Compute forward, gradients, one update and forward again, with every number checked against its definition.

    Exits with 1 when a number, a witness or an operation does not hold.
    """
    for path in (json_path if json_path != "-" else None, html, out):
        refuse_existing(path, force)
    probes = True if probes is None and subject == TOY else probes
    request = Request(subject, text, tuple(cells or ()), tokens, target, rate_of(eta), optimizer, probes, dropout)
    trace = open_subject(request)
    if json_path is not None:
        emit_json(_as_json(trace), json_path, force, indent=1 if trace.text.source == "toy24" else None)
    if html is not None:
        _write_page(trace, html, lang.value, page_size, force)
    if out is not None:
        from ..tracing import save_trace

        save_trace(trace, out, replace=force)
    if json_path != "-":
        from .table import summary

        written = [str(path) for path in (json_path, html, out) if path is not None]
        write(summary(trace, lang.value) if not written else [f"wrote {path}" for path in written])
    found = violations(trace)
    for line in found:
        aside(f"violated: {line}")
    if found:
        raise typer.Exit(1)


def violations(trace: Trace) -> list[str]:
    """What does not hold in ``trace``, a line each: replay, witnesses, completeness."""
    lines = [f"{name} differs from its definition" for name in trace.replay.violations()]
    lines += [f"the witnesses of {id}.grad disagree" for id, witness in trace.witnesses.items() if not witness.agree]
    uncovered = () if trace.audit is None else trace.audit.uncovered
    return [*lines, *(f"no definition covers {operation}" for operation in uncovered)]


def rate_of(text: str | None) -> float | None:
    """A learning rate: a finite number from 0 up. Raises ``UserError``."""
    if text is None:
        return None
    from .subject import number_of

    eta = number_of(text, "the learning rate")
    if eta < 0:
        raise UserError(
            f"The learning rate cannot be {text}.",
            "A step of gradient descent goes against the gradient.",
            "Give a number from 0 up, such as 0.1.",
        )
    return eta


def _as_json(trace: Trace) -> dict[str, Any]:
    from ..tracing import header_of, reference_json

    data = header_of(trace)
    data["values"] = {name: _nested(array) for name, array in trace.values.items()}
    return {**reference_json(trace), "trace": data} if trace.text.source == "toy24" else data


def _nested(array: Any) -> Any:
    """Nested lists with null for what JSON cannot spell (minus infinity)."""
    plain = np.asarray(array)
    if plain.dtype.kind != "f":
        return plain.tolist()
    cells = plain.astype(object)
    cells[~np.isfinite(plain)] = None
    return cells.tolist()


def _write_page(trace: Trace, path: Path, lang: str, megabytes: int, force: bool) -> None:
    from ..page import build
    from ..tracing import header_of, tensors_of
    from ..tracing.file import write_whole

    page = build(header_of(trace), tensors_of(trace), lang=lang, most_bytes=megabytes * 1_000_000)
    write_whole(path, page.encode("utf-8"), replace=force)
