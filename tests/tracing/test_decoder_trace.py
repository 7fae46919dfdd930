"""The laws of a trace on decoders with every part, at parameters that are nowhere trivial."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import glassformer
from glassformer.errors import UserError
from glassformer.model import (
    AttentionConfig,
    Decoder,
    DecoderConfig,
    FeedForwardConfig,
    HeadConfig,
    NormConfig,
    PositionConfig,
    toy24_model,
)
from glassformer.notation import Kind, SaidTwice, quantity
from glassformer.tracing import SGD
from glassformer.tracing.record import Recorder
from glassformer.tracing.request import sample_of
from glassformer.tracing.trace import trace


def decoder(seed: int = 0, scale: float = 0.7, **changes) -> Decoder:
    """Two heads, two blocks, d = 6, d_k = 4, d_v = 5, every parameter drawn (gamma, beta and biases included)."""
    settings = {
        "vocab_size": 7,
        "context": 9,
        "d": 6,
        "blocks": 2,
        "attention": AttentionConfig(heads=2, d_k=4, d_v=5, bias=True),
        "norm": NormConfig(eps=1e-3),
        "ffn": FeedForwardConfig(d_ff=11),
        "head": HeadConfig(bias=True),
    }
    model = Decoder(DecoderConfig.alike(**{**settings, **changes})).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * scale)
    return model


TOKENS = [3, 1, 3, 0, 6, 1]
TARGETS = [1, 3, 0, 6, 1, 2]
SCORED = [True, False, True, True, False, True]

VARIANTS = {
    "everything": {},
    "relu": {"ffn": FeedForwardConfig(d_ff=11, activation="relu")},
    "no biases": {"attention": AttentionConfig(heads=3, d_k=2, d_v=4), "head": HeadConfig()},
    "no feed-forward network": {"ffn": None},
    # Without norms the loss of larger parameters bends so sharply that no difference of it means anything.
    "no norm": {"norm": None, "scale": 0.35},
    "no positions": {"position": PositionConfig(kind="none")},
    "one head, one block": {"attention": AttentionConfig(heads=1, d_k=4, d_v=5), "blocks": 1},
}


@pytest.fixture(scope="module", params=VARIANTS, ids=str)
def run(request):
    return trace(decoder(**VARIANTS[request.param]), TOKENS, TARGETS, SCORED, update=SGD(lr=0.05))


def test_every_recorded_number_equals_its_definition(run):
    assert run.replay.holds, run.replay.violations()
    assert run.replay.cells > 500


def test_every_gradient_has_three_witnesses_that_agree(run):
    disagreeing = {id: w for id, w in run.witnesses.items() if not w.agree}
    assert disagreeing == {}
    assert set(run.parameters) <= set(run.witnesses)


def test_no_operation_lies_outside_the_definitions(run):
    assert run.audit.uncovered == ()


def test_looking_changes_nothing_beyond_rounding(run):
    assert run.observer.max_abs_logit_difference <= 1e-12


def test_a_key_bias_without_positions_in_the_scores_has_a_gradient_of_zero_up_to_rounding():
    run = trace(decoder(), TOKENS, TARGETS, SCORED)
    witness = run.witnesses["blocks.0.attn.b_K"]
    assert witness.zero_in_theory
    assert witness.agree
    assert np.abs(run["blocks.0.attn.b_K.grad"]).max() < 1e-14


def test_the_update_moves_every_parameter_from_gradients_at_the_old_parameters(run):
    for id in run.parameters:
        np.testing.assert_array_equal(run[f"{id}.new"], run[id] - 0.05 * run[f"{id}.grad"])


def test_tracing_leaves_the_model_as_it_was():
    model = decoder()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    threads = torch.get_num_threads()
    trace(model, TOKENS, TARGETS, SCORED, witness_cells=0)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.get_num_threads() == threads


def test_an_audit_names_an_operation_that_no_quantity_covers(monkeypatch):
    from glassformer.model import block
    from glassformer.tracing.audit import audit

    original = block.Block.forward

    def with_something_unsaid(self, X, *others):
        (X * 2).sin()
        return original(self, X, *others)

    monkeypatch.setattr(block.Block, "forward", with_something_unsaid)
    found = audit(decoder(), sample_of(TOKENS, TARGETS, SCORED), SGD(lr=0.1))
    assert any("aten.sin" in line for line in found.uncovered)


def test_replay_fails_when_the_code_differs_from_its_formula(monkeypatch):
    from glassformer.model import attention

    def off_by_a_hair(Q, K, V, allowed, say, at, *others):
        S = Q @ K.transpose(-2, -1) / (Q.shape[-1] ** 0.5) * (1 + 1e-12)
        S = say(attention.SCORES, S.masked_fill(~allowed, -torch.inf), at)
        return say(attention.MIXED, say(attention.COEFFICIENTS, torch.softmax(S, -1), at) @ V, at)

    monkeypatch.setattr(attention, "explicit_attention", off_by_a_hair)
    run = trace(decoder(), TOKENS, TARGETS, SCORED, witness_cells=0)
    assert {name for name in run.replay.violations() if not name.endswith((".grad", ".after"))} == {
        "blocks.0.attn.S",
        "blocks.1.attn.S",
    }


def test_a_quantity_said_twice_is_an_error():
    recorder = Recorder()
    q = quantity("x", "x", "x", "x", Kind.INPUT, "x[i]")
    recorder.say(q, torch.zeros(2), ("a",))
    with pytest.raises(SaidTwice, match=r"a\.x was said twice"):
        recorder.say(q, torch.zeros(2), ("a",))


def test_an_in_place_edit_after_saying_is_an_error():
    recorder = Recorder()
    x = torch.zeros(2)
    recorder.say(quantity("x", "x", "x", "x", Kind.INPUT, "x[i]"), x, ("a",))
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"edited in place.*a\.x"):
        recorder.unchanged()


def test_the_public_function_traces_a_model_from_plain_ids():
    run = glassformer.trace(toy24_model(), [0, 1], target=[1, 2], scored=[False, True])
    assert round(float(run["W_Q.grad[1,0]"]), 6) == 0.133562
    with pytest.raises(UserError, match="differ in length"):
        glassformer.trace(toy24_model(), [0, 1], target=[1])
    with pytest.raises(UserError, match="too short to trace"):
        glassformer.trace(toy24_model(), [0])
    with pytest.raises(UserError, match="not recorded"):
        run["embed.t.grad"]


def test_a_packed_row_is_traced_with_its_segments_and_scores_no_token_of_the_next_text():
    segments = [4, 4, 4, 1, 1, 0]
    run = trace(decoder(), TOKENS, segments=segments, witness_cells=16)
    assert run["seg"].tolist() == segments
    assert run["pos"].tolist() == [0, 1, 2, 0, 1, 0]
    assert run["scored"].tolist() == [True, True, False, True, False, False]
    assert not run["blocks.0.attn.A"][:, 3:, :3].any()
    assert run.replay.holds, run.replay.violations()
    assert {id for id, w in run.witnesses.items() if not w.agree} == set()
    assert run.audit is not None
    assert run.audit.uncovered == ()


def test_segments_that_do_not_fit_the_tokens_are_refused():
    with pytest.raises(UserError, match="tokens: 6, segments: 5"):
        trace(decoder(), TOKENS, segments=[0] * 5)
    with pytest.raises(UserError, match="Segment 0 of row 0 ends and begins again"):
        trace(decoder(), TOKENS, segments=[0, 0, 1, 1, 0, 0])
