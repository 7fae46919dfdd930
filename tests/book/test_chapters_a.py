"""Chapters 1 to 7: both languages read, resolve and keep the same promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import glassformer.book
from book_pieces import chapter
from glassformer.bilingual import same
from glassformer.book.examples import attention, causal, scale, sentence
from glassformer.book.exercises import EXERCISES, a
from glassformer.book.library import Library
from glassformer.book.resolve import Resolver
from glassformer.book.syntax import ChapterError, Prose, read_chapter
from glassformer.tracing.probes import Report

OURS = (*sentence.EXAMPLES, *attention.EXAMPLES, *scale.EXAMPLES, *causal.EXAMPLES)

NUMBERS = range(1, 8)
LANGUAGES = ("zh", "en")
SECTIONS = {1: 3, 2: 3, 3: 3, 4: 3, 5: 3, 6: 5, 7: 5}
PROMISES = {f"{chapter}.{k}" for chapter, count in SECTIONS.items() for k in range(1, count + 1)} | {"front"}


@pytest.fixture(scope="module")
def library() -> Library:
    """Chapters resolve without a trained model: its numbers and probes are stand-ins here."""
    empty = {
        name: Report(name, same(name), "measured", (), ()) for name in ("distribution", "teacher", "prefixes", "cuts")
    }
    return Library(facts={"p": 0.5, "truth": 0.5}, reports=empty)


@pytest.fixture(scope="module")
def resolved(library: Library) -> dict[str, Resolver]:
    """A resolver per language that has been through all seven chapters."""
    found = {lang: Resolver(library, EXERCISES) for lang in LANGUAGES}
    for lang, resolver in found.items():
        for number in NUMBERS:
            html = resolver.chapter(chapter(number, lang))
            assert "\ue000" not in html
            assert "{" not in re.sub(r'"[^"]*"', "", html)
    return found


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_promise_of_chapters_1_to_7_is_kept_in_its_own_section(resolved: dict[str, Resolver], lang: str) -> None:
    covered = resolved[lang].used.covered
    assert set(covered) == PROMISES
    for promise, places in covered.items():
        assert promise in places or promise == "front"


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_section_defines_or_derives_something_shows_it_and_says_where_it_ends(number: int, lang: str) -> None:
    for section in chapter(number, lang).sections[1:]:
        statuses = {block.status for block in section.blocks}
        assert {"example", "boundary"} <= statuses, section.number
        assert statuses & {"definition", "derivation"}, section.number


def test_every_example_and_exercise_has_a_place_and_every_derivation_of_chapters_6_and_7_is_told(
    resolved: dict[str, Resolver], library: Library
) -> None:
    for resolver in resolved.values():
        assert resolver.used.examples >= {example.id for example in OURS}
        assert resolver.used.exercises >= {exercise.id for exercise in a.EXERCISES}
        told = {
            id for id, chain in library.derivations.items() if chain["source"] in ("6.2", "7.1", "7.2", "7.3", "7.5")
        }
        assert resolver.used.chains == told


def test_the_two_languages_are_written_in_their_own_script() -> None:
    for number in NUMBERS:
        for _, block in chapter(number, "zh").blocks():
            for part in block.parts:
                assert not isinstance(part, Prose) or re.search("[\u4e00-\u9fff]", part.text)
        for _, block in chapter(number, "en").blocks():
            for part in block.parts:
                if isinstance(part, Prose):
                    assert re.search("[a-z]", part.text)
                    assert not re.search("[，、；：？！（）“”]", part.text), part.text


def test_a_number_of_a_chapter_is_computed_and_not_typed(tmp_path: Path) -> None:
    text = (Path(glassformer.book.__file__).parent / "chapters" / "en" / "06.md").read_text(encoding="utf-8")
    broken = tmp_path / "06.md"
    broken.write_text(text.replace("{num hull A[1]}", "0.5"), encoding="utf-8")
    with pytest.raises(ChapterError, match="typed by hand"):
        read_chapter(broken, "en")


def test_an_unknown_example_is_refused_where_its_formula_or_symbol_is_asked_for(
    library: Library, tmp_path: Path
) -> None:
    for directive in ("[[formula B of=asymetric]]", "A symbol {sym B of=asymetric}."):
        broken = tmp_path / "05.md"
        broken.write_text(f"# 5 T\n\n::: note\n{directive}\n:::\n", encoding="utf-8")
        with pytest.raises(ChapterError, match=r"05\.md:4"):
            Resolver(library, EXERCISES).chapter(read_chapter(broken, "en"))
