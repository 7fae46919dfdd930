"""A chapter is drawn as far as the window reaches, the rest when the browser is idle: nobody may notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from book.test_book_page import GO, LAPTOP, go
from page.reader import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from browsing import Opened

pytestmark = pytest.mark.browser

WAITING = "() => document.querySelectorAll('.shown .later').length"
PRINT = f"""async address => {{
    await ({GO})(address)
    const before = ({WAITING})()
    window.dispatchEvent(new Event("beforeprint"))
    return [before, ({WAITING})()]
}}"""


@pytest.fixture
def page(open_page: Callable[..., Opened], whole_book: str) -> Page:
    return open_page(whole_book, viewport=LAPTOP).page


def test_a_link_to_the_end_of_chapter_11_shows_its_last_block(page: Page) -> None:
    last = page.locator('article[data-chapter="11"][lang|="zh"] > section').last
    section = last.get_attribute("data-section")
    page.evaluate(GO, f"#zh-{section}")
    eventually(last.locator("h2")).to_be_in_viewport()
    eventually(last.locator(".block").last).to_be_in_viewport()
    # And nothing that is drawn afterwards pushes it away.
    page.wait_for_function(f"() => ({WAITING})() === 0")
    eventually(last.locator(".block").last).to_be_in_viewport()


def test_the_rest_of_a_chapter_follows_without_being_asked_for(page: Page) -> None:
    before = page.evaluate(f"async address => {{ await ({GO})(address); return ({WAITING})() }}", "#en-7")
    assert before > 0
    page.wait_for_function(f"() => ({WAITING})() === 0")
    eventually(page.locator(".shown > section").last.locator(".block").last).to_be_visible()


@pytest.mark.parametrize("chapter", [11, 14])
def test_paper_has_every_block(page: Page, chapter: int) -> None:
    before, after = page.evaluate(PRINT, f"#zh-{chapter}")
    assert before > 0
    assert after == 0


def test_a_page_that_is_opened_again_stands_where_it_was_left(page: Page) -> None:
    go(page, "#en-11")
    # Far down in a section: to its start alone the address would lead.
    left = page.evaluate("() => { scrollTo(0, document.getElementById('en-11.1').offsetTop + 3000); return scrollY }")
    page.wait_for_function("() => location.hash.startsWith('#en-11.1')")
    page.reload()
    # Roughly: what comes near the window is drawn then, and is not as high as what stood for it.
    page.wait_for_function("left => Math.abs(scrollY - left) < 900", arg=left, timeout=10_000)


def test_the_fields_of_several_runs_have_names_of_their_own(page: Page) -> None:
    for lang in ("en", "zh"):
        go(page, f"#{lang}-11")
    names = page.evaluate("() => [...document.querySelectorAll('.run :is(input, select)[id]')].map(field => field.id)")
    assert len(names) > 6
    assert len(set(names)) == len(names)
    eventually(page.locator(".shown .run").last.get_by_label("学习率")).to_have_value("0.1")


def test_reasons_name_symbols_as_symbols(page: Page) -> None:
    go(page, "#en-7")
    chain = page.locator('.shown [data-chain="scaled-dot-product"]')
    chain.locator("h3 button").click()
    chain.get_by_role("button", name="All steps").click()
    reason = chain.locator(".reason", has_text="the variance of the dot product is")
    eventually(reason.locator(".katex-html")).to_be_visible()
