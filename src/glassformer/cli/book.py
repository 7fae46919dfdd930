"""``glassformer book`` and ``glassformer worksheet``: the notes as one offline file, and exercises to print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError, did_you_mean
from .console import write
from .output import refuse_existing
from .subject import Language


def book_command(
    out: Annotated[Path, typer.Option(help="Where the book goes.")] = Path("book.html"),
    run: Annotated[
        Path | None, typer.Option(help="A run of the clinic language to show; without one a model is trained first.")
    ] = None,
    lang: Annotated[Language, typer.Option(help="The language it opens in.")] = Language.en,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Write the book: the notes as one interactive file that needs no network."""
    refuse_existing(out, force)
    from ..book import build
    from ..book.runs import library_with
    from ..tracing.file import write_whole

    # What can be refused at once is refused before a model is trained.
    build.template()
    chapters = build.chapters_of()
    library = library_with(run, say=lambda line: write([line]))
    text = build.build_book(library, chapters, lang=lang.value)
    write_whole(out, text.encode("utf-8"), replace=force)
    write([f"{out}: {len(text.encode()) / 1e6:.1f} MB. Open it in a browser, offline."])


def worksheet_command(
    out: Annotated[Path, typer.Option(help="Where the sheet goes, as HTML to print.")] = Path("worksheet.html"),
    seed: Annotated[int, typer.Option(min=0, help="What the numbers are drawn from.")] = 0,
    lang: Annotated[Language, typer.Option(help="Language of the sheet.")] = Language.en,
    only: Annotated[list[str] | None, typer.Option(help="An exercise; may be given several times (all).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Write a worksheet with numbers drawn from a seed, and its answers on a page of their own."""
    refuse_existing(out, force)
    from ..book.exercises import EXERCISES
    from ..book.worksheet import worksheet
    from ..tracing.file import write_whole

    for name in only or ():
        if name not in EXERCISES:
            raise UserError(f'There is no exercise "{name}".', "", did_you_mean(name, EXERCISES))
    chosen = [EXERCISES[name] for name in (only or EXERCISES)]
    write_whole(out, worksheet(chosen, seed=seed, lang=lang.value).encode("utf-8"), replace=force)
    write([f"{out}: {len(chosen)} exercises with seed {seed}, answers at the end."])
