"""What every probe hands on: tables and notes in both languages, and the numbers behind them as strict JSON.

A statement says what it is (definition, derivation, intuition, example), a number where it comes from (constructed,
computed, measured, sampled). Token texts are data: whoever prints them makes them visible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from ...bilingual import Words, words

Cell: TypeAlias = str | int | float | bool | Words | None
Provenance: TypeAlias = Literal["constructed", "computed", "measured", "sampled"]
Status: TypeAlias = Literal["definition", "derivation", "intuition", "example"]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of ``columns``. A cell is a text (in both languages, or data), a number, or None: nothing to measure.

    ``counted`` names the columns (by position) that number layers, heads or positions from 0: a printer that counts from
    1 adds one, any other says where it begins.
    """

    title: Words
    columns: tuple[Words, ...]
    rows: tuple[tuple[Cell, ...], ...]
    provenance: Provenance
    counted: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row of {self.title['en']!r} has not {len(self.columns)} cells")
        if any(type(row[column]) is not int for row in self.rows for column in self.counted):
            raise ValueError(f"{self.title['en']!r} counts something that is no whole number")


@dataclass(frozen=True, slots=True)
class Note:
    """One statement about a probe, with its status."""

    status: Status
    text: Words


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one probe. ``asked`` says of what it was asked, ``values`` holds every number by name."""

    kind: str
    title: Words
    provenance: Provenance
    tables: tuple[Table, ...]
    notes: tuple[Note, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The report as strict JSON; a number that JSON cannot spell is null."""
        return {
            "kind": self.kind,
            "title": dict(self.title),
            "provenance": self.provenance,
            "asked": strict(self.asked),
            "tables": [
                {
                    "title": dict(table.title),
                    "columns": [dict(column) for column in table.columns],
                    "rows": strict(table.rows),
                    "provenance": table.provenance,
                    "counted": list(table.counted),
                }
                for table in self.tables
            ],
            "notes": [{"status": note.status, "text": dict(note.text)} for note in self.notes],
            "values": strict(self.values),
        }


def report_from(data: Mapping[str, Any]) -> Report:
    """The report that ``plain`` made ``data`` of. Raises ``ValueError``, ``KeyError`` or ``TypeError`` where none did."""
    tables = tuple(
        Table(
            _words(table["title"]),
            tuple(map(_words, table["columns"])),
            tuple(tuple(map(_cell, row)) for row in table["rows"]),
            _one_of(table["provenance"], get_args(Provenance)),
            tuple(table["counted"]),
        )
        for table in data["tables"]
    )
    notes = tuple(Note(_one_of(note["status"], get_args(Status)), _words(note["text"])) for note in data["notes"])
    provenance = _one_of(data["provenance"], get_args(Provenance))
    asked, values = dict(data["asked"]), dict(data["values"])
    return Report(str(data["kind"]), _words(data["title"]), provenance, tables, notes, asked, values)


def _words(data: Mapping[str, Any]) -> Words:
    return words(*(_text(data[language]) for language in ("en", "zh")))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _cell(value: Any) -> Cell:
    if isinstance(value, Mapping):
        return _words(value)
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"{value!r} is no cell of a table")
    return value


def _one_of(value: Any, known: Sequence[Any]) -> Any:
    if value not in known:
        raise ValueError(f"{value!r} is none of {', '.join(known)}")
    return value


def strict(value: Any) -> Any:
    """``value`` as JSON: arrays and sequences as lists, NumPy's numbers as Python's, what is not finite as null."""
    if isinstance(value, np.ndarray):
        return strict(value.tolist())
    if isinstance(value, np.generic):
        return strict(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): strict(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [strict(part) for part in value]
    return value


def cell(x: Any) -> float | None:
    """A number for a table, None where it is not one (nothing could be measured)."""
    # Zero has no sign for a reader: the difference of two equal numbers divided by a negative one would print as -0.
    return float(x) + 0.0 if math.isfinite(x) else None
