"""Tables that are made, not written: glossary, questions, promises, sources."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from .coverage import PROMISES
from .library import Library
from .questions import QUESTIONS
from .sources import SOURCES

_HEADS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "glossary": {"en": ("Symbol", "Name", "Axes", "Kind"), "zh": ("符号", "名称", "轴", "种类")},
    "questions": {"en": ("Question", "Short answer", "Where"), "zh": ("问题", "简答", "详见")},
    "coverage": {"en": ("Section", "Promise", "Kept in"), "zh": ("节", "承诺", "兑现于")},
    "sources": {"en": ("", "Source"), "zh": ("", "来源")},
}


def tables(library: Library, covered: Mapping[str, Sequence[str]], lang: str) -> dict[str, str]:
    """Every table by name, as HTML."""
    rows = {
        "glossary": _glossary(library, lang),
        "questions": [
            (html.escape(q.text[lang]), html.escape(q.answer[lang]), ", ".join(_link(s, lang) for s in q.sections))
            for q in QUESTIONS
        ],
        "coverage": [
            (
                p.id,
                html.escape(p.text[lang]) + _waits(p.waits, lang),
                ", ".join(_link(s, lang) for s in covered.get(p.id, ())),
            )
            for p in PROMISES
        ],
        "sources": [(name, html.escape(text)) for name, text in SOURCES.items()],
    }
    return {name: _table(_HEADS[name][lang], content) for name, content in rows.items()}


def _glossary(library: Library, lang: str) -> list[tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for program in library.programs.values():
        for placed in program.quantities.values():
            q = placed.quantity
            axes = " × ".join(dimension for _, dimension in placed.axes) or "—"
            name = html.escape(q.zh if lang == "zh" else q.en)
            tex = f'<span class="tex" data-tex="{html.escape(q.symbol)}"></span>'
            found.setdefault(f"{q.symbol}{q.en}", (tex, name, axes, html.escape(q.kind.value)))
    return list(found.values())


def _waits(waits: Mapping[str, str] | None, lang: str) -> str:
    if waits is None:
        return ""
    word = "尚待：" if lang == "zh" else "waits for: "
    return f' <span class="waits">({word}{html.escape(waits[lang])})</span>'


def _link(section: str, lang: str) -> str:
    return f'<a class="see" href="#{lang}-{section}">{section}</a>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
