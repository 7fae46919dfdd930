"""The 24-parameter model, number by number."""

from __future__ import annotations

import json
import random

import pytest

import toy_oracle
from glassformer.errors import UserError
from glassformer.tracing import ToySettings, header_of, reference_json, trace_toy24

SECTIONS = ("parameters", "forward", "gradients", "updated", "forward_after")


def apart(a, b):
    """The largest absolute difference of two nested tables of the same layout; null only beside null."""
    if isinstance(b, dict):
        assert set(b) <= set(a), f"missing {set(b) - set(a)}"
        return max(apart(a[name], b[name]) for name in b)
    if isinstance(b, list):
        assert len(a) == len(b)
        return max((apart(x, y) for x, y in zip(a, b, strict=True)), default=0.0)
    if a is None or b is None:
        assert a is b
        return 0.0
    return abs(a - b)


@pytest.fixture(scope="module")
def trace():
    return trace_toy24()


def test_every_number_of_the_reference_is_met_to_1e_12(trace, data_folder):
    reference = json.loads((data_folder / "toy24.json").read_text())
    ours = reference_json(trace)
    for name, expected in reference.items():
        if name == "central_difference_max_abs_diff":
            assert ours[name] < 3e-11
        else:
            assert apart(ours[name], expected) < 1e-12, name


def test_the_sections_hold_exactly_the_keys_of_the_reference(trace, data_folder):
    reference = json.loads((data_folder / "toy24.json").read_text())
    ours = reference_json(trace)
    assert {name: set(ours[name]) for name in SECTIONS} == {name: set(reference[name]) for name in SECTIONS}


@pytest.mark.parametrize("seed", range(200))
def test_random_settings_agree_with_autograd_in_plain_torch(seed):
    rng = random.Random(seed)
    parameters = json.loads(json.dumps(toy_oracle.START))
    cells = {}
    for _ in range(rng.randrange(25)):
        name = rng.choice(list(parameters))
        row = rng.randrange(len(parameters[name]))
        column = rng.randrange(len(parameters[name][row]))
        parameters[name][row][column] = cells[f"{name}[{row},{column}]"] = rng.gauss(0, 1.5)
    tokens = [rng.randrange(3) for _ in range(rng.choice((1, 2, 2, 2)))]
    target, eta = rng.randrange(3), rng.choice((0.0, 0.03, 0.1, 1.7))
    trace = trace_toy24(ToySettings(tokens, target, eta, cells))
    ours = reference_json(trace)
    expected = toy_oracle.step(parameters, tokens, target, eta)
    for section in SECTIONS:
        for name, table in expected[section].items():
            largest = max(1.0, biggest(table))
            assert apart(ours[section][name], table) < 1e-12 * largest, (section, name)
    assert trace.replay.holds
    assert {id for id, w in trace.witnesses.items() if not w.agree} == set()


def biggest(table):
    if isinstance(table, list):
        return max(map(biggest, table), default=0.0)
    return 0.0 if table is None else abs(table)


def test_replay_witnesses_and_audit_hold(trace):
    assert trace.replay.holds, trace.replay.violations()
    assert {id for id, w in trace.witnesses.items() if not w.agree} == set()
    assert trace.audit.uncovered == ()
    assert trace.audit.operations > 50
    assert trace.observer.max_abs_logit_difference <= 1e-12


def test_the_sequential_update_is_another_step(trace):
    assert trace.analysis.sequential.different
    assert abs(trace.analysis.sequential.loss - (trace.analysis.loss + trace.analysis.exact)) > 1e-3


def test_the_first_order_prediction_is_minus_eta_times_the_squared_gradient(trace):
    squares = sum(float((trace[f"{id}.grad"] ** 2).sum()) for id in trace.parameters)
    assert trace.analysis.predicted == pytest.approx(-0.1 * squares, rel=1e-14)
    assert trace.analysis.exact == pytest.approx(1.7613823013239083 - 2.541928056677009, abs=1e-12)


def test_the_loss_along_the_gradient_passes_through_the_joint_step_and_never_overflows():
    trace = trace_toy24(ToySettings(eta=500.0))
    line = dict(trace.analysis.line)
    assert line[500.0] == pytest.approx(trace.analysis.loss + trace.analysis.exact, rel=1e-12)
    assert all(loss < float("inf") for loss in line.values())


def test_the_header_is_strict_json(trace):
    text = json.dumps(header_of(trace), allow_nan=False)
    assert "/home" not in text
    assert all(q["file"].startswith("glassformer/") for q in json.loads(text)["quantities"])


@pytest.mark.parametrize(
    ("settings", "fact"),
    [
        (ToySettings(cells={"W_X[0,0]": 1.0}), 'no quantity "W_X"'),
        (ToySettings(cells={"W_Q[2,0]": 1.0}), "Index 2 is out of range"),
        (ToySettings(cells={"W_Q[-1,0]": 1.0}), "Index -1 is out of range"),
        (ToySettings(cells={"W_Q": 1.0}), "whole tensor"),
        (ToySettings(cells={"A[0,0]": 1.0}), "not a parameter"),
        (ToySettings(cells={"W_Q[0,0]": float("inf")}), "cannot be inf"),
        (ToySettings(tokens=(3,)), "no token 3"),
        (ToySettings(target=-1), "no token -1"),
        (ToySettings(tokens=()), "0 tokens do not fit"),
        (ToySettings(eta=-0.1), "learning rate cannot be -0.1"),
        (ToySettings(eta=float("nan")), "learning rate cannot be nan"),
    ],
)
def test_impossible_settings_are_refused_with_the_fact(settings, fact):
    with pytest.raises(UserError) as refusal:
        trace_toy24(settings)
    assert fact in str(refusal.value)
    assert refusal.value.context or refusal.value.next_step
