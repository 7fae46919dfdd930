"""The 24-parameter model: one configuration of ``Decoder``, small enough for a pencil.

Two tokens A, B; the target C is scored at the last position only. One head, no positions, no norm, no feed-forward
network, no biases; ``E`` and ``U`` are not shared. 6 + 2 + 2 + 4 + 4 + 6 = 24 numbers.
"""

from __future__ import annotations

from types import MappingProxyType

import torch
from torch import Tensor

from .config import AttentionConfig, DecoderConfig, PositionConfig
from .decoder import Decoder

CONFIG = DecoderConfig.alike(
    1,
    vocab_size=3,
    context=8,
    d=2,
    attention=AttentionConfig(heads=1, d_k=1, d_v=2),
    norm=None,
    ffn=None,
    position=PositionConfig(kind="none"),
)
VOCABULARY = ("A", "B", "C")
TEXTS = MappingProxyType({"abstract": VOCABULARY, "clinic": ("患者服用华法林后", "出现", "黑便")})
"""The vocabularies offered for the three ids: abstract symbols, and one clinic sentence taken as three tokens."""

TOKENS = (0, 1)
TARGET = 2
ETA = 0.1

PARAMETERS = MappingProxyType(
    {
        "embed.E": ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0)),
        "blocks.0.attn.W_Q": ((0.0,), (1.0,)),
        "blocks.0.attn.W_K": ((1.0,), (0.0,)),
        "blocks.0.attn.W_V": ((1.0, 0.0), (0.0, 1.0)),
        "blocks.0.attn.W_O": ((1.0, 0.0), (0.0, 1.0)),
        "head.U": ((1.0, 0.0, -1.0), (0.0, 1.0, 0.0)),
    }
)
"""Starting values by id, written as in the notes: without the head axis, which has size 1."""


def toy24_model() -> Decoder:
    """The model at its starting values, in float64."""
    model = Decoder(CONFIG, generator=torch.Generator()).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.tensor(PARAMETERS[name], dtype=torch.float64).reshape(parameter.shape))
    return model


def toy24_inputs() -> tuple[Tensor, Tensor, Tensor]:
    """``tokens``, ``targets`` and ``scored``, each ``(1, 2)``; the first target, B, is not scored."""
    tokens = torch.tensor([TOKENS])
    targets = torch.tensor([[*TOKENS[1:], TARGET]])
    return tokens, targets, torch.tensor([[False, True]])
