"""``glassformer data show``: what a model is trained on, as it sees it: one batch with everything that belongs to it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError
from ..text.visible import visible
from .console import aligned, help_if_alone, write
from .output import emit_json, refuse_existing
from .subject import Language
from .words import DATA

if TYPE_CHECKING:
    import numpy as np

    from ..text.batches import Batch, Data
    from ..text.tokenizer import Tokenizer

SCHEMA = 1
ROWS = 2
POSITIONS = 16
COLUMNS = ("i", "segment", "position", "token", "id", "target", "target id", "scored")


class Part(StrEnum):
    """Which part of the text."""

    train = "train"
    validation = "validation"


data_app = typer.Typer(name="data", help="Look at the data of a run.")


@data_app.callback(invoke_without_command=True)
def _verbs(context: typer.Context) -> None:
    """Look at the data of a run."""
    help_if_alone(context)


@data_app.command("show")
def show_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    rows: Annotated[int, typer.Option(help="Rows of the batch.", min=1)] = ROWS,
    positions: Annotated[
        int | None, typer.Option(help=f"Positions of a row that are shown ({POSITIONS}).", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.", min=0)] = 0,
    part: Annotated[
        Part, typer.Option(help="Training draws a batch; validation begins at its beginning.")
    ] = Part.train,
    json_path: Annotated[
        str | None, typer.Option("--json", metavar="PATH|-", help="Write the whole batch as JSON.")
    ] = None,
    lang: Annotated[Language, typer.Option(help="Language of the table.")] = Language.en,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Show one batch: tokens, targets, which targets count, segments and positions."""
    from ..training import open_run_data

    refuse_existing(json_path if json_path != "-" else None, force)
    opened = open_run_data(run)
    batch = _batch(opened.data, opened.context, rows, seed, part)
    if json_path is not None:
        emit_json(as_json(batch, opened.tokenizer, opened.origin), json_path, force)
    if json_path != "-":
        shown = min(POSITIONS if positions is None else positions, batch.tokens.shape[1])
        write([opened.origin, opened.data.describe(), ""])
        write(table(batch, opened.tokenizer, shown, DATA[lang.value]))


def _batch(data: Data, n: int, rows: int, seed: int, part: Part) -> Batch:
    import numpy as np

    if part is Part.train:
        return data.batch(n, rows, np.random.default_rng(seed))
    first = next(iter(data.validation(n, rows)), None)
    if first is None:
        raise UserError("This run has no validation text.", "", "Leave --part out.")
    return first


def positions_of(batch: Batch) -> np.ndarray[Any, Any]:
    """The position (b, n) of each token: from 0 in its segment, or in its row where there are no segments."""
    import numpy as np

    if batch.segments is None:
        return np.broadcast_to(np.arange(batch.tokens.shape[1]), batch.tokens.shape)
    place = np.arange(batch.tokens.shape[1])
    begins = np.diff(batch.segments, axis=1, prepend=batch.segments[:, :1] - 1) != 0
    return place - np.maximum.accumulate(np.where(begins, place, 0), axis=1)


def table(batch: Batch, tokenizer: Tokenizer, shown: int, words: dict[str, str]) -> list[str]:
    """The rows of ``batch`` as a table, the first ``shown`` positions of each."""
    positions, n = positions_of(batch), batch.tokens.shape[1]
    lines: list[str] = []
    for row in range(batch.tokens.shape[0]):
        cells = [[words[column] for column in COLUMNS]]
        for i in range(shown):
            token, target = int(batch.tokens[row, i]), int(batch.targets[row, i])
            cells.append(
                [
                    str(i + 1),
                    "" if batch.segments is None else str(int(batch.segments[row, i])),
                    str(int(positions[row, i])),
                    _text(tokenizer, token),
                    str(token),
                    _text(tokenizer, target),
                    str(target),
                    words["yes"] if batch.scored[row, i] else words["no"],
                ]
            )
        lines.append(words["row"].format(row=row + 1, n=n, scored=int(batch.scored[row].sum())))
        lines += ["  " + line for line in aligned(cells)]
        if shown < n:
            lines.append("  " + words["more"].format(n=n - shown))
        lines.append("")
    lines.append(words["isolated" if batch.segments is not None else "whole"])
    return lines


def _text(tokenizer: Tokenizer, id: int) -> str:
    return f"“{visible(tokenizer.texts[id], keep='')}”"


def as_json(batch: Batch, tokenizer: Tokenizer, origin: str) -> dict[str, Any]:
    """The whole batch, with the text of each token."""
    return {
        "schema": SCHEMA,
        "data": origin,
        "texts": [[tokenizer.texts[id] for id in row] for row in batch.tokens.tolist()],
        "tokens": batch.tokens.tolist(),
        "targets": batch.targets.tolist(),
        "scored": batch.scored.tolist(),
        "segments": None if batch.segments is None else batch.segments.tolist(),
        "positions": positions_of(batch).tolist(),
    }
