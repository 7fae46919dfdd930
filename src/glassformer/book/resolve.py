"""What directives become: HTML, computed from definitions and runs, or an error with file and line."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt

from ..errors import did_you_mean
from .library import Library
from .reports import report_html
from .sources import SOURCES
from .syntax import INLINE, MATH, Block, Chapter, ChapterError, Directive, Prose, Where, directive_of

STATUS_WORDS: Mapping[str, Mapping[str, str]] = {
    "question": {"en": "Question", "zh": "问题"}, "definition": {"en": "Definition", "zh": "定义"},
    "derivation": {"en": "Derivation", "zh": "推导"}, "intuition": {"en": "Intuition", "zh": "直觉"},
    "example": {"en": "Example", "zh": "示例"}, "boundary": {"en": "Boundary", "zh": "边界"},
    "note": {"en": "Reading", "zh": "说明"},
}  # fmt: skip

FIGURES = ("dataflow", "mask", "gradient")
TABLES = ("questions", "glossary", "coverage", "sources")


@dataclass(slots=True)
class Used:
    """What the chapters refer to and the page must therefore hold."""

    chains: set[str] = field(default_factory=set)
    examples: set[str] = field(default_factory=set)
    exercises: set[str] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)
    links: list[tuple[str, Where]] = field(default_factory=list)
    covered: dict[str, list[str]] = field(default_factory=dict)


class Resolver:
    """Turns one chapter after another into HTML and keeps account of what they used."""

    def __init__(self, library: Library, exercises: Mapping[str, Any]) -> None:
        self.library = library
        self.exercises = exercises
        self.used = Used()
        # Raw HTML in a chapter is text, as everywhere.
        self.markdown = MarkdownIt("commonmark", {"html": False, "typographer": True}).enable(["table", "smartquotes"])
        self.lang = "en"

    def chapter(self, chapter: Chapter) -> str:
        """The article of ``chapter``."""
        self.lang = chapter.lang
        parts = [f'<article class="chapter" data-chapter="{chapter.number}" lang="{_html_lang(chapter.lang)}">']
        for section in chapter.sections:
            level = 1 if section.number == str(chapter.number) else 2
            id = f"{chapter.lang}-{section.number}"
            title = f'<span class="number">{section.number}</span> {html.escape(section.title)}'
            parts.append(f'<section id="{id}" data-section="{section.number}"><h{level}>{title}</h{level}>')
            parts += [self.block(block, section.number) for block in section.blocks]
            parts.append("</section>")
        return "\n".join([*parts, "</article>"])

    def block(self, block: Block, section: str) -> str:
        """One block with its status."""
        for promise in block.covers:
            self.used.covered.setdefault(promise, []).append(section)
        word = STATUS_WORDS[block.status][self.lang]
        inner = "\n".join(self.prose(p) if isinstance(p, Prose) else self.directive(p) for p in block.parts)
        return f'<div class="block {block.status}"><span class="status">{word}</span>\n{inner}\n</div>'

    def prose(self, prose: Prose) -> str:
        """A paragraph, with numbers, symbols, links and mathematics in the places of their directives."""
        kept: list[str] = []

        def keep(piece: str) -> str:
            kept.append(piece)
            return f"\ue000{len(kept) - 1}\ue001"

        text = MATH.sub(lambda m: keep(f'<span class="tex" data-tex="{html.escape(m[1])}"></span>'), prose.text)
        text = INLINE.sub(lambda m: keep(self.inline(directive_of(m[1], m[2], prose.where))), text)
        out = self.markdown.render(text)
        return _KEPT.sub(lambda m: _together(m[1], kept[int(m[2])], m[3]), out)

    def inline(self, d: Directive) -> str:
        """A directive inside a line."""
        match d.name:
            case "num":
                return self._number(d)
            case "sym":
                return self._symbol(d)
            case "see":
                return self._see(d)
            case "source":
                return self._source(d)
        raise ChapterError(
            d.where, f"no inline directive {{{d.name} …}}", did_you_mean(d.name, ("num", "sym", "see", "source"))
        )

    def directive(self, d: Directive) -> str:
        """A directive on a line of its own."""
        handlers: Mapping[str, Callable[[Directive], str]] = {
            "formula": self._formula, "chain": self._chain, "example": self._example, "exercise": self._exercise,
            "figure": self._figure, "table": self._table, "trace": self._trace,
            "probe": self._probe,
        }  # fmt: skip
        if d.name not in handlers:
            raise ChapterError(d.where, f"no directive [[{d.name} …]]", did_you_mean(d.name, handlers))
        return handlers[d.name](d)

    def _number(self, d: Directive) -> str:
        source, path = self._words(d, 2, "{num RUN NAME[I,J]}: a run or example, and one of its numbers, from 1")
        try:
            value = self.library.number(source, path)
        except (KeyError, IndexError) as error:
            raise ChapterError(
                d.where, f"no number {path} in {source} ({error})", "A name as in `glassformer explain`."
            ) from None
        if d.options.get("as") == "percent":
            shown = f"{100 * value:.2f}%"
        else:
            shown = f"{value:.{int(d.options.get('digits', '6'))}f}".rstrip("0").rstrip(".") or "0"
        origin = f'data-from="{html.escape(source)}" data-name="{html.escape(path)}"'
        return f'<data class="num" value="{value!r}" {origin}>{shown.replace("-", "−")}</data>'

    def _symbol(self, d: Directive) -> str:
        (path,) = self._words(d, 1, "{sym NAME}: a quantity of the decoder")
        program = d.options.get("of", "decoder")
        known = (*self.library.programs, *self.library.examples)
        if program not in known:
            raise ChapterError(d.where, f"no program {program}", did_you_mean(program, known))
        try:
            facts = self.library.symbol(program, path)
        except KeyError:
            names = {id.rpartition(".")[2] for id in self.library.program(program).quantities}
            raise ChapterError(d.where, f"no symbol {path}", did_you_mean(path, names)) from None
        tex, about = html.escape(facts["latex"]), html.escape(json.dumps(facts))
        return f'<span class="tex symbol" data-tex="{tex}" data-symbol="{about}"></span>'

    def _see(self, d: Directive) -> str:
        (section,) = self._words(d, 1, "{see SECTION}")
        self.used.links.append((section, d.where))
        whole, part = ("第 {} 章", "{} 节") if self.lang == "zh" else ("chapter {}", "{}")
        word = (part if "." in section else whole).format(section)
        return f'<a class="see" href="#{self.lang}-{section}">{word}</a>'

    def _source(self, d: Directive) -> str:
        (name,) = self._words(d, 1, "{source R1}")
        if name not in SOURCES:
            raise ChapterError(d.where, f"no source {name}", did_you_mean(name, SOURCES))
        return f'<a class="source" href="#{self.lang}-14.4" title="{html.escape(SOURCES[name])}">[{name}]</a>'

    def _formula(self, d: Directive) -> str:
        (path,) = self._words(d, 1, "[[formula NAME]] with of=PROGRAM")
        try:
            faces = self.library.formula(d.options.get("of", "decoder"), path)
        except KeyError as error:
            raise ChapterError(
                d.where, f"no formula of {path} ({error})", "A quantity of the program, or NAME.grad."
            ) from None
        matrix = f' data-matrix="{html.escape(faces["matrix"])}"' if faces["matrix"] else ""
        return f'<div class="formula" data-index="{html.escape(str(faces["index"]))}"{matrix}></div>'

    def _chain(self, d: Directive) -> str:
        (id,) = self._words(d, 1, "[[chain ID]]")
        if id not in self.library.derivations:
            raise ChapterError(d.where, f"no chain {id}", did_you_mean(id, self.library.derivations))
        self.used.chains.add(id)
        return f'<div class="chain" data-chain="{html.escape(id)}"></div>'

    def _example(self, d: Directive) -> str:
        (id,) = self._words(d, 1, "[[example ID]]")
        if id not in self.library.examples:
            raise ChapterError(d.where, f"no example {id}", did_you_mean(id, self.library.examples))
        self.used.examples.add(id)
        return f'<div class="live" data-example="{id}"></div>'

    def _exercise(self, d: Directive) -> str:
        (id,) = self._words(d, 1, "[[exercise ID]]")
        if id not in self.exercises:
            raise ChapterError(d.where, f"no exercise {id}", did_you_mean(id, self.exercises))
        self.used.exercises.add(id)
        return f'<div class="exercise" data-exercise="{id}"></div>'

    def _figure(self, d: Directive) -> str:
        (name,) = self._words(d, 1, "[[figure NAME]]")
        if name not in FIGURES:
            raise ChapterError(d.where, f"no figure {name}", did_you_mean(name, FIGURES))
        return f'<figure class="drawn" data-figure="{name}"></figure>'

    def _table(self, d: Directive) -> str:
        (name,) = self._words(d, 1, "[[table NAME]]")
        if name not in TABLES:
            raise ChapterError(d.where, f"no table {name}", did_you_mean(name, TABLES))
        return f'<div class="table" data-table="{name}"></div>'

    def _trace(self, d: Directive) -> str:
        (name,) = self._words(d, 1, "[[trace RUN]] with view=forward|gradient|update|compare")
        try:
            self.library.run(name)
        except KeyError:
            raise ChapterError(d.where, f"no run {name}", did_you_mean(name, ["toy24", *self.library.runs])) from None
        self.used.runs.add(name)
        view = html.escape(d.options.get("view", "forward"))
        return f'<div class="run" data-run="{html.escape(name)}" data-view="{view}"></div>'

    def _probe(self, d: Directive) -> str:
        (name,) = self._words(d, 1, "[[probe NAME]]")
        if name not in self.library.reports:
            raise ChapterError(d.where, f"no probe {name}", did_you_mean(name, self.library.reports))
        return report_html(self.library.reports[name], self.lang)

    def _words(self, d: Directive, count: int, expected: str) -> tuple[str, ...]:
        if len(d.words) != count:
            raise ChapterError(d.where, f"{d.name} with {len(d.words)} arguments", expected)
        return d.words


_KEPT = re.compile("([（(“]*)\ue000(\\d+)\ue001([,.;:?!)’”，。；：、？！）]*)")


def _together(before: str, piece: str, after: str) -> str:
    """A formula with the marks that touch it: browsers would end a line between them."""
    whole = before + piece + after
    return f'<span class="keep">{whole}</span>' if (before or after) and piece.startswith('<span class="tex') else whole


def _html_lang(lang: str) -> str:
    return "zh-CN" if lang == "zh" else lang
