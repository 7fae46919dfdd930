"""The definitions of decoding against the rules that run, over a grid and at random; one choice explained."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.generation import (
    Choice,
    Decision,
    Rule,
    choices,
    decisions,
    decoding,
    decoding_step,
    explain_decoding,
    next_probabilities,
    stages,
)
from glassformer.generation.decoding import DecodingStep, decoding_program, evaluated
from glassformer.generation.rules import draw
from glassformer.generation.sample import Reading
from glassformer.notation.cell import text_lines
from learning import tiny_decoder

GRID = list(
    itertools.product(
        ([1.0, -0.5, 2.0, 0.0, 1.5], [0.0, 3.0, 3.0, -1.0, 3.0], [0.25], [-math.inf, 0.0, 0.5], [1e4, -1e4, 0.0]),
        (0.0, 1e-300, 0.3, 2.5),
        (None, 1, 2, 9),
        (0.31, 0.777, 1.0),
        (0.123, 1 - 2**-53),
    )
)


def step_of(logits: list[float], rule: Rule, u: float) -> DecodingStep:
    scores = torch.tensor(logits, dtype=torch.float64)
    p = next_probabilities(scores, rule)
    token = draw(p, u)
    return decoding_step(Decision(Choice(token, float(p[token]), 0.0), Reading(scores, 0, 1), scores, u, (0,)), 1, rule)


def agree(step: DecodingStep) -> None:
    differences = step.differences
    assert differences.pop("decoding.rank") == differences.pop("decoding.chosen") == 0
    assert differences.pop("decoding.kept", 0.0) == 0
    assert all(difference <= 1e-14 for difference in differences.values()), differences


def test_the_definitions_are_the_rules_over_a_grid() -> None:
    for logits, temperature, top_k, top_p, u in GRID:
        rule = Rule(temperature, top_k, top_p)
        step = step_of(logits, rule, u if temperature else 0.0)
        z_T = step.differences.get("decoding.z_T", 0.0)
        assert z_T == 0, (logits, temperature)
        agree(step)


@given(
    st.lists(st.floats(-30, 30), min_size=1, max_size=9),
    st.sampled_from([0.0, 0.4, 1.0, 3.0]),
    st.none() | st.integers(1, 12),
    st.sampled_from([0.0371, 0.313, 0.7771, 1.0]),
    st.floats(0, 1, exclude_max=True),
)
def test_the_definitions_are_the_rules(logits: list[float], T: float, k: int | None, top_p: float, u: float) -> None:
    agree(step_of(logits, Rule(T, k, top_p), u if T else 0.0))


def test_the_stages_are_what_numpy_gives() -> None:
    logits, rule = np.array([1.0, -0.5, 2.0, 0.0, 1.5]), Rule(0.5, 4, 0.85)
    found = step_of(logits.tolist(), rule, 0.5).defined
    weights = np.exp(logits / 0.5)
    p_T = weights / weights.sum()
    np.testing.assert_allclose(found["decoding.p_T"], p_T, rtol=1e-14)
    assert found["decoding.rank"].tolist() == [2, 4, 0, 3, 1]
    mass = p_T[[2, 4, 0, 3]].sum()
    np.testing.assert_allclose(found["decoding.mass"], mass, rtol=1e-14)
    before = [p_T[[2, 4]].sum(), p_T[[2, 4, 0, 3]].sum(), 0, p_T[[2, 4, 0]].sum(), p_T[2]]
    np.testing.assert_allclose(found["decoding.before"], np.array(before) / mass, rtol=1e-14)
    kept = np.array([0, 0, 1, 0, 1.0])  # two tokens fill 0.85 of what the first four have
    assert found["decoding.kept"].tolist() == kept.tolist()
    np.testing.assert_allclose(found["decoding.p"], kept * p_T / (kept * p_T).sum(), rtol=1e-14)
    assert found["decoding.chosen"] == 2


def test_a_large_vocabulary_is_compared_in_rows_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.random.default_rng(0).normal(size=50).round(1).tolist()
    whole = step_of(scores, Rule(0.7, 30, 0.8), 0.4)
    inputs = {id: x for id, x in whole.values.items() if whole.program.definition(id) is None}
    at_once = evaluated(whole.program, inputs)
    monkeypatch.setattr(decoding, "CELLS", 50 * 7)
    in_rows = evaluated(whole.program, inputs)
    for id, array in at_once.items():
        np.testing.assert_allclose(in_rows[id], array, rtol=1e-14, err_msg=id)
    assert in_rows["decoding.rank"].tolist() == at_once["decoding.rank"].tolist()


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=9), st.floats(0, 1, exclude_max=True))
def test_the_draw_falls_into_the_interval_of_the_chosen_token_and_the_intervals_fill_one(
    logits: list[float], u: float
) -> None:
    step = step_of(logits, Rule(0.9, 5, 0.9), u)
    everyone = sorted(step.candidates())
    assert [c.token for c in everyone] == list(range(len(logits)))
    assert all(a.high == b.low for a, b in itertools.pairwise(everyone))
    assert everyone[0].low == 0
    assert everyone[-1].high == pytest.approx(1.0)
    (chosen,) = [c for c in everyone if c.token == step.token]
    assert chosen.kept
    assert chosen.low <= u < chosen.high or u >= everyone[-1].high
    assert [c.rank for c in step.candidates(3)][:3] == list(range(min(3, len(logits))))
    assert step.token in [c.token for c in step.candidates(1)]


def test_every_number_of_a_step_explains_itself() -> None:
    step = step_of([1.0, -0.5, 2.0, 0.0, 1.5], Rule(0.5, 4, 0.9), 0.9)
    assert text_lines(step.explain("rank", 4)) == [
        "rank[4]  (ρ_5)",
        "rank[4] = Σ_v [logits[v] > logits[4] or logits[v] = logits[4] and v < 4] = 1   (4 terms are 0)",
        "  recorded 1   difference 0",
    ]
    for id, placed in step.program.quantities.items():
        for cell in np.ndindex(*placed.shape(step.program.scalars)):
            told = step.explain(id, *cell)
            assert told.recorded is not None
            assert abs(told.value - told.recorded) <= 1e-14, (id, cell)


def test_at_temperature_zero_only_ranks_decide_and_nothing_is_drawn() -> None:
    program = decoding_program(5, Rule(0.0))
    assert {s.target for s in program.forward} == {f"decoding.{q}" for q in ("rank", "p", "P", "chosen")}
    ran = stages(torch.tensor([0.0, 3.0, 3.0]), Rule(0.0))
    assert (ran.p.tolist(), ran.kept.tolist(), ran.rank.tolist()) == ([0, 1, 0], [0, 1, 0], [2, 0, 1])


def test_a_decision_says_what_was_read_anew_and_what_was_kept() -> None:
    model = tiny_decoder(5, seed=3)  # reads 8 positions at once
    made = list(decisions(model, [1, 2, 3], 8, Rule(), seed=4))
    assert [(d.reading.reused, d.reading.new) for d in made] == [(0, 3), *((k, 1) for k in range(3, 8)), (0, 8), (0, 8)]
    written = [choice.token for choice in choices(model, [1, 2, 3], 8, Rule(), seed=4)]
    assert [d.choice.token for d in made] == written
    assert made[-1].tokens == (1, 2, 3, *written[:-1])


def test_the_step_explained_is_the_step_that_runs() -> None:
    model, rule = tiny_decoder(5, seed=3), Rule(1.5, 4, 0.9)
    for number, choice in enumerate(choices(model, [1, 2], 12, rule, seed=7), 1):
        step = explain_decoding(model, [1, 2], number, rule, 7)
        assert (step.token, step.values["decoding.p"][step.token]) == (choice.token, choice.probability)
        agree(step)


@pytest.mark.parametrize("number", [0, -3])
def test_there_is_no_token_before_the_first(number: int) -> None:
    with pytest.raises(UserError, match=f"no token {number} to explain"):
        explain_decoding(tiny_decoder(5), [1], number, Rule(), 0)


def test_what_may_not_be_chosen_is_nothing_in_the_explanation_and_the_rest_is_as_the_rule_says() -> None:
    model = tiny_decoder(6)
    step = explain_decoding(model, [1, 2], 3, Rule(0.9, 4, 0.95), 2, excluded=(0, 5))
    chosen = [choice.token for choice in choices(model, [1, 2], 3, Rule(0.9, 4, 0.95), 2, excluded=(0, 5))]
    assert step.token == chosen[-1]
    assert step.values["decoding.p"][[0, 5]].tolist() == [0, 0]
    assert step.values["decoding.logits"][[0, 5]].tolist() == [-math.inf, -math.inf]
    agree(step)
