"""A small correct decoder, written plainly and on its own, so that a changed line of it is a fault of a known kind.

``mutants.py`` changes one line of this file; every line that a fault of the field would change is written to be changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class SmallConfig:
    vocab_size: int = 40
    context: int = 80
    d: int = 24
    heads: int = 4
    kv_heads: int = 2
    layers: int = 2
    positions: str = "rope"  # or "learned", "alibi"
    window: int | None = None
    chunk: int | None = None  # attention within chunks of so many positions
    packed: bool = False  # positions that begin anew begin a document
    dropout: float = 0.1
    eps: float = 1e-5
    tied: bool = False
    pad: int = 0
    smoothing: float = 0.0
    checkpointing: bool = False


@dataclass
class SmallOutput:
    logits: Tensor
    loss: Tensor | None
    past_key_values: list[Any] | None


class SmallCache(list[Any]):
    """Keys and values ``(b, h, n, c)`` of each layer."""

    def reorder_cache(self, rows: Tensor) -> None:
        self[:] = [(k[rows], v[rows]) for k, v in self]

    def batch_repeat_interleave(self, times: int) -> None:
        self[:] = [(k.repeat_interleave(times, 0), v.repeat_interleave(times, 0)) for k, v in self]

    def crop(self, length: int) -> None:
        self[:] = [(k[:, :, :length], v[:, :, :length]) for k, v in self]

    def join(self, other: SmallCache) -> None:
        raise ValueError("what stands in the second cache was read from position 0, and read nothing of the first")


class RMSNorm(nn.Module):
    def __init__(self, d: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x: Tensor, positions: Tensor) -> Tensor:
    """``x (b, h, n, c)``; pairs are the two halves of ``c``."""
    half = x.shape[-1] // 2
    frequency = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = positions[:, None, :, None].double() * frequency
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def slopes(heads: int) -> Tensor:
    """ALiBi, for a power of two of heads."""
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)


class Attention(nn.Module):
    def __init__(self, config: SmallConfig) -> None:
        super().__init__()
        self.config = config
        self.heads, self.kv_heads, self.d_k = config.heads, config.kv_heads, config.d // config.heads
        self.q_proj = nn.Linear(config.d, self.heads * self.d_k)
        self.k_proj = nn.Linear(config.d, self.kv_heads * self.d_k)
        self.v_proj = nn.Linear(config.d, self.kv_heads * self.d_k)
        self.o_proj = nn.Linear(self.heads * self.d_k, config.d)
        if config.positions == "alibi":
            self.register_buffer("slopes", slopes(config.heads), persistent=False)

    def forward(
        self, x: Tensor, allowed: Tensor, positions: Tensor, key_positions: Tensor, past: Any
    ) -> tuple[Tensor, Any]:
        b, n, _ = x.shape
        q = self.q_proj(x).view(b, n, self.heads, self.d_k).transpose(1, 2)
        k = self.k_proj(x).view(b, n, self.kv_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(x).view(b, n, self.kv_heads, self.d_k).transpose(1, 2)
        if self.config.positions == "rope":
            q, k = rotate(q, positions), rotate(k, positions)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        kept = (k, v)
        k = k.repeat_interleave(self.heads // self.kv_heads, 1)
        v = v.repeat_interleave(self.heads // self.kv_heads, 1)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.d_k)
        if self.config.positions == "alibi":
            distance = (positions[:, None, :, None] - key_positions[:, None, None, :]).to(x.dtype)
            scores = scores - self.slopes.to(x.dtype)[None, :, None, None] * distance
        scores = scores.masked_fill(~allowed[:, None], torch.finfo(x.dtype).min)
        a = F.dropout(scores.softmax(-1), self.config.dropout, self.training)
        y = (a @ v).transpose(1, 2).reshape(b, n, self.heads * self.d_k)
        return self.o_proj(y), kept


class Block(nn.Module):
    def __init__(self, config: SmallConfig) -> None:
        super().__init__()
        self.config = config
        self.norm1, self.norm2 = RMSNorm(config.d, config.eps), RMSNorm(config.d, config.eps)
        self.attention = Attention(config)
        self.up, self.down = nn.Linear(config.d, 3 * config.d), nn.Linear(3 * config.d, config.d)

    def forward(
        self, x: Tensor, allowed: Tensor, positions: Tensor, key_positions: Tensor, past: Any
    ) -> tuple[Tensor, Any]:
        y, kept = self.attention(self.norm1(x), allowed, positions, key_positions, past)
        x = x + F.dropout(y, self.config.dropout, self.training)
        h = F.gelu(self.up(self.norm2(x)))
        return x + F.dropout(self.down(h), self.config.dropout, self.training), kept


class SmallDecoder(nn.Module):
    """``forward`` takes ids, a mask over everything read so far, positions, documents, labels, a cache."""

    def __init__(self, config: SmallConfig | None = None) -> None:
        super().__init__()
        self.config = config or SmallConfig()
        config = self.config
        self.embed = nn.Embedding(config.vocab_size, config.d)
        self.place = nn.Embedding(config.context, config.d) if config.positions == "learned" else None
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.d, config.eps)
        self.head = nn.Linear(config.d, config.vocab_size, bias=False)
        if config.tied:
            self.head.weight = self.embed.weight

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        segments: Tensor | None = None,
        past_key_values: list[Any] | None = None,
        labels: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool = False,
    ) -> SmallOutput:
        x = self.embed(input_ids) if inputs_embeds is None else inputs_embeds
        b, n, _ = x.shape
        past = 0 if not past_key_values else past_key_values[0][0].shape[2]
        total = past + n
        mask = torch.ones(b, total, dtype=torch.int64) if attention_mask is None else attention_mask
        key_positions = (mask.cumsum(1) - 1).clamp(min=0)
        if self.config.packed and position_ids is not None:
            segments = documents(position_ids)
        if segments is not None:
            key_positions = restarted(segments)
        positions = key_positions[:, past:] if position_ids is None else position_ids
        if position_ids is not None and past == 0:
            key_positions = position_ids
        if self.place is not None:
            x = x + self.place(positions)
        x = F.dropout(x, self.config.dropout, self.training)
        allowed = self.allowed(mask, past, n, segments, key_positions)
        kept = SmallCache()
        for layer, block in enumerate(self.blocks):
            earlier = past_key_values[layer] if past_key_values else None
            if self.config.checkpointing and self.training:
                x, own = checkpoint(block, x, allowed, positions, key_positions, earlier, use_reentrant=False)
            else:
                x, own = block(x, allowed, positions, key_positions, earlier)
            kept.append(own)
        logits = self.head(self.norm(x))
        loss = None if labels is None else self.loss(logits, labels)
        return SmallOutput(logits, loss, kept if use_cache else None)

    def allowed(self, mask: Tensor, past: int, n: int, segments: Tensor | None, at: Tensor) -> Tensor:
        """``(b, n, past + n)``: who may read whom."""
        total = past + n
        i, j = torch.arange(past, total)[:, None], torch.arange(total)[None, :]
        allowed = j <= i
        if self.config.window is not None:
            allowed = allowed & (i - j < self.config.window)
        allowed = allowed[None] & (mask[:, None, :] > 0)
        if self.config.chunk is not None:
            allowed = allowed & (at[:, past:, None] // self.config.chunk == at[:, None, :] // self.config.chunk)
        if segments is not None:
            allowed = allowed & (segments[:, past:, None] == segments[:, None, :])
        return allowed

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean over what is scored: logits at i against the label at i + 1."""
        given, wanted = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
        scored = wanted != -100
        if not scored.any():
            return given.sum() * 0
        log_p = given[scored].log_softmax(-1)
        nll = -log_p.gather(1, wanted[scored][:, None])[:, 0]
        smooth = -log_p.mean(-1)
        return ((1 - self.config.smoothing) * nll + self.config.smoothing * smooth).mean()


def restarted(segments: Tensor) -> Tensor:
    """``(b, n)``: positions that begin at 0 in each run of equal ``segments``."""
    at = torch.arange(segments.shape[1]).expand_as(segments)
    begins = torch.ones_like(segments, dtype=torch.bool)
    begins[:, 1:] = segments[:, 1:] != segments[:, :-1]
    return at - torch.where(begins, at, 0).cummax(1).values


def documents(positions: Tensor) -> Tensor:
    """``(b, n)``: the number of each token's document, where positions that do not go up by one begin another."""
    begins = torch.zeros_like(positions)
    begins[:, 1:] = positions[:, 1:] != positions[:, :-1] + 1
    return begins.cumsum(1)
