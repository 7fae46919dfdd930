"""The builder: what a chapter may not contain, and what the finished file holds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from glassformer.bilingual import same, words
from glassformer.book import build
from glassformer.book.build import build_book, chapters_of, require_alike
from glassformer.book.exercises import EXERCISES
from glassformer.book.figures import figures
from glassformer.book.library import Library
from glassformer.book.reports import report_html
from glassformer.book.resolve import Resolver
from glassformer.book.syntax import ChapterError, read_chapter
from glassformer.book.worksheet import worksheet
from glassformer.errors import UserError
from glassformer.tracing.probes import Report
from glassformer.tracing.probes.report import Table

HEAD = "# 6 Title\n\n## 6.2 Section\n\n"


def chapter(tmp_path: Path, text: str, lang: str = "en") -> Path:
    path = tmp_path / lang / "06.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (HEAD + "A sentence of its own.\n", 5, "a statement without status"),
        (HEAD + "::: theorem\nIt holds.\n:::\n", 5, "no status 'theorem'"),
        (HEAD + "::: example\nIt never ends.\n", 5, "a block that never ends"),
        (HEAD + "::: example\nThe share is 0.73.\n:::\n", 6, "a number typed by hand"),
        (HEAD + "::: example\nAbout 58% of it.\n:::\n", 6, "a number typed by hand"),
        (HEAD + "::: definition\nThus $a = b$.\n:::\n", 6, "typed mathematics"),
        (HEAD + "::: definition covers=6.2 colour=red\nIt.\n:::\n", 5, "no option 'colour'"),
        (HEAD + "::: definition\n:::\n", 5, "an empty block"),
        ("::: note\nBefore everything.\n:::\n", 1, "a block before the chapter's heading"),
        ("# 6 Title\n\n## 7.2 Section\n", 3, "section 7.2 stands in chapter 6"),
    ],
)
def test_a_chapter_that_cannot_be_read_is_refused_with_its_file_and_line(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    with pytest.raises(ChapterError, match=re.escape(says)) as refused:
        read_chapter(chapter(tmp_path, text), "en")
    assert refused.value.fact.startswith(f"en/06.md:{line}: ")
    assert refused.value.next_step


@pytest.mark.parametrize(
    ("directive", "says"),
    [
        ("[[formula attn.Nothing]]", "no formula of attn.Nothing"),
        ("[[chain no-such]]", "no chain no-such"),
        ("[[example huII]]", 'Did you mean "hull"?'),
        ("[[exercise shape]]", 'Did you mean "shapes"?'),
        ("[[figure masc]]", 'Did you mean "mask"?'),
        ("[[trace toy25]]", 'Did you mean "toy24"?'),
        ("[[probe effect]]", "no probe effect"),
        ("[[picture x]]", "no directive [[picture …]]"),
        ("It is {num toy24 A[9,9,9]}.", "no number A[9,9,9] in toy24"),
        ("It is {sym attn.Nothing}.", "no symbol attn.Nothing"),
        ("See {source R9}.", "no source R9"),
        ("It is {twice 2}.", "no inline directive {twice …}"),
    ],
)
def test_a_directive_that_means_nothing_is_refused_where_it_stands(tmp_path: Path, directive: str, says: str) -> None:
    path = chapter(tmp_path, f"{HEAD}::: example\n{directive}\n:::\n")
    with pytest.raises(ChapterError, match=re.escape(says)) as refused:
        Resolver(Library(), EXERCISES).chapter(read_chapter(path, "en"))
    assert refused.value.fact.startswith("en/06.md:6: ")


def test_two_languages_that_differ_in_structure_are_refused(tmp_path: Path) -> None:
    ours = read_chapter(chapter(tmp_path, f"{HEAD}::: example\nOne.\n:::\n"), "en")
    theirs = read_chapter(chapter(tmp_path, f"{HEAD}::: boundary\n一。\n:::\n", "zh"), "zh")
    with pytest.raises(ChapterError, match="en has 'block example' where zh has 'block boundary'"):
        require_alike(ours, theirs)


def test_a_missing_chapter_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChapterError, match=r"en/01\.md:1: the chapter is missing"):
        chapters_of(tmp_path)


REPORTS = ("effect", "linearity", "gradients", "prefixes", "teacher", "distribution", "cuts")
FACTS = {"p": 0.599, "truth": 0.6, "divergence": 0.0037, "entropy": 0.67, "parameters": 100000.0}
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def book() -> str:
    table = Table(same(HOSTILE), (same("a"),), ((HOSTILE,),), "measured")
    reports = {name: Report(name, words("title", "标题"), "measured", (table,)) for name in REPORTS}
    original = build.template
    build.template = lambda: '<html lang="en"><body><!--BOOK-CHAPTERS--><!--BOOK-DATA--></body></html>'
    try:
        return build_book(Library(facts=FACTS, reports=reports), chapters_of(), lang="zh")
    finally:
        build.template = original


def test_every_promise_has_a_place_and_no_directive_is_left_over(book: str) -> None:
    text = re.sub(r"<script.*?</script>", "", book, flags=re.DOTALL)
    assert not re.search(r"\[\[[a-z]+ ", text)
    assert not re.search(r"\{(num|sym|see|source) ", text)
    assert text.count("<article ") == 28
    assert book.startswith('<html lang="zh-CN">')
    assert len(book.encode()) < 7_000_000


def test_a_link_leads_to_a_section_of_its_own_language(book: str) -> None:
    ids = set(re.findall(r'<section id="([^"]+)"', book))
    links = set(re.findall(r'class="see" href="#([^"]+)"', book))
    assert links
    assert links <= ids


def test_hostile_text_of_a_report_is_text(book: str) -> None:
    assert "<img src=x" not in book
    assert "&lt;img src=x" in book


def test_the_data_of_the_book_is_strict_json(book: str) -> None:
    block = re.search(r'<script type="application/json" id="book-data">(.*?)</script>', book, re.DOTALL)
    assert block is not None
    data = json.loads(block[1], parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert {len(order) for order in data["orders"].values()} == {14}
    assert set(data["exercises"]) >= {"shapes", "two-roles", "loss-and-accuracy"}
    assert data["chains"]


def test_the_mask_is_drawn_as_the_model_computes_it() -> None:
    drawn = figures(Library(), "zh")["mask"]
    cells = re.findall(r'<rect class="(may|not)"', drawn)
    assert [cell == "may" for cell in cells] == np.tri(7, dtype=bool).reshape(-1).tolist()


def test_a_promise_without_a_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    chapters = {lang: [c for c in each if c.number != 9] for lang, each in chapters_of().items()}
    monkeypatch.setattr(build, "_check_links", lambda *_: None)
    table = Table(same("t"), (same("a"),), ((1,),), "measured")
    reports = {name: Report(name, words("title", "标题"), "measured", (table,)) for name in REPORTS}
    with pytest.raises(UserError, match=r"9\.1, 9\.2, 9\.3, 9\.4"):
        build_book(Library(facts=FACTS, reports=reports), chapters)


def test_a_report_is_the_same_numbers_in_both_languages() -> None:
    table = Table(words("t", "表"), (words("yes?", "是否"),), ((True,), (1.5,), (None,)), "measured")
    report = Report("x", words("title", "标题"), "measured", (table,))
    assert "<td>yes</td>" in report_html(report, "en")
    assert "<td>是</td>" in report_html(report, "zh")
    assert all('<td class="number">1.5</td>' in report_html(report, lang) for lang in ("en", "zh"))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_same_seed_gives_the_same_worksheet_and_another_gives_another(lang: str) -> None:
    one, two = (worksheet(EXERCISES.values(), seed=7, lang=lang) for _ in range(2))
    assert one == two
    assert one != worksheet(EXERCISES.values(), seed=8, lang=lang)
    assert one.count("<h2>") == 2 * len(EXERCISES)


def test_answers_of_a_worksheet_are_those_of_numpy() -> None:
    exercise = EXERCISES["outer"]
    drawn = exercise.drawn(np.random.default_rng(3))
    values = exercise.values(drawn)
    X, back, W = (drawn[f"ex.{name}"] for name in ("X", "back_Y", "W"))
    np.testing.assert_allclose(values["ex.back_W"], X.T @ back)
    np.testing.assert_allclose(values["ex.back_X"], back @ W.T)
    sheet = worksheet([exercise], seed=3, lang="en")
    numbers = [f"<td>{x:g}</td>" for x in (X.T @ back).reshape(-1)]
    assert all(number in sheet.replace("−", "-") for number in numbers)
