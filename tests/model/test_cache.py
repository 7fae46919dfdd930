"""The cache: continuing equals computing everything again, and a cache that does not fit is refused."""

from __future__ import annotations

import functools
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from decoders import CONFIGS, Recorder, random_decoder, random_inputs
from glassformer.errors import UserError
from glassformer.model import Decoder, DecoderConfig, KeyValueCache
from options import OPTION_CONFIGS

ALL = {**CONFIGS, **OPTION_CONFIGS}
WHOLE = CONFIGS["everything"]
CHUNKINGS = ((9,), (1,) * 9, (5, 1, 1, 1, 1), (3, 4, 2), (1, 8), (8, 1))


def continued(model: Decoder, tokens: Tensor, chunks: tuple[int, ...]) -> Tensor:
    """Logits ``(b, n, N)`` of ``tokens (b, n)`` read chunk by chunk through one cache."""
    ends = [0, *torch.tensor(chunks).cumsum(0).tolist()]
    cache = model.new_cache()
    with torch.no_grad():
        return torch.cat([model(tokens[:, a:b], cache=cache).logits for a, b in pairwise(ends)], 1)


def tokens_of(config: DecoderConfig, batch: int = 2) -> Tensor:
    return random_inputs(config, batch=batch, n=9).tokens


@functools.cache
def recomputed(name: str) -> tuple[Decoder, Tensor, Tensor]:
    """A model, tokens, and the logits of all of them computed at once."""
    model, tokens = random_decoder(ALL[name]), tokens_of(ALL[name])
    return model, tokens, model(tokens).logits.detach()


@pytest.mark.parametrize("chunks", CHUNKINGS, ids=str)
@pytest.mark.parametrize("name", ALL)
def test_continuing_from_the_cache_equals_computing_everything_again(name: str, chunks: tuple[int, ...]) -> None:
    model, tokens, logits = recomputed(name)
    torch.testing.assert_close(continued(model, tokens, chunks), logits, rtol=1e-11, atol=1e-12)


@given(st.sampled_from(sorted(ALL)), st.sets(st.integers(1, 8)))
def test_no_way_to_cut_the_tokens_matters(name: str, cuts: set[int]) -> None:
    model, tokens, logits = recomputed(name)
    chunks = tuple(b - a for a, b in pairwise([0, *sorted(cuts), 9]))
    torch.testing.assert_close(continued(model, tokens, chunks), logits, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("chunks", CHUNKINGS, ids=str)
def test_in_float32_continuing_agrees_to_1e_5(chunks: tuple[int, ...]) -> None:
    model, tokens = random_decoder(WHOLE).float(), tokens_of(WHOLE)
    exact = model(tokens).logits.detach()
    assert ((continued(model, tokens, chunks) - exact).abs().max() / exact.abs().max()).item() < 1e-5


def test_the_cache_counts_what_was_read() -> None:
    model, tokens = random_decoder(WHOLE), tokens_of(WHOLE)
    cache = model.new_cache()
    with torch.no_grad():
        model(tokens[:, :4], cache=cache)
        assert (cache.length, cache.capacity) == (4, WHOLE.context)
        model(tokens[:, 4:5], cache=cache)
    assert cache.length == 5


def test_keys_handed_out_earlier_keep_their_values() -> None:
    cache = random_decoder(WHOLE).new_cache()
    K = torch.ones(2, 2, 3, 3, dtype=torch.float64)
    kept, _ = cache.layer(0).extended(K, K)
    cache.advance(2, 3)
    cache.layer(0).extended(2 * K, K)
    assert torch.equal(kept, K)


def used_cache() -> tuple[Decoder, KeyValueCache, Tensor]:
    model, tokens = random_decoder(WHOLE), tokens_of(WHOLE)
    cache = model.new_cache()
    with torch.no_grad():
        model(tokens[:, :6], cache=cache)
    return model, cache, tokens


def test_a_refused_pass_leaves_the_cache_as_it_was() -> None:
    model, cache, tokens = used_cache()
    with torch.no_grad():
        with pytest.raises(UserError, match="not in the vocabulary"):
            model(tokens[:, 6:] * 0 + 99, cache=cache)
        with pytest.raises(UserError, match="The cache is full: 6 positions are read, 4 more"):
            model(tokens[:, :4], cache=cache)
        logits = model(tokens[:, 6:], cache=cache).logits
    torch.testing.assert_close(logits, model(tokens).logits[:, 6:].detach(), rtol=1e-12, atol=1e-12)


def test_the_cache_of_another_model_is_refused() -> None:
    _, cache, tokens = used_cache()
    with torch.no_grad(), pytest.raises(UserError, match="belongs to another model"):
        random_decoder(WHOLE)(tokens[:, 6:], cache=cache)


def test_a_cache_older_than_the_parameters_is_refused() -> None:
    model, cache, tokens = used_cache()
    with torch.no_grad():
        model.blocks[1].get_parameter("attn.W_K").mul_(2.0)
        with pytest.raises(UserError, match="has changed since"):
            model(tokens[:, 6:], cache=cache)


def test_a_cache_of_another_precision_is_refused() -> None:
    model, cache, tokens = used_cache()
    with torch.no_grad(), pytest.raises(UserError, match="has changed since"):
        model.float()(tokens[:, 6:], cache=cache)


def test_other_rows_are_refused() -> None:
    model, cache, tokens = used_cache()
    with torch.no_grad(), pytest.raises(UserError, match=r"holds 2 row\(s\), the tokens have 1"):
        model(tokens[:1, 6:], cache=cache)


def test_a_cached_pass_with_gradients_or_a_listener_is_refused() -> None:
    model, cache, tokens = used_cache()
    with pytest.raises(UserError, match="keeps no gradients"):
        model(tokens[:, 6:], cache=cache)
    with torch.no_grad(), pytest.raises(UserError, match="cannot be recorded"):
        model(tokens[:, 6:], cache=cache, say=Recorder())
