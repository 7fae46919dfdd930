"""``glassformer check``: the laws on a model, in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError
from .console import aside, write
from .output import emit_json, refuse_existing
from .subject import Language

if TYPE_CHECKING:
    from ..laws.supervising import Order

ALL = "transformers:all"

EPILOG = (
    "Exit codes: 0 nothing violated, 1 something violated (with --strict also: not supported), 2 nothing could be "
    "checked.  In continuous integration:  glassformer check mypackage.model:build --junit laws.xml"
)

FAST = (
    "Five laws in at most 15 forward passes: causality, prefix, padding, cache, alignment; one text of 20 tokens in "
    "single precision. More passes only where something fails."
)


class Kind(StrEnum):
    """What a model reads."""

    causal = "causal"
    masked = "masked"
    sequence_to_sequence = "sequence-to-sequence"


def check_command(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="SUBJECT",
            help="The folder of a run, a Hugging Face folder, transformers:NAME, transformers:all, "
            "package.module:callable, or toy24.",
        ),
    ],
    fast: Annotated[bool, typer.Option("--fast", help=FAST)] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="LAW", help="A law or probe; may be given several times.")
    ] = None,
    json_path: Annotated[str | None, typer.Option("--json", metavar="PATH|-", help="Write the report as JSON.")] = None,
    junit_path: Annotated[Path | None, typer.Option("--junit", metavar="PATH", help="Write JUnit XML.")] = None,
    html_path: Annotated[Path | None, typer.Option("--html", metavar="PATH", help="Write a page.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="One report a file, for transformers:all; goes on where it ended."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the texts that are tried.")] = 0,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 also where a law is not supported.")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Checks at once, for transformers:all (1).")] = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds for each probe; 0 for no limit.")] = 120.0,
    memory: Annotated[int | None, typer.Option(min=256, metavar="MB", help="Memory that a check may take.")] = None,
    vocab_size: Annotated[
        int | None, typer.Option(min=2, help="Ids the model takes, where it does not say so.")
    ] = None,
    context: Annotated[int | None, typer.Option(min=1, help="Longest text, where the model does not say so.")] = None,
    kind: Annotated[Kind | None, typer.Option(help="What the model reads, where it does not say so.")] = None,
    lang: Annotated[Language, typer.Option(help="Language of the report.")] = Language.en,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Try the laws that every correct Transformer keeps on a model: its mask, cache, padding, loss, gradients, files."""
    for path in (json_path if json_path != "-" else None, junit_path, html_path):
        refuse_existing(path, force)
    from ..laws.supervising import Order

    told = {"vocab_size": vocab_size, "context": context, "kind": None if kind is None else kind.value}
    order = Order(
        subject=subject, told={key: value for key, value in told.items() if value is not None}, fast=fast,
        only=tuple(only or ()), seed=seed, timeout=timeout, memory=memory,
    )  # fmt: skip
    if subject == ALL:
        reports = _all(order, out, jobs or 1)
    else:
        _refuse(subject, out, jobs)
        reports = [_one(order)]
    _files(reports, json_path, junit_path, html_path, lang.value, force, single=subject != ALL)
    if json_path != "-":
        _print(reports, lang.value, single=subject != ALL)
    from ..laws.reading import exit_code

    codes = [exit_code(report, strict=strict) for report in reports]
    raise typer.Exit(1 if 1 in codes else 0 if 0 in codes else 2)


def _refuse(subject: str, out: Path | None, jobs: int | None) -> None:
    for option, value in (("--out", out), ("--jobs", jobs)):
        if value is not None:
            raise UserError(f"{option} does not apply to {subject}.", f"It belongs to {ALL}.", "Leave it out.")


def _one(order: Order) -> dict[str, Any]:
    from rich.console import Console
    from rich.text import Text

    from ..laws.supervising import supervised
    from ..text.visible import visible

    # On a terminal the probe that is being tried; elsewhere nothing.
    with Console(stderr=True).status(Text(visible(order.subject, keep=""))) as status:
        return supervised(order, lambda probe: status.update(Text(visible(probe, keep=""))))


def _all(order: Order, out: Path | None, jobs: int) -> list[dict[str, Any]]:
    from ..laws.sweeping import swept

    if out is None:
        raise UserError(f"{ALL} writes one report a file.", "", "Say where: --out FOLDER.")
    if order.told:
        raise UserError("Nothing can be told of all architectures at once.", "", f"Leave out {', '.join(order.told)}.")
    return swept(order, out, jobs, aside)


def _files(
    reports: Sequence[dict[str, Any]], json_path: str | None, junit_path: Path | None, html_path: Path | None,
    lang: str, force: bool, *, single: bool,
) -> None:  # fmt: skip
    if json_path is not None:
        emit_json(reports[0] if single else {"schema": 1, "reports": list(reports)}, json_path, force, indent=1)
    if junit_path is None and html_path is None:
        return
    from ..laws.junit import junit
    from ..laws.page import page
    from ..tracing.file import write_whole

    if junit_path is not None:
        write_whole(junit_path, junit(reports).encode("utf-8"), replace=force)
    if html_path is not None:
        write_whole(html_path, page(reports, lang).encode("utf-8"), replace=force)


def _print(reports: Sequence[dict[str, Any]], lang: str, *, single: bool) -> None:
    from .check_table import lines, summary

    write(lines(reports[0], lang) if single else summary(reports, lang))
