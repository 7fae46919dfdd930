"""A browser without network, and pages opened in it: one browser for a session, whichever tests ask for it.

Playwright's loop can be started once in a process, so the fixtures live here and `conftest.py` beside this file
offers them to every folder; a folder that imported them for itself would start a second one, and fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass
class Opened:
    """A page in the browser, and everything it complained about or asked the outside for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def numbers(self, key: str) -> list[float]:
        """The numbers that the page holds for ``key``, row-major."""
        return [float(x) for x in self.page.evaluate(NUMBERS, key)]


NUMBERS = (
    "key => Array.from(window.glassformer.engine.value(key), x => Number.isFinite(x) ? x : String(x).toLowerCase())"
)


def browser_path() -> str | None:
    """The browser to drive: CHROMIUM, or an installed one."""
    given = os.environ.get("CHROMIUM")
    if given:
        assert Path(given).exists(), f"CHROMIUM names {given}, which is not there"
        return given
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    sync_api = pytest.importorskip("playwright.sync_api")
    path = browser_path()
    if path is None:
        pytest.skip("no browser: install Chromium or name one in CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path)
        yield running
        running.close()


@pytest.fixture(scope="session")
def built() -> str:
    """The built page without data."""
    # Only here: this module is loaded before annotations can be hooked, and must not load the package.
    from glassformer.errors import UserError
    from glassformer.page import document

    try:
        return document.template()
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture
def open_page(browser: Browser, built: str, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens HTML in a fresh context whose network is off; at the end no page may have complained or asked for anything.

    Options go to the context (``locale``, ``color_scheme``); ``quiet=False`` leaves complaints to the test.
    """
    contexts = []
    watched: list[Opened] = []

    def open_(html: str, *, quiet: bool = True, **options: Any) -> Opened:
        file = tmp_path / f"page{len(contexts)}.html"
        file.write_bytes(html.encode("utf-8"))
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        opened = Opened(context.new_page())
        opened.page.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
        opened.page.on("pageerror", lambda error: opened.complaints.append(f"error: {error}"))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on(
            "dialog", lambda dialog: (opened.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss())
        )
        opened.page.goto(file.as_uri())
        if quiet:
            watched.append(opened)
        return opened

    yield open_
    for opened in watched:
        outside = [url for url in opened.requests if not url.startswith(("file:", "data:", "blob:"))]
        assert not outside, outside
        assert not opened.complaints, opened.complaints
    for context in contexts:
        context.close()
