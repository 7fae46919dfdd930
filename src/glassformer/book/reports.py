"""A probe's report as HTML: its tables, and notes with their status."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from ..tracing.probes import Report
from ..tracing.probes.report import Table
from .tex import decimal, tex_span, with_symbols

_MARKS: Mapping[str, Mapping[str, str]] = {
    "en": {"yes": "yes", "no": "no", "measured": "measured", "computed": "computed", "constructed": "constructed",
           "sampled": "sampled", "definition": "Definition", "derivation": "Derivation", "intuition": "Intuition",
           "example": "Example", "more": "{} more rows", "layer": "layer {}", "stop": ". "},
    "zh": {"yes": "是", "no": "否", "measured": "实测", "computed": "计算", "constructed": "构造", "sampled": "抽样",
           "definition": "定义", "derivation": "推导", "intuition": "直觉", "example": "示例",
           "more": "其余 {} 行", "layer": "第 {} 层", "stop": "："},
}  # fmt: skip

_MOST_ROWS = 8
"""Rows of a table that are seen at once."""

_HEAD = re.compile(r"A\^\((\d+)\) l=(\d+)")
_PLACE = re.compile(r"blocks\.(\d+)\.([XR])")


def report_html(report: Report, lang: str) -> str:
    """Every table of ``report``; texts are data and are escaped."""
    marks = _MARKS[lang]
    parts = [
        f'<div class="report"><h3>{html.escape(report.title[lang])} <small>{marks[report.provenance]}</small></h3>'
    ]
    parts += [_table(table, lang) for table in report.tables]
    parts += [
        f"<p><em>{marks[note.status]}</em>{marks['stop']}{with_symbols(note.text[lang])}</p>" for note in report.notes
    ]
    return "".join([*parts, "</div>"])


def _table(table: Table, lang: str) -> str:
    """The first rows, and the others where a reader asks for them."""
    numbers = [any(type(x) in (int, float) for x in column) for column in zip(*table.rows, strict=True)]
    head = "".join(_head(c[lang], number, lang) for c, number in zip(table.columns, numbers, strict=True))
    # Readers of the book count layers, heads and positions from 1.
    shown = [[_from_one(x) if k in table.counted else x for k, x in enumerate(row)] for row in table.rows]
    rows = [f"<tr>{''.join(_cell(x, lang) for x in row)}</tr>" for row in shown]
    most = len(rows) if len(rows) <= _MOST_ROWS + 2 else _MOST_ROWS
    seen = (
        f"<table><caption>{with_symbols(table.title[lang])}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows[:most])}</tbody></table>"
    )
    if most == len(rows):
        return seen
    more = _MARKS[lang]["more"].format(len(rows) - most)
    rest = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows[most:])}</tbody></table>"
    return f"{seen}<details><summary>{more}</summary>{rest}</details>"


def _head(text: str, number: bool, lang: str) -> str:
    """The top of a column; a head of attention is named as everywhere in the book, counted from 1."""
    told = with_symbols(text)
    if match := _HEAD.fullmatch(text):
        head, layer = (int(x) + 1 for x in match.groups())
        told = f"{tex_span(f'A^{{({head})}}')}<br><small>{_MARKS[lang]['layer'].format(layer)}</small>"
    return f'<th class="number">{told}</th>' if number else f"<th>{told}</th>"


def _from_one(x: Any) -> Any:
    return x + 1


def _cell(x: Any, lang: str) -> str:
    match x:
        case None:
            return '<td class="number">—</td>'
        case bool():
            return f"<td>{_MARKS[lang]['yes' if x else 'no']}</td>"
        case int():
            return f'<td class="number">{x}</td>'
        case float():
            return f'<td class="number">{decimal(x)}</td>'
        case Mapping():
            return f"<td>{with_symbols(x[lang])}</td>"
        case "embed.X" | "head.p":
            return f"<td>{tex_span(x[-1])}</td>"
        case str() if match := _PLACE.fullmatch(x):
            return f"<td>{tex_span(f'{match[2]}^{{({int(match[1]) + 1})}}')}</td>"
        case _:
            return f"<td>{with_symbols(str(x))}</td>"
