"""Dropout: what it draws and when, what becomes of the mean, the fused kernel against the explicit arithmetic."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from decoders import Inputs, Recorder, decoder_config, random_decoder, random_inputs
from glassformer.generation import generate
from glassformer.model import DecoderConfig, DropoutConfig, definitions
from glassformer.model.attention import COEFFICIENTS, explicit_attention, fused_attention
from glassformer.model.dropout import COEFFICIENTS as DROPPED
from glassformer.model.dropout import EMBEDDED, MASKS, leave_out
from glassformer.model.grouped import head_table
from glassformer.notation import dictionary_recorder, silent

AT = ("here",)
RATES = DropoutConfig(embedding=0.1, attention=0.3, residual=0.2)
# The chance of a right mask to be called wrong is below one in a million.
SIGMAS = 5.0

PLACES = {
    "embedding": {"embed.kept_X", "embed.X_D"},
    "attention": {f"blocks.{k}.attn.{name}" for k in (0, 1) for name in ("kept_A", "A_D")},
    "residual": {f"blocks.{k}.{name}" for k in (0, 1) for name in ("kept_O", "O_D", "kept_F", "F_D")},
}


def config(**rates: float) -> DecoderConfig:
    return decoder_config(dropout=DropoutConfig(**rates))


def run(model: Any, inputs: Inputs, seed: int = 0, **keywords: Any) -> torch.Tensor:
    torch.manual_seed(seed)
    return model(inputs.tokens, inputs.targets, inputs.scored, **keywords).logits


@pytest.mark.parametrize("place", PLACES)
def test_each_rate_leaves_out_at_its_own_place_alone(place: str) -> None:
    recorder, whole = Recorder(), config(**{place: 0.5})
    inputs = random_inputs(whole)
    run(random_decoder(whole).train(), inputs, say=recorder)
    added = set(definitions(whole, 7, dropout=True).quantities) - set(definitions(whole, 7).quantities)
    assert added == PLACES[place]
    plain = set(definitions(decoder_config(), 7).quantities)
    assert {id for id in recorder.said if id not in plain} == PLACES[place]
    for id in PLACES[place]:
        if "kept" in id:
            assert recorder.said[id].dtype == torch.bool
            assert 0 < recorder.said[id].double().mean() < 1
            assert recorder.quantities[id] in MASKS


def test_in_evaluation_mode_nothing_is_drawn_and_the_numbers_are_those_of_a_model_without_dropout() -> None:
    whole = decoder_config(dropout=RATES)
    inputs = random_inputs(whole, batch=3)
    without, model = random_decoder(decoder_config()), random_decoder(whole).eval()
    for keywords in ({}, {"say": Recorder()}):
        other = {"say": Recorder()} if keywords else {}
        state = torch.get_rng_state()
        logits = model(inputs.tokens, inputs.targets, inputs.scored, **keywords).logits
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(logits, without(inputs.tokens, inputs.targets, inputs.scored, **other).logits)


def test_at_rate_0_training_draws_nothing() -> None:
    whole = decoder_config(dropout=DropoutConfig())
    inputs, model = random_inputs(whole), random_decoder(whole)
    state = torch.get_rng_state()
    trained = model.train()(inputs.tokens).logits
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(trained, model.eval()(inputs.tokens).logits)


def test_the_program_of_evaluation_mode_is_that_of_a_model_without_dropout() -> None:
    one, other = definitions(decoder_config(dropout=RATES), 5), definitions(decoder_config(), 5, dropout=True)
    assert one.statements == other.statements
    assert one.scalars == other.scalars
    assert not {"p_embed", "p_attn", "p_resid"} & set(one.scalars)
    trained = definitions(decoder_config(dropout=RATES), 5, dropout=True).scalars
    assert (trained["p_embed"], trained["p_attn"], trained["p_resid"]) == (0.1, 0.3, 0.2)


@pytest.mark.parametrize("seen", [True, False])
def test_a_seed_decides_the_masks(seen: bool) -> None:
    whole = decoder_config(dropout=RATES)
    model, inputs = random_decoder(whole).train(), random_inputs(whole)

    def once(seed: int) -> torch.Tensor:
        return run(model, inputs, seed, **({"say": Recorder()} if seen else {}))

    assert torch.equal(once(1), once(1))
    assert not torch.equal(once(1), once(2))


def test_without_attention_dropout_looking_does_not_change_what_is_drawn() -> None:
    whole = config(embedding=0.2, residual=0.4)
    model, inputs = random_decoder(whole).train(), random_inputs(whole, batch=2)
    torch.testing.assert_close(run(model, inputs), run(model, inputs, say=Recorder()), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.9])
def test_as_many_are_left_out_as_the_rate_says_and_neighbours_do_not_care(rate: float) -> None:
    torch.manual_seed(0)
    said: dict[str, Any] = {}
    leave_out(torch.ones(400, 500), EMBEDDED, rate, dictionary_recorder(said), AT)
    kept = said["here.kept_X"].double()
    assert within(kept, 1 - rate)
    for pairs in (kept[:, 1:] * kept[:, :-1], kept[1:] * kept[:-1]):
        assert within(pairs[::2, ::2], (1 - rate) ** 2)


def within(hits: torch.Tensor, p: float) -> bool:
    """Whether the frequency of ``hits`` (0 or 1) is one that chance ``p`` gives."""
    return abs(hits.mean().item() - p) <= SIGMAS * math.sqrt(p * (1 - p) / hits.numel())


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_the_mean_over_masks_is_the_number_itself(rate: float) -> None:
    torch.manual_seed(0)
    X, times = torch.linspace(-3, 3, 50, dtype=torch.float64), 20_000
    mean = leave_out(X.expand(times, 50), EMBEDDED, rate, silent, AT).mean(0)
    deviation = X.abs() * math.sqrt(rate / (1 - rate) / times)
    assert ((mean - X).abs() <= SIGMAS * deviation + 1e-12).all()


def test_what_is_kept_is_divided_by_the_chance_to_be_kept_and_its_gradient_too() -> None:
    torch.manual_seed(0)
    X = torch.randn(6, 8, dtype=torch.float64, requires_grad=True)
    said: dict[str, Any] = {}
    Y = leave_out(X, EMBEDDED, 0.25, dictionary_recorder(said), AT)
    kept = said["here.kept_X"]
    assert torch.equal(Y, torch.where(kept, X / 0.75, torch.zeros_like(X)))
    Y.sum().backward()
    torch.testing.assert_close(X.grad, kept.double() / 0.75)


@pytest.mark.parametrize("attention", [explicit_attention, fused_attention])
@pytest.mark.parametrize("kv_heads", [None, 2])
def test_explicit_and_fused_attention_leave_out_coefficients_one_by_one(attention: Any, kv_heads: int | None) -> None:
    """Values that are unit vectors show the coefficients even of the fused kernel."""
    torch.manual_seed(0)
    heads, n, rate = 4, 32, 0.3
    shared = kv_heads or heads
    Q, K = torch.randn(3, heads, n, 4, dtype=torch.float64), torch.randn(3, shared, n, 4, dtype=torch.float64)
    V = torch.eye(n, dtype=torch.float64).expand(3, shared, n, n)
    kv = None if kv_heads is None else head_table(heads, kv_heads, torch.device("cpu"), silent, AT)
    allowed = torch.ones(n, n, dtype=torch.bool).tril()
    said: dict[str, Any] = {}
    explicit_attention(Q, K, V, allowed, dictionary_recorder(said), AT, kv)
    A = said[f"here.{COEFFICIENTS.name}"]
    left = attention(Q, K, V, allowed, silent, AT, kv, rate)
    kept = left != 0
    torch.testing.assert_close(left, torch.where(kept, A / (1 - rate), 0.0), rtol=1e-12, atol=1e-14)
    assert within(kept[:, :, allowed].double(), 1 - rate)
    assert not torch.equal(kept[:, 0], kept[:, 1])
    assert not torch.equal(kept[0], kept[1])


@pytest.mark.parametrize("attention", [explicit_attention, fused_attention])
def test_attention_at_rate_0_is_attention_without_dropout(attention: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    Q, K, V = (torch.randn(2, 3, 5, 4, generator=generator) for _ in range(3))
    allowed = torch.ones(5, 5, dtype=torch.bool).tril()
    state = torch.get_rng_state()
    assert torch.equal(
        attention(Q, K, V, allowed, silent, AT, None, 0.0), attention(Q, K, V, allowed, silent, AT)
    )  # fmt: skip
    assert torch.equal(torch.get_rng_state(), state)


def test_a_mask_that_keeps_everything_only_scales() -> None:
    generator = torch.Generator().manual_seed(0)
    Q, K, V = (torch.randn(2, 3, 5, 4, generator=generator, dtype=torch.float64) for _ in range(3))
    allowed = torch.ones(5, 5, dtype=torch.bool).tril()

    def keep(quantity: Any, tensor: Any, at: Any) -> Any:
        return torch.ones_like(tensor) if quantity is DROPPED.kept else tensor

    kept = explicit_attention(Q, K, V, allowed, keep, AT, None, 0.2)
    torch.testing.assert_close(kept, explicit_attention(Q, K, V, allowed, silent, AT) / 0.8)


def test_generating_leaves_nothing_out_and_leaves_the_mode_alone() -> None:
    whole = decoder_config(dropout=DropoutConfig(embedding=0.5, attention=0.5, residual=0.5))
    model = random_decoder(whole)
    expected = list(generate(model.eval(), [1, 2], 12, temperature=0.0))
    assert list(generate(model.train(), [1, 2], 12, temperature=0.0)) == expected
    assert model.training


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan"), "0.1", True])
def test_a_rate_that_is_no_chance_below_1_is_refused(rate: Any) -> None:
    for name in DropoutConfig.model_fields:
        with pytest.raises(ValidationError):
            DropoutConfig(**{name: rate})


COMPILED = """
import torch
from decoders import decoder_config, random_decoder, random_inputs
from glassformer.model import AttentionConfig, DropoutConfig
graphs = []
def count(graph, example):
    graphs.append(graph)
    return graph
config = decoder_config(dropout=DropoutConfig(embedding=0.1, attention=0.3, residual=0.2),
                        attention=AttentionConfig(heads=2, d_k=4, d_v=3, qk_norm=True))
model, tokens = random_decoder(config).train(), random_inputs(config).tokens
compiled = torch.compile(model, backend=count, fullgraph=True)
torch.manual_seed(3)
logits = compiled(tokens).logits
torch.manual_seed(3)
assert torch.equal(logits, model(tokens).logits)
print(len(graphs))
"""


@pytest.mark.full
def test_training_with_dropout_compiles_to_one_graph_that_draws_the_same_masks(root: Path) -> None:
    # A process of its own: the shape checks of this test run would cut the graph.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (root / "src", root / "tests")))}
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1"
