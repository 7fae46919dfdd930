"""Documents in rows: JSON Lines and Parquet, one document a row, in one named field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from ..errors import UserError, did_you_mean
from . import compression
from .files import cut
from .visible import visible

FIELD = "text"
"""The field that holds the text where none is named."""

LINE = 64 << 20
"""Characters of one line of JSON Lines, at most: a line is parsed as a whole."""

_ROWS = 64  # of a Parquet file, held at a time


class Document(NamedTuple):
    """One document: where it comes from, and its text in pieces, to be read before the next document is asked for."""

    name: str
    pieces: Iterator[str]


def json_documents(pieces: Iterable[str], name: str, field: str) -> Iterator[Document]:
    """One document for each line that is not blank: the text under ``field``; named ``name:line``, lines from 1.

    A line with ``null`` there is an empty document.
    Raises ``UserError`` naming the line that is too long, not a JSON object, or has no text under ``field``.
    """
    for number, line in enumerate(_lines(pieces, name), 1):
        if line.isspace() or not line:
            continue
        place = f"{name}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise UserError(
                f"{place}, is not JSON.",
                f"{type(problem).__name__}: {problem}.",
                'In a .jsonl file each line is one object, for example {"text": "..."}.',
            ) from problem
        if not isinstance(row, dict):
            raise UserError(f"{place}, is not a JSON object.", "", 'Write each line like {"text": "..."}.')
        if field not in row:
            raise _no_field(place, field, row)
        yield Document(f"{name}:{number}", _checked(row[field], place, field))


def parquet_documents(file: BinaryIO, name: str, field: str) -> Iterator[Document]:
    """One document for each row: the text in the column ``field``; named ``name:row``, rows from 1.

    Row groups are read one after another, a few rows at a time; a row without a value is an empty document. Raises
    ``UserError`` when pyarrow is not installed, the file is damaged or unpacks to far more than a text does, the column is
    missing or is not text.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as problem:
        raise UserError(
            f"Reading {name} needs pyarrow, which is not installed.",
            "It reads Parquet files.",
            'Install it: pip install "glassformer[parquet]".',
        ) from problem
    try:
        table = pyarrow.parquet.ParquetFile(file, buffer_size=compression.CHUNK)
        schema = table.schema_arrow
        if field not in schema.names:
            raise _no_field(name, field, schema.names)
        kind = schema.field(field).type
        if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
            raise UserError(
                f'The column "{visible(field)}" of {name} holds {kind}, not text.', "", "Name another --field."
            )
        yield from _rows(table, name, field)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as problem:
        raise UserError(
            f"{name} is not a whole Parquet file of text.",
            f"{visible(str(problem), keep='')}.",
            "Write it again, or save its text as .jsonl.",
        ) from problem


def _rows(table: Any, name: str, field: str) -> Iterator[Document]:
    size = sum(table.metadata.row_group(group).total_byte_size for group in range(table.num_row_groups))
    number = total = 0
    for group in range(table.num_row_groups):
        for batch in table.iter_batches(_ROWS, row_groups=[group], columns=[field], use_threads=False):
            for value in batch.column(0):
                number += 1
                text = value.as_py()
                total += len(text or "")
                # Repeated values are stored once: a few bytes may stand for any number of rows.
                if total > max(compression.FREE, compression.RATIO * size):
                    raise UserError(
                        f"{name} unpacks to far more than a text does.",
                        f"Its {size:,} bytes have given {total:,} characters by row {number:,}.",
                        "If you trust it, save its text as .jsonl.",
                    )
                yield Document(f"{name}:{number}", _checked(text, f"{name}, row {number}", field))


def _checked(text: Any, place: str, field: str) -> Iterator[str]:
    """The pieces of a text that can be written as UTF-8 and has no zero character; no value is an empty text."""
    if text is None:
        return iter(())
    if not isinstance(text, str):
        raise UserError(
            f'"{visible(field)}" of {place}, is not a text.', f"It is {_kind(text)}.", "Name another --field."
        )
    if "\x00" in text:
        raise UserError(
            f"{place}, contains a zero character, which no text has.",
            f"It is character {text.index(chr(0))} (counted from 0) of the text.",
            "Remove it.",
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise UserError(
            f"{place}, contains half a character: the surrogate U+{ord(text[problem.start]):04X} without its other half.",
            f"It is character {problem.start} (counted from 0) of the text; UTF-8 cannot spell it.",
            "Remove it, or write the whole pair.",
        ) from problem
    return cut([text.replace("\r\n", "\n")])


def _lines(pieces: Iterable[str], name: str) -> Iterator[str]:
    """The lines of ``pieces`` joined, without their line feeds; nothing else ends a line."""
    parts: list[str] = []
    length, number = 0, 1
    for piece in pieces:
        first, *others = piece.split("\n")
        parts.append(first)
        length += len(first)
        for other in others:
            yield "".join(parts)
            parts, length = [other], len(other)
            number += 1
        if length > LINE:
            raise UserError(
                f"Line {number} of {name} is longer than {LINE >> 20} Mi characters.",
                "In a .jsonl file each line is one document, and is read as a whole.",
                "Write one document a line; if it is one plain text, let its name end in .txt.",
            )
    if length:
        yield "".join(parts)


def _no_field(place: str, field: str, known: Iterable[str]) -> UserError:
    names = [visible(name, keep="") for name in known]
    advice = did_you_mean(field, names) if names else "It has no fields at all."
    return UserError(
        f'{place}, has no field "{visible(field, keep="")}".', advice, "Name the one to read with --field."
    )


def _kind(value: Any) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), type(value).__name__)
