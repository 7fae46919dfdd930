"""A small correct decoding loop: batches padded on the left, beams, stop strings, speculation; to be changed line by line."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class SmallGenerator:
    """Writes with a ``SmallDecoder``; a row is ``(ids, score)``."""

    def __init__(self, model: nn.Module, pad: int = 0) -> None:
        self.model = model.eval()
        self.pad = pad

    @torch.no_grad()
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        count: int,
        temperature: float = 0.0,
        seed: int = 0,
        end: int | None = None,
        beams: int = 1,
        length_penalty: float = 0.0,
    ) -> list[tuple[list[int], float]]:
        if beams > 1:
            return self.search(prompts, count, beams, length_penalty)
        generator = torch.Generator().manual_seed(seed)
        b, width = len(prompts), max(map(len, prompts))
        x = torch.tensor([[self.pad] * (width - len(p)) + list(p) for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        finished, score, cache = torch.zeros(b, dtype=torch.bool), torch.zeros(b).double(), None
        rows: list[list[int]] = [[] for _ in prompts]
        for _ in range(count):
            out = self.model(x, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
            cache, logits = out.past_key_values, out.logits[:, -1].double()
            token = logits.argmax(-1)
            if temperature > 0:
                token = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)[:, 0]
            if end is not None:
                finished = finished | (token == end)
            score = score + torch.where(finished, 0.0, logits.log_softmax(-1).gather(1, token[:, None])[:, 0])
            for row in range(b):
                if not finished[row]:
                    rows[row].append(int(token[row]))
            if finished.all():
                break
            x = token[:, None]
            mask, positions = torch.cat([mask, torch.ones(b, 1, dtype=torch.int64)], 1), positions[:, -1:] + 1
        return [(ids, float(s)) for ids, s in zip(rows, score, strict=True)]

    def search(
        self, prompts: Sequence[Sequence[int]], count: int, beams: int, penalty: float
    ) -> list[tuple[list[int], float]]:
        found: list[list[tuple[float, list[int]]]] = [[(0.0, [])] for _ in prompts]
        length = 0
        for _ in range(count):
            length += 1
            for row, prompt in enumerate(prompts):
                longer = []
                for total, ids in found[row]:
                    log_p = self.model(torch.tensor([[*prompt, *ids]])).logits[0, -1].double().log_softmax(-1)
                    longer += [(total + float(log_p[i]), [*ids, i]) for i in log_p.topk(beams).indices.tolist()]
                found[row] = sorted(longer, reverse=True)[:beams]
        return [(best[0][1], best[0][0] / length**penalty) for _, best in zip(prompts, found, strict=True)]


def stopped(parts: Sequence[str], stop: str) -> str:
    """What is shown of a text in ``parts`` that ends before ``stop``."""
    shown = held = ""
    for part in parts:
        for character in part:
            held += character
            while not stop.startswith(held):
                shown, held = shown + held[0], held[1:]
            if held == stop:
                return shown
    return shown + held


def speculate(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """With which probability a token drafted from ``q`` is kept, and what stands in its place otherwise."""
    accept = torch.where(q > 0, p / q, 0.0).clamp(max=1)
    rest = (p - q).clamp(min=0)
    return accept, (rest / rest.sum().clamp(min=1e-300)).expand(len(p), -1)
