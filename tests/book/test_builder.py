"""The builder: what the finished file holds, and what it refuses to finish."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from glassformer.bilingual import same, words
from glassformer.book import build
from glassformer.book.build import build_book, chapters_of
from glassformer.book.figures import figures
from glassformer.book.library import Library
from glassformer.book.reports import report_html
from glassformer.book.resolve import FIGURES, TABLES, Resolver
from glassformer.book.syntax import Prose, Where
from glassformer.book.tables import tables
from glassformer.errors import UserError
from glassformer.tracing.probes import Report
from glassformer.tracing.probes.report import Table

REPORTS = ("effect", "linearity", "gradients", "prefixes", "teacher", "distribution", "cuts", "shortcut", "kinds")
FACTS = {
    "p": 0.599, "truth": 0.6, "divergence": 0.0037, "entropy": 0.67, "parameters": 100000.0,
    "marked_loss": 0.0009, "tossed_loss": 0.0018, "marked_lied_to": 0.0, "tossed_lied_to": 1.0,
}  # fmt: skip
REPORTS_OF_NOTHING = {name: Report(name, words("title", "标题"), "measured", ()) for name in REPORTS}
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
    blocks = dict(re.findall(r'<script type="application/json" data-book="(\w+)">(.*?)</script>', book, re.DOTALL))
    data = {
        name: json.loads(block, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
        for name, block in blocks.items()
    }
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
    with pytest.raises(UserError, match=r"9\.1, 9\.2, 9\.3, 9\.4"):
        build_book(Library(facts=FACTS, reports=REPORTS_OF_NOTHING), chapters)


def test_a_report_is_the_same_numbers_in_both_languages() -> None:
    table = Table(words("t", "表"), (words("yes?", "是否"),), ((True,), (1.5,), (None,)), "measured")
    report = Report("x", words("title", "标题"), "measured", (table,))
    assert "<td>yes</td>" in report_html(report, "en")
    assert "<td>是</td>" in report_html(report, "zh")
    assert all('<td class="number">1.5000</td>' in report_html(report, lang) for lang in ("en", "zh"))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_all_figures_are_drawn_with_the_captions_of_their_article(book: str, lang: str) -> None:
    html_lang = {"en": "en", "zh": "zh-CN"}[lang]
    articles = re.findall(rf'<article [^>]*lang="{html_lang}">.*?</article>', book, re.DOTALL)
    captions = {}
    for name in FIGURES:
        found = re.findall(rf'data-figure="{name}">(<svg .*?</svg>)<figcaption>(.*?)</figcaption>', "".join(articles))
        assert found, name
        captions[name] = found[0][1]
    assert len(set(captions.values())) == len(FIGURES)
    assert all((re.search("[\u4e00-\u9fff]", caption) is not None) == (lang == "zh") for caption in captions.values())
    cells = re.findall(r'<rect class="(may|not)"', "".join(articles))
    assert [cell == "may" for cell in cells] == np.tri(7, dtype=bool).reshape(-1).tolist()


def test_tables_and_probes_stand_in_every_language(book: str) -> None:
    for name in TABLES:
        assert len(re.findall(rf'data-table="{name}"><table>', book)) == 2
    # What is promised and not there yet says so; nothing else does.
    assert book.count("waits for: ") == book.count("尚待：") == 2
    assert [promise.id for promise in build.PROMISES if promise.waits] == ["8.7", "13.2"]


def test_a_cover_that_is_no_promise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt `covers` would leave its promise to another block, or to none."""
    monkeypatch.setattr(build, "PROMISES", build.PROMISES[:-1])
    with pytest.raises(UserError, match=r"covers 14\.4, which is no promise"):
        build_book(Library(facts=FACTS, reports=REPORTS_OF_NOTHING), chapters_of())


def test_a_table_of_a_report_counts_heads_from_1_and_writes_symbols_and_powers_of_ten() -> None:
    columns = (same("stream"), same("A^(0) l=1"), words("share under W_Q", "W_Q 之下的份额"))
    table = Table(words("t", "表"), columns, (("blocks.0.X", 3.2e-5, -0.25), ("embed.X", 0.0, 1.0)), "measured")
    shown = report_html(Report("x", words("title", "标题"), "measured", (table,)), "zh")
    assert 'data-tex="A^{(1)}"></span><br><small>第 2 层</small>' in shown
    assert 'data-tex="X^{(1)}"' in shown
    assert 'data-tex="W_Q"' in shown
    assert '<td class="number">3.2·10<sup>−5</sup></td><td class="number">−0.2500</td>' in shown
    assert '<td class="number">0</td><td class="number">1</td>' in shown


def test_a_long_table_of_a_report_folds_what_comes_after_its_first_rows() -> None:
    rows = tuple((f"row {k}", float(k)) for k in range(20))
    table = Table(words("t", "表"), (same("name"), same("x")), rows, "measured")
    shown = report_html(Report("x", words("title", "标题"), "measured", (table,)), "en")
    seen, folded = shown.split("<details>")
    assert [part.count("<td>row ") for part in (seen, folded)] == [8, 12]
    assert "<summary>12 more rows</summary>" in folded


def test_a_glossary_in_chinese_has_no_english_kinds_and_no_raw_dimensions() -> None:
    glossary = tables(Library(), {}, "zh")["glossary"]
    assert not re.search(r">(input|parameter|intermediate|constant)<", glossary)
    assert "d_k<" not in glossary


def test_a_run_is_numbers_alone(book: str) -> None:
    """A mark that is `true` is no number, and the page would score rows that the model does not."""
    block = re.search(r'<script type="application/json" data-book="runs">(.*?)</script>', book, re.DOTALL)
    assert block is not None
    tensors = json.loads(block[1])["toy24"]["tensors"]
    assert tensors["loss.scored"]["data"] == [0, 1]
    kinds = {type(x) for tensor in tensors.values() for x in tensor["data"]}
    assert kinds <= {int, float, str}


def test_no_line_ends_between_a_formula_and_the_mark_after_it() -> None:
    made = Resolver(Library(), {}).prose(Prose("（$x$）；{sym attn.A}，see $y$ too.", Where("a.md", 1)))
    assert made.count('class="keep"') == 2
    assert re.search(r'<span class="keep">（<span class="tex" data-tex="x"></span>）；</span>', made)
    assert '<span class="tex" data-tex="y"></span> too' in made
