"""QK-norm: what it makes of the lengths of queries and keys, against torch's own RMSNorm, and where it is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from decoders import Recorder, decoder_config, err, random_decoder, random_inputs, record
from glassformer.model import AttentionConfig, Decoder, DecoderConfig, NormConfig, PositionConfig, definitions
from glassformer.model.qk_norm import QueryKeyNorm
from glassformer.notation import evaluate, parse_expression
from glassformer.notation.tree import refs, rename_names

AT = "blocks.0.attn"


def config(*, qk_norm: bool = True, kv_heads: int | None = 2, **changes: Any) -> DecoderConfig:
    attention = AttentionConfig(heads=4, d_k=6, d_v=5, bias=True, kv_heads=kv_heads, qk_norm=qk_norm)
    return decoder_config(**{"attention": attention, "blocks": 1, **changes})


def said(model: Decoder, seed: int = 1) -> dict[str, torch.Tensor]:
    recorder = Recorder()
    inputs = random_inputs(model.config, batch=2, seed=seed)
    model(inputs.tokens, say=recorder)
    return recorder.said


def test_each_head_is_normalised_as_torchs_rms_norm_does() -> None:
    for kv_heads in (None, 2, 1):
        model = random_decoder(config(kv_heads=kv_heads))
        values, parameters = said(model), dict(model.named_parameters())
        for name in "QK":
            gain = parameters[f"{AT}.qk_norm.gamma_{name}"]
            peer = torch.nn.functional.rms_norm(values[f"{AT}.{name}"], (6,), gain, eps=1e-2)
            torch.testing.assert_close(values[f"{AT}.qk_norm.{name}_N"], peer, rtol=1e-13, atol=1e-14)


def test_gains_are_shared_by_heads_and_start_at_1() -> None:
    model = Decoder(config())
    for name in ("gamma_Q", "gamma_K"):
        gain = model.get_parameter(f"{AT}.qk_norm.{name}")
        assert gain.shape == (6,)
        assert (gain == 1).all()


def test_the_length_of_queries_and_keys_changes_nothing() -> None:
    """Up to epsilon: so weights 1000 times as large give the same scores."""
    model = random_decoder(config(norm=NormConfig(eps=1e-12)))
    before = said(model)[f"{AT}.S"]
    with torch.no_grad():
        for name in ("W_Q", "b_Q", "W_K", "b_K"):
            model.get_parameter(f"{AT}.{name}").mul_(1000)
    torch.testing.assert_close(said(model)[f"{AT}.S"], before, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("position", ["none", "rope"])
def test_no_score_exceeds_the_root_of_d_k_times_the_largest_gains(position: Any) -> None:
    model = random_decoder(config(position=PositionConfig(kind=position)))
    with torch.no_grad():
        model.get_parameter(f"{AT}.W_Q").mul_(1e6)
    gains = [model.get_parameter(f"{AT}.qk_norm.gamma_{name}").abs().max().item() for name in "QK"]
    S = said(model)[f"{AT}.S"]
    assert S[S.isfinite()].abs().max() <= math.sqrt(6) * math.prod(gains) * (1 + 1e-12)


def test_queries_and_keys_are_normalised_before_they_are_turned() -> None:
    program = definitions(config(position=PositionConfig(kind="rope")), 5)
    for name in "QK":
        turned = program.definition(f"{AT}.{name}_R")
        assert turned is not None
        read = {ref.name for ref in refs(turned.expr)}
        assert f"{AT}.qk_norm.{name}_N" in read
        assert f"{AT}.{name}" not in read


def test_layers_choose_for_themselves() -> None:
    one = config()
    plain = config(qk_norm=False).layers[0]
    mixed = DecoderConfig(**{**dict(one), "layers": (*one.layers, plain)})
    ids = definitions(mixed, 4).quantities
    assert "blocks.0.attn.qk_norm.Q_N" in ids
    assert "blocks.1.attn.qk_norm.Q_N" not in ids
    assert "blocks.1.attn.qk_norm.gamma_Q" not in dict(Decoder(mixed).named_parameters())


def test_epsilon_is_that_of_the_models_norms_or_a_millionth() -> None:
    assert definitions(config(norm=NormConfig(eps=1e-3)), 4).scalars["eps"] == 1e-3
    assert definitions(config(norm=None), 4).scalars["eps"] == 1e-6
    assert "eps" not in definitions(config(norm=None, qk_norm=False), 4).scalars
    for norm, eps in ((NormConfig(eps=1e-3), 1e-3), (None, 1e-6)):
        part = Decoder(config(norm=norm)).get_submodule(f"{AT}.qk_norm")
        assert isinstance(part, QueryKeyNorm)
        assert part.eps == eps


def test_a_query_of_nothing_but_zeros_stays_zero_and_has_a_finite_gradient() -> None:
    model = random_decoder(config(norm=None))
    with torch.no_grad():
        model.get_parameter(f"{AT}.W_Q").zero_()
        model.get_parameter(f"{AT}.b_Q").zero_()
    recorded = record(model, random_inputs(model.config))
    assert (recorded.values[f"{AT}.qk_norm.Q_N"] == 0).all()
    assert np.isfinite(recorded.gradients[f"{AT}.Q"]).all()
    assert np.abs(recorded.gradients[f"{AT}.Q"]).max() > 0


def test_one_coordinate_has_nothing_to_compare() -> None:
    with pytest.raises(ValidationError, match="QK-norm over d_k = 1 coordinate"):
        AttentionConfig(heads=2, d_k=1, d_v=3, qk_norm=True)


RIGHT = (
    "(Q_N.grad[h,i,c]*gamma_Q[c] - Qhat[h,i,c]*mean(Q_N.grad[h,i,a]*gamma_Q[a]*Qhat[h,i,a] for a in d_k))/rms_Q[h,i]"
)
WRONG = {
    "gain outside the mean": (
        "gamma_Q[c]*(Q_N.grad[h,i,c] - Qhat[h,i,c]*mean(Q_N.grad[h,i,a]*Qhat[h,i,a] for a in d_k))/rms_Q[h,i]"
    ),
    "as if the divisor were a constant": "Q_N.grad[h,i,c]*gamma_Q[c]/rms_Q[h,i]",
    "a sum for the mean": RIGHT.replace("mean(", "sum("),
    "a mean over the model's dimension": RIGHT.replace("mean(", "sum(").replace("in d_k)", "in d_k)/d"),
    "without the epsilon": RIGHT.replace("rms_Q[h,i]", "sqrt(mean(Q[h,i,a]**2 for a in d_k))"),
}


def gradient(text: str, gain: float | None) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of the queries as ``text`` has it, and autograd's, with all gains at ``gain`` (None: random)."""
    model = random_decoder(config())
    with torch.no_grad():
        if gain is not None:
            model.get_parameter(f"{AT}.qk_norm.gamma_Q").fill_(gain)
    recorded = record(model, random_inputs(model.config))
    values = {**recorded.values, **{f"{id}.grad": g for id, g in recorded.gradients.items()}}
    program = definitions(model.config, 7)
    names = {"Q": f"{AT}.Q", **{n: f"{AT}.qk_norm.{n}" for n in ("Q_N", "Qhat", "rms_Q", "gamma_Q")}}
    letters = (("h", "H"), ("i", "n"), ("c", "d_k"))
    found = evaluate(rename_names(parse_expression(text), names), letters, values, program.scalars)
    return found, recorded.gradients[f"{AT}.Q"]


@pytest.mark.parametrize("gain", [None, 1.0, -0.5])
def test_with_the_gain_inside_the_mean_the_gradient_is_exact_for_any_gain(gain: float | None) -> None:
    assert err(*gradient(RIGHT, gain)) <= 1e-13


@pytest.mark.parametrize("mistake", WRONG)
def test_a_gradient_with_a_known_mistake_is_off_by_more_than_a_thousandth(mistake: str) -> None:
    assert err(*gradient(WRONG[mistake], None)) > 1e-3


def test_a_gain_outside_the_mean_looks_right_where_all_gains_are_alike() -> None:
    """Why gains are random in every other test."""
    assert err(*gradient(WRONG["gain outside the mean"], 1.5)) <= 1e-13
