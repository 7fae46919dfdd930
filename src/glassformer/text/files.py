"""The bytes of a file as text, in pieces: valid UTF-8, or one message that says what is wrong and what to do.

Nothing here holds a whole file: a file of one endless line takes no more memory than any other.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from ..errors import UserError, did_you_mean
from .compression import CHUNK, unpacked
from .visible import visible

PIECE = 1 << 20
"""Characters of a piece of text, at most."""

_MARKS = (  # longest first: the mark of UTF-32 starts with that of UTF-16
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_KINDS = (
    (b"%PDF", "a PDF document", ""),
    (b"PK\x03\x04", "a zip archive (or a document of an office program)", ""),
    (b"\x89PNG", "a picture", ""),
    (b"\xff\xd8\xff", "a picture", ""),
    (b"\x1f\x8b", "a compressed file", ".gz"),
    (b"\x28\xb5\x2f\xfd", "a compressed file", ".zst"),
    (b"PAR1", "a Parquet file", ".parquet"),
    (b"\x7fELF", "a program", ""),
    (b"\xd0\xcf\x11\xe0", "a document of an office program", ""),
)
_HEAD = 4  # bytes in which marks and kinds show


def open_file(path: Path) -> BinaryIO:
    """The regular file at ``path``, open for reading; raises ``UserError`` when it is something else or unreadable."""
    name = visible(str(path), keep="")
    try:
        if path.is_dir():
            raise UserError(f"{name} is a folder, not a file.", "", "Name one file.")
        if not path.exists():
            raise missing(path)
        if not path.is_file():
            raise UserError(f"{name} is not a regular file.", "", "Name a file, or - for standard input.")
        return path.open("rb")
    except (OSError, ValueError) as problem:
        raise unreadable(name, problem) from problem


def missing(path: Path) -> UserError:
    """Nothing is at ``path``: what is there with a similar name. Raises ``OSError`` and ``ValueError`` of looking."""
    siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    known = [visible(name, keep="") for name in siblings]
    return UserError(
        f"There is no file {visible(str(path), keep='')}.", "", did_you_mean(visible(path.name, keep=""), known)
    )


def unreadable(name: str, problem: Exception) -> UserError:
    """The system refuses to read ``name``."""
    return UserError(f"{name} cannot be read.", f"{problem}.", "Check the path and its permissions.")


def chunks(file: BinaryIO, packing: str, name: str) -> Iterator[bytes]:
    """The bytes of ``file`` from its start, unpacked if ``packing`` is ``.gz`` or ``.zst``; raises ``UserError``."""
    try:
        file.seek(0)
        if packing:
            yield from unpacked(file, packing, name)
        else:
            while chunk := file.read(CHUNK):
                yield chunk
    except OSError as problem:
        raise unreadable(name, problem) from problem


def text_pieces(raw: Iterable[bytes], name: str, size: int = PIECE) -> Iterator[str]:
    """The text that the bytes ``raw`` spell in UTF-8, in pieces of ``size`` characters as of ``cut``.

    However the bytes come in pieces, the same text comes out in the same pieces. A UTF-8 mark at the start is not text
    and is dropped; ``\\r\\n`` becomes ``\\n``. Raises ``UserError`` at the first byte that no text has: the marks of
    UTF-16 and UTF-32, kinds of file that are not text, a zero byte, anything that is not UTF-8; with its place.
    """
    return cut(_line_feeds(_decoded(_after_head(iter(raw), name), name)), size)


def cut(texts: Iterable[str], size: int = PIECE) -> Iterator[str]:
    """``texts``, joined, in pieces of ``size`` characters (the last may be shorter, none is empty), cut anywhere.

    Whoever needs words whole across two pieces puts them together again (``preparation.encoded``).
    """
    buffer = ""
    for text in texts:
        buffer += text
        start = 0
        while len(buffer) - start >= size:
            yield buffer[start : start + size]
            start += size
        buffer = buffer[start:]
    if buffer:
        yield buffer


def _after_head(raw: Iterator[bytes], name: str) -> Iterator[bytes]:
    """``raw`` with its first bytes in one piece; raises ``UserError`` when they are those of another kind of file."""
    head = b""
    for chunk in raw:
        head += chunk
        if len(head) >= _HEAD:
            break
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            raise UserError(
                f"{name} is written in {encoding}, not UTF-8.",
                f"It starts with the byte order mark {mark.hex(' ')}.",
                f"Save it as UTF-8, for example: iconv -f {encoding} -t UTF-8 OLD > NEW.",
            )
    for start, kind, ending in _KINDS:
        if head.startswith(start):
            advice = f"Let its name end in {ending}." if ending else "Save its text as UTF-8."
            raise UserError(f"{name} is {kind}, not a text.", f"It starts with {start!r}.", advice)
    return chain([head], raw)


def _decoded(raw: Iterable[bytes], name: str) -> Iterator[str]:
    """``raw`` as text, a UTF-8 mark at the start left out."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset, line = 0, 1  # of the first byte that is not decoded yet
    beginning = True
    for chunk, final in chain(((chunk, False) for chunk in raw), [(b"", True)]):
        pending = decoder.getstate()[0]
        if (place := chunk.find(b"\x00")) >= 0:
            raise _zero_byte(chunk, place, offset + len(pending) + place, name)
        try:
            text = decoder.decode(chunk, final)
        except UnicodeDecodeError as problem:
            wrong = problem.object
            line += wrong.count(b"\n", 0, problem.start)
            raise UserError(
                f"{name} is not UTF-8.",
                f"Byte {offset + problem.start} (counted from 0), in line {line}, is 0x{wrong[problem.start]:02x}: "
                f"{problem.reason}.",
                "Save it as UTF-8, for example: iconv -f GB18030 -t UTF-8 OLD > NEW (or -f WINDOWS-1252, -f LATIN1).",
            ) from problem
        offset += len(pending) + len(chunk) - len(decoder.getstate()[0])
        line += chunk.count(b"\n")
        if beginning and text:
            text, beginning = text.removeprefix("\ufeff"), False
        yield text


def _line_feeds(texts: Iterable[str]) -> Iterator[str]:
    """``texts`` with ``\\r\\n`` as ``\\n``, also where one piece ends between the two."""
    held = ""
    for text in texts:
        joined = held + text
        held = "\r" if joined.endswith("\r") else ""
        yield joined.removesuffix(held).replace("\r\n", "\n")
    yield held


def _zero_byte(chunk: bytes, place: int, offset: int, name: str) -> UserError:
    seen = chunk[place : place + 4096]
    often = seen.count(b"\x00") > len(seen) // 4
    return UserError(
        f"{name} contains a zero byte, which no text has; it looks "
        f"{'UTF-16 without a byte order mark' if often else 'binary'}.",
        f"The first one is byte {offset} (counted from 0).",
        "Save it as UTF-8 text, for example: iconv -f UTF-16LE -t UTF-8 OLD > NEW." if often else "Name a text file.",
    )
