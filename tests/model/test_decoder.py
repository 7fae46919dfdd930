"""The forward pass: what it says, what it refuses, what may depend on what."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from decoders import CONFIGS, Inputs, Recorder, decoder_config, random_decoder, random_inputs
from glassformer.errors import UserError
from glassformer.model import AttentionConfig, Decoder, definitions, initialise
from glassformer.notation import Place, Quantity, Say, id_at
from options import OPTION_CONFIGS

ALL = {**CONFIGS, **OPTION_CONFIGS}

WHOLE = CONFIGS["everything"]


@pytest.mark.parametrize("name", ALL)
def test_a_forward_pass_says_every_defined_quantity_once_with_the_axes_of_its_definition(name: str) -> None:
    config, inputs, recorder = ALL[name], random_inputs(ALL[name], batch=1), Recorder()
    model = random_decoder(config).train()
    model(inputs.tokens, inputs.targets, inputs.scored, say=recorder)
    program = definitions(config, inputs.tokens.shape[1], dropout=True)
    parameters = dict(model.named_parameters())
    assert set(recorder.said) | set(parameters) == set(program.quantities)
    assert not set(recorder.said) & set(parameters)
    for id, tensor in {**recorder.said, **parameters}.items():
        shape = program.shape(id)
        assert tuple(tensor.shape) in (shape, (1, *shape)), id
    for id, quantity in recorder.quantities.items():
        assert program.quantities[id].quantity is quantity, f"{id} is defined by another declaration than it is said by"


@pytest.mark.parametrize("name", ALL)
def test_logits_loss_and_gradients_are_the_same_whether_somebody_looks_or_not(name: str) -> None:
    config = ALL[name]
    inputs = random_inputs(config, batch=3)
    results = []
    for say in (None, Recorder()):
        model = random_decoder(config)
        out = model(*arguments(inputs)) if say is None else model(*arguments(inputs), say=say)
        assert out.loss is not None
        out.loss.backward()
        results.append([out.logits, out.loss, *(p.grad for p in model.parameters())])
    for unseen, seen in zip(*results, strict=True):
        torch.testing.assert_close(unseen, seen, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", OPTION_CONFIGS)
def test_a_model_computes_in_the_numbers_of_its_parameters(name: str) -> None:
    """Tables of angles among them, which are computed in wider ones."""
    inputs = random_inputs(OPTION_CONFIGS[name])
    model = random_decoder(OPTION_CONFIGS[name]).float()
    for kwargs in ({"say": plain}, {}):
        out = model(*arguments(inputs), **kwargs)
        assert (out.logits.dtype, out.loss.dtype) == (torch.float32, torch.float32)


def test_a_later_token_never_changes_an_earlier_row() -> None:
    model, inputs = random_decoder(WHOLE), random_inputs(WHOLE)
    before = model(inputs.tokens).logits
    for position in range(inputs.tokens.shape[1]):
        tokens = inputs.tokens.clone()
        tokens[0, position] = (tokens[0, position] + 1) % WHOLE.vocab_size
        changed = (model(tokens).logits != before).any(-1)[0].tolist()
        assert not any(changed[:position])
        assert all(changed[position:])


def test_a_row_reads_no_further_back_than_its_window() -> None:
    config = decoder_config(blocks=1, attention=AttentionConfig(heads=2, d_k=3, d_v=4, bias=True, window=3))
    model, inputs = random_decoder(config), random_inputs(config)
    before = model(inputs.tokens).logits
    for position in range(inputs.tokens.shape[1]):
        tokens = inputs.tokens.clone()
        tokens[0, position] = (tokens[0, position] + 1) % config.vocab_size
        changed = (model(tokens).logits != before).any(-1)[0].nonzero().flatten().tolist()
        assert changed == list(range(position, min(position + 3, tokens.shape[1])))


def test_rows_of_a_batch_do_not_see_each_other() -> None:
    model, inputs = random_decoder(WHOLE), random_inputs(WHOLE, batch=3)
    together = model(inputs.tokens).logits
    for row in range(3):
        torch.testing.assert_close(together[row], model(inputs.tokens[row : row + 1]).logits[0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("id", ["embed.X", "blocks.0.norm1.mu", "blocks.0.attn.A", "blocks.1.ffn.C", "blocks.1.R"])
def test_what_say_returns_is_what_flows_on(id: str) -> None:
    model, inputs = random_decoder(WHOLE), random_inputs(WHOLE)

    def patch(quantity: Quantity, tensor: Any, at: Place) -> Any:
        return torch.zeros_like(tensor) if id_at(quantity, at) == id else tensor

    assert (model(inputs.tokens, say=patch).logits != model(inputs.tokens).logits).any()


def test_nothing_that_was_said_is_changed_in_place() -> None:
    model, inputs, recorder = random_decoder(WHOLE), random_inputs(WHOLE), Recorder()
    versions: dict[str, int] = {}

    def say(quantity: Quantity, tensor: Any, at: Place) -> Any:
        versions[id_at(quantity, at)] = tensor._version
        return recorder(quantity, tensor, at)

    out = model(*arguments(inputs), say=say)
    assert out.loss is not None
    out.loss.backward()
    assert {id: t._version for id, t in recorder.said.items()} == versions


def test_unscored_targets_may_be_anything_and_count_for_nothing() -> None:
    model, inputs = random_decoder(WHOLE), random_inputs(WHOLE)
    others = torch.where(inputs.scored, inputs.targets, WHOLE.vocab_size + 5)
    for say in (plain, None):
        kwargs = {} if say is None else {"say": say}
        loss = model(*arguments(inputs), **kwargs).loss
        assert torch.equal(model(inputs.tokens, others, inputs.scored, **kwargs).loss, loss)
        assert not torch.equal(model(inputs.tokens, inputs.targets.clamp(min=0), None, **kwargs).loss, loss)


def test_every_id_of_a_large_vocabulary_counts_where_it_is_scored() -> None:
    """No id stands for a row that is left out, though the fused kernel must be told one that does."""
    config = decoder_config(vocab_size=257, context=260, blocks=1)
    model = random_decoder(config)
    targets = torch.arange(257)[None]
    scored = torch.arange(257)[None] % 2 == 0
    for counted in (scored, ~scored):
        seen = model(targets, targets, counted, say=plain).loss
        assert model(targets, targets, counted).loss.item() == pytest.approx(seen.item(), rel=1e-12)


def test_the_loss_of_huge_logits_is_finite() -> None:
    config = CONFIGS["attention alone"]
    model, inputs = random_decoder(config).float(), random_inputs(config)
    with torch.no_grad():
        model.head.U.mul_(1e30)
    for say in (plain, None):
        out = model(*arguments(inputs), **({} if say is None else {"say": say}))
        assert out.loss is not None
        assert math.isfinite(out.loss.item())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": torch.tensor([[0, 7, 1, 1, 1, 1, 1]])}, r"Token id 7 at \[0,1\] .* 0 to 6"),
        ({"tokens": torch.tensor([[0, -1, 1, 1, 1, 1, 1]])}, r"Token id -1 at \[0,1\]"),
        ({"tokens": torch.zeros((1, 10), dtype=torch.int64)}, "10 tokens are more than this model's context of 9"),
        ({"tokens": torch.zeros((1, 0), dtype=torch.int64)}, r"shape \(1, 0\)"),
        ({"tokens": torch.zeros(7, dtype=torch.int64)}, r"shape \(7,\).*tokens\[None\]"),
        ({"tokens": torch.zeros((1, 7))}, "Tokens are torch.float32"),
        ({"targets": torch.zeros((1, 6), dtype=torch.int64)}, r"Targets have shape \(1, 6\), tokens \(1, 7\)"),
        ({"targets": torch.zeros((1, 7), dtype=torch.int32)}, "Targets are torch.int32"),
        ({"targets": torch.full((1, 7), 7)}, "Target id 7"),
        ({"targets": torch.full((1, 7), -100)}, "Target id -100"),
        ({"scored": torch.ones((1, 7))}, "mask of scored positions is torch.float32"),
        ({"scored": torch.ones((2, 7), dtype=torch.bool)}, r"of shape \(2, 7\)"),
        ({"scored": torch.zeros((1, 7), dtype=torch.bool)}, "No position is scored"),
        ({"targets": None}, "without targets"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    inputs = replace(random_inputs(WHOLE), **changes)
    with pytest.raises(UserError, match=message):
        random_decoder(WHOLE)(*arguments(inputs))


def test_parameters_start_as_documented() -> None:
    config = decoder_config(d=200, blocks=8)
    attention, feed_forward = config.layers[0].attention, config.layers[0].ffn
    assert feed_forward is not None
    deviations = {
        "E": 0.1,
        "P": 0.1,
        "W_O": (attention.heads * attention.d_v * 16) ** -0.5,
        "W_2": (feed_forward.d_ff * 16) ** -0.5,
    }
    for name, parameter in Decoder(config, torch.Generator().manual_seed(0)).named_parameters():
        kind = name.rpartition(".")[2]
        if kind == "gamma":
            assert (parameter == 1).all()
        elif kind == "beta" or kind.startswith("b_"):
            assert (parameter == 0).all()
        else:
            deviation = deviations.get(kind, 200**-0.5)
            assert parameter.std().item() == pytest.approx(deviation, rel=0.1)
            assert abs(parameter.mean().item()) < deviation / 5


def test_one_seed_gives_one_model_and_leaves_torchs_own_generator_alone() -> None:
    state = torch.random.get_rng_state()
    first, again = (Decoder(WHOLE, torch.Generator().manual_seed(3)).state_dict() for _ in range(2))
    other = Decoder(WHOLE, torch.Generator().manual_seed(4)).state_dict()
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["head.U"], other["head.U"])


def test_a_parameter_without_a_starting_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="no rule says how weight starts"):
        initialise(nn.Linear(2, 2), 1)


def plain(quantity: Quantity, tensor: Any, at: Place) -> Any:
    """A listener that does nothing, but is not ``silent``: the explicit arithmetic runs."""
    return tensor


def arguments(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return inputs.tokens, inputs.targets, inputs.scored


_: Say = plain
