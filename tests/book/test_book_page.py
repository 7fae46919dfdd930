"""What a reader of the book does and sees, in a browser without network."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from glassformer.book.build import build_book, chapters_of, template
from glassformer.book.runs import library_with
from glassformer.errors import UserError
from page.reader import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from browsing import Opened

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
LAPTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
MOST_BYTES = 8_000_000


@pytest.fixture(scope="module")
def small_book() -> str:
    """The built page with two chapters: `web/fixtures/book.json`, which has one of everything."""
    try:
        template()
    except UserError as error:
        pytest.skip(str(error))
    spec = importlib.util.spec_from_file_location("fixture_book", ROOT / "web" / "fixtures" / "book.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.filled(json.loads((ROOT / "web" / "fixtures" / "book.json").read_text("utf-8"))))


@pytest.fixture
def at(open_page: Callable[..., Opened], small_book: str) -> Callable[..., Page]:
    """Opens the small book at an address."""

    def open_at(address: str, **options: Any) -> Page:
        page = open_page(small_book, **{"viewport": LAPTOP, **options}).page
        go(page, address)
        return page

    return open_at


GO = """address => new Promise(done => {
    if (location.hash === address) return done()
    addEventListener("hashchange", () => done(), { once: true })
    location.hash = address
})"""
COMPLETE = "() => window.glassformerBook.complete()"
"""Draws what would be drawn when the browser is idle."""


def go(page: Page, address: str) -> None:
    """To a place of the book, and everything of its chapter drawn."""
    page.evaluate(GO, address)
    page.wait_for_function("address => location.hash.startsWith(address)", arg=address.split("&")[0])
    page.evaluate(COMPLETE)


def wide(page: Page) -> int:
    """Pixels by which the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def cell(page: Page, name: str) -> Any:
    return page.locator(f'.shown [data-cell="{name}"]')


def test_the_book_opens_at_its_contents_and_shows_one_chapter_at_a_time(at: Callable[..., Page]) -> None:
    page = at("#en")
    eventually(page.locator("article.chapter.shown")).to_have_count(0)
    page.locator(".contents a", has_text="Softmax").click()
    eventually(page.locator("article.chapter.shown")).to_have_count(1)
    eventually(page.locator("#en-6\\.2 h2")).to_be_in_viewport()
    page.locator("#bar .to-contents").click()
    eventually(page.locator(".contents")).to_be_visible()
    eventually(page.locator("article.chapter.shown")).to_have_count(0)


def test_the_other_order_lists_the_chapters_otherwise(at: Callable[..., Page]) -> None:
    page = at("#en")
    page.locator('input[name="order"][value="compute"]').check()
    eventually(page.locator(".contents-chapter")).to_have_text([re.compile("^10"), re.compile("^6")])


def test_an_edit_recomputes_the_example_and_the_address_brings_it_back(at: Callable[..., Page]) -> None:
    page = at("#en-6.3")
    eventually(cell(page, "ex.Z:0")).to_have_text("1")
    field = cell(page, "ex.S:0")
    field.fill("0")
    field.press("Enter")
    eventually(cell(page, "ex.A:0")).to_have_text("0.333333")
    page.wait_for_function("() => location.hash.includes('&hull:ex.S=0,0,0')")
    again = at(page.evaluate("location.hash"))
    eventually(cell(again, "ex.Z:0")).to_have_text("1.333333")
    again.locator(".shown .live-tools button").click()
    eventually(cell(again, "ex.Z:0")).to_have_text("1")


def test_what_is_no_number_changes_nothing(at: Callable[..., Page]) -> None:
    page = at("#en-6.3")
    field = cell(page, "ex.S:0")
    field.fill("<b>1")
    field.press("Enter")
    eventually(field).to_have_attribute("aria-invalid", "true")
    eventually(cell(page, "ex.Z:0")).to_have_text("1")


def test_a_computed_number_tells_how_it_came_about(at: Callable[..., Page]) -> None:
    page = at("#en-6.3")
    cell(page, "ex.Z:0").click()
    eventually(page.locator(".shown .told [data-role=result]")).to_have_text("1")
    page.locator('.shown .told [data-goto="ex.A:1"]').click()
    eventually(page.locator(".shown .told [data-role=result]")).to_have_text("0.25")


def test_with_a_pencil_results_are_hidden_and_the_first_wrong_one_is_told(at: Callable[..., Page]) -> None:
    page = at("#en-6.3")
    page.locator(".shown .live-tools input").check()
    eventually(cell(page, "ex.A:0")).to_have_count(0)
    for flat, text in enumerate(["1/2", "0.3", "0.25"]):
        page.locator(f'.shown [data-answer="ex.A:{flat}"]').fill(text)
    page.locator('.shown [data-answer="ex.Z:0"]').fill("5")
    page.locator(".shown .answer-tools button").first.click()
    eventually(page.locator('.shown [data-answer="ex.A:0"]')).to_have_class(re.compile("right"))
    eventually(page.locator(".shown .verdict .katex-mathml")).to_contain_text("a_2")
    page.locator(".shown .verdict button").click()
    eventually(page.locator(".shown .told [data-role=result]")).to_have_text("0.25")


def test_an_exercise_accepts_what_the_page_itself_computes(at: Callable[..., Page]) -> None:
    page = at("#en-10.2")
    exercise = page.locator('.shown [data-exercise="mixing"]')
    scores = [float(x.replace("−", "-")) for x in exercise.locator('[data-quantity="ex.S"] .number').all_inner_texts()]
    values = [float(x.replace("−", "-")) for x in exercise.locator('[data-quantity="ex.V"] .number').all_inner_texts()]
    powers = [2.718281828459045**x for x in scores]
    shares = [x / sum(powers) for x in powers]
    read = sum(a * v for a, v in zip(shares, values[::2], strict=True))
    for flat, x in enumerate(shares):
        exercise.locator(f'[data-answer="ex.A:{flat}"]').fill(f"{x:.4f}")
    exercise.locator('[data-answer="ex.Z:0"]').fill(f"{read:.6f}")
    exercise.get_by_role("button", name="Check").click()
    eventually(exercise.locator(".verdict.right")).to_be_visible()
    exercise.get_by_role("button", name="Other numbers").click()
    eventually(exercise.locator('[data-answer="ex.A:0"]')).to_have_value("")


def test_a_choice_says_why(at: Callable[..., Page]) -> None:
    page = at("#en-10.2")
    page.locator(".shown .options button", has_text="Itself alone").click()
    eventually(page.locator(".shown .options .right p")).to_contain_text("Only earlier rows")


def test_a_derivation_unfolds_line_by_line(at: Callable[..., Page]) -> None:
    page = at("#en-10.1")
    chain = page.locator('.shown [data-chain="attention-softmax"]')
    chain.locator("h3 button").click()
    eventually(chain.locator(".step")).to_have_count(1)
    chain.locator("button.primary").click()
    eventually(chain.locator(".step")).to_have_count(2)


def test_a_formula_shows_its_source_and_selects_it(at: Callable[..., Page]) -> None:
    page = at("#en-6.2")
    page.locator(".shown [data-section='6.2'] .face-tex").first.click()
    source = page.locator(".shown .source-tex textarea")
    eventually(source).to_have_value(re.compile(r"^A = \\operatorname\{softmax\}"))
    chosen = source.evaluate("field => field.selectionEnd - field.selectionStart === field.value.length")
    assert chosen


def test_numbers_and_symbols_tell_what_they_are(at: Callable[..., Page]) -> None:
    page = at("#zh-10")
    page.locator(".shown data.num").first.focus()
    eventually(page.locator("#tip")).to_contain_text("0.7310585786300049")
    page.locator(".shown .tex.symbol").first.focus()
    eventually(page.locator("#tip")).to_contain_text("混合系数")
    eventually(page.locator(".shown .tex.lit")).to_have_count(2)


def test_the_language_changes_in_place(at: Callable[..., Page]) -> None:
    page = at("#en-6.3")
    page.locator("[data-tool=language]").click()
    eventually(page.locator("article.shown")).to_have_attribute("lang", "zh-CN")
    eventually(page.locator("#zh-6\\.3 .block").first).to_be_in_viewport()
    assert page.evaluate("document.documentElement.lang") == "zh-CN"


def test_the_search_finds_a_block_and_goes_there(at: Callable[..., Page]) -> None:
    page = at("#zh-10")
    page.locator("[data-tool=search]").click()
    page.locator("input[type=search]").fill("凸组合")
    eventually(page.locator(".hits li")).to_have_count(1)
    page.locator("input[type=search]").fill("不会溢出")
    page.keyboard.press("Enter")
    eventually(page.locator("#zh-6\\.2 .block.derivation")).to_be_in_viewport()


def test_a_presenter_sees_one_block_per_key(at: Callable[..., Page]) -> None:
    page = at("#en-6")
    blocks = page.locator("article.shown .block:visible")
    eventually(blocks.first).to_be_visible()
    all_of_them = blocks.count()
    assert all_of_them > 2
    page.locator("#bar .menu summary").click()
    page.locator("[data-tool=present]").click()
    eventually(blocks).to_have_count(1)
    first = blocks.inner_text()
    page.keyboard.press("ArrowRight")
    eventually(blocks).to_have_count(1)
    assert blocks.inner_text() != first
    page.keyboard.press("Escape")
    eventually(blocks).to_have_count(all_of_them)


def test_a_run_changes_with_its_learning_rate(at: Callable[..., Page]) -> None:
    page = at("#en-10.2&toy24:eta=0")
    card = page.locator('.shown [id="card-blocks.0.attn.W_Q"]')
    card.scroll_into_view_if_needed()
    eventually(cell(page, "blocks.0.attn.W_Q.new:1")).to_have_text("1")


def test_a_run_can_be_worked_out_on_paper(at: Callable[..., Page]) -> None:
    page = at("#en-6.3")
    page.locator(".shown .live-tools input").check()
    go(page, "#en-10.2")
    run = page.locator(".shown .run")
    run.locator('[data-answer="blocks.0.attn.W_Q.new:1"]').fill("0.9866")
    run.locator('[data-answer="blocks.0.attn.W_K.new:0"]').fill("1.0134")
    run.get_by_role("button", name="Check").click()
    eventually(run.locator('[data-answer="blocks.0.attn.W_Q.new:1"]')).to_have_class(re.compile("right"))
    eventually(run.locator('[data-answer="blocks.0.attn.W_K.new:0"]')).to_have_class(re.compile("wrong"))
    run.locator(".verdict button").click()
    eventually(run.locator(".told [data-role=result]")).to_contain_text("0.98664376")


def test_a_matrix_is_saved_as_svg_and_as_png(at: Callable[..., Page]) -> None:
    page = at("#en-6.3")
    menu = page.locator('.shown [data-quantity="ex.V"] .save-menu')
    for button, start in (("as SVG", b"<svg "), ("as PNG", b"\x89PNG")):
        menu.locator("summary").click()
        with page.expect_download() as download:
            menu.get_by_role("button", name=button).click()
        assert Path(download.value.path()).read_bytes().startswith(start)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nothing_is_wider_than_a_phone(at: Callable[..., Page], lang: str, scheme: str) -> None:
    page = at(f"#{lang}", viewport=PHONE, color_scheme=scheme)
    for section in ("", "-6", "-10"):
        go(page, f"#{lang}{section}")
        assert wide(page) == 0


def test_hostile_text_stays_text(open_page: Callable[..., Opened], small_book: str) -> None:
    """Neither a title nor an address becomes an element."""
    hostile = small_book.replace(
        "Shares as the first score moves", r"\u003cimg src=x onerror=alert(1)\u003e\u003c/script\u003e"
    )
    assert hostile != small_book
    page = open_page(hostile, viewport=LAPTOP).page
    go(page, "#en-6.3")
    page.evaluate("location.hash = '#en-<img src=x onerror=alert(1)>'")
    eventually(page.locator(".shown .curve-figure figcaption")).to_contain_text("<img src=x onerror=alert(1)></script>")
    eventually(page.locator(".shown img")).to_have_count(0)


@pytest.mark.full
def test_every_chapter_of_the_whole_book_comes_alive_in_both_languages(
    open_page: Callable[..., Opened],
) -> None:
    book = build_book(library_with(None), chapters_of())
    assert len(book.encode("utf-8")) <= MOST_BYTES
    for screen in (LAPTOP, PHONE):
        page = open_page(book, viewport=screen).page
        for lang in ("en", "zh"):
            for number in range(1, 15):
                go(page, f"#{lang}-{number}")
                eventually(page.locator(f'article.shown[data-chapter="{number}"]')).to_be_visible()
                assert wide(page) == 0, (lang, number)
                assert page.locator(".shown .katex-error").count() == 0, (lang, number)
                empty = page.locator(
                    ".shown :is(.live[data-example], .run, .exercise, .chain, .formula[data-index]):empty"
                )
                assert empty.count() == 0, (lang, number)
