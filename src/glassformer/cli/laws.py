"""``glassformer laws``: the table of laws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError, did_you_mean
from .check_table import WORDS, law_lines
from .console import write
from .output import emit_json, refuse_existing
from .subject import Language

if TYPE_CHECKING:
    from ..laws.law import Law


def laws_command(
    law: Annotated[str | None, typer.Argument(metavar="[LAW]", help="Tell all about this law.")] = None,
    json_path: Annotated[str | None, typer.Option("--json", metavar="PATH|-", help="Write the table as JSON.")] = None,
    lang: Annotated[Language, typer.Option(help="Language of the table.")] = Language.en,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Show the laws: statement, conditions, why they matter, chapter of the notes, and the probes that test them."""
    refuse_existing(json_path if json_path != "-" else None, force)
    from ..laws.table import LAWS

    chosen = [each for each in LAWS if law in (None, each.id)]
    if not chosen:
        raise UserError(f'There is no law "{law}".', "", did_you_mean(str(law), [each.id for each in LAWS]))
    if json_path is not None:
        emit_json({"schema": 1, "laws": [_plain(each) for each in chosen]}, json_path, force)
    if json_path == "-":
        return
    if law is not None:
        write(law_lines(chosen[0], lang.value))
        return
    width = max(len(each.id) for each in LAWS)
    write([*(f"{each.id.ljust(width)}  {each.statement[lang.value]}" for each in LAWS), "", WORDS[lang.value]["more"]])


def _plain(law: Law) -> dict[str, Any]:
    probes = [
        {"id": probe.id, "does": dict(probe.does), "family": probe.family.value, "fast": probe.fast}
        for probe in law.probes
    ]
    return {
        "id": law.id, "statement": dict(law.statement), "formula": law.formula, "conditions": dict(law.conditions),
        "why": dict(law.why), "chapter": law.chapter, "probes": probes,
    }  # fmt: skip
