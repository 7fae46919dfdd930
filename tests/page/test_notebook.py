"""The page inside a notebook: a frame without an origin, without storage, and still the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import glassformer
from glassformer.model import toy24_model
from glassformer.tracing import Trace, notebook

from .reader import eventually
from .test_document import HOSTILE

pytestmark = pytest.mark.browser


def host(trace: Trace) -> str:
    """A notebook's page around one output."""
    return f"<!doctype html><html><head><title>host</title></head><body>{notebook.notebook_html(trace)}</body></html>"


def test_the_page_works_in_its_sandbox(open_page: Callable[..., Any], toy: Trace) -> None:
    page = open_page(host(toy), viewport={"width": 1440, "height": 1400}).page
    eventually(page.locator("table")).to_contain_text("2.541928")
    frame = page.frame_locator("iframe")
    eventually(frame.locator(".losses .cell-link-value").first).to_have_text("2.541928")
    frame.locator("#goto").fill("W_Q[1,0,0]")
    frame.locator("#goto").press("Enter")
    eventually(frame.locator("#inspector .cell-id code")).to_contain_text("W_Q")
    frame.locator("#edit-cell").fill("0.7")
    frame.locator("#edit-cell").press("Enter")
    eventually(frame.locator(".losses .cell-link-value").first).not_to_have_text("2.541928")


def test_the_frame_reaches_neither_storage_nor_the_notebook(open_page: Callable[..., Any], toy: Trace) -> None:
    page = open_page(host(toy)).page
    eventually(page.frame_locator("iframe").locator("#goto")).to_be_visible()
    inside = next(frame for frame in page.frames if frame != page.main_frame)
    refused = "f => { try { f(); return false } catch { return true } }"
    for reach in ("localStorage.length", "parent.document.title", "document.cookie"):
        assert inside.evaluate(f"({refused})(() => {reach})"), reach
    assert inside.evaluate("self.origin") == "null"


def test_hostile_texts_run_nowhere(open_page: Callable[..., Any]) -> None:
    attack = (
        "</iframe><script>document.title = 'broken in'</script><img src=x onerror=\"document.title = 'broken in'\">"
    )
    trace = glassformer.trace(
        toy24_model(), [0, 1], target=2, vocabulary=(attack, HOSTILE[0], HOSTILE[4]), witness_cells=0
    )
    page = open_page(host(trace)).page
    eventually(page.frame_locator("iframe").locator("#goto")).to_be_visible()
    assert page.title() == "host"
    assert page.locator("script, img, iframe").count() == 1
    eventually(page.locator("table")).to_contain_text(attack)
