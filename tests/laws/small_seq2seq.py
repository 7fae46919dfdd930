"""A small correct encoder-decoder, written plainly and on its own, and how laws call it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.laws.runs import Inputs
from glassformer.laws.subjects.base import Facts, Kind, ModelSubject, Offer, Outputs


@dataclass(frozen=True)
class SmallConfig:
    vocab_size: int = 40
    context: int = 48
    d: int = 24
    heads: int = 4


def attend(q: Tensor, k: Tensor, v: Tensor, shown: Tensor) -> Tensor:
    """``q (b, h, n, c)``, ``k`` and ``v (b, h, m, c)``, ``shown (b, 1, n or 1, m)``; ``(b, n, h c)``."""
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~shown, torch.finfo(q.dtype).min)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


class CrossAttention(nn.Module):
    """Self-attention where ``memory`` is the stream itself."""

    def __init__(self, config: SmallConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.q, self.k, self.v, self.o = (nn.Linear(config.d, config.d) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor, shown: Tensor, past: Any = None) -> tuple[Tensor, Any]:
        q, k, v = (
            part(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part, y in ((self.q, x), (self.k, memory), (self.v, memory))
        )
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        return self.o(attend(q, k, v, shown)), (k, v)


class Layer(nn.Module):
    def __init__(self, config: SmallConfig, *, crossed: bool) -> None:
        super().__init__()
        self.own = CrossAttention(config)
        self.crossed = CrossAttention(config) if crossed else None
        self.norms = nn.ModuleList(nn.LayerNorm(config.d) for _ in range(3))
        self.up, self.down = nn.Linear(config.d, 3 * config.d), nn.Linear(3 * config.d, config.d)

    def forward(self, x: Tensor, allowed: Tensor, memory: Any, shown: Any, past: Any) -> tuple[Tensor, Any]:
        h = self.norms[0](x)
        y, kept = self.own(h, h, allowed, past)
        x = x + y
        if self.crossed is not None:
            x = x + self.crossed(self.norms[1](x), memory, shown)[0]
        return x + self.down(torch.relu(self.up(self.norms[2](x)))), kept


class SmallSeq2Seq(nn.Module):
    """``forward`` takes target and source ids, a mask of the source, and a cache of the target."""

    def __init__(self, config: SmallConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or SmallConfig()
        self.embed, self.place = nn.Embedding(config.vocab_size, config.d), nn.Embedding(config.context, config.d)
        self.encoder = nn.ModuleList(Layer(config, crossed=False) for _ in range(1))
        self.decoder = nn.ModuleList(Layer(config, crossed=True) for _ in range(2))
        self.head = nn.Linear(config.d, config.vocab_size)

    def forward(self, ids: Tensor, source: Tensor, source_mask: Tensor | None = None, cache: Any = None) -> Any:
        n, m = ids.shape[1], source.shape[1]
        past = 0 if cache is None else cache[0][0].shape[2]
        total = past + n
        source_mask = torch.ones_like(source) if source_mask is None else source_mask
        memory = self.embed(source) + self.place(torch.arange(m))
        for layer in self.encoder:
            memory, _ = layer(memory, (source_mask > 0)[:, None, None], None, None, None)
        shown = source_mask > 0
        memory, shown = memory, shown
        x = self.embed(ids) + self.place(torch.arange(past, total))
        allowed = (torch.arange(total)[None] <= torch.arange(past, total)[:, None])[None, None]
        kept = []
        for at, layer in enumerate(self.decoder):
            x, own = layer(x, allowed, memory, shown[:, None, None], None if cache is None else cache[at])
            kept.append(own)
        return self.head(x), kept


class SmallSubject(ModelSubject):
    """The small encoder-decoder under test."""

    def __init__(self, module: nn.Module, name: str = "SmallSeq2Seq") -> None:
        super().__init__(name, module, Kind.SEQUENCE_TO_SEQUENCE, Facts(vocab_size=40, context=48))

    reading, keeping = "out[0]", "out[1]"

    @property
    def offers(self) -> Mapping[Offer, str]:
        return {Offer.SOURCE: "source", Offer.SOURCE_MASK: "source_mask", Offer.CACHE: "cache"}

    def call(self, module: nn.Module, inputs: Inputs, *, keep: bool = False, cache: Any = None) -> Outputs:
        for offer in (Offer.MASK, Offer.POSITIONS, Offer.SEGMENTS, Offer.EMBEDS):
            if getattr(inputs, offer.value) is not None:
                self.require(offer)
        logits, kept = module(inputs.ids, inputs.source, inputs.source_mask, cache if keep else None)
        return Outputs(logits, None, kept if keep else None)
