"""Every option of the decoder with every other: the laws of a trace on a pairwise covering array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from decoders import err, random_decoder, random_inputs
from glassformer.model.derivations import derivations
from glassformer.notation import REPLAY_FACTOR, UNIT_ROUNDOFF, Kind, evaluate, key, magnitude
from glassformer.notation.matrix import matrix_face
from glassformer.tracing import SGD, load_trace, save_trace
from glassformer.tracing.trace import Trace, trace
from glassformer.tracing.witnesses import gradient_magnitudes, gradients_by_definition
from options import CASES, OPTION_CONFIGS, OPTIONS
from pairwise import all_pairs, pairs_of

PACKED = (3, 3, 3, 0, 1, 1)
RUNS = {
    f"{name}{'-packed' if segments else ''}": (config, segments)
    for name, config in OPTION_CONFIGS.items()
    for segments in (None, PACKED)
}


FEW = list(RUNS)[1::29]


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest) -> Trace:
    return traced(request.param, witness_cells=0)


def traced(name: str, witness_cells: int) -> Trace:
    config, segments = RUNS[name]
    inputs = random_inputs(config, n=6)
    rows = (x[0].tolist() for x in (inputs.tokens, inputs.targets, inputs.scored))
    torch.manual_seed(0)
    return trace(
        random_decoder(config), *rows, segments=segments, update=SGD(lr=0.05), witness_cells=witness_cells, dropout=True
    )


def test_every_value_of_an_option_meets_every_value_of_every_other() -> None:
    assert set().union(*map(pairs_of, CASES)) == all_pairs(OPTIONS)
    product = np.prod([len(values) for values in OPTIONS.values()])
    assert len(CASES) <= 30 < product


def test_every_recorded_number_equals_its_definition(run: Trace) -> None:
    assert run.replay.holds, run.replay.violations()


def test_no_operation_lies_outside_the_definitions(run: Trace) -> None:
    assert run.audit is not None
    assert run.audit.uncovered == ()


def test_looking_changes_nothing_beyond_rounding(run: Trace) -> None:
    assert run.observer.max_abs_logit_difference <= 1e-12
    assert run.observer.others["float32"] <= 1e-5
    assert set(run.observer.others) == {"float32", "bfloat16"}


def test_every_gradient_by_definition_equals_autograds(run: Trace) -> None:
    defined = gradients_by_definition(run.program, run.values)
    sizes = gradient_magnitudes(run.program, run.values)
    assert set(defined) == {name for name in run.values if name.endswith(".grad")}
    for name, gradient in defined.items():
        bound = REPLAY_FACTOR * UNIT_ROUNDOFF["float64"] * sizes.get(name, np.ones(()))
        if (np.abs(run.values[name]) <= bound).all():  # zero in theory: no ratio to its own size means anything
            assert (np.abs(gradient - run.values[name]) <= bound).all(), name
        else:
            assert err(gradient, run.values[name]) <= 1e-12, name


def test_a_gradient_is_exactly_zero_where_automatic_differentiation_says_so(run: Trace) -> None:
    """Where reading is not allowed, nothing is scored, no token stands, or a number was left out."""
    zeros = 0
    for name, gradient in gradients_by_definition(run.program, run.values).items():
        if name.endswith("attn.b_K.grad"):  # softmax takes a shift of all keys out again: nothing but rounding
            continue
        assert np.array_equal(gradient == 0, run.values[name] == 0), name
        zeros += int((gradient == 0).sum())
    assert zeros > 50


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FEW else pytest.mark.full) for name in RUNS])
def test_differences_of_the_loss_agree_with_every_gradient_within_the_error_they_claim(name: str) -> None:
    """At 16 cells at least of every tensor, or all it has, and along one direction through all of them."""
    run = traced(name, witness_cells=16)
    assert run.witnesses.keys() == {k.removesuffix(".grad") for k in run.values if k.endswith(".grad")} - {"loss.L"}
    for id, witness in run.witnesses.items():
        central, directional = witness.central, witness.directional
        assert len({cell for cell, _ in central.cells}) >= min(16, run.values[id].size), id
        assert central.worst_share <= 1, id  # each cell within its own error
        assert central.max_abs_diff <= central.estimated_error <= 1e-7, id
        assert directional.difference <= directional.estimated_error, id
        assert directional.difference <= 1e-8, id
        assert witness.agree, id


def test_every_parameter_has_a_gradient_and_no_table_has_one(run: Trace) -> None:
    for id, placed in run.program.quantities.items():
        kind = placed.quantity.kind
        if kind is Kind.PARAMETER:
            assert run.program.contributions(id), id
        if kind in (Kind.INPUT, Kind.CONSTANT):
            assert key(id, "grad") not in run.values, id


def test_the_matrix_form_of_a_formula_says_what_the_index_form_says(run: Trace) -> None:
    program, faces = run.program, 0
    for s in program.statements:
        face = matrix_face(s, program)
        if face is None:
            continue
        faces += 1
        values, scalars = run.values, program.scalars
        with np.errstate(invalid="ignore"):
            index, matrix = evaluate(s.expr, s.letters, values, scalars), face.evaluate(values, scalars)
            apart = np.where(index == matrix, 0.0, np.abs(index - matrix))
        bound = REPLAY_FACTOR * UNIT_ROUNDOFF["float64"] * magnitude(s.expr, s.letters, values, scalars)
        assert (apart <= bound).all(), f"{s.target}.{s.face} from {s.consumer}"
        assert face.latex(program)
    assert faces > 20


def test_a_trace_survives_its_file(run: Trace, tmp_path: Any) -> None:
    save_trace(run, tmp_path / "run.trace")
    again = load_trace(tmp_path / "run.trace")
    assert again.program.scalars == run.program.scalars
    assert [s.expr for s in again.program.statements] == [s.expr for s in run.program.statements]
    assert again.replay.holds


def test_a_tied_head_sends_a_gradient_of_its_own_to_the_embedding() -> None:
    """Both paths are there by name, neither is nothing, and autograd finds their sum."""
    config = next(config for config in OPTION_CONFIGS.values() if config.head.tied)
    inputs = random_inputs(config, n=6)
    rows = (x[0].tolist() for x in (inputs.tokens, inputs.targets, inputs.scored))
    run = trace(random_decoder(config), *rows, witness_cells=0)
    assert "head.U" not in run.parameters
    parts = {s.consumer: s for s in run.program.contributions("embed.E")}
    assert set(parts) == {"embed.X", "head.U"}
    paths = {id: evaluate(s.expr, s.letters, run.values, run.program.scalars) for id, s in parts.items()}
    assert all(np.abs(path).max() > 1e-3 for path in paths.values())
    assert err(paths["embed.X"] + paths["head.U"], run.values["embed.E.grad"]) <= 1e-12
    assert not {chain.id for chain in derivations(run.program)} & {"embedding"}
