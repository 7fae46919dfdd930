"""In a browser, with hostile token texts: all shown as text, nothing runs, nothing is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from glassformer.page import build
from glassformer.tracing import Trace, tensors_of

from .test_document import HOSTILE

pytestmark = pytest.mark.browser

ATTACK = "</script><script>document.title = 'broken in'</script><img src=x onerror=\"document.title = 'broken in'\">"
COUNT = "() => [...document.querySelectorAll('script:not([data-key]), img, iframe, object, embed, base')].length"


@pytest.fixture(scope="module")
def clean_count(browser: Any, toy_page: str, tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many elements that could run or load something the page has of its own."""
    file = tmp_path_factory.mktemp("clean") / "page.html"
    file.write_text(toy_page, "utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    count = int(page.evaluate(COUNT))
    page.close()
    return count


def hostile_header(header: dict[str, Any], texts: tuple[str, ...]) -> dict[str, Any]:
    return {
        **header,
        "title": {"en": texts[0], "zh": texts[0]},
        "vocabulary": list(texts),
        "labels": [{"id": texts[0], "en": texts[1], "zh": texts[1], "texts": list(texts)}],
    }


@pytest.mark.parametrize("start", range(0, len(HOSTILE), 3))
def test_hostile_texts_are_inert(
    open_page: Callable[..., Any], toy: Trace, toy_header: dict[str, Any], clean_count: int, start: int
) -> None:
    texts = tuple((HOSTILE * 2)[start : start + 3])
    opened = open_page(build(hostile_header(toy_header, texts), tensors_of(toy)))
    opened.page.wait_for_timeout(200)
    shown = opened.page.evaluate(
        "() => window.glassformer.header.vocabulary.map(t => Array.from(t, c => c.codePointAt(0)))"
    )
    assert shown == [[ord(c) for c in text] for text in texts]
    assert opened.page.evaluate(COUNT) == clean_count


def test_an_attack_that_gets_into_the_page_does_not_run(open_page: Callable[..., Any], built: str) -> None:
    """The second wall: even markup pasted into the built page is stopped by its policy."""
    opened = open_page(built.replace("</body>", f"{ATTACK}</body>"), quiet=False)
    opened.page.wait_for_timeout(200)
    assert opened.page.title() != "broken in"
    assert any("Content Security Policy" in complaint for complaint in opened.complaints)


def test_the_attack_is_real(open_page: Callable[..., Any], built: str) -> None:
    """The control: without the policy the same markup runs."""
    start = built.index('<meta http-equiv="Content-Security-Policy"')
    naked = built[:start] + built[built.index(">", start) + 1 :]
    opened = open_page(naked.replace("</body>", f"{ATTACK}</body>"), quiet=False)
    opened.page.wait_for_timeout(200)
    assert opened.page.title() == "broken in"


def test_the_page_can_neither_send_nor_load(open_page: Callable[..., Any], toy_page: str) -> None:
    opened = open_page(toy_page, quiet=False)
    attempts = """async () => {
      const tried = [];
      try { await fetch("http://127.0.0.1:9/"); tried.push("fetch"); } catch {}
      try { document.createElement("div").innerHTML = "<b>x</b>"; tried.push("innerHTML"); } catch {}
      return tried;
    }"""
    assert opened.page.evaluate(attempts) == []
    assert any("connect-src 'none'" in complaint for complaint in opened.complaints)


def test_a_page_without_a_trace_says_so(open_page: Callable[..., Any], built: str) -> None:
    opened = open_page(built, quiet=False)
    assert "carries no trace" in opened.page.get_by_role("alert").inner_text()
