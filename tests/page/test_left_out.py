"""A trace with more numbers than its page may hold: what is left out, and what the page then says and does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.page import build
from glassformer.page.document import ALWAYS, fitting
from glassformer.tracing import Trace, header_of, tensors_of

from .reader import Reader, eventually, number

if TYPE_CHECKING:
    Open = Callable[..., Any]

HEADER = {"quantities": [{"id": "W", "kind": "parameter"}, {"id": "X", "kind": "intermediate"}]}
ORDER = ("W.new", "X.after", "W.grad", "W", "X.grad", "X")
LIMIT = 10_450_000
FFN = "blocks.0.ffn"


def floats(cells: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers that float32 does not hold."""
    return np.full(cells, 0.1)


@given(st.integers(0, 400_000))
def test_what_does_not_fit_is_left_out_in_the_stated_order(limit: int) -> None:
    tensors = {key: floats(5000) for key in reversed(ORDER)}
    kept, needed = fitting(HEADER, tensors, limit)
    size = 4 * -(-5000 * 8 // 3)
    assert needed == 6 * size
    fit = min(6, limit // size)
    assert set(kept) == set(ORDER[6 - fit :])


def test_of_one_kind_the_largest_is_left_out_first_and_small_ones_never() -> None:
    header = {"quantities": [{"id": name, "kind": "parameter"} for name in "ABC"]}
    tensors = {"A": floats(ALWAYS + 1), "B": floats(ALWAYS + 2), "C": floats(ALWAYS)}
    kept, needed = fitting(header, tensors, 110_000)
    assert set(kept) == {"A", "C"}
    assert set(fitting(header, tensors, 0)[0]) == {"C"}
    assert fitting(header, tensors, needed)[0] == tensors


def test_a_page_that_holds_everything_says_nothing_of_it(built: str, toy_header: dict[str, Any], toy: Trace) -> None:
    assert '"left_out"' not in build(toy_header, tensors_of(toy)).split("glassformer-header")[1]


@pytest.fixture(scope="module")
def crowded_page(built: str, large: Trace) -> str:
    """Every gradient and parameter of more than ``ALWAYS`` cells is left out."""
    return build({**header_of(large), "source": "run"}, tensors_of(large), most_bytes=LIMIT)


@pytest.fixture
def reader(open_page: Open, crowded_page: str) -> Reader:
    return Reader(open_page(crowded_page, viewport={"width": 1440, "height": 900}).page)


@pytest.mark.browser
def test_where_a_number_was_left_out_the_page_says_so_and_how_to_get_it(reader: Reader, large: Trace) -> None:
    reader.look_at(f"{FFN}.W_1", 5)
    card = reader.page.locator(f'[id="card-{FFN}.W_1"] .missing')
    eventually(card).to_contain_text("not recorded")
    eventually(card).to_contain_text("larger than 10 MB")
    command = card.locator("code").inner_text()
    needed = int(command.rpartition(" ")[2])
    assert command.startswith("glassformer trace RUN TEXT --eta 0.1 --html PAGE.html --page-size ")
    assert len(fitting(header_of(large), tensors_of(large), needed * 1_000_000)[0]) == len(large.values)
    eventually(reader.inspector.locator(".missing")).to_be_visible()
    reader.page.keyboard.press("Escape")
    for key in "2345":
        reader.page.keyboard.press(key)
        eventually(reader.page.locator(f'[id="card-{FFN}.W_1"] .missing').first).to_be_visible()
    reader.page.get_by_role("button", name="中文").click()
    eventually(reader.page.locator(f'[id="card-{FFN}.W_1"] .missing').first).to_contain_text("未记录")


@pytest.mark.browser
def test_the_numbers_that_are_there_are_the_recorded_ones_and_explain_themselves(reader: Reader, large: Trace) -> None:
    key, flat = "blocks.1.attn.A", 60 * 17 + 3
    reader.look_at(key, flat)
    result = reader.inspector.locator('[data-role="result"]')
    eventually(result).to_be_visible()
    recorded = float(large[key].reshape(-1)[flat])
    assert number(result.inner_text()) == pytest.approx(recorded, rel=1e-12)
    values = reader.inspector.locator(".witnesses tbody td:nth-child(2)").all_inner_texts()
    assert [number(text) for text in values] == pytest.approx([recorded] * 2, rel=1e-12)
    reader.look_at(f"{FFN}.B", 5)
    eventually(reader.inspector).to_contain_text(f"Its arithmetic reads {FFN}.W_1, which is not recorded")
    kept = reader.page.evaluate(
        "() => { const { engine } = window.glassformer; return engine.keys.filter(key => engine.holds(key)); }"
    )
    for key in kept:
        shown = reader.page.evaluate(
            "key => Array.from(window.glassformer.engine.value(key).slice(0, 50), String)", key
        )
        wanted = np.asarray(large.values[key], dtype=float).reshape(-1)[:50]
        assert [float(x.replace("Infinity", "inf")) for x in shown] == pytest.approx(list(wanted), rel=1e-12), key


@pytest.mark.browser
def test_updated_parameters_need_not_be_recorded(open_page: Open, built: str, large: Trace) -> None:
    """Those whose gradient is there are computed from it: their own numbers are left out first."""
    key = f"{FFN}.W_1.new"
    html = build({**header_of(large), "source": "run"}, tensors_of(large), most_bytes=14_000_000)
    assert f'data-key="{key}"' not in html
    opened = open_page(html, viewport={"width": 1440, "height": 900})
    reader = Reader(opened.page)
    reader.look_at(key, 3)
    eventually(reader.inspector.locator('[data-role="result"]')).to_be_visible()
    assert opened.numbers(key) == pytest.approx(list(large[key].reshape(-1)), rel=1e-12)


@pytest.mark.browser
def test_what_is_left_out_of_a_run_that_can_be_recomputed_is_computed_on_demand(
    open_page: Open, built: str, large: Trace
) -> None:
    html = build({**header_of(large), "source": "run"}, tensors_of(large), most_bytes=13_000_000)
    opened = open_page(html, viewport={"width": 1440, "height": 900})
    reader = Reader(opened.page)
    key = "blocks.2.ffn.C.after"
    reader.look_at(key, 70)
    missing = reader.inspector.locator(".missing")
    eventually(missing).to_contain_text("not recorded")
    missing.get_by_role("button", name="Compute it here").click()
    eventually(missing).to_have_count(0)
    assert opened.numbers(key) == pytest.approx(list(large[key].reshape(-1)), rel=1e-9, abs=1e-12)
    assert number(reader.inspector.locator('[data-role="result"]').inner_text()) == pytest.approx(
        float(large[key].reshape(-1)[70]), rel=1e-9
    )


@pytest.mark.browser
def test_a_run_that_cannot_be_recomputed_takes_no_edits_and_says_why(reader: Reader) -> None:
    assert reader.page.evaluate("() => window.glassformer.engine.pace") == "recorded"
    eventually(reader.page.locator(".too-large")).to_contain_text("too large to be computed again")
    eventually(reader.page.locator(".too-large code")).to_contain_text("--set")
    assert reader.page.locator("#eta").count() == 0
    reader.page.locator(".token").nth(4).click()
    assert reader.page.locator("#token-4").count() == 0
    reader.look_at("blocks.0.norm1.gamma", 3)
    eventually(reader.inspector.locator(".cell-id code")).to_be_visible()
    assert reader.page.locator("#edit-cell").count() == 0
    refused = reader.page.evaluate(
        "() => { try { window.glassformer.engine.setCell('embed.E', 0, 1); } catch (e) { return e.reason; } }"
    )
    assert refused == "tooLarge"
    reader.page.locator(".menu summary").click()
    eventually(reader.page.locator(".menu")).to_contain_text("glassformer trace RUN TEXT --eta 0.1 --json numbers.json")


@pytest.mark.browser
def test_the_update_of_such_a_run_is_told_as_recorded(reader: Reader, large: Trace) -> None:
    reader.page.keyboard.press("3")
    total = reader.page.locator(".update-panel .figures:not(.shares) tfoot tr").last.locator("td.digits")
    eventually(total.first).to_be_visible()
    told = [number(text) for text in total.all_inner_texts()]
    assert told == pytest.approx([large.analysis.predicted, large.analysis.exact], abs=1e-6)
    assert reader.page.get_by_role("button", name="Compute them").count() == 0
