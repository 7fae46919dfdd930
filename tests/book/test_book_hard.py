"""The book where things are missing or meant ill: no clipboard, no storage, no fonts of ours, hostile text of a reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from book.test_book_page import LAPTOP, at, cell, go, small_book
from page.reader import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from browsing import Opened

__all__ = ["at", "small_book"]

pytestmark = pytest.mark.browser

NOTHING_TO_KEEP = """
Object.defineProperty(navigator, "clipboard", { value: undefined })
document.execCommand = () => false
for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, name, { get() { throw new DOMException("refused", "SecurityError") } })
}
"""
HOSTILE = "</script><img src=x onerror=alert(1)>"


def test_without_clipboard_and_storage_a_formula_is_selected_and_everything_else_works(
    open_page: Callable[..., Opened], small_book: str
) -> None:
    page = open_page(small_book, viewport=LAPTOP).page
    page.add_init_script(NOTHING_TO_KEEP)
    page.reload()
    go(page, "#en-6.2")
    page.locator(".shown [data-section='6.2'] .face-tex").first.click()
    eventually(page.locator(".shown .source-tex [role=status]")).to_have_text("Selected: copy it with your keyboard.")
    page.locator("#bar .menu summary").click()
    page.locator("#bar .menu button", has_text="Copy a link").click()
    eventually(page.locator("#bar .menu [role=status]")).to_have_text("Copy the address from your browser.")
    page.locator("[data-tool=theme]").click()
    eventually(page.locator("html")).to_have_attribute("data-theme", "light")
    go(page, "#en-6.3")
    cell(page, "ex.S:0").fill("0")
    cell(page, "ex.S:0").press("Enter")
    eventually(cell(page, "ex.A:0")).to_have_text("0.333333")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_text_has_a_family_that_every_browser_has(at: Callable[..., Page], lang: str) -> None:
    """Named fonts may all be missing; the last of each list is generic."""
    page = at(f"#{lang}-6")
    families = page.evaluate(
        "() => [...document.querySelectorAll('body, article.shown *, #bar *')]"
        ".filter(e => !e.closest('.katex')).map(e => getComputedStyle(e).fontFamily)"
    )
    strange = {each for each in families if not re.search(r"\b(serif|sans-serif|monospace)$", each)}
    assert not strange


def test_what_a_reader_types_is_never_an_element(at: Callable[..., Page]) -> None:
    page = at("#en-6.3")
    cell(page, "ex.S:0").fill(HOSTILE)
    cell(page, "ex.S:0").press("Enter")
    page.locator("[data-tool=search]").click()
    page.locator("input[type=search]").fill(HOSTILE)
    eventually(page.locator(".search [role=status]")).to_contain_text(HOSTILE)
    page.keyboard.press("Escape")
    eventually(page.locator("img")).to_have_count(0)
    eventually(cell(page, "ex.Z:0")).to_have_text("1")


def test_the_search_finds_what_only_a_formula_says(at: Callable[..., Page]) -> None:
    page = at("#en-6")
    page.locator("[data-tool=search]").click()
    page.locator("input[type=search]").fill("root of d_k")
    eventually(page.locator(".hits li")).to_have_count(1)
