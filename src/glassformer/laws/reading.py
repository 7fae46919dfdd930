"""Reading a report that is JSON: what to say of it in a table, in JUnit and on a page, in both languages.

Nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from ..bilingual import Words, words
from ..text.visible import visible

Plain: TypeAlias = Mapping[str, Any]

VERDICTS: Mapping[str, Words] = {
    "violated": words("violated", "违反"),
    "holds": words("holds", "成立"),
    "documented limit": words("documented limit", "文档所述限制"),
    "not supported": words("not supported", "不支持"),
    "not applicable": words("not applicable", "不适用"),
}
"""The verdicts, in the order in which they are counted for a reader."""

WITNESS: Mapping[str, Words] = {
    "seed": words("seed", "种子"),
    "length": words("length", "长度"),
    "row": words("row", "行"),
    "position": words("position", "位置"),
    "changed": words("changed token", "改变的词元"),
    "chunks": words("chunks", "分块"),
    "control": words("control", "对照"),
    "logit_standard_deviation": words("standard deviation of the logits", "logits 的标准差"),
}
"""What the usual entries of a witness are called."""


def grouped(report: Plain) -> Iterator[tuple[str, list[Plain]]]:
    """The entries of each law, in the order of the report."""
    laws: dict[str, list[Plain]] = {}
    for entry in report["laws"]:
        laws.setdefault(entry["law"], []).append(entry)
    yield from laws.items()


def exit_code(report: Plain, *, strict: bool = False) -> int:
    """0 when nothing is violated, 1 otherwise; ``strict`` counts what is not supported too; 2 when nothing was decided."""
    if not any("measured" in entry for entry in report["laws"]):
        return 2
    counts = report["verdicts"]
    return int(counts.get("violated", 0) > 0 or (strict and counts.get("not supported", 0) > 0))


def statement(report: Plain, law: str, lang: str) -> str:
    """What a law says."""
    return report.get("statements", {}).get(law, {}).get(lang, "")


def measured(entry: Plain, lang: str) -> str:
    """``1.88 logit, at most 1e-09``; empty where nothing was measured."""
    if "measured" not in entry:
        return ""
    value = entry["measured"]
    limit = {"at most": words("at most", "最多"), "at least": words("at least", "至少")}[entry["relation"]][lang]
    said = {"en": "not a number", "zh": "不是数"}[lang] if value is None else f"{value:.3g} {entry['unit']}"
    bound = entry["bound"]
    return said if bound is None else f"{said}, {limit} {bound:.3g}"


def reason(entry: Plain, lang: str) -> str:
    """Why there is no measurement, or which documentation states the limit; printable."""
    return visible(str(entry.get("reason", {}).get(lang, "")), keep="")


def witness(entry: Plain, lang: str) -> str:
    """``length 12, row 3, position 0``; printable."""
    parts = (
        f"{WITNESS[key][lang] if key in WITNESS else key} {f'{value:.3g}' if isinstance(value, float) else value}"
        for key, value in entry.get("witness", {}).items()
        if value is not None
    )
    return visible(", ".join(parts), keep="")


def place(entry: Plain, lang: str) -> str:
    """``first in blocks.0.attention (Attention, model.py:12)``; empty where the fault was not located; printable."""
    at = entry.get("place")
    if not at:
        return ""
    file = f", {at['file']}:{at['line']}" if at.get("file") else ""
    said = words("first in", "最早出现于")[lang]
    return visible(f"{said} {at['module'] or '.'} ({at['class']}{file})", keep="")


def mask(entry: Plain) -> list[str]:
    """Who read whom, one line a position; empty where no attention was seen."""
    return [visible(str(line), keep="") for line in (entry.get("place") or {}).get("mask", ())]


def counts(report: Plain, lang: str) -> str:
    """``1 violated, 12 holds``: the verdicts that occur."""
    numbers = report["verdicts"]
    return ", ".join(f"{numbers[key]} {said[lang]}" for key, said in VERDICTS.items() if numbers.get(key))


def title(report: Plain, lang: str) -> str:
    """The subject and what it was taken for; printable."""
    facts = report.get("facts", {})
    parts = [str(report["subject"]), str(report["kind"])]
    if "class" in facts:
        parts += [
            str(facts["class"]),
            {"en": f"{facts['parameters']:,} parameters", "zh": f"{facts['parameters']:,} 个参数"}[lang],
        ]
    return visible(" · ".join(parts), keep="")
