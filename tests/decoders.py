"""Small decoders at random, never trivial, values: what the tests of definitions, traces and witnesses run on."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.model import (
    AttentionConfig,
    Decoder,
    DecoderConfig,
    FeedForwardConfig,
    HeadConfig,
    NormConfig,
    PositionConfig,
)
from glassformer.notation import Place, Quantity, id_at
from glassformer.notation.parse import parse_lines


def decoder_config(**changes: Any) -> DecoderConfig:
    """Two blocks with everything on, but for ``changes``."""
    # d/H = 5, d_k = 3 and d_v = 4 differ, so a swapped axis cannot pass by luck.
    whole = {
        "vocab_size": 7,
        "context": 9,
        "d": 10,
        "attention": AttentionConfig(heads=2, d_k=3, d_v=4, bias=True),
        "norm": NormConfig(eps=1e-2),
        "ffn": FeedForwardConfig(d_ff=11),
        "head": HeadConfig(bias=True),
    }
    return DecoderConfig.alike(**{"blocks": 2, **whole, **changes})


CONFIGS = MappingProxyType(
    {
        "everything": decoder_config(),
        "relu": decoder_config(ffn=FeedForwardConfig(d_ff=11, activation="relu"), blocks=1),
        "no norm": decoder_config(norm=None, blocks=1),
        "no feed-forward": decoder_config(ffn=None, blocks=1),
        "no positions": decoder_config(position=PositionConfig(kind="none"), blocks=1),
        "no biases": decoder_config(
            blocks=1,
            attention=AttentionConfig(heads=2, d_k=3, d_v=4),
            ffn=FeedForwardConfig(d_ff=11, bias=False),
            head=HeadConfig(),
        ),
        "attention alone": decoder_config(
            attention=AttentionConfig(heads=3, d_k=2, d_v=5),
            norm=None,
            ffn=None,
            position=PositionConfig(kind="none"),
            head=HeadConfig(),
        ),
        "one wide head, three blocks": decoder_config(attention=AttentionConfig(heads=1, d_k=13, d_v=2), blocks=3),
    }
)


@dataclass(frozen=True)
class Inputs:
    """``tokens``, ``targets`` and ``scored``, each ``(b, n)``; targets hold -100 where not scored."""

    tokens: Tensor
    targets: Tensor
    scored: Tensor


def random_decoder(config: DecoderConfig, seed: int = 0) -> Decoder:
    """A float64 decoder in evaluation mode with every parameter away from its start: no gain is 1, no bias is 0."""
    generator = torch.Generator().manual_seed(seed)
    model = Decoder(config, generator).double()
    # Gates multiply: without norms larger parameters explode, and no difference of such numbers means anything.
    deviation = 0.2 if config.norm is None and any(x.ffn and x.ffn.gated for x in config.layers) else 0.4
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "gamma" in name else 0.0, deviation, generator=generator)
    return model.eval()


def random_inputs(config: DecoderConfig, batch: int = 1, n: int = 7, seed: int = 1) -> Inputs:
    """Tokens with repeats, about half of the positions scored, the first never and the last always."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(config.vocab_size, (batch, n), generator=generator)
    tokens[:, 2] = tokens[:, 0]
    targets = torch.randint(config.vocab_size, (batch, n), generator=generator)
    scored = torch.rand((batch, n), generator=generator) < 0.6
    scored[:, 0], scored[:, -1] = False, True
    return Inputs(tokens, torch.where(scored, targets, -100), scored)


class Recorder:
    """A ``say`` that keeps every tensor and asks autograd for its gradient."""

    def __init__(self) -> None:
        self.said: dict[str, Tensor] = {}
        self.quantities: dict[str, Quantity] = {}

    def __call__(self, quantity: Quantity, tensor: Tensor, at: Place) -> Tensor:
        name = id_at(quantity, at)
        assert name not in self.said, f"{name} was said twice"
        if tensor.requires_grad:
            tensor.retain_grad()
        self.said[name] = tensor
        self.quantities[name] = quantity
        return tensor


@dataclass(frozen=True)
class Recorded:
    """Values and autograd gradients by id, without the batch axis, as float64 arrays (inputs as int or bool)."""

    values: dict[str, np.ndarray[Any, Any]]
    gradients: dict[str, np.ndarray[Any, Any]]


def record(model: Decoder, inputs: Inputs) -> Recorded:
    """One forward and one backward pass on a batch of one, everything kept."""
    recorder = Recorder()
    out = model(inputs.tokens, inputs.targets, inputs.scored, say=recorder)
    assert out.loss is not None
    out.loss.backward()
    tensors = {**dict(model.named_parameters()), **recorder.said}
    values, gradients = {}, {}
    for name, tensor in tensors.items():
        said = recorder.quantities.get(name)
        batched = said is not None and tensor.ndim > len(parse_lines(said.text)[0].letters)
        drop = (lambda x: x.squeeze(0)) if batched else (lambda x: x)
        values[name] = drop(tensor.detach()).numpy()
        if tensor.grad is not None:
            gradients[name] = drop(tensor.grad).numpy()
    return Recorded(values, gradients)


def err(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """The largest difference relative to the largest value of ``b``; infinities must be in the same places."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
    finite = np.isfinite(b)
    assert np.array_equal(a[~finite], b[~finite]), "infinities differ"
    if not finite.any():
        return 0.0
    return float(np.abs(a[finite] - b[finite]).max() / max(1e-300, np.abs(b[finite]).max()))
