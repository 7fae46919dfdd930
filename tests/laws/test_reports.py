"""Reports say what was found, whatever the subject is called and returns."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from glassformer.laws import reading
from glassformer.laws.junit import junit
from glassformer.laws.page import page

HOSTILE = "<script>alert('x')</script>]]>&amp;\"\x00\x1b[31m\ud800‮\ufffe"
"""Markup of three languages, characters that no document may hold, a terminal's orders, a reversed direction."""


def entry(verdict: str, probe: str = "cache.uneven", **more: Any) -> dict[str, Any]:
    return {"law": probe.split(".")[0], "probe": probe, "verdict": verdict, **more}


def report(*entries: dict[str, Any], subject: str = "model") -> dict[str, Any]:
    verdicts = {verdict: sum(e["verdict"] == verdict for e in entries) for verdict in reading.VERDICTS}
    return {
        "schema": 1, "subject": subject, "kind": "causal", "facts": {"class": subject, "parameters": 3},
        "versions": {"torch": "2"}, "forwards": 12, "verdicts": verdicts, "laws": list(entries),
        "statements": {"cache": {"en": "the cache agrees", "zh": "缓存一致"}},
    }  # fmt: skip


def violated(text: str = "x") -> dict[str, Any]:
    return entry(
        "violated", measured=1.88, bound=1e-9, unit="logit", relation="at most", reason={"en": text, "zh": text},
        witness={"length": 12, "position": 3, text: text}, program=f"print({text!r})\n",
        place={"module": text, "class": text, "file": text, "line": 3, "mask": ["#..", "##.", text]},
    )  # fmt: skip


def supported() -> dict[str, Any]:
    return entry("not supported", reason={"en": "no cache", "zh": "没有缓存"})


def holds() -> dict[str, Any]:
    return entry("holds", measured=0.0, bound=1e-9, unit="logit", relation="at most", witness={"length": 3})


@pytest.mark.parametrize(
    ("entries", "plain", "strict"),
    [
        ([holds()], 0, 0),
        ([holds(), supported()], 0, 1),
        ([holds(), violated()], 1, 1),
        ([supported()], 2, 2),
        ([], 2, 2),
    ],
)
def test_exit_codes_say_violated_or_not_or_that_nothing_was_decided(entries: Any, plain: int, strict: int) -> None:
    assert reading.exit_code(report(*entries)) == plain
    assert reading.exit_code(report(*entries), strict=True) == strict


def test_junit_counts_and_explains() -> None:
    suite = ElementTree.fromstring(junit([report(holds(), violated(), supported())]))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    failure = next(suite.iter("failure"))
    assert "1.88 logit" in str(failure.get("message"))
    assert "position 3" in str(failure.text)
    assert "#.." in str(failure.text)
    assert "no cache" in str(next(suite.iter("skipped")).get("message"))


def test_junit_stays_well_formed_for_hostile_text() -> None:
    tree = ElementTree.fromstring(junit([report(violated(HOSTILE), supported(), subject=HOSTILE)]).encode("utf-8"))
    assert not list(tree.iter("script"))
    assert "<script>" in str(tree[0].get("name"))


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_shows_hostile_text_and_runs_none_of_it(lang: str) -> None:
    text = page([report(holds(), violated(HOSTILE), supported(), subject=HOSTILE)], lang)
    text.encode("utf-8")
    tags = _Tags()
    tags.feed(text)
    assert not {"script", "iframe", "img", "link", "object"} & set(tags.tags)
    assert not [name for name, _ in tags.attributes if name.startswith("on") or name in ("src", "href")]
    assert not re.search("[\x00\x1b\u202e\ud800]", text)
    assert "&lt;script&gt;" in text


def test_the_page_has_both_themes_and_a_policy_against_scripts() -> None:
    text = page([report(holds())], "en")
    assert "prefers-color-scheme: dark" in text
    assert "default-src 'none'" in text


def test_what_is_read_of_an_entry_is_printable() -> None:
    bad = violated(HOSTILE)
    said = [reading.reason(bad, "en"), reading.witness(bad, "en"), reading.place(bad, "en"), *reading.mask(bad)]
    said.append(reading.title(report(bad, subject=HOSTILE), "en"))
    assert all(line.replace("\ufffe", "").isprintable() for line in said)


def test_not_a_number_is_said_in_words() -> None:
    nan = entry("violated", measured=None, bound=None, unit="logit", relation="at most", witness={})
    assert reading.measured(nan, "en") == "not a number"
    json.dumps(nan, allow_nan=False)
