"""Traces of decoders with other options than the notes' in the page: same numbers, right titles, nothing ugly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import glassformer
from glassformer.model import (
    AttentionConfig,
    Decoder,
    DecoderConfig,
    DropoutConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerConfig,
    NormConfig,
    PositionConfig,
)
from glassformer.page import build
from glassformer.tracing import Trace, header_of, tensors_of

from .reader import Reader, eventually

if TYPE_CHECKING:
    Open = Callable[..., Any]

pytestmark = pytest.mark.browser

VOCABULARY = ("<bos>", "<eos>", " the", "⟨E5⟩", "a\n", "cat", " sat", "。")
ATTN = "blocks.0.attn"


@dataclass(frozen=True)
class Case:
    """A model and what it reads."""

    config: DecoderConfig
    tokens: tuple[int, ...]
    segments: tuple[int, ...] | None = None
    dropout: bool = False

    def trace(self, cell: tuple[str, tuple[int, ...], float] | None = None, eta: float = 0.1) -> Trace:
        """Its trace, always with the same weights and masks; ``cell`` sets a parameter first."""
        torch.manual_seed(3)
        model = Decoder(self.config).double()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
            if cell is not None:
                dict(model.named_parameters())[cell[0]][cell[1]] = cell[2]
        torch.manual_seed(5)
        return glassformer.trace(
            model,
            self.tokens,
            segments=self.segments,
            dropout=self.dropout,
            update=glassformer.SGD(lr=eta),
            vocabulary=VOCABULARY,
            witness_cells=0,
        )


def attention(**options: Any) -> AttentionConfig:
    return AttentionConfig(**{"heads": 4, "d_k": 4, "d_v": 5, **options})


def ffn(**options: Any) -> FeedForwardConfig:
    return FeedForwardConfig(d_ff=11, **options)


SIZES: dict[str, Any] = {"vocab_size": len(VOCABULARY), "context": 9, "d": 10}
CASES = {
    "rope, grouped, QK-norm, gated, window in one layer, tied, dropout": Case(
        DecoderConfig(
            **SIZES,
            norm=NormConfig(kind="rmsnorm"),
            position=PositionConfig(kind="rope", base=50.0),
            head=HeadConfig(tied=True),
            dropout=DropoutConfig(embedding=0.1, attention=0.3, residual=0.2),
            layers=(
                LayerConfig(
                    attention=attention(kv_heads=2, qk_norm=True, window=3), ffn=ffn(activation="silu", gated=True)
                ),
                LayerConfig(attention=attention(kv_heads=2), ffn=None),
            ),
        ),
        (0, 2, 5, 6, 3, 7, 1),
        dropout=True,
    ),
    "sinusoidal, post-norm, packed, biases": Case(
        DecoderConfig(
            **SIZES,
            norm=NormConfig(position="post", final=False),
            position=PositionConfig(kind="sinusoidal", base=50.0),
            head=HeadConfig(bias=True),
            layers=(LayerConfig(attention=attention(bias=True), ffn=ffn(activation="relu2", bias=True)),),
        ),
        (0, 2, 5, 1, 0, 3, 7, 1),
        (0, 0, 0, 0, 1, 1, 1, 1),
    ),
    "learned, packed with a window, one key-value head": Case(
        DecoderConfig(
            **SIZES,
            norm=None,
            layers=(LayerConfig(attention=attention(kv_heads=1, window=2), ffn=ffn(activation="gelu_tanh")),),
        ),
        (0, 2, 5, 1, 0, 3, 7, 1),
        (4, 4, 4, 4, 2, 2, 2, 2),
    ),
}
TITLES = {
    "rope, grouped, QK-norm, gated, window in one layer, tied, dropout": [
        *("Embedding", "Mask", "Mask with a window", "Rotation angles", "Which heads share keys"),
        *("Norm", "Attention", "Residual", "Second norm", "Feed-forward", "Second residual"),
        *("Norm", "Attention", "Residual", "Final norm", "Output head", "Loss"),
    ],
    "sinusoidal, post-norm, packed, biases": [
        *("Embedding", "Mask", "Attention", "Residual", "Norm", "Feed-forward", "Second residual", "Second norm"),
        *("Output head", "Loss"),
    ],
    "learned, packed with a window, one key-value head": [
        *("Embedding", "Mask", "Which heads share keys", "Attention", "Residual", "Feed-forward", "Second residual"),
        *("Output head", "Loss"),
    ],
}


def page_of(trace: Trace, **options: Any) -> str:
    return build(header_of(trace), tensors_of(trace), **options)


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def page(built: str, case: str) -> str:
    return page_of(CASES[case].trace())


def assert_same_numbers(opened: Any, wanted: Trace) -> None:
    """Every number of ``wanted`` stands in the page, in every face."""
    for key, array in wanted.values.items():
        page_has = np.array(opened.numbers(key)).reshape(array.shape)
        np.testing.assert_allclose(page_has, np.asarray(array, dtype=float), rtol=1e-9, atol=1e-11, err_msg=key)


def test_an_edit_gives_pythons_numbers_whatever_the_options(open_page: Open, page: str, case: str) -> None:
    opened = open_page(page, viewport={"width": 1440, "height": 900})
    reader = Reader(opened.page)
    assert_same_numbers(opened, CASES[case].trace())
    key, index = f"{ATTN}.W_K", (2, 0, 1)
    reader.page.locator("#goto").fill(f"{key}[2,0,1]")
    reader.page.locator("#goto").press("Enter")
    reader.type_number("0.7")
    eventually(reader.page.locator(".edited-note")).to_be_visible()
    assert_same_numbers(opened, CASES[case].trace((key, index, 0.7)))
    reader.page.locator("#eta").fill("0.03")
    reader.page.locator("#eta").press("Enter")
    eventually(reader.page.locator("#eta")).to_have_value("0.03")
    assert_same_numbers(opened, CASES[case].trace((key, index, 0.7), eta=0.03))
    reader.page.get_by_role("button", name="Reset").click()
    eventually(reader.page.locator(".edited-note")).to_have_count(0)
    assert_same_numbers(opened, CASES[case].trace())


def test_an_exchanged_token_is_also_the_target_before_it(open_page: Open, page: str, case: str) -> None:
    opened = open_page(page, viewport={"width": 1440, "height": 900})
    opened.page.locator(".token").nth(2).click()
    opened.page.locator("#token-2").select_option("6")
    eventually(opened.page.locator(".token.edited")).to_have_count(1)
    tokens = list(CASES[case].tokens)
    tokens[2] = 6
    assert_same_numbers(opened, replace(CASES[case], tokens=tuple(tokens)).trace())


def test_every_part_has_a_title_and_says_what_it_does(open_page: Open, page: str, case: str) -> None:
    opened = open_page(page, viewport={"width": 1440, "height": 900}).page
    opened.keyboard.press("o")
    titles = opened.locator(".part-title button")
    eventually(titles).to_have_text(TITLES[case])
    eventually(opened.locator(".part-body > .note")).to_have_count(len(TITLES[case]))
    opened.keyboard.press("2")
    eventually(opened.locator(".part-title button").first).to_have_text("Loss")
    assert opened.locator(".part-body > .note").count() == opened.locator(".part").count()


def test_what_an_option_adds_is_told_where_it_is_and_nowhere_else(open_page: Open, page: str, case: str) -> None:
    opened = open_page(page, viewport={"width": 1440, "height": 900}).page
    opened.keyboard.press("o")
    notes = " ".join(opened.locator(".part-body > .note").all_inner_texts())
    told = {
        "turned in its plane": "rope" in case,
        "root mean square, then": "rope" in case,
        "shifted to mean 0": "sinusoidal" in case,
        "dropout left out": "dropout" in case,
        "as a gate": "gated" in case,
        "sines and cosines": "sinusoidal" in case,
        "a table learnt like": "learned" in case,
        "positions begin anew": "packed" in case,
        "A window keeps": "window" in case,
        "it is the table": "tied" in case,
    }
    assert {words: words in notes for words in told} == told


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_view_is_wider_than_a_phone(open_page: Open, case: str, lang: str) -> None:
    html = page_of(CASES[case].trace(), lang=lang)
    opened = open_page(html, viewport={"width": 390, "height": 780}, color_scheme="dark").page
    opened.keyboard.press("o")
    for key in "12345":
        opened.keyboard.press(key)
        opened.wait_for_timeout(300)
        assert opened.evaluate("() => document.documentElement.scrollWidth - window.innerWidth") <= 0, key
    if lang == "zh":
        words = opened.locator("body").inner_text()
        for english in ["Head", "Second", "Mask", "Residual", "position", "dropout", "parameter"]:
            assert english not in words, english


def test_heads_that_share_keys_are_shown_with_them(open_page: Open, built: str) -> None:
    """Heads 3 and 4 of queries read the second head of keys."""
    trace = CASES["rope, grouped, QK-norm, gated, window in one layer, tied, dropout"].trace()
    reader = Reader(open_page(page_of(trace), viewport={"width": 1440, "height": 900}).page)
    chosen = ".heads button[aria-pressed=true]"
    queries, keys = (reader.page.locator(f'[id="card-{ATTN}.{name}"]') for name in "QK")
    for head, shared in [(4, 2), (1, 1), (3, 2), (2, 1)]:
        queries.locator(".heads button").nth(head - 1).click()
        eventually(keys.locator(chosen)).to_have_text(str(shared))
        eventually(queries.locator(chosen)).to_have_text(str(head))
    keys.locator(".heads button").nth(1).click()
    eventually(queries.locator(chosen)).to_have_text("3")
    reader.look_at(f"{ATTN}.W_K", 4 + 1)
    eventually(reader.inspector.locator(".cell-id code")).to_have_text(f"{ATTN}.W_K[0,1,1]")
    eventually(reader.page.locator(f'[id="card-{ATTN}.W_K"] .number.chosen')).to_have_count(1)
    eventually(queries.locator(chosen)).to_have_text("3")


def asked(reader: Reader, text: str) -> str:
    field = reader.page.locator("#goto")
    field.fill(text)
    field.press("Enter")
    return reader.page.locator(".navigation [role=alert]").inner_text()


def test_the_example_of_the_lookup_field_names_a_number(open_page: Open, page: str) -> None:
    reader = Reader(open_page(page, viewport={"width": 1440, "height": 900}).page)
    example = reader.page.locator("#goto").get_attribute("placeholder")
    assert example is not None
    reader.page.locator("#goto").fill(example)
    reader.page.locator("#goto").press("Enter")
    eventually(reader.inspector.locator(".cell-id code")).to_contain_text(".W_Q.grad[1,0,0]")


def test_a_name_that_is_not_there_is_answered_with_those_that_are(open_page: Open, built: str) -> None:
    trace = CASES["rope, grouped, QK-norm, gated, window in one layer, tied, dropout"].trace()
    reader = Reader(open_page(page_of(trace), viewport={"width": 1440, "height": 900}).page)
    assert asked(reader, "logitz[0,1]") == "“logitz” names nothing here. Did you mean: logits?"
    assert "Did you mean: blocks.0.attn.qk_norm.K_N.grad?" in asked(reader, "blocks.0.attn.K_N.grad[0,0,0]")
    assert asked(reader, "W_O") == "“W_O” means several: blocks.0.attn.W_O, blocks.1.attn.W_O."
    assert "has 2 indices, each from 0: head.logits[0,0] to head.logits[6,7]" in asked(reader, "logits[0]")
    assert "has 2 indices" in asked(reader, "logits[7,0]")
    assert "is a single number, without indices: loss.L." in asked(reader, "L[0]")
    assert "it has: embed.t." in asked(reader, "embed.t.grad[0]")
    assert "Write a name as on the command line: blocks.0.attn.W_Q.grad[1,0,0]." in asked(reader, "what is this?")
    assert "Write a name as" in asked(reader, "qqqqqqqqqqqqqqqqqq")
