"""A trace becomes HTML in which no text of a user or model can be anything but text."""

from __future__ import annotations

import base64
import json
import re
import runpy
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from glassformer.errors import UserError
from glassformer.page import build, document
from glassformer.tracing import header_of

HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "</SCRIPT >",
    "]]>",
    "\"'`&amp;&lt;",
    "\x00\x07\x1b[31m\x7f",
    "\u2028\u2029\u202e",
    "\ud800",
    "\udfff tail",
    "${alert(1)}",
    "\\htmlData{op=0}{x}\\href{javascript:alert(1)}{y}",
)
"""Token texts that break pages that paste text."""


class Blocks(HTMLParser):
    """The elements of a page and the text of its data blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data: dict[str, str] = {}
        self.dtypes: dict[str, str] = {}
        self.current: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.current = found.get("data-key") or found.get("id")
        if found.get("data-key"):
            self.dtypes[str(found["data-key"])] = str(found["data-dtype"])

    def handle_endtag(self, tag: str) -> None:
        self.current = None

    def handle_data(self, data: str) -> None:
        if self.current:
            self.data[self.current] = self.data.get(self.current, "") + data


def parsed(html: str) -> Blocks:
    blocks = Blocks()
    blocks.feed(html)
    return blocks


@pytest.fixture
def html(monkeypatch: pytest.MonkeyPatch) -> str:
    """A template small enough to read: these tests need no built page."""
    text = '<!doctype html>\n<html lang="en"><head><title>glassformer</title></head><body><!--GLASSFORMER-DATA--></body></html>'
    monkeypatch.setattr(document, "template", lambda: text)
    return text


def test_every_tensor_keeps_its_bits(html: str) -> None:
    tensors = {
        "a.exact": np.array([[0.5, -0.0], [np.inf, -np.inf]]),
        "a.long": np.array([0.1, 1 / 3, np.pi, 5e-324, 1e300]),
        "a.nan": np.array([np.nan, 1.0]),
        "a.none": np.array(2.0),
        "a.ids": np.array([3, 70000], dtype=np.int64),
        "a.mask": np.array([True, False]),
    }
    blocks = parsed(build({"schema": 1}, tensors))
    for key, array in tensors.items():
        dtype = {"f4": "<f4", "f8": "<f8"}[blocks.dtypes[key]]
        back = np.frombuffer(base64.b64decode(blocks.data[key]), dtype=dtype).astype(np.float64)
        assert np.array_equal(back, array.astype(np.float64).ravel(), equal_nan=True)
        assert np.array_equal(np.signbit(back), np.signbit(array.astype(np.float64).ravel()))
    assert blocks.dtypes["a.exact"] == "f4"
    assert blocks.dtypes["a.long"] == "f8"


def test_the_header_arrives_as_it_was(html: str) -> None:
    header: dict[str, Any] = {
        "vocabulary": list(HOSTILE),
        "n": np.int64(2),
        "nested": [{"x": np.float64(0.1), "y": (1, None)}],
    }
    blocks = parsed(build(header, {}))
    back = json.loads(blocks.data["glassformer-header"])
    assert back == {"vocabulary": list(HOSTILE), "n": 2, "nested": [{"x": 0.1, "y": [1, None]}]}


def test_numbers_that_are_not_finite_become_null_in_the_header(html: str) -> None:
    blocks = parsed(build({"worst": float("inf"), "rest": [float("nan"), np.float64("-inf"), 1.0]}, {}))
    assert json.loads(blocks.data["glassformer-header"]) == {"worst": None, "rest": [None, None, 1.0]}


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_opens_or_closes_an_element(html: str, text: str) -> None:
    plain = parsed(build({"title": {"en": "t"}, "vocabulary": ["A"]}, {}))
    hostile = build({"title": {"en": text}, "vocabulary": [text], text: text}, {})
    assert parsed(hostile).tags == plain.tags
    block = re.search(r'id="glassformer-header">(.*?)</script>', hostile, re.DOTALL)
    assert block is not None
    assert block[1].isascii()
    assert not set(block[1]) & set("<>&")
    hostile.encode("utf-8")  # nothing in it that a file cannot hold


def test_a_key_that_could_close_its_attribute_is_refused(html: str) -> None:
    with pytest.raises(ValueError, match="cannot name a tensor"):
        build({}, {'x"><script>': np.zeros(1)})


def test_the_page_opens_in_the_language_asked_for(html: str) -> None:
    header = {"title": {"en": "Twenty-four", "zh": "二十四"}}
    assert '<html lang="zh-CN">' in build(header, {}, lang="zh")
    assert "<title>二十四 · glassformer</title>" in build(header, {}, lang="zh")
    assert '<html lang="en">' in build(header, {})
    with pytest.raises(UserError, match='no language "fr"'):
        build(header, {}, lang="fr")


def test_a_checkout_without_the_built_page_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(document.resources, "files", lambda package: tmp_path)
    with pytest.raises(UserError, match="make page"):
        build({}, {})


def test_a_trace_fits_a_page_of_moderate_size(built: str, toy_page: str) -> None:
    assert len(toy_page) - len(built) < 400_000
    assert len(built) < 900_000


def test_the_fixtures_of_the_unit_tests_read_as_this_version_writes(root: Any, toy_header: dict[str, Any]) -> None:
    """The page's printers are compared with Python's on these files, so they must be Python's of today."""
    make = runpy.run_path(str(root / "web" / "fixtures" / "make.py"))
    toy = json.loads((root / "web" / "fixtures" / "toy24.json").read_text("utf-8"))["header"]
    decoder = json.loads((root / "web" / "fixtures" / "decoder.json").read_text("utf-8"))
    for kept, fresh in ((toy, toy_header), (decoder, header_of(make["decoder"]()))):
        assert formulas(kept) == formulas(fresh), "run: python web/fixtures/make.py"


def formulas(header: dict[str, Any]) -> list[Any]:
    """Everything of a header that printing depends on; where it stands in the source does not."""
    plain = json.loads(json.dumps(header))
    dropped = {"file", "line", "en", "zh"}
    return [
        {k: v for k, v in item.items() if k not in dropped} for item in [*plain["quantities"], *plain["statements"]]
    ]
