"""What a reader can change in the page, copy from it and take home."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from glassformer.tracing import ToySettings, trace_toy24

from .reader import Reader, eventually, number

pytestmark = pytest.mark.browser

if TYPE_CHECKING:
    Open = Callable[..., Any]

ATTN = "blocks.0.attn"


# ---- changing numbers


def test_an_edited_parameter_changes_everything_after_it(reader: Reader) -> None:
    wanted = trace_toy24(ToySettings(cells={"W_Q[1,0]": 0.7}))
    reader.cell(f"{ATTN}.W_Q", 1).click()
    reader.type_number("0.7")
    eventually(reader.cell(f"{ATTN}.W_Q", 1)).to_have_class("number chosen edited")
    assert reader.losses == pytest.approx([float(wanted["L"]), float(wanted["loss.L.after"])], abs=1e-6)
    assert number(reader.cell(f"{ATTN}.A", 2).inner_text()) == pytest.approx(float(wanted["A"][0, 1, 0]), abs=1e-6)
    reader.page.keyboard.press("Escape")
    reader.page.keyboard.press("2")
    reader.scroll_to(f"{ATTN}.W_Q")
    gradient = reader.cell(f"{ATTN}.W_Q.grad", 1)
    assert number(gradient.inner_text()) == pytest.approx(float(wanted["W_Q.grad"][1, 0, 0]), abs=1e-6)


def test_after_an_edit_recorded_values_are_called_those_before_it_and_reset_brings_them_back(reader: Reader) -> None:
    before = reader.losses
    reader.look_at("head.U", 0)
    reader.type_number("-2.5e-1")
    eventually(reader.inspector.locator(".cell-head")).to_contain_text("Before your edit: 1")
    reader.look_at("loss.L", 0)
    eventually(reader.inspector.locator(".witness")).to_contain_text("before your edit")
    reader.page.get_by_role("button", name="Reset").click()
    eventually(reader.page.locator(".edited-note")).to_have_count(0)
    assert reader.losses == before
    assert reader.page.evaluate("() => window.glassformer.engine.edited()") is False


@pytest.mark.parametrize("text", ["abc", "", "1e999", "NaN", "Infinity", "0x10", "1,5", "1 2"])
def test_what_is_not_a_number_is_refused_and_nothing_is_lost(reader: Reader, text: str) -> None:
    before = reader.losses
    reader.look_at(f"{ATTN}.W_Q", 1)
    reader.type_number(text)
    eventually(reader.inspector.get_by_role("alert")).to_contain_text("is not a number")
    assert reader.page.locator("#edit-cell").input_value() == text
    assert reader.losses == before
    reader.type_number("0.5")
    eventually(reader.inspector.get_by_role("alert")).to_have_count(0)


def test_tokens_target_and_learning_rate_can_be_changed(reader: Reader) -> None:
    wanted = trace_toy24(ToySettings(tokens=(1, 0), target=0, eta=0.03))
    reader.page.locator("#token-0").select_option("1")
    reader.page.locator("#token-1").select_option("0")
    reader.page.locator("#target-1").select_option("0")
    reader.page.locator("#eta").fill("0.03")
    reader.page.locator("#eta").press("Enter")
    eventually(reader.page.locator(".losses .cell-link-value").first).to_have_text(f"{float(wanted['L']):.6f}")
    assert reader.losses == pytest.approx([float(wanted["L"]), float(wanted["loss.L.after"])], abs=1e-6)


def test_a_negative_learning_rate_is_refused(reader: Reader) -> None:
    before = reader.losses
    reader.page.locator("#eta").fill("-1")
    reader.page.locator("#eta").press("Enter")
    eventually(reader.page.locator("#eta-wrong")).to_contain_text("at least 0")
    assert reader.losses == before


def test_the_last_scored_row_cannot_be_taken_out_of_the_loss(reader: Reader) -> None:
    reader.look_at("loss.scored", 1)
    reader.page.locator("#edit-cell").click()
    eventually(reader.page.locator(".run-bar").get_by_role("alert")).to_contain_text("one row must count")
    assert reader.losses[0] == pytest.approx(2.541928, abs=1e-6)


# ---- copying and saving


def test_a_formula_is_copied_by_the_clipboard(open_page: Open, toy_page: str) -> None:
    page = open_page(toy_page, permissions=["clipboard-read", "clipboard-write"]).page
    page.locator(f'[id="card-{ATTN}.Q"] .formula').click()
    source = page.locator("dialog textarea").input_value()
    assert "W_Q" in source
    assert page.locator("dialog textarea").get_attribute("readonly") is not None
    page.get_by_role("button", name="Copy", exact=True).click()
    eventually(page.locator("dialog [role=status]")).to_have_text("Copied.")
    assert page.evaluate("() => navigator.clipboard.readText()") == source


def test_a_refused_clipboard_leaves_the_source_selected(reader: Reader) -> None:
    reader.page.evaluate(
        """() => {
          Object.defineProperty(navigator, "clipboard", { value: { writeText: () => Promise.reject(new Error("no")) } });
          document.execCommand = () => false;
        }"""
    )
    button = reader.page.locator(f'[id="card-{ATTN}.A"] .tex-button')
    button.focus()
    button.press("Enter")
    reader.page.get_by_role("button", name="Copy", exact=True).click()
    eventually(reader.page.locator("dialog [role=status]")).to_contain_text("press Ctrl+C")
    selected = "() => { const f = document.activeElement; return f.value.slice(f.selectionStart, f.selectionEnd); }"
    assert reader.page.evaluate(selected) == reader.page.locator("dialog textarea").input_value()
    reader.page.keyboard.press("Escape")
    eventually(reader.page.locator("dialog")).to_have_count(0)
    eventually(button).to_be_focused()


def save(reader: Reader, name: str, to: Path) -> str:
    reader.page.locator(".menu summary").click()
    with reader.page.expect_download() as waiting:
        reader.page.get_by_role("button", name=name).click()
    waiting.value.save_as(to)
    reader.page.locator(".menu summary").click()
    return to.read_text("utf-8")


def test_all_numbers_can_be_saved_as_they_now_stand(reader: Reader, tmp_path: Path) -> None:
    wanted = trace_toy24(ToySettings(cells={"W_Q[1,0]": 0.7}))
    reader.look_at(f"{ATTN}.W_Q", 1)
    reader.type_number("0.7")
    eventually(reader.page.locator(".edited-note")).to_be_visible()
    whole = json.loads(save(reader, "All numbers as JSON", tmp_path / "numbers.json"), parse_constant=float.fromhex)
    assert whole["edited"] is True
    assert whole["scalars"]["eta"] == 0.1
    numbers = whole["numbers"]
    assert set(wanted.values) - {f"{k}.after" for k in ("mask.allowed", "loss.count")} <= set(numbers)
    assert numbers["loss.L.after"]["values"] == pytest.approx([float(wanted["loss.L.after"])], rel=1e-13)
    assert numbers[f"{ATTN}.S"] == {
        "shape": [1, 2, 2],
        "values": [0, None, pytest.approx(0.7), 0],
        "special": {"1": "-inf"},
    }
    rows = list(csv.reader(save(reader, "All numbers as CSV", tmp_path / "numbers.csv").splitlines()))
    assert rows[0] == ["key", "index", "value"]
    assert len(rows) - 1 == sum(len(each["values"]) for each in numbers.values())
    table = {(key, index): value for key, index, value in rows[1:]}
    assert table[f"{ATTN}.S", "0 0 1"] == "-inf"
    assert float(table[f"{ATTN}.W_Q.new", "1 0 0"]) == pytest.approx(float(wanted["W_Q.new"][1, 0, 0]), rel=1e-13)
