"""The decoding rules against their definition, written a second time in NumPy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding import oracle
from glassformer.errors import UserError
from glassformer.generation import Rule, draw, next_probabilities, ranks, uniform

LOGITS = torch.tensor([1.0, -0.5, 2.0, 0.0, 1.5])
TIED = torch.tensor([0.0, 3.0, 3.0, -1.0, 3.0])

logit_lists = st.lists(st.one_of(st.floats(-30, 30), st.sampled_from([0.0, 1.0, 2.0])), min_size=1, max_size=12)
rules = st.builds(
    Rule,
    temperature=st.sampled_from([0.0, 0.3, 0.8, 1.0, 2.5]),
    top_k=st.none() | st.integers(1, 14),
    top_p=st.sampled_from([0.037, 0.31, 0.777, 0.953, 1.0]),
)


@given(logit_lists, rules)
def test_every_rule_gives_what_its_definition_says(logits: list[float], rule: Rule) -> None:
    p = next_probabilities(torch.tensor(logits, dtype=torch.float64), rule).numpy()
    np.testing.assert_allclose(p, oracle(logits, rule), rtol=1e-12, atol=0)


@given(logit_lists.filter(lambda z: len(z) > 2), rules, st.sets(st.integers(0, 12), max_size=2))
def test_an_excluded_token_has_probability_zero_and_the_rule_holds_for_the_others(
    logits: list[float], rule: Rule, excluded: set[int]
) -> None:
    ids = [id for id in excluded if id < len(logits)]
    p = next_probabilities(torch.tensor(logits, dtype=torch.float64), rule, ids).numpy()
    np.testing.assert_allclose(p, oracle(logits, rule, ids), rtol=1e-12, atol=0)
    assert not p[ids].any()
    others = [id for id in range(len(logits)) if id not in ids]
    alone = next_probabilities(torch.tensor([logits[id] for id in others], dtype=torch.float64), rule)
    np.testing.assert_allclose(p[others], alone.numpy(), rtol=1e-12, atol=0)


def test_when_every_token_is_excluded_that_is_said() -> None:
    with pytest.raises(UserError, match="No token may be chosen"):
        next_probabilities(torch.zeros(2), Rule(), (0, 1))


@given(logit_lists, rules)
def test_what_is_kept_are_the_most_probable_tokens_in_unchanged_proportion(logits: list[float], rule: Rule) -> None:
    scores = torch.tensor(logits, dtype=torch.float64)
    p, rank = next_probabilities(scores, rule), ranks(scores)
    kept = p > 0
    assert p.sum().item() == pytest.approx(1.0)
    assert sorted(rank[kept].tolist()) == list(range(int(kept.sum())))
    if rule.temperature:
        plain = next_probabilities(scores, Rule(temperature=rule.temperature))
        ratio = (p / plain)[kept]
        torch.testing.assert_close(ratio, ratio[:1].expand_as(ratio), rtol=1e-12, atol=0)


@given(st.integers(1, 5))
def test_top_k_keeps_exactly_k_even_among_equals(k: int) -> None:
    p = next_probabilities(TIED, Rule(top_k=k))
    assert p.nonzero().flatten().tolist() == sorted([1, 2, 4, 0, 3][:k])


def test_top_k_comes_before_top_p() -> None:
    # Of four equal tokens top-k 2 leaves halves: the first alone fills a half, and a little more needs the second.
    four = torch.zeros(4)
    assert next_probabilities(four, Rule(top_k=2, top_p=0.5)).tolist() == [1, 0, 0, 0]
    assert next_probabilities(four, Rule(top_k=2, top_p=0.51)).tolist() == [0.5, 0.5, 0, 0]
    assert next_probabilities(four, Rule(top_p=0.51)).nonzero().flatten().tolist() == [0, 1, 2]


def test_top_p_looks_at_the_probabilities_after_the_temperature() -> None:
    rule = {"top_p": 0.6}
    assert int((next_probabilities(LOGITS, Rule(temperature=0.2, **rule)) > 0).sum()) == 1
    assert int((next_probabilities(LOGITS, Rule(temperature=5.0, **rule)) > 0).sum()) == 3


def test_the_token_that_crosses_top_p_is_kept_and_one_always_remains() -> None:
    p = next_probabilities(torch.tensor([0.7, 0.2, 0.1]).log(), Rule(top_p=0.8))
    assert p.tolist() == pytest.approx([7 / 9, 2 / 9, 0])
    assert next_probabilities(LOGITS, Rule(top_p=1e-300)).tolist() == [0, 0, 1, 0, 0]


def test_top_p_one_keeps_even_the_least_probable() -> None:
    assert next_probabilities(torch.tensor([40.0, 0.0, -40.0]), Rule(top_p=1.0))[2] > 0


def test_at_temperature_one_the_probabilities_are_the_softmax() -> None:
    weights = [math.exp(x) for x in LOGITS.tolist()]
    assert next_probabilities(LOGITS, Rule()).tolist() == pytest.approx([w / sum(weights) for w in weights], rel=1e-14)


@given(st.floats(1e-320, 1e300))
def test_every_positive_temperature_gives_a_distribution_with_the_largest_first(temperature: float) -> None:
    p = next_probabilities(LOGITS * 1e4, Rule(temperature))
    assert p.sum().item() == pytest.approx(1.0)
    assert p.max() == p[2]


def test_towards_zero_the_distribution_becomes_the_greedy_one() -> None:
    greedy = next_probabilities(LOGITS, Rule(0.0))
    assert greedy.tolist() == [0, 0, 1, 0, 0]
    distances = [(next_probabilities(LOGITS, Rule(t)) - greedy).abs().max().item() for t in (1.0, 0.3, 0.1, 0.01)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-15


def test_towards_infinity_the_distribution_becomes_uniform() -> None:
    assert next_probabilities(LOGITS, Rule(1e9)).tolist() == pytest.approx([0.2] * 5, abs=1e-8)


def test_of_equal_largest_logits_greedy_takes_the_smallest_id() -> None:
    assert next_probabilities(TIED, Rule(0.0)).tolist() == [0, 1, 0, 0, 0]


def test_a_token_that_the_model_excludes_is_never_kept() -> None:
    p = next_probabilities(torch.tensor([-math.inf, 0.0, 0.0]), Rule(top_k=3))
    assert p.tolist() == [0, 0.5, 0.5]


# --- the draw --------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=10).filter(any),
    st.fractions(0, 1).filter(lambda u: u < 1),
)
def test_the_draw_inverts_the_cumulative_distribution(weights: list[int], u: Fraction) -> None:
    # Sixteenths of a power of two are exact in binary, so the oracle can decide in fractions.
    total = 1 << (sum(weights) - 1).bit_length()
    weights = [*weights, total - sum(weights)]
    u = Fraction(int(u * 1024), 1024)
    cumulative = np.cumsum([Fraction(w, total) for w in weights])
    expected = next(w for w, c in enumerate(cumulative) if c > u)
    chosen = draw(torch.tensor([w / total for w in weights], dtype=torch.float64), float(u))
    assert chosen == expected
    assert weights[chosen] > 0


def test_rounding_at_the_end_of_the_sum_never_draws_an_impossible_token() -> None:
    p = torch.tensor([0.5, 0.25, 0.2499999, 0.0, 0.0], dtype=torch.float64)  # sums to a little less than 1
    assert draw(p, 1 - 2**-53) == 2


def test_greedy_takes_no_random_number() -> None:
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state()
    uniform(Rule(0.0), generator)
    assert torch.equal(generator.get_state(), before)


@pytest.mark.parametrize(
    ("numbers", "part"),
    [
        ({"temperature": -1.0}, "not a temperature"),
        ({"temperature": math.nan}, "not a temperature"),
        ({"temperature": math.inf}, "not a temperature"),
        ({"top_k": 0}, "top-k cannot be 0"),
        ({"top_k": -3}, "top-k cannot be -3"),
        ({"top_p": 0.0}, "top-p cannot be 0.0"),
        ({"top_p": 1.5}, "top-p cannot be 1.5"),
        ({"top_p": math.nan}, "top-p cannot be nan"),
    ],
)
def test_an_impossible_number_is_refused_with_its_name(numbers: dict[str, float], part: str) -> None:
    with pytest.raises(UserError, match=part):
        Rule(**numbers)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("logits", [[math.nan, 0.0], [math.inf, 0.0], [-math.inf, -math.inf]])
def test_scores_that_are_no_numbers_are_refused(logits: list[float]) -> None:
    with pytest.raises(UserError, match="not numbers"):
        next_probabilities(torch.tensor(logits), Rule())
