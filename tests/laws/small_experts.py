"""A small correct mixture of experts, without attention: its router's balance is what matters."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class ExpertConfig:
    vocab_size: int = 30
    d: int = 16
    experts: int = 4
    top_k: int = 2
    context: int = 32


@dataclass
class ExpertOutput:
    logits: Tensor
    loss: Tensor | None
    aux_loss: Tensor


class SmallExperts(nn.Module):
    """Reads a running mean of what came before; ``attention_mask (b, n)`` leaves pads out of it."""

    def __init__(self, config: ExpertConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or ExpertConfig()
        torch.manual_seed(0)
        self.embed = nn.Embedding(config.vocab_size, config.d)
        self.router = nn.Linear(config.d, config.experts, bias=False)
        self.experts = nn.ModuleList(nn.Linear(config.d, config.d) for _ in range(config.experts))
        self.head = nn.Linear(config.d, config.vocab_size)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None
    ) -> ExpertOutput:
        x = self.embed(input_ids)
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        real = mask[..., None].to(x.dtype)
        x = x + (x * real).cumsum(1) / real.cumsum(1).clamp(min=1)
        p = self.router(x).softmax(-1)
        weight, chosen = p.topk(self.config.top_k, -1)
        each = torch.stack([torch.tanh(expert(x)) for expert in self.experts], -2)
        taken = each.gather(-2, chosen[..., None].expand(*chosen.shape, x.shape[-1]))
        x = x + (taken * weight[..., None]).sum(-2)
        logits = self.head(x)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return ExpertOutput(logits, loss, self.balance(p, chosen, mask))

    def balance(self, p: Tensor, chosen: Tensor, mask: Tensor) -> Tensor:
        """Experts times the sum of how often each is chosen times its mean probability: 1 at uniform routing."""
        real = mask.to(p.dtype)[..., None]
        often = (F.one_hot(chosen, self.config.experts).sum(-2) * real).sum((0, 1)) / real.sum() / self.config.top_k
        mean = (p * real).sum((0, 1)) / real.sum()
        return self.config.experts * (often * mean).sum()
