"""Pieces of the book as tests look at them: its chapters, and its examples at other numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import glassformer.book
from glassformer.book.example import Example
from glassformer.book.examples import EXAMPLES
from glassformer.book.syntax import Chapter, read_chapter
from glassformer.notation.evaluate import Array


def chapter(number: int, lang: str) -> Chapter:
    """A chapter in one language."""
    folder = Path(glassformer.book.__file__).parent / "chapters" / lang
    return read_chapter(folder / f"{number:02}.md", lang)


def moved(id: str, **inputs: Any) -> dict[str, Array]:
    """The values of an example after edits."""
    example = EXAMPLES[id]
    changed = {**example.inputs, **{f"ex.{name}": np.asarray(x) for name, x in inputs.items()}}
    edited = Example(id=id, title=example.title, program=example.program, inputs=changed, show=example.show)
    return {name.removeprefix("ex."): x for name, x in edited.values().items()}
