"""``glassformer trace``: every number of one step, as a table, JSON, a page, or a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..errors import UserError
from .console import write
from .subject import Language, Request, open_subject

if TYPE_CHECKING:
    from ..tracing import Trace

Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="toy24, the folder of a run, or a trace file.")]
Cells = Annotated[
    list[str] | None, typer.Option("--set", metavar="CELL=NUMBER", help='Set a parameter first: "W_Q[1,0]=0.7".')
]
Tokens = Annotated[str | None, typer.Option(metavar="A,B", help="Input tokens of toy24.")]
Target = Annotated[str | None, typer.Option(metavar="C", help="Target of toy24's last position.")]
Eta = Annotated[str | None, typer.Option(metavar="NUMBER", help="Learning rate of the step (0.1).")]


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
    lang: Annotated[Language, typer.Option(help="Language of names and of the page.")] = Language.en,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Compute forward, gradients, one update and forward again, with every number checked against its definition."""
    for path in (json_path if json_path != "-" else None, html, out):
        refuse_existing(path, force)
    request = Request(subject, text, tuple(cells or ()), tokens, target, rate_of(eta))
    trace = open_subject(request)
    if json_path is not None:
        _emit_json(trace, json_path, force)
    if html is not None:
        _write_page(trace, html, lang.value, force)
    if out is not None:
        from ..tracing import save_trace

        save_trace(trace, out, replace=force)
    if json_path != "-":
        from .table import summary

        written = [str(path) for path in (json_path, html, out) if path is not None]
        write(summary(trace, lang.value) if not written else [f"wrote {path}" for path in written])


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


def refuse_existing(path: Path | str | None, force: bool) -> None:
    """Raise ``UserError`` before any work is done when an output exists and is not to be replaced, or has no folder."""
    if path is None:
        return
    path = Path(path)
    if path.is_dir():
        raise UserError(f"{path} is a folder.", "Nothing was written.", "Give the path of a file in it.")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a regular file.", "Nothing was written.", "Give the path of a file.")
    if path.exists() and not force:
        raise UserError(
            f"{path} exists already.", "Nothing was overwritten.", "Give another path, or add --force to replace it."
        )
    if not path.parent.is_dir():
        raise UserError(
            f"There is no folder {path.parent}.", "Nothing was written.", "Make the folder first, or give another path."
        )


def _emit_json(trace: Trace, path: str, force: bool) -> None:
    from ..tracing import header_of, reference_json
    from ..tracing.file import write_whole

    data = header_of(trace)
    data["values"] = {name: _nested(array) for name, array in trace.values.items()}
    if trace.text.source == "toy24":
        data = {**reference_json(trace), "trace": data}
    text = json.dumps(data, allow_nan=False, indent=1 if trace.text.source == "toy24" else None) + "\n"
    if path != "-":
        write_whole(Path(path), text.encode("ascii"), replace=force)
        return
    if sys.stdout is None:
        raise UserError(
            "There is no standard output to print to.", "It was closed.", "Write to a file with --json FILE."
        )
    sys.stdout.write(text)
    sys.stdout.flush()


def _nested(array: Any) -> Any:
    """Nested lists with null for what JSON cannot spell (minus infinity)."""
    plain = np.asarray(array)
    if plain.dtype.kind != "f":
        return plain.tolist()
    cells = plain.astype(object)
    cells[~np.isfinite(plain)] = None
    return cells.tolist()


def _write_page(trace: Trace, path: Path, lang: str, force: bool) -> None:
    from ..page import build
    from ..tracing import header_of, tensors_of
    from ..tracing.file import write_whole

    page = build(header_of(trace), tensors_of(trace), lang=lang)
    write_whole(path, page.encode("utf-8"), replace=force)
