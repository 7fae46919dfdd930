"""A probe's report as HTML: its tables, and notes with their status."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from ..notation.numerals import number_text
from ..tracing.probes import Report

_MARKS: Mapping[str, Mapping[str, str]] = {
    "en": {"yes": "yes", "no": "no", "measured": "measured", "computed": "computed", "constructed": "constructed",
           "sampled": "sampled", "definition": "Definition", "derivation": "Derivation", "intuition": "Intuition",
           "example": "Example"},
    "zh": {"yes": "是", "no": "否", "measured": "实测", "computed": "计算", "constructed": "构造", "sampled": "抽样",
           "definition": "定义", "derivation": "推导", "intuition": "直觉", "example": "示例"},
}  # fmt: skip


def report_html(report: Report, lang: str) -> str:
    """Every table of ``report``; texts are data and are escaped."""
    marks = _MARKS[lang]
    parts = [
        f'<div class="report"><h3>{html.escape(report.title[lang])} <small>{marks[report.provenance]}</small></h3>'
    ]
    for table in report.tables:
        head = "".join(f"<th>{html.escape(column[lang])}</th>" for column in table.columns)
        # Readers of the book count layers, heads and positions from 1.
        shown = ([_from_one(x) if k in table.counted else x for k, x in enumerate(row)] for row in table.rows)
        rows = "".join(f"<tr>{''.join(_cell(x, lang) for x in row)}</tr>" for row in shown)
        caption = html.escape(table.title[lang])
        parts.append(f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    parts += [f"<p><em>{marks[note.status]}.</em> {html.escape(note.text[lang])}</p>" for note in report.notes]
    return "".join([*parts, "</div>"])


def _from_one(x: Any) -> Any:
    return x + 1


def _cell(x: Any, lang: str) -> str:
    match x:
        case None:
            return "<td>—</td>"
        case bool():
            return f"<td>{_MARKS[lang]['yes' if x else 'no']}</td>"
        case int():
            return f'<td class="number">{x}</td>'
        case float():
            return f'<td class="number">{html.escape(number_text(float(f"{x:.5g}")))}</td>'
        case Mapping():
            return f"<td>{html.escape(x[lang])}</td>"
        case _:
            return f"<td>{html.escape(str(x))}</td>"
