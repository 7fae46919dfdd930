"""Small correct decoding rules, written to be changed line by line."""

from __future__ import annotations

import torch
from torch import Tensor


def distribution(
    logits: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0, min_p: float = 0.0
) -> Tensor:
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(), len(logits)).double()
    z = logits.double() / temperature
    p = torch.softmax(z, -1)
    if top_k is not None:
        order = p.sort(descending=True, stable=True).indices
        p = p.index_fill(0, order[top_k:], 0.0)
        p = p / p.sum()
    if top_p < 1:
        ordered, order = p.sort(descending=True, stable=True)
        before = ordered.cumsum(0) - ordered
        p = p.index_fill(0, order[before >= top_p], 0.0)
        p = p / p.sum()
    if min_p > 0:
        p = torch.where(p >= min_p * p.max(), p, 0.0)
        p = p / p.sum()
    return p


def draw(
    logits: Tensor, *, count: int, seed: int, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0
) -> list[int]:
    """By Gumbel noise: the largest of log p plus noise."""
    generator = torch.Generator().manual_seed(seed)
    p = distribution(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    u = torch.rand(count, len(p), dtype=torch.float64, generator=generator)
    noise = -(-u.log()).log()
    return (p.log() + noise).argmax(-1).tolist()


def scores(logits: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0) -> Tensor:
    """Log-probabilities of what is drawn."""
    return distribution(logits, temperature=temperature, top_k=top_k, top_p=top_p).log()
