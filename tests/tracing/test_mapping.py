"""A trace is a mapping of its keys; a notebook shows it in words that obey nobody."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import glassformer
from glassformer.errors import UserError
from glassformer.model import toy24_model
from glassformer.page import document
from glassformer.tracing import Trace, notebook

HOSTILE = (
    "</td></table></iframe><script>alert(1)</script>",
    '"\'> srcdoc="<img src=x onerror=alert(1)>&quot;',
    "\x1b]8;;https://example.invalid\x07\u202e\ud800<!--",
)
TEMPLATE = '<!doctype html>\n<html lang="en"><head><title>glassformer</title></head><body><!--GLASSFORMER-DATA--></body></html>'


def traced(vocabulary: Any = "ABC") -> Trace:
    return glassformer.trace(toy24_model(), [0, 1], target=2, vocabulary=vocabulary, witness_cells=0)


@pytest.fixture(scope="module")
def run() -> Trace:
    return traced()


def test_iteration_gives_every_key_in_full_and_no_other(run: Trace) -> None:
    assert list(run) == list(run.keys()) == list(run.values)
    assert len(run) == len(run.values)
    assert "blocks.0.attn.W_Q.grad" in list(run)
    assert "W_Q.grad" not in list(run)
    copied = dict(run)
    assert all(copied[name] is run[name] for name, _ in run.items())


def test_short_names_faces_and_cells_are_in_a_trace_and_others_are_not(run: Trace) -> None:
    for name in ("W_Q", "A.grad", "loss.L.after", "A[0,1,0]", "h"):
        assert name in run
        assert run.get(name) is not None
    for other in ("W_q", "t.grad", "A[0,9,0]", 3, None):
        assert other not in run
    assert run.get("W_q") is None
    assert run.get("W_q", 7) == 7


def test_gradients_are_those_of_every_quantity_that_has_one(run: Trace) -> None:
    assert set(run.gradients) == {name.removesuffix(".grad") for name in run if name.endswith(".grad")}
    assert set(run.parameters) <= set(run.gradients)
    assert run.gradients["head.U"] is run["U.grad"]


def test_numbers_and_formulas_leave_as_copies(run: Trace) -> None:
    array, tensor = run.to_numpy("A.grad"), run.to_torch("A")
    array += 1
    tensor += 1
    assert np.array_equal(run["A.grad"], array - 1)
    assert torch.equal(run.to_torch("attn.A", layer=0) + 1, tensor)
    assert run.to_latex("S") == run.quantity("S").to_latex()


def test_a_trace_saves_itself(run: Trace, tmp_path: Path) -> None:
    run.save(tmp_path / "toy.trace")
    back = glassformer.load_trace(tmp_path / "toy.trace")
    assert set(back) == set(run)
    with pytest.raises(UserError, match="exists already"):
        run.save(tmp_path / "toy.trace")
    run.save(tmp_path / "toy.trace", replace=True)


def test_traces_are_equal_to_themselves_alone_and_can_be_kept_in_sets(run: Trace) -> None:
    assert len({run, run, traced()}) == 2


def test_what_is_printed_is_the_summary(run: Trace) -> None:
    assert "2.541928 → 1.761382" in repr(run)
    assert all(line.isprintable() for line in repr(traced(HOSTILE)).splitlines())


class Shown(HTMLParser):
    """The elements, attributes and text of what a notebook is given."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "iframe":
            assert len(attrs) == len(dict(attrs))
            self.attributes = dict(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def small_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template small enough to read: these tests need no built page."""
    monkeypatch.setattr(document, "template", lambda: TEMPLATE)


@pytest.mark.usefixtures("small_page")
def test_a_notebook_gets_the_summary_first_and_the_page_in_a_sandbox_second(run: Trace) -> None:
    html = run._repr_html_()
    shown = Shown(html)
    assert html.startswith("<table>")
    assert shown.tags[-1] == "iframe"
    assert set(shown.tags) == {"table", "caption", "tbody", "tr", "th", "td", "iframe"}
    assert set(str(shown.attributes["sandbox"]).split()) == {"allow-scripts", "allow-downloads", "allow-forms"}
    assert shown.attributes["srcdoc"] == notebook.page_of(run)
    for words in ("“A” “B”", "against “C”", "2.541928 → 1.761382", "0 of ", "head.p[1,2]0.0787145 → 0.171807"):
        assert words in shown.text


@pytest.mark.usefixtures("small_page")
def test_token_texts_break_out_of_neither() -> None:
    plain, hostile = Shown(traced()._repr_html_()), Shown(traced(HOSTILE)._repr_html_())
    assert hostile.tags == plain.tags
    assert set(hostile.attributes) == set(plain.attributes)
    assert HOSTILE[0] in hostile.text
    assert "\x1b" not in hostile.text
    # The frame's own document has the same elements as that of harmless texts, too.
    assert Shown(str(hostile.attributes["srcdoc"])).tags == Shown(str(plain.attributes["srcdoc"])).tags


def test_without_a_built_page_the_summary_says_how_to_get_it(run: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise UserError("The page has not been built.", "", "Run `make page`.")

    monkeypatch.setattr(document, "template", none)
    shown = Shown(run._repr_html_())
    assert "iframe" not in shown.tags
    assert "Run `make page`." in shown.text


@pytest.mark.parametrize("limit", [100, 5_000])
@pytest.mark.usefixtures("small_page")
def test_a_large_page_stays_a_file_whether_that_is_known_before_or_after_writing_it(
    run: Trace, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(notebook, "LARGEST", limit)
    shown = Shown(run._repr_html_())
    assert "iframe" not in shown.tags
    assert re.search(r"MB are shown in a notebook\..*glassformer trace my\.trace --html my\.html", shown.text)
