"""The user's model is left as it was, whatever happens to it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import foreign
from decoders import random_decoder
from glassformer.laws import check
from glassformer.laws.probes import causality
from glassformer.laws.weights import restored
from glassformer.model import Decoder
from options import OPTION_CONFIGS
from small_decoder import SmallDecoder


def model(name: str) -> nn.Module:
    torch.manual_seed(0)
    match name:
        case "SmallDecoder":
            return SmallDecoder()
        case "Decoder":
            return random_decoder(OPTION_CONFIGS[next(iter(OPTION_CONFIGS))])
        case "encoder":
            return nn.TransformerEncoderLayer(16, 4, 32)
        case "huggingface":
            transformers = pytest.importorskip("transformers")
            config = transformers.GPT2Config(vocab_size=30, n_positions=32, n_embd=16, n_layer=1, n_head=2)
            return transformers.GPT2LMHeadModel(config)
        case _:
            return getattr(foreign, name)()


class State:
    """All that a check could leave changed."""

    def __init__(self, module: nn.Module) -> None:
        self.weights = {name: (t.clone(), t.dtype, t.data_ptr()) for name, t in module.state_dict().items()}
        self.gradients = {
            name: None if p.grad is None else (p.grad.clone(), p.grad.data_ptr(), p.requires_grad)
            for name, p in module.named_parameters()
        }
        self.modes = {name: part.training for name, part in module.named_modules()}
        self.hooks = {name: (list(p._forward_hooks), list(p._forward_pre_hooks)) for name, p in module.named_modules()}
        self.own = {name: sorted(vars(part)) for name, part in module.named_modules()}
        self.random = (torch.get_rng_state().clone(), random.getstate(), str(np.random.get_state()))
        self.process = (torch.is_grad_enabled(), torch.get_num_threads(), torch.get_default_dtype())

    def same(self, other: State) -> bool:
        weights = all(
            torch.equal(t, other.weights[name][0]) and rest == other.weights[name][1:]
            for name, (t, *rest_) in self.weights.items()
            for rest in [tuple(rest_)]
        )
        gradients = all(
            (g is None) == (other.gradients[name] is None)
            and (g is None or (torch.equal(g[0], other.gradients[name][0]) and g[1:] == other.gradients[name][1:]))
            for name, g in self.gradients.items()
        )
        plain = all(
            getattr(self, each) == getattr(other, each) for each in ("modes", "hooks", "own", "process")
        ) and torch.equal(self.random[0], other.random[0])
        return weights and gradients and plain and self.random[1:] == other.random[1:]


def prepared(name: str) -> nn.Module:
    """A model in an unusual state: training, a part of it not, gradients, a hook."""
    module = model(name).train()
    parts = list(module.children())
    parts[-1].eval()
    for k, p in enumerate(module.parameters()):
        p.grad = torch.full_like(p, float(k))
    module.register_forward_hook(lambda *_: None)
    random.seed(3)
    np.random.seed(4)
    return module


@pytest.mark.parametrize("name", ["SmallDecoder", "Decoder", "encoder", "huggingface", "NanoGPT", "IgnoreMask"])
def test_a_checked_model_is_left_as_it_was(name: str) -> None:
    module = prepared(name)
    before = State(module)
    check(module, only=["causality", "cache", "padding", "gradient.differences", "recompute", "loading", "determinism"])
    assert before.same(State(module))


@pytest.mark.parametrize("name", ["Raising", "NotANumber", "Nothing", "Drifting", "Dicing", "Uncopied", "LastOnly"])
def test_a_model_that_misbehaves_is_left_as_it_was(name: str) -> None:
    module = prepared(name)
    before = State(module)
    check(module, only=["causality", "determinism"])
    assert before.same(State(module))


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_probe_that_raises_leaves_the_model_as_it_was(error: type, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: Any, **__: Any) -> Any:
        torch.set_grad_enabled(False)
        torch.manual_seed(99)
        raise error("in the middle")

    monkeypatch.setattr(causality, "claims", raising)
    module = prepared("SmallDecoder")
    before = State(module)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            check(module, only=["causality"])
    else:
        report = check(module, only=["causality"])
        assert "in the middle" in str(report["causality.forward"].reason)
        assert report["causality.past"].findings, "the other probes still ran"
    assert before.same(State(module))


def test_decoder_is_the_model_of_ours() -> None:
    assert isinstance(model("Decoder"), Decoder)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_moved_parameters_come_back_bit_for_bit_whether_or_not_single_precision_holds_them(dtype: torch.dtype) -> None:
    held = torch.tensor([1.0, -0.0, 2.0**-140, 1e30]).to(dtype)
    fine = torch.tensor([0.1, 1 / 3, torch.nan, -torch.inf], dtype=torch.float64).to(dtype)
    before = [each.view(torch.uint8).clone() for each in (held, fine)]
    with restored([held, fine]):
        held.add_(1)
        fine.mul_(2)
    assert [each.view(torch.uint8).tolist() for each in (held, fine)] == [each.tolist() for each in before]
