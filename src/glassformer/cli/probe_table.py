"""A probe's report as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..text.visible import visible
from .console import aligned, number

MOST_ROWS = 40
"""Rows of one table that are printed; JSON holds them all."""

DIGITS = 5

WORDS = {
    "en": {
        "constructed": "constructed", "computed": "computed", "measured": "measured", "sampled": "sampled",
        "definition": "definition", "derivation": "derivation", "intuition": "intuition", "example": "example",
        "more": "… and {n} more rows: --json holds them all", "yes": "yes", "no": "no",
        "row": "row (from 0)", "rows": "rows (from 0)", "token": "token", "target": "target id",
        "target_token": "target", "layer": "layer (from 0)", "id": "token id", "pairs": "pairs", "windows": "windows",
        "tokens": "tokens", "right": "most probable", "wrong": "least probable", "unscaled": "scale without 1/√d_k",
        "largest_change_of_A": "largest change of A", "patched": "patched", "logit": "logit", "loss": "loss",
        "other_logit": "logit of the other text", "other_loss": "loss of the other text", "other": "other text",
        "parameters": "parameters", "from 0": " (from 0)",
    },
    "zh": {
        "constructed": "构造", "computed": "计算", "measured": "实测", "sampled": "抽样",
        "definition": "定义", "derivation": "推导", "intuition": "直觉", "example": "例子",
        "more": "……另有 {n} 行：--json 含全部", "yes": "是", "no": "否",
        "row": "行（从 0 起）", "rows": "行（从 0 起）", "token": "词元", "target": "目标编号",
        "target_token": "目标", "layer": "层（从 0 起）", "id": "词元编号", "pairs": "对", "windows": "窗口",
        "tokens": "词元数", "right": "最可能", "wrong": "最不可能", "unscaled": "不除以 √d_k 的尺度",
        "largest_change_of_A": "A 的最大变化", "patched": "被替换", "logit": "分数", "loss": "损失",
        "other_logit": "另一段文字的分数", "other_loss": "另一段文字的损失", "other": "另一段文字",
        "parameters": "参数", "from 0": "（从 0 起）",
    },
}  # fmt: skip


def lines(report: Mapping[str, Any], lang: str) -> Iterator[str]:
    """The report (its ``plain`` form) in one language: heading, what was asked, tables, notes."""
    words = WORDS[lang]
    yield f"── {report['title'][lang]}  [{words[report['provenance']]}] " + "─" * 20
    asked = [f"{words[name]}: {_asked(value)}" for name, value in report["asked"].items()]
    if asked:
        yield "  " + ";  ".join(asked)
    for table in report["tables"]:
        yield ""
        mark = "" if table["provenance"] == report["provenance"] else f"  [{words[table['provenance']]}]"
        yield table["title"][lang] + mark
        rows = table["rows"][:MOST_ROWS]
        begins = words["from 0"]
        head = [column[lang] + begins * (k in table["counted"]) for k, column in enumerate(table["columns"])]
        yield from ("  " + line for line in aligned([head, *([_cell(x, words, lang) for x in row] for row in rows)]))
        if len(table["rows"]) > MOST_ROWS:
            yield "  " + words["more"].format(n=len(table["rows"]) - MOST_ROWS)
    if report["notes"]:
        yield ""
    for note in report["notes"]:
        yield f"{words[note['status']]}: {note['text'][lang]}"


def _cell(value: Any, words: Mapping[str, str], lang: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return words["yes" if value else "no"]
    if isinstance(value, float):
        return number(value, DIGITS)
    return visible(str(value[lang] if isinstance(value, Mapping) else value), keep="")


def _asked(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_asked, value))
    if isinstance(value, float):
        return number(value, DIGITS)
    return f"“{visible(value, keep='')}”" if isinstance(value, str) else str(value)
