"""The traces whose pages the tests open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import glassformer
from browsing import Opened
from glassformer.model import AttentionConfig, Decoder, DecoderConfig, FeedForwardConfig, NormConfig
from glassformer.page import build
from glassformer.tracing import Trace, header_of, tensors_of, trace_toy24

from .reader import Reader


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
