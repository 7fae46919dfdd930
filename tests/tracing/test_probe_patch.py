"""Patching: what is put in a quantity's place flows on, is marked, and everything else still equals its definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from glassformer.errors import UserError
from glassformer.model import toy24_model
from glassformer.notation import REPLAY_FACTOR
from glassformer.tracing.probes import Reading, activation_patching, aim_at, downstream, patch, reading_of, watch
from glassformer.tracing.probes.places import streams
from glassformer.tracing.replay import replay
from probe_oracle import SOME_CONFIGS, by_definition, random_reading

NAMES = ("embed.X", "blocks.0.attn.Q", "blocks.0.attn.V", "blocks.0.attn.A", "blocks.0.attn.Z", "blocks.0.R")


@pytest.fixture(scope="module", params=SOME_CONFIGS)
def reading(request: pytest.FixtureRequest) -> Reading:
    return random_reading(request.param)


@pytest.fixture
def toy() -> Reading:
    return reading_of(toy24_model(), [0, 1])


def numbers(reading: Reading, id: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=reading.program.shape(id))


@pytest.mark.parametrize("id", NAMES)
def test_every_number_but_the_patched_ones_equals_its_definition(reading: Reading, id: str) -> None:
    run = patch(reading, {id: numbers(reading, id)})
    assert run.patched == (id,)
    assert id not in run.replay.worst
    computed = {s.target for s in reading.program.forward if not s.target.startswith("loss.")}
    assert set(run.replay.worst) == computed - {id}
    assert run.replay.largest <= REPLAY_FACTOR == 64
    # And the exemption is needed: the patched numbers are not what their own definition gives.
    own = tuple(s for s in reading.program.forward if s.target == id)
    assert not replay(replace(reading.program, forward=own), (), run.values).holds


@pytest.mark.parametrize("id", NAMES)
def test_what_comes_before_a_patch_is_bit_for_bit_what_it_was(reading: Reading, id: str) -> None:
    run = patch(reading, {id: numbers(reading, id)})
    assert set(run.changed) <= {id, *downstream(reading.program, id)}
    assert id in run.changed
    # Where a row reads itself alone, no score can change what it reads.
    alone = reading.model.config.layers[0].attention.window == 1 and id == "blocks.0.attn.Q"
    assert ("head.logits" in run.changed) != alone


def test_the_patched_run_is_what_the_definitions_alone_make_of_the_patch(reading: Reading) -> None:
    given = {id: numbers(reading, id, seed) for seed, id in enumerate(("blocks.0.attn.Z", "blocks.0.R"))}
    run = patch(reading, given)
    alone = by_definition(reading, {id: lambda _, id=id: given[id] for id in given})
    for id, array in alone.items():
        np.testing.assert_allclose(run.values[id], array, rtol=1e-9, atol=1e-9, err_msg=id)


def test_its_own_numbers_in_a_quantitys_place_change_nothing(reading: Reading) -> None:
    values = watch(reading)
    run = patch(reading, {id: values[id] for id in NAMES})
    assert run.changed == ()


def test_the_other_texts_input_rows_bring_its_logits(reading: Reading) -> None:
    other = reading.of([(t + 3) % 7 for t in reading.tokens])
    run = patch(reading, {"embed.X": watch(other)["embed.X"]})
    assert np.array_equal(run.values["head.logits"], watch(other)["head.logits"])


def test_the_toy_with_attention_to_itself_alone_by_hand(toy: Reading) -> None:
    run = patch(toy, {"A": np.eye(2)[None]})
    assert run.values["h" if "h" in run.values else "blocks.0.R"].tolist() == [[2, 0], [0, 2]]
    assert run.values["head.logits"].tolist() == [[2, 0, -2], [0, 2, 0]]
    assert run.effect[1, 1] == pytest.approx(2 - (1 + 1 / (1 + np.e)), abs=1e-15)


def test_a_function_and_a_single_number_patch_too(toy: Reading) -> None:
    half = patch(toy, {"Z": lambda Z: Z / 2})
    assert np.array_equal(half.values["blocks.0.attn.Z"] * 2, half.before["blocks.0.attn.Z"])
    nothing = patch(toy, {"Z": 0.0})
    assert np.array_equal(nothing.values["blocks.0.R"], nothing.before["embed.X"])


@pytest.mark.parametrize(
    ("patches", "fact"),
    [
        ({"Y": 0.0}, 'no quantity "Y"'),
        ({"W_Q": 0.0}, "is a parameter"),
        ({"t": 0.0}, "cannot be patched"),
        ({"allowed": 1.0}, "cannot be patched"),
        ({"nll": 1.0}, "cannot be patched"),
        ({"A": np.zeros((2, 2))}, "has shape (2, 2)"),
        ({"A": np.nan}, "not finite"),
        ({"Z": -np.inf}, "not finite"),
        ({"Z": lambda Z: Z * np.nan}, "not finite"),
        ({"S": np.array([[[0.0, -np.inf], [-np.inf, -np.inf]]])}, "without any position"),
    ],
)
def test_what_cannot_be_patched_is_refused(toy: Reading, patches: dict, fact: str) -> None:
    with pytest.raises(UserError) as refused:
        patch(toy, patches)
    assert fact in str(refused.value)


def test_a_row_of_the_last_stream_brings_all_or_nothing(reading: Reading) -> None:
    other = reading.of([(t + 3) % 7 for t in reading.tokens])
    aim = aim_at(reading)
    found = activation_patching(reading, other, aim)
    assert found.ids == streams(reading.model.config)
    assert found.logit.shape == (len(found.ids), aim.row + 1)
    if found.ends[0] != found.ends[1]:
        np.testing.assert_allclose(found.recovered[-1, :-1], 0, atol=1e-9)
        np.testing.assert_allclose(found.recovered[-1, -1], 1, atol=1e-9)


def test_a_row_put_in_is_what_the_definitions_make_of_it(reading: Reading) -> None:
    other = reading.of([(t + 3) % 7 for t in reading.tokens])
    aim = aim_at(reading, row=4, target=2)
    found, theirs = activation_patching(reading, other, aim), watch(other)

    def put(j: int, id: str):
        def change(X):
            X[j] = theirs[id][j]
            return X

        return change

    for s, id in enumerate(found.ids):
        for j in (0, 2, 4):
            alone = by_definition(reading, {id: put(j, id)})
            assert found.logit[s, j] == pytest.approx(alone["head.logits"][4, 2], rel=1e-9, abs=1e-9)


def test_texts_of_other_lengths_are_refused_where_rows_are_exchanged(toy: Reading) -> None:
    with pytest.raises(UserError, match="has 1 tokens and no row 1"):
        activation_patching(toy, toy.of([0]), aim_at(toy, row=1, target=2))
