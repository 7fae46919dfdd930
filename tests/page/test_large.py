"""A decoder of three blocks, four heads and 60 positions in the page: heat maps, heads, patience."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from glassformer.page import build
from glassformer.tracing import Trace, header_of, tensors_of

from .reader import Reader, eventually, number

if TYPE_CHECKING:
    Open = Callable[..., Any]

pytestmark = pytest.mark.browser

N = 60
ATTN = "blocks.0.attn"
MOST_ELEMENTS = 8000
"""Of the page as it opens: about as many as the 24-parameter model with every table drawn needs twice."""


@pytest.fixture(scope="module")
def large_page(built: str, large: Trace) -> str:
    header = {**header_of(large), "source": "run", "provenance": "measured"}
    return build(header, tensors_of(large))


@pytest.fixture
def reader(open_page: Open, large_page: str) -> Reader:
    return Reader(open_page(large_page, viewport={"width": 1440, "height": 900}).page)


def test_a_large_model_opens_as_a_map_and_not_as_a_wall(reader: Reader) -> None:
    eventually(reader.page.locator(".map-row").first).to_be_visible()
    assert reader.page.evaluate("() => document.querySelectorAll('*').length") < MOST_ELEMENTS
    assert reader.page.locator(".map-block").count() == 3
    assert reader.page.locator("#block-blocks\\.2 .card").count() == 0
    reader.look_at("blocks.2.ffn.C", 300)
    eventually(reader.page.locator('[id="card-blocks.2.ffn.C"]')).to_be_in_viewport()


def test_a_heat_map_tells_the_exact_number_under_the_arrow_keys(reader: Reader, large: Trace) -> None:
    reader.scroll_to(f"{ATTN}.S")
    field = reader.page.locator(f'[data-heat="{ATTN}.S"]')
    readout = reader.page.locator(f'[id="card-{ATTN}.S"] .heat-readout b')
    field.focus()
    for key in ["ArrowRight", "ArrowDown", "ArrowDown"]:
        field.press(key)
    eventually(readout).not_to_have_text("−∞")
    assert number(readout.inner_text()) == pytest.approx(float(large[f"{ATTN}.S"][0, 2, 0]), rel=1e-13)
    field.press("ArrowRight")
    field.press("ArrowRight")
    field.press("ArrowRight")
    eventually(readout).to_have_text("−∞")
    field.press("Enter")
    eventually(reader.inspector.locator(".cell-id code")).to_have_text(f"{ATTN}.S[0,2,3]")


def test_a_heat_map_tells_the_number_under_the_pointer(reader: Reader, large: Trace) -> None:
    reader.look_at("blocks.1.attn.W_Q.grad", 0)
    field = reader.page.locator('[data-heat="blocks.1.attn.W_Q.grad"]')
    eventually(field).to_be_in_viewport()
    box = reader.at_rest(field)
    row, column = 40, 5
    x, y = box["width"] * (column + 0.5) / 16, box["height"] * (row + 0.5) / 64
    field.click(position={"x": x, "y": y})
    eventually(reader.inspector.locator(".cell-id code")).to_have_text(f"blocks.1.attn.W_Q.grad[{row},0,{column}]")
    told = number(reader.inspector.locator('[data-role="result"]').inner_text())
    assert told == pytest.approx(float(large["blocks.1.attn.W_Q.grad"][row, 0, column]), rel=1e-9)


def test_masked_cells_have_a_colour_of_their_own(reader: Reader) -> None:
    reader.scroll_to(f"{ATTN}.S")
    canvas = reader.page.locator(f'[data-heat="{ATTN}.S"] canvas')
    eventually(canvas).to_be_visible()
    pixels = np.array(
        canvas.evaluate(
            "c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height); return [c.width, ...d.data]; }"
        )
    )
    picture = pixels[1:].reshape(N, N, 4)[..., :3]
    masked = {tuple(colour) for colour in picture[np.triu_indices(N, 1)]}
    seen = {tuple(colour) for colour in picture[np.tril_indices(N)]}
    assert len(masked) == 1
    assert len(seen) > 50
    assert not masked & seen


def test_a_heat_map_is_painted_in_the_colours_of_the_theme(open_page: Open, large_page: str) -> None:
    """Zero is the colour of the card: dark in the dark theme, from the first drawing on."""
    page = open_page(large_page, color_scheme="dark", viewport={"width": 1440, "height": 900}).page
    reader = Reader(page)
    reader.look_at(f"{ATTN}.A", N - 1)
    corner = """c => {
      const copy = new OffscreenCanvas(1, 1).getContext("2d");
      copy.drawImage(c, c.width - 1, 0, 1, 1, 0, 0, 1, 1);
      return [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3);
    }"""
    canvas = page.locator(f'[data-heat="{ATTN}.A"] canvas')
    eventually(canvas).to_be_visible()
    assert max(canvas.evaluate(corner)) < 64
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    eventually(page.locator("html")).to_have_attribute("data-theme", "light")
    page.wait_for_timeout(200)
    assert min(canvas.evaluate(corner)) > 192


def test_the_head_of_the_looked_at_number_is_shown(reader: Reader) -> None:
    reader.look_at(f"{ATTN}.A", 2 * N * N + 17 * N + 3)
    card = reader.page.locator(f'[id="card-{ATTN}.A"]')
    eventually(card.locator(".heads button[aria-pressed=true]")).to_have_text("3")
    eventually(card.locator(".heat-box.chosen")).to_have_count(1)
    card.locator(".heads button").first.click()
    eventually(card.locator(".heat-box.chosen")).to_have_count(0)


def test_a_long_sum_shows_its_largest_terms_and_one_remainder(reader: Reader) -> None:
    reader.look_at("blocks.0.ffn.F", 0)
    eventually(reader.inspector.locator(".arithmetic")).to_contain_text("gathered in one remainder")
    assert reader.inspector.locator(".arithmetic .live [data-op]").count() < 60


def test_an_edit_of_a_large_model_is_computed_in_slices_and_arrives(reader: Reader) -> None:
    assert reader.page.evaluate("() => window.glassformer.engine.pace") == "deferred"
    before = reader.losses
    reader.look_at("blocks.0.ffn.W_1", 5)
    reader.type_number("2.5")
    eventually(reader.page.locator(".losses.busy")).to_have_count(0)
    eventually(reader.page.locator(".losses .cell-link-value").first).not_to_have_text(f"{before[0]:.6f}")
    exact = reader.page.evaluate("() => window.glassformer.engine.value('loss.L')[0]")
    assert reader.losses[0] == pytest.approx(exact, abs=1e-6)


def test_in_a_text_the_target_before_a_changed_token_follows_it(reader: Reader) -> None:
    reader.page.locator(".token").nth(4).click()
    reader.page.locator("#token-4").select_option("2")
    eventually(reader.page.locator(".token.edited")).to_have_count(1)
    assert reader.page.evaluate("() => window.glassformer.engine.targets()[3]") == 2


def test_comparisons_of_a_large_update_are_recorded_until_an_edit_and_then_computed_on_demand(
    reader: Reader, large: Trace
) -> None:
    reader.page.keyboard.press("3")
    total = reader.page.locator(".update-panel .figures:not(.shares) tfoot tr").last.locator("td.digits")
    eventually(total.first).to_be_visible()
    told = [number(text) for text in total.all_inner_texts()]
    assert told == pytest.approx([large.analysis.predicted, large.analysis.exact], abs=1e-6)
    reader.page.locator("#eta").fill("0.2")
    reader.page.locator("#eta").press("Enter")
    ask = reader.page.get_by_role("button", name="Compute them")
    eventually(ask).to_be_visible()
    eventually(reader.page.locator(".losses.busy")).to_have_count(0)
    ask.click()
    eventually(total.first).to_be_visible(timeout=60_000)
    assert number(total.first.inner_text()) == pytest.approx(2 * told[0], rel=1e-3)
