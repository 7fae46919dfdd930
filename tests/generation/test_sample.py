"""Sampling: a true draw from the softmax, greedy as its limit, the same for the same seed."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from glassformer.errors import UserError
from glassformer.generation import generate, next_probabilities, next_token
from learning import tiny_decoder

LOGITS = torch.tensor([1.0, -0.5, 2.0, 0.0, 1.5])


def continued(seed: int = 0, temperature: float = 1.0, count: int = 20, prompt: tuple[int, ...] = (1, 2)) -> list[int]:
    return list(generate(tiny_decoder(5, seed=3), prompt, count, temperature=temperature, seed=seed))


def test_at_temperature_one_the_probabilities_are_the_softmax() -> None:
    weights = [math.exp(x) for x in LOGITS.tolist()]
    expected = [w / sum(weights) for w in weights]
    assert next_probabilities(LOGITS, 1.0).tolist() == pytest.approx(expected, rel=1e-14)


@given(st.floats(1e-320, 1e300))
def test_every_positive_temperature_gives_a_distribution_with_the_largest_first(temperature: float) -> None:
    p = next_probabilities(LOGITS * 1e4, temperature)
    assert p.sum().item() == pytest.approx(1.0)
    assert p.max() == p[2]


def test_towards_zero_the_distribution_becomes_the_greedy_one() -> None:
    greedy = next_probabilities(LOGITS, 0.0)
    assert greedy.tolist() == [0, 0, 1, 0, 0]
    distances = [(next_probabilities(LOGITS, t) - greedy).abs().max().item() for t in (1.0, 0.3, 0.1, 0.01)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-15


def test_towards_infinity_the_distribution_becomes_uniform() -> None:
    assert next_probabilities(LOGITS, 1e9).tolist() == pytest.approx([0.2] * 5, abs=1e-8)


def test_a_high_temperature_flattens_and_a_low_one_sharpens() -> None:
    low, one, high = (next_probabilities(LOGITS, t)[2] for t in (0.5, 1.0, 2.0))
    assert low > one > high


def test_of_equal_largest_logits_greedy_takes_the_first() -> None:
    assert next_probabilities(torch.tensor([0.0, 3.0, 3.0]), 0.0).tolist() == [0, 1, 0]


def test_greedy_is_the_largest_logit_of_the_model_at_each_step() -> None:
    model = tiny_decoder(5, seed=3)
    tokens = [1, 2]
    for token in generate(model, tokens, 15, temperature=0):
        assert token == int(model(torch.tensor([tokens[-8:]])).logits[0, -1].argmax())
        tokens = [*tokens, token]


def test_the_same_seed_gives_the_same_tokens_and_another_seed_others() -> None:
    assert continued(seed=4) == continued(seed=4) != continued(seed=5)


def test_sampling_leaves_the_random_state_of_torch_alone() -> None:
    before = torch.get_rng_state()
    continued()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_a_token_is_drawn_from_the_softmax_of_the_logits_over_the_temperature(temperature: float) -> None:
    generator = torch.Generator().manual_seed(1)
    drawn = Counter(next_token(LOGITS, temperature, generator) for _ in range(4000))
    expected = torch.softmax(LOGITS.double() / temperature, -1) * 4000
    assert chisquare([drawn[w] for w in range(5)], expected.tolist()).pvalue > 1e-3


def test_each_token_is_drawn_from_the_models_last_logits() -> None:
    model, tokens = tiny_decoder(5, seed=3), [1, 2]
    generator = torch.Generator().manual_seed(7)
    for _ in range(12):
        logits = model(torch.tensor([tokens[-8:]])).logits[0, -1].detach()
        tokens.append(next_token(logits, 1.5, generator))
    assert list(generate(model, [1, 2], 12, temperature=1.5, seed=7)) == tokens[2:]


def test_a_text_longer_than_the_context_slides_its_window() -> None:
    tokens = continued(count=30)
    assert len(tokens) == 30
    model = tiny_decoder(5, seed=3)
    last_window = list(generate(model, (tokens[:20])[-8:], 1, temperature=0))
    assert list(generate(model, tokens[:20], 1, temperature=0)) == last_window


def test_no_token_is_yielded_when_none_is_wanted() -> None:
    assert continued(count=0) == []


@pytest.mark.parametrize("temperature", [-1.0, math.nan, math.inf])
def test_what_is_no_temperature_is_refused_at_the_call(temperature: float) -> None:
    with pytest.raises(UserError, match="not a temperature"):
        generate(tiny_decoder(5), [1], 1, temperature=temperature)


@pytest.mark.parametrize("prompt", [(), (5,), (-1,)])
def test_a_prompt_the_model_cannot_read_is_refused_at_the_call(prompt: tuple[int, ...]) -> None:
    with pytest.raises(UserError):
        generate(tiny_decoder(5), prompt, 1)
