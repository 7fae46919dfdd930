"""Tables that are made, not written: glossary, questions, promises, sources."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from ..bilingual import Words, words
from ..notation import Kind
from ..notation.symbols import name_latex
from .coverage import PROMISES
from .library import Library
from .questions import QUESTIONS
from .sources import SOURCES
from .tex import tex_span, with_symbols

_HEADS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "glossary": {"en": ("Symbol", "Name", "Axes", "Kind"), "zh": ("符号", "名称", "轴", "种类")},
    "questions": {"en": ("Question", "Short answer", "Where"), "zh": ("问题", "简答", "详见")},
    "coverage": {"en": ("Section", "Promise", "Kept in"), "zh": ("节", "承诺", "兑现于")},
    "sources": {"en": ("", "Source"), "zh": ("", "来源")},
}

_NAMES: Mapping[str, Mapping[str, str]] = {"en": {"front": "preface"}, "zh": {"front": "卷首", "letters": "记号"}}
"""Promises that belong to no section."""

_KINDS: Mapping[Kind, Words] = {
    Kind.INPUT: words("input", "输入"), Kind.PARAMETER: words("parameter", "参数"),
    Kind.INTERMEDIATE: words("intermediate", "中间量"), Kind.COEFFICIENT: words("coefficient", "系数"),
    Kind.PROBABILITY: words("probability", "概率"), Kind.LOSS: words("loss", "损失"),
    Kind.GRADIENT: words("gradient", "梯度"), Kind.OPTIMIZER_STATE: words("optimizer state", "优化器状态"),
    Kind.CONSTANT: words("constant", "常量"),
}  # fmt: skip


def tables(library: Library, covered: Mapping[str, Sequence[str]], lang: str) -> dict[str, str]:
    """Every table by name, as HTML."""
    rows = {
        "glossary": _glossary(library, lang),
        "questions": [
            (with_symbols(q.text[lang]), with_symbols(q.answer[lang]), _links(q.sections, lang)) for q in QUESTIONS
        ],
        "coverage": [
            (
                _NAMES[lang].get(p.id, p.id),
                with_symbols(p.text[lang]) + _waits(p.waits, lang),
                _links(covered.get(p.id, ()), lang),
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
            shape = r" \times ".join(name_latex(dimension) for _, dimension in placed.axes)
            name = html.escape(q.zh if lang == "zh" else q.en)
            kind = _KINDS[q.kind][lang]
            found.setdefault(f"{q.symbol}{q.en}", (tex_span(q.symbol), name, tex_span(shape) if shape else "—", kind))
    return list(found.values())


def _waits(waits: Mapping[str, str] | None, lang: str) -> str:
    if waits is None:
        return ""
    told = html.escape(waits[lang])
    return f'<span class="waits">{f"（尚待：{told}）" if lang == "zh" else f" (waits for: {told})"}</span>'


def _links(sections: Sequence[str], lang: str) -> str:
    return ("、" if lang == "zh" else ", ").join(_link(section, lang) for section in sections)


def _link(section: str, lang: str) -> str:
    return f'<a class="see" href="#{lang}-{section}">{section}</a>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
