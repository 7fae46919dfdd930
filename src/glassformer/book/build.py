"""From chapters, definitions and runs to one offline file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..page.document import LANGUAGES
from ..tracing.header import header_of
from .coverage import PROMISES
from .exercises import EXERCISES
from .figures import figures
from .library import Library
from .resolve import Resolver
from .syntax import Chapter, ChapterError, Where, read_chapter
from .tables import tables

CHAPTERS = 14
ORDERS: Mapping[str, Sequence[int]] = {
    "derive": tuple(range(1, CHAPTERS + 1)),
    "compute": (1, 2, 3, 4, 5, 6, 7, 11, 12, 8, 9, 10, 13, 14),
}
"""Two ways through the book: derive, then compute; or compute, generate, then derive."""

_CHAPTERS, _DATA = "<!--BOOK-CHAPTERS-->", "<!--BOOK-DATA-->"


def chapters_of(folder: Path | None = None) -> dict[str, list[Chapter]]:
    """All chapters by language; raises ``ChapterError`` where one is missing or the languages differ in structure."""
    root = folder or Path(str(resources.files("glassformer.book").joinpath("chapters")))
    found: dict[str, list[Chapter]] = {}
    for lang in LANGUAGES:
        found[lang] = []
        for number in range(1, CHAPTERS + 1):
            path = root / lang / f"{number:02}.md"
            if not path.is_file():
                raise ChapterError(
                    Where(f"{lang}/{path.name}", 1), "the chapter is missing", "Both languages have every chapter."
                )
            chapter = read_chapter(path, lang)
            if chapter.number != number:
                raise ChapterError(chapter.where, f"chapter {chapter.number} in {path.name}", f"# {number} TITLE")
            found[lang].append(chapter)
    for chapter, other in zip(*found.values(), strict=True):
        require_alike(chapter, other)
    return found


def require_alike(chapter: Chapter, other: Chapter) -> None:
    """Raise ``ChapterError`` at the first place where the two languages differ in structure."""
    ours, theirs = chapter.skeleton(), other.skeleton()
    for k in range(max(len(ours), len(theirs))):
        a, b = (" ".join(lines[k]) if k < len(lines) else "nothing" for lines in (ours, theirs))
        if a != b:
            fact = f"{chapter.lang} has {a!r} where {other.lang} has {b!r} (item {k + 1})"
            raise ChapterError(chapter.where, fact, "The same sections, blocks and directives in both languages.")


def build_book(library: Library, chapters: Mapping[str, Sequence[Chapter]], *, lang: str = "en") -> str:
    """The book as HTML to be written in UTF-8; it opens in ``lang``.

    Raises ``ChapterError`` for a directive that means nothing, a dead link or a promise without a place, and ``UserError``
    when the page has not been built.
    """
    resolver = Resolver(library, EXERCISES)
    articles = [resolver.chapter(chapter) for each in chapters.values() for chapter in each]
    _check_links(resolver, chapters)
    _check_promises(resolver)
    text = "\n".join(articles)
    text = _filled(text, library, resolver, chapters)
    page = template().replace(_CHAPTERS, text).replace(_DATA, _data_blocks(_data(library, resolver, chapters)))
    return page.replace('<html lang="en">', f'<html lang="{LANGUAGES[lang]}">')


def _check_links(resolver: Resolver, chapters: Mapping[str, Sequence[Chapter]]) -> None:
    known = {section.number for chapter in next(iter(chapters.values())) for section in chapter.sections}
    for section, where in resolver.used.links:
        if section not in known:
            raise ChapterError(where, f"a dead link to {section}", f"Sections are {', '.join(sorted(known)[:8])} …")


def _check_promises(resolver: Resolver) -> None:
    known = {promise.id for promise in PROMISES}
    if stray := sorted(set(resolver.used.covered) - known):
        raise UserError(
            f"A block covers {stray[0]}, which is no promise.", "coverage.py lists them.", "Mend `covers=`."
        )
    if missing := [promise.id for promise in PROMISES if promise.id not in resolver.used.covered]:
        raise UserError(
            f"{len(missing)} promises have no place: {', '.join(missing)}.",
            "Every promise is kept by a block that says covers=ID.",
            "Write the block, or add the promise to the one that keeps it.",
        )


def _filled(text: str, library: Library, resolver: Resolver, chapters: Mapping[str, Sequence[Chapter]]) -> str:
    """Figures and tables put in their places, in the language of the article that they stand in."""
    pieces = text.split("<article ")
    out = [pieces[0]]
    order = [chapter.lang for each in chapters.values() for chapter in each]
    covered = {id: sorted(set(sections), key=sections.index) for id, sections in resolver.used.covered.items()}
    drawn = {lang: figures(library, lang) for lang in set(order)}
    made = {lang: tables(library, covered, lang) for lang in set(order)}
    for lang, piece in zip(order, pieces[1:], strict=True):
        for name, svg in drawn[lang].items():
            piece = piece.replace(f'data-figure="{name}">', f'data-figure="{name}">{svg}')
        for name, table in made[lang].items():
            piece = piece.replace(f'data-table="{name}">', f'data-table="{name}">{table}')
        out.append(piece)
    return "<article ".join(out)


def _data(library: Library, resolver: Resolver, chapters: Mapping[str, Sequence[Chapter]]) -> dict[str, Any]:
    used = resolver.used
    by_lang = {lang: list(each) for lang, each in chapters.items()}
    first = next(iter(by_lang.values()))
    contents = [
        {
            "number": chapter.number,
            "title": {lang: each[k].title for lang, each in by_lang.items()},
            "sections": [
                {"number": section.number, "title": {lang: each[k].sections[s].title for lang, each in by_lang.items()}}
                for s, section in enumerate(chapter.sections)
            ],
        }
        for k, chapter in enumerate(first)
    ]
    return {
        "chains": {id: library.derivations[id] for id in sorted(used.chains)},
        "examples": {id: library.examples[id].plain() for id in sorted(used.examples)},
        "exercises": {id: EXERCISES[id].plain() for id in sorted(used.exercises)},
        "runs": {name: _run(library, name) for name in sorted(used.runs)},
        "contents": contents,
        "orders": {name: list(order) for name, order in ORDERS.items()},
    }


def _run(library: Library, name: str) -> dict[str, Any]:
    trace = library.run(name)
    # Marks are numbers to the page: JSON's true and false would not be.
    tensors = {
        key: {"shape": list(x.shape), "data": x.reshape(-1).astype(np.float64).tolist()}
        for key, x in trace.values.items()
    }
    return {"header": header_of(trace), "tensors": tensors}


def _data_blocks(data: Mapping[str, Any]) -> str:
    """A block for each table: the page reads one when it first needs it."""
    return "\n".join(_data_block(name, table) for name, table in data.items())


def _data_block(name: str, table: Any) -> str:
    text = json.dumps(_plain(table), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for mark in "&<>":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return f'<script type="application/json" data-book="{name}">{text}</script>'


def _plain(value: Any) -> Any:
    """Strict JSON: infinities as the texts ``inf`` and ``-inf``, since a mask is made of them."""
    match value:
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value


def template() -> str:
    """The built page of the book; raises ``UserError`` when there is none."""
    bundle = resources.files("glassformer.page").joinpath("bundle", "book.html")
    if not bundle.is_file():
        raise UserError(
            "The book's page has not been built.",
            "A checkout holds its sources only (web/); wheels hold the built page.",
            "Run `make page` in the checkout (needs Node 20 or newer), or install glassformer from a wheel.",
        )
    return bundle.read_text("utf-8")
