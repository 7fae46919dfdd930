"""What a run learns from, opened again."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..text import Tokenizer, clinic, open_prepared
from ..text.batches import Data
from . import run_files
from .loading import read_parts


class RunData(NamedTuple):
    """``data`` as the run reads it, ``context`` positions at a time, the ``tokenizer``, and where the data come from."""

    data: Data
    tokenizer: Tokenizer
    context: int
    origin: str


def open_run_data(path: Path) -> RunData:
    """The data of the run in the folder ``path``, finished or not.

    Raises ``UserError`` for a folder that is no run, or whose data are missing or damaged.
    """
    run_files.require_folder(path)
    parts = read_parts(path)
    context, lang = parts.model.config.context, parts.facts.get("clinic")
    if lang is not None:
        return RunData(clinic(lang), parts.tokenizer, context, f"the clinic language ({lang})")
    ready = open_prepared(path / run_files.DATA)
    return RunData(ready.corpus, ready.tokenizer, context, ready.facts["origin"])
