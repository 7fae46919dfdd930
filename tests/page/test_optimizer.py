"""A step of AdamW in the page: recomputed where the model is small, as recorded where the page cannot hold everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import glassformer
from glassformer.model import AttentionConfig, Decoder, DecoderConfig, FeedForwardConfig, NormConfig
from glassformer.page import build
from glassformer.page.document import ALWAYS, fitting
from glassformer.tracing import AdamW, ToySettings, Trace, header_of, tensors_of, trace_toy24

from .reader import Reader, eventually, number

if TYPE_CHECKING:
    from browsing import Opened

    Open = Callable[..., Opened]

pytestmark = pytest.mark.browser

VOCABULARY = "abcdefgh"
N = 60
W = "blocks.0.ffn.W_1"
LEFT = (".new", ".after", "_hat", ".direction", ".clipped")
HELD = "() => window.glassformer.engine.keys.filter(key => window.glassformer.engine.holds(key))"


@pytest.fixture(scope="module")
def adamw() -> Trace:
    """The second step of AdamW on the 24-parameter model: moments are not at rest, the gradient is clipped."""
    first = trace_toy24(ToySettings(update=AdamW(lr=0.05, weight_decay=0.3, clip=0.1)))
    return trace_toy24(ToySettings(update=AdamW(lr=0.05, weight_decay=0.3, clip=0.1, state=first.moments)))


@pytest.fixture(scope="module")
def large_adamw() -> Trace:
    """Three blocks and 60 positions: recomputed in slices, after an edit or when asked."""
    torch.manual_seed(0)
    config = DecoderConfig.alike(
        3,
        vocab_size=len(VOCABULARY),
        context=N,
        d=64,
        attention=AttentionConfig(heads=4, d_k=16, d_v=16),
        norm=NormConfig(),
        ffn=FeedForwardConfig(d_ff=256),
    )
    tokens = [3 * k % len(VOCABULARY) for k in range(N)]
    return glassformer.trace(Decoder(config), tokens, vocabulary=VOCABULARY, witness_cells=0, update=AdamW(lr=0.01))


@pytest.fixture(scope="module")
def large_header(large_adamw: Trace) -> dict[str, Any]:
    return {**header_of(large_adamw), "source": "run", "provenance": "measured"}


def bytes_of(header: dict[str, Any], trace: Trace, counted: Callable[[str], bool]) -> int:
    """The bytes of the tensors that ``counted`` chooses by key, as the text of a page."""
    return fitting(header, {key: array for key, array in tensors_of(trace).items() if counted(key)}, 1 << 40)[1]


STRIDE = 101
"""Of large tensors, every so many cells are compared."""

SAMPLES = """([keys, stride]) => keys.map(key => {
  const cells = window.glassformer.engine.value(key);
  return Array.from({ length: Math.ceil(cells.length / stride) }, (_, k) => String(cells[k * stride]));
})"""


def differing(opened: Opened, trace: Trace, keys: list[str], stride: int = 1) -> list[str]:
    """The keys for which the page shows other numbers than those traced, up to rounding."""
    told = opened.page.evaluate(SAMPLES, [keys, stride])
    return [key for key, texts in zip(keys, told, strict=True) if not agree(texts, trace.values[key], stride)]


def agree(texts: list[str], traced: np.ndarray[Any, Any], stride: int) -> bool:
    shown = np.array([float(text.replace("Infinity", "inf")) for text in texts])
    exact = np.asarray(traced, dtype=float).ravel()[::stride]
    largest = max(1.0, float(np.abs(exact[np.isfinite(exact)]).max(initial=0.0)))
    return np.allclose(shown, exact, rtol=0, atol=1e-9 * largest)


def first_order(opened: Opened) -> Any:
    """The figures of all parameters together: first order, exact."""
    table = opened.page.locator(".update-panel table.figures", has_text="First order, gradient times step")
    return table.locator("tfoot tr").last.locator("td.digits")


def test_every_line_of_adamw_is_recomputed_as_traced_and_an_edit_moves_the_step(
    open_page: Open, built: str, adamw: Trace
) -> None:
    opened = open_page(build(header_of(adamw), tensors_of(adamw)), viewport={"width": 1440, "height": 900})
    reader = Reader(opened.page)
    assert opened.page.evaluate("() => window.glassformer.engine.pace") == "live"
    assert differing(opened, adamw, list(adamw.values)) == []
    opened.page.keyboard.press("3")
    total = first_order(opened)
    eventually(total.first).to_be_visible()
    told = [number(text) for text in total.all_inner_texts()]
    assert told == pytest.approx([adamw.analysis.predicted, adamw.analysis.exact], abs=1e-6)
    before = opened.numbers("head.U.moment1.new")
    reader.look_at("head.U", 0)
    reader.type_number("2")
    eventually(opened.page.locator(".edited").first).to_be_attached()
    assert opened.numbers("head.U.moment1.new") != before
    assert opened.numbers("head.U.moment1") == [float(x) for x in np.asarray(adamw["head.U.moment1"]).ravel()]


def test_a_step_that_a_page_leaves_out_is_missing_until_it_is_computed_and_then_as_traced(
    open_page: Open, built: str, large_adamw: Trace, large_header: dict[str, Any]
) -> None:
    gradients = {f"{id}.grad" for id in large_adamw.parameters}
    left = {key for key in large_adamw.values if key in gradients or key.endswith(LEFT)}
    left = {key for key in left if large_adamw.values[key].size > ALWAYS}
    limit = bytes_of(large_header, large_adamw, lambda key: key not in left)
    page = build(large_header, tensors_of(large_adamw), most_bytes=limit)
    opened = open_page(page, viewport={"width": 1440, "height": 900})
    reader = Reader(opened.page)
    assert opened.page.evaluate("() => window.glassformer.engine.pace") == "deferred"
    held = opened.page.evaluate(HELD)
    assert f"{W}.new" not in held
    assert f"{W}.moment2" in held
    reader.look_at(f"{W}.new", 5)
    missing = opened.page.locator(f'[data-missing="{W}.new"]')
    eventually(missing.first).to_be_visible()
    missing.first.get_by_role("button").click()
    eventually(missing).to_have_count(0, timeout=60_000)
    computed_keys = [f"{W}.new", f"{W}.direction", f"{W}.moment1.new", "optimizer.kept", "loss.L.after"]
    assert differing(opened, large_adamw, computed_keys) == []


def test_a_page_without_every_parameter_shows_recorded_numbers_and_none_that_differ(
    open_page: Open, built: str, large_adamw: Trace, large_header: dict[str, Any]
) -> None:
    ids = {q["id"] for q in large_header["quantities"] if q["kind"] not in {"parameter", "optimizer state"}}
    limit = bytes_of(large_header, large_adamw, lambda key: key in ids)
    page = build(large_header, tensors_of(large_adamw), most_bytes=limit)
    opened = open_page(page, viewport={"width": 1440, "height": 900})
    assert opened.page.evaluate("() => window.glassformer.engine.pace") == "recorded"
    held = opened.page.evaluate(HELD)
    assert f"{W}.moment1" not in held
    assert f"{W}.new" not in held
    assert "final_norm.gamma.new" in held
    known = [key for key in held if key in large_adamw.values]
    assert len(known) > 500
    assert differing(opened, large_adamw, known, STRIDE) == []
    opened.page.keyboard.press("3")
    total = first_order(opened)
    eventually(total.first).to_be_visible()
    told = [number(text) for text in total.all_inner_texts()]
    assert told == pytest.approx([large_adamw.analysis.predicted, large_adamw.analysis.exact], abs=1e-5)
