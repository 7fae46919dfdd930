"""A browser without network, and pages opened in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import glassformer
from glassformer.errors import UserError
from glassformer.model import AttentionConfig, Decoder, DecoderConfig, FeedForwardConfig, NormConfig
from glassformer.page import build, document
from glassformer.tracing import Trace, header_of, tensors_of, trace_toy24

from .reader import Reader

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
    try:
        return document.template()
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def toy() -> Trace:
    """The 24-parameter model, traced once."""
    return trace_toy24()


@pytest.fixture(scope="session")
def toy_header(toy: Trace) -> dict[str, Any]:
    """Its header; making one derives every formula, so it is made once. Tests copy it before they change it."""
    return header_of(toy)


@pytest.fixture(scope="session")
def toy_page(built: str, toy: Trace, toy_header: dict[str, Any]) -> str:
    """Its page."""
    return build(toy_header, tensors_of(toy))


LARGE_VOCABULARY = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM\n"


@pytest.fixture(scope="session")
def large() -> Trace:
    """A decoder of three blocks, four heads and 60 positions: too large to be recomputed at every edit."""
    torch.manual_seed(0)
    config = DecoderConfig.alike(
        3,
        vocab_size=len(LARGE_VOCABULARY),
        context=60,
        d=64,
        attention=AttentionConfig(heads=4, d_k=16, d_v=16, bias=True),
        norm=NormConfig(),
        ffn=FeedForwardConfig(d_ff=256),
    )
    tokens = [7 * k % len(LARGE_VOCABULARY) for k in range(60)]
    return glassformer.trace(Decoder(config), tokens, vocabulary=LARGE_VOCABULARY, witness_cells=0)


@pytest.fixture
def reader(open_page: Callable[..., Opened], toy_page: str) -> Reader:
    """A reader before the page of the 24-parameter model, on a laptop's screen."""
    return Reader(open_page(toy_page, viewport={"width": 1440, "height": 900}).page)


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
