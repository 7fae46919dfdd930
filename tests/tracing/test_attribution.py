"""Shares of the change of the loss: brute force over all orders, sums, and the axioms that define them."""

from __future__ import annotations

import itertools
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders import CONFIGS, random_decoder
from glassformer.tracing import AdamW, ToySettings, shares_of, trace, trace_toy24
from glassformer.tracing.attribution import EXACT_GROUPS, attribute, groups_of, usual
from glassformer.tracing.update import loss_of

TOKENS, TARGETS, SCORED = [3, 1, 3, 0, 6, 1], [1, 3, 0, 6, 1, 2], [True, False, True, True, False, True]


def decoder():
    return random_decoder(CONFIGS["everything"])


def game(count: int, seed: int):
    """A random game: ``count`` players, a worth for every set of them (0 for none)."""
    names = [f"g{k}" for k in range(count)]
    draw = np.random.default_rng(seed)
    sets = [frozenset(x) for k in range(1, count + 1) for x in itertools.combinations(names, k)]
    worth = {frozenset(): 0.0, **{moved: float(draw.normal()) for moved in sets}}
    return names, worth


def by_all_orders(names, worth):
    """The definition: the mean over all orders of what a player adds when its turn comes."""
    total = dict.fromkeys(names, 0.0)
    for order in itertools.permutations(names):
        sets = [frozenset(order[:k]) for k in range(len(order) + 1)]
        for name, (before, after) in zip(order, pairwise(sets), strict=True):
            total[name] += worth[after] - worth[before]
    return {name: x / math.factorial(len(names)) for name, x in total.items()}


def shares(names, worth, **options):
    groups = {name: (name,) for name in names}
    return attribute(groups, dict.fromkeys(names, 0.0), worth.__getitem__, by="tensor", **options)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_the_shares_are_the_means_over_all_orders_and_add_up(count, seed):
    names, worth = game(count, seed)
    found = shares(names, worth)
    expected = by_all_orders(names, worth)
    for share in found.shares:
        assert share.shapley == pytest.approx(expected[share.group], abs=1e-12)
        assert share.alone == worth[frozenset([share.group])]
        assert share.error == 0
    assert sum(share.shapley for share in found.shares) == pytest.approx(worth[frozenset(names)], abs=1e-12)
    assert found.evaluations == 2**count - 1


def test_equal_groups_get_equal_shares_and_one_that_never_matters_gets_nothing():
    def worth(moved):
        return float(len(moved & {"a", "b"}) ** 2)

    groups = {name: (name,) for name in "abc"}
    found = attribute(groups, dict.fromkeys("abc", 0.0), worth, by="tensor")
    assert [share.shapley for share in found.shares] == pytest.approx([2.0, 2.0, 0.0], abs=1e-15)


def test_sampled_shares_add_up_and_are_as_far_off_as_they_say():
    count = EXACT_GROUPS + 1
    names, worth = game(count, 5)
    exact = by_all_subsets(names, worth)
    misses = []
    for seed in range(30):
        found = shares(names, worth, orders=40, seed=seed)
        assert found.orders == 40
        assert sum(share.shapley for share in found.shares) == pytest.approx(worth[frozenset(names)], abs=1e-12)
        misses += [(share.shapley - exact[share.group]) / share.error for share in found.shares]
    # Errors in units of the stated standard error: mean 0, spread 1 (270 of them).
    assert abs(float(np.mean(misses))) < 0.25
    assert 0.8 < float(np.std(misses)) < 1.25


def by_all_subsets(names, worth):
    """Shapley's formula with factorials, for counts at which all orders would be too many."""
    n = len(names)
    total = dict.fromkeys(names, 0.0)
    for moved, value in worth.items():
        k = len(moved)
        for name in names:
            if name in moved:
                total[name] += math.factorial(k - 1) * math.factorial(n - k) / math.factorial(n) * value
            elif k < n:
                total[name] -= math.factorial(k) * math.factorial(n - k - 1) / math.factorial(n) * value
    return total


def test_sampling_depends_on_its_seed_alone_and_needs_two_orders():
    names, worth = game(EXACT_GROUPS + 1, 1)
    assert shares(names, worth, seed=3) == shares(names, worth, seed=3)
    assert shares(names, worth, seed=3) != shares(names, worth, seed=4)
    with pytest.raises(ValueError, match="at least 2"):
        shares(names, worth, orders=1)


@pytest.fixture(scope="module")
def toy():
    return trace_toy24()


def test_the_shares_of_the_toy_are_those_of_brute_force_over_its_subsets(toy):
    ids, loss = toy.parameters, loss_of(toy.program, toy.values, {})
    sets = [frozenset(x) for k in range(len(ids) + 1) for x in itertools.combinations(ids, k)]
    worth = {
        moved: loss_of(toy.program, toy.values, {id: toy.values[f"{id}.new"] for id in moved}) - loss for moved in sets
    }
    expected = by_all_subsets(ids, worth)
    found = toy.analysis.attribution
    assert found.by == "tensor"
    for share in found.shares:
        assert share.shapley == pytest.approx(expected[share.group], abs=1e-13)


@pytest.mark.parametrize("by", ["tensor", "part", "block"])
def test_first_order_and_shares_add_up_however_parameters_are_grouped(by):
    run = trace(decoder(), TOKENS, TARGETS, SCORED, update=AdamW(lr=0.02), witness_cells=0)
    found = shares_of(run, by, orders=4)
    assert sum(share.shapley for share in found.shares) == pytest.approx(run.analysis.exact, abs=1e-12)
    assert sum(share.predicted for share in found.shares) == pytest.approx(run.analysis.predicted, abs=1e-12)
    members = [id for share in found.shares for id in share.members]
    assert sorted(members) == sorted(run.parameters)
    assert (found.orders is None) == (len(found.shares) <= EXACT_GROUPS)
    assert run.analysis.predicted + run.analysis.missed == pytest.approx(run.analysis.exact, abs=1e-15)


def test_many_parameters_are_grouped_by_parts_so_that_shares_stay_exact():
    parameters = tuple(dict(decoder().named_parameters()))
    assert usual(parameters) == "part"
    assert set(groups_of(parameters, "part")) == {"embed", "attn", "ffn", "norm", "head"}
    assert set(groups_of(parameters, "block")) == {"embed", "blocks.0", "blocks.1", "norm", "head"}


def test_what_the_notes_say_of_their_example_is_in_the_analysis(toy):
    attention, probability = toy.analysis.watched
    assert (attention.id, attention.index) == ("blocks.0.attn.A", (0, 1, 0))
    assert (round(attention.before, 6), round(attention.after, 6)) == (0.731059, 0.713748)
    assert probability.id == "head.p"
    assert probability.after > probability.before
    (pair,) = toy.analysis.coincidences
    assert {pair.a, pair.b} == {"blocks.0.attn.W_V", "blocks.0.attn.W_O"}
    assert pair.apart_after > 1e-3
    first = {share.group: share.predicted for share in toy.analysis.attribution.shares}
    assert round(-first["blocks.0.attn.W_Q"], 4) == 0.0018
    assert round(-toy.analysis.predicted, 3) == 0.939


def test_gradients_that_differ_are_no_coincidence():
    moved = trace_toy24(ToySettings(cells={"W_V[0,0,0]": 1.2}))
    assert moved.analysis.coincidences == ()
