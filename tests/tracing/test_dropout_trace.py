"""A step of training mode, traced: the masks of dropout are drawn once, recorded as inputs, and given to every other run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from decoders import decoder_config, random_decoder
from glassformer.model import AttentionConfig, Decoder, DropoutConfig, PositionConfig
from glassformer.notation import Kind
from glassformer.tracing import SGD, load_trace, save_trace
from glassformer.tracing.record import forward, with_drawn_masks
from glassformer.tracing.replay import replay
from glassformer.tracing.request import sample_of
from glassformer.tracing.trace import Trace, trace

TOKENS, TARGETS = [3, 1, 3, 0, 6, 1], [1, 3, 0, 6, 1, 2]
SCORED = [True, False, True, True, False, True]
MASKS = {
    "embed.kept_X": "embed.X",
    "blocks.0.attn.kept_A": "blocks.0.attn.A",
    "blocks.0.kept_O": "blocks.0.attn.O",
    "blocks.0.kept_F": "blocks.0.ffn.F",
}


def decoder() -> Decoder:
    """One block with all options of queries and keys; every number of a mask matters to the loss."""
    return random_decoder(
        decoder_config(
            blocks=1,
            attention=AttentionConfig(heads=4, d_k=4, d_v=3, kv_heads=2, bias=True, qk_norm=True),
            position=PositionConfig(kind="rope"),
            dropout=DropoutConfig(embedding=0.2, attention=0.3, residual=0.25),
        )
    )


def traced(seed: int = 0, witness_cells: int | None = 0, model: Decoder | None = None) -> Trace:
    torch.manual_seed(seed)
    return trace(
        model or decoder(), TOKENS, TARGETS, SCORED, update=SGD(lr=0.05), witness_cells=witness_cells, dropout=True
    )


@pytest.fixture(scope="module")
def run() -> Trace:
    return traced(witness_cells=16)


def test_every_recorded_number_equals_its_definition(run: Trace) -> None:
    assert run.replay.holds, run.replay.violations()


def test_no_operation_lies_outside_the_definitions(run: Trace) -> None:
    assert run.audit is not None
    assert run.audit.uncovered == ()


def test_every_gradient_has_three_witnesses_that_agree(run: Trace) -> None:
    assert {id: w for id, w in run.witnesses.items() if not w.agree} == {}
    assert {"blocks.0.attn.A_D", "blocks.0.attn.A", "embed.X_D", "blocks.0.O_D", "blocks.0.F_D"} <= set(run.witnesses)


def test_masks_are_inputs_without_gradient_that_leave_out_some_of_the_numbers(run: Trace) -> None:
    for id in MASKS:
        assert run.program.quantities[id].quantity.kind is Kind.INPUT
        assert run[id].dtype == bool
        assert 0 < run[id].mean() < 1
        assert not run.recorded(id, "grad")
    assert (run["A_D"].sum(-1) != 1).all(), "the coefficients left over no longer sum to 1"


def test_the_forward_pass_after_the_update_has_the_same_masks(run: Trace) -> None:
    for id, result in zip(MASKS, ("embed.X_D", "blocks.0.attn.A_D", "blocks.0.O_D", "blocks.0.F_D"), strict=True):
        assert not run.recorded(id, "after")
        left_out = ~run[id]
        assert left_out.any()
        assert (run[result][left_out] == 0).all()
        assert (run[f"{result}.after"][left_out] == 0).all()
        assert (run[f"{result}.after"] != run[result]).any()


@pytest.mark.parametrize("mask", MASKS)
def test_a_mask_with_one_wrong_cell_breaks_the_replay_law(run: Trace, mask: str) -> None:
    wrong = run[mask].copy()
    cell = np.unravel_index(np.abs(run[MASKS[mask]]).argmax(), wrong.shape)
    wrong[cell] = not wrong[cell]
    law = replay(run.program, run.update, {**run.values, mask: wrong})
    home, _, name = mask.rpartition(".")
    assert f"{home}.{name.removeprefix('kept_')}_D" in law.violations()


def test_a_seed_decides_the_trace_and_the_generator_moves_on_as_by_one_step_of_training() -> None:
    first, again, other = traced(1), traced(1), traced(2)
    assert all(np.array_equal(first[id], again[id]) for id in MASKS)
    assert not all(np.array_equal(first[id], other[id]) for id in MASKS)
    traced(5)
    moved = torch.get_rng_state()
    torch.manual_seed(5)
    forward(decoder().train(), sample_of(TOKENS, TARGETS, SCORED), lambda quantity, tensor, at: tensor)
    assert torch.equal(torch.get_rng_state(), moved)


@pytest.mark.parametrize("mode", [True, False])
def test_a_trace_without_dropout_is_one_of_evaluation_mode_whatever_the_model_is_in(mode: bool) -> None:
    model = decoder().train(mode)
    state = torch.get_rng_state()
    found = trace(model, TOKENS, TARGETS, SCORED, witness_cells=0)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training is mode
    assert not set(MASKS) & set(found.values)
    assert found.replay.holds
    with torch.no_grad():
        logits = model.eval()(torch.tensor([TOKENS])).logits[0].numpy()
    np.testing.assert_allclose(found["logits"], logits, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", [True, False])
def test_tracing_with_dropout_leaves_the_model_as_it_was(mode: bool) -> None:
    model = decoder().train(mode)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    traced(model=model)
    assert model.training is mode
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_model_without_dropout_draws_no_masks() -> None:
    model = random_decoder(decoder_config(blocks=1))
    sample = sample_of(TOKENS, TARGETS, SCORED)
    state = torch.get_rng_state()
    assert with_drawn_masks(model.train(), sample).masks == {}
    assert torch.equal(torch.get_rng_state(), state)


def test_a_trace_with_masks_survives_its_file(run: Trace, tmp_path: Path) -> None:
    save_trace(run, tmp_path / "run.trace")
    again = load_trace(tmp_path / "run.trace")
    assert again.replay.holds
    assert again.program.scalars == run.program.scalars
    assert all(np.array_equal(again[id], run[id]) for id in MASKS)
