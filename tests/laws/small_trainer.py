"""A small correct trainer, written plainly and on its own: losses, collators, accumulation, clipping, steps, rates.

``mutants_training.py`` changes one line of this file; every line that a fault of the field would change is there to be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

IGNORED = -100


# Losses: ``logits (b, n, V)``, ``labels (b, n)`` as the text itself.


def next_token_loss(logits: Tensor, labels: Tensor, smoothing: float = 0.0, reduction: str = "mean") -> Tensor:
    wanted = labels.roll(-1, 1)
    wanted[:, -1] = IGNORED  # the wrapped element
    scored = wanted != IGNORED
    log_p = logits.log_softmax(-1)
    nll = -log_p.gather(-1, wanted.clamp(min=0)[..., None])[..., 0] * scored
    smooth = -log_p.mean(-1) * scored
    each = (1 - smoothing) * nll + smoothing * smooth
    if reduction == "sum":
        return each.sum()
    return each.sum() / scored.sum().clamp(min=1)


def sequence_log_probability(logits: Tensor, labels: Tensor) -> Tensor:
    """``()``: minus the log-probability of all answers together, as preference losses need it."""
    wanted = labels[:, 1:]
    scored = wanted != IGNORED
    log_p = logits[:, :-1].log_softmax(-1).gather(-1, wanted.clamp(min=0)[..., None])[..., 0]
    return -(log_p * scored).sum()


class FusedCrossEntropy(torch.autograd.Function):
    """Value and gradient in one pass; ``-100`` is ignored; nothing is reduced."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor) -> Tensor:
        scored = wanted != IGNORED
        log_p = logits.log_softmax(-1)
        ctx.save_for_backward(log_p, wanted, scored)
        return -log_p.gather(-1, wanted.clamp(min=0)[:, None])[:, 0] * scored

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        log_p, wanted, scored = ctx.saved_tensors
        gradient = log_p.exp() - F.one_hot(wanted.clamp(min=0), log_p.shape[-1])
        gradient = gradient * scored[:, None]
        return gradient * upstream[:, None], None


def fused_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """``(b (n - 1),)``: every position by itself."""
    return FusedCrossEntropy.apply(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def parallel_loss(logits: Tensor, labels: Tensor, ranks: int = 2) -> Tensor:
    """The text of each row cut into one part for each rank."""
    following = torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], IGNORED)], 1)
    total, count = logits.new_zeros(()), 0
    for part, wanted in zip(logits.chunk(ranks, 1), following.chunk(ranks, 1), strict=True):
        total = total + F.cross_entropy(part.flatten(0, 1), wanted.flatten(), ignore_index=IGNORED, reduction="sum")
        count = count + int((wanted != IGNORED).sum())
    return total / max(count, 1)


# Collators


def padded(documents: list[list[int]], pad: int) -> dict[str, Tensor]:
    n = max(map(len, documents))
    ids = torch.tensor([[*document, *[pad] * (n - len(document))] for document in documents])
    lengths = torch.tensor([len(document) for document in documents])
    inside = torch.arange(n) < lengths[:, None]
    labels = torch.where(inside, ids, IGNORED)
    return {"input_ids": ids, "labels": labels, "attention_mask": inside.long()}


def packed(documents: list[list[int]]) -> dict[str, Tensor]:
    ids = torch.tensor([[token for document in documents for token in document]])
    labels = ids.clone()
    starts = torch.tensor([0, *map(len, documents)]).cumsum(0)[:-1]
    labels[:, starts] = IGNORED
    return {"input_ids": ids, "labels": labels}


# Training


@dataclass
class Settings:
    vocab_size: int = 20
    d: int = 6
    accumulation: int = 4
    learning_rate: float = 1e-2
    beta_1: float = 0.9
    beta_2: float = 0.99
    eps: float = 1e-6
    weight_decay: float = 0.1
    warmup: int = 3


class Model(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(settings.vocab_size, settings.d)
        self.head = nn.Linear(settings.d, settings.vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(torch.tanh(self.embed(ids)))


@dataclass
class SmallTrainer:
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        self.model = Model(self.settings)

    def gradients(self, pairs: list[tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        self.model.zero_grad()
        total = sum(int((labels[:, 1:] != IGNORED).sum()) for _, labels in pairs)
        for ids, labels in pairs:
            loss = next_token_loss(self.model(ids), labels, reduction="sum")
            (loss / total).backward()
        return self._read()

    def over_ranks(self, shards: list[tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        """Each shard on a rank of its own; the averaging that follows every backward pass divides by their number."""
        counts = [int((labels[:, 1:] != IGNORED).sum()) for _, labels in shards]
        everywhere = sum(counts)
        summed: dict[str, Tensor] = {}
        for (ids, labels), _count in zip(shards, counts, strict=True):
            self.model.zero_grad()
            loss = next_token_loss(self.model(ids), labels, reduction="sum") / everywhere * len(shards)
            loss.backward()
            for name, gradient in self._read().items():
                summed[name] = summed.get(name, 0) + gradient / len(shards)
        return summed

    def _read(self) -> dict[str, Tensor]:
        return {
            name: torch.zeros_like(p) if p.grad is None else p.grad.clone() for name, p in self.model.named_parameters()
        }

    def clip(self, gradients: dict[str, Tensor], largest: float) -> dict[str, Tensor]:
        norm = sum(g.square().sum() for g in gradients.values()).sqrt()
        return {name: g * min(1.0, largest / float(norm)) for name, g in gradients.items()}

    def update(self, parameters: dict[str, Tensor], steps: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
        s = self.settings
        m = {name: torch.zeros_like(p) for name, p in parameters.items()}
        v = {name: torch.zeros_like(p) for name, p in parameters.items()}
        after = []
        for k, gradients in enumerate(steps, start=1):
            moved = {}
            for name, p in parameters.items():
                g = gradients[name]
                m[name] = s.beta_1 * m[name] + (1 - s.beta_1) * g
                v[name] = s.beta_2 * v[name] + (1 - s.beta_2) * g * g
                m_hat = m[name] / (1 - s.beta_1**k)
                v_hat = v[name] / (1 - s.beta_2**k)
                direction = m_hat / (v_hat.sqrt() + s.eps)
                moved[name] = p - s.learning_rate * (direction + s.weight_decay * p)
            parameters = moved
            after.append(moved)
        return after

    def step(self, pairs: list[tuple[Tensor, Tensor]]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """One step; afterwards the model is as before, so that the next question is about the same one."""
        before = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        after = dict(before)
        gradients = self.gradients(pairs)
        for names in (["embed.weight"], ["head.weight", "head.bias"]):
            after |= self.update({n: before[n] for n in names}, [{n: gradients[n] for n in names}])[0]
            self.model.load_state_dict(after)
        self.model.load_state_dict(before)
        return before, after

    def rates(self, steps: int, accumulation: int, resumed_at: int) -> list[float]:
        found = []
        done = resumed_at
        while done < steps:
            for _micro in range(accumulation):
                rate = self.settings.learning_rate * min(1.0, (done + 1) / self.settings.warmup) * (1 - done / steps)
            found.append(rate)
            done += 1
        return found
