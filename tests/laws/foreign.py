"""Small models in the manners of public code: what they take and return differs, what they compute is correct."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

V, D, CONTEXT = 31, 16, 24


def read(x: Tensor, allowed: Tensor, base: Base) -> Tensor:
    """One head of attention over ``x (b, n, D)``."""
    scores = (base.q(x) @ base.k(x).transpose(1, 2)) / math.sqrt(D)
    return x + base.mix(scores.masked_fill(~allowed, float("-inf")).softmax(-1) @ x)


def triangle(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril()[None]


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, D), nn.Embedding(CONTEXT, D)
        self.q, self.k = nn.Linear(D, D), nn.Linear(D, D)
        self.mix, self.lm_head = nn.Linear(D, D), nn.Linear(D, V, bias=False)

    def vectors(self, ids: Tensor, allowed: Tensor | None = None) -> Tensor:
        n = ids.shape[1]
        return read(self.wte(ids) + self.wpe(torch.arange(n)), triangle(n) if allowed is None else allowed, self)


class NanoGPT(Base):
    """Ids alone give the last position; with targets all positions and the loss."""

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.vectors(idx)
        if targets is not None:
            logits = self.lm_head(x)
            return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
        return self.lm_head(x[:, [-1], :]), None


class WrongLast(NanoGPT):
    """What generation is given is not what was trained: the last position is read without its own token."""

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        if targets is None:
            return self.lm_head(self.vectors(idx)[:, [max(0, idx.shape[1] - 2)], :]), None
        return super().forward(idx, targets)


class MinGPT(Base):
    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        logits = self.lm_head(self.vectors(idx))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
        return logits, loss


class Lecture(Base):
    """With targets the logits come flat."""

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        logits = self.lm_head(self.vectors(idx))
        if targets is None:
            return logits, None
        flat = logits.view(-1, V)
        return flat, F.cross_entropy(flat, targets.view(-1), ignore_index=-100)


class GPTModel(Base):
    def forward(self, in_idx: Tensor) -> Tensor:
        return self.lm_head(self.vectors(in_idx))


class Padded(Base):
    """More logits than ids, up to a round number."""

    def __init__(self) -> None:
        super().__init__()
        self.lm_head = nn.Linear(D, 64)
        self.vocab_size = V

    def forward(self, ids: Tensor) -> dict[str, Tensor]:
        return {"hidden": self.vectors(ids), "scores": self.lm_head(self.vectors(ids))}


class KeepMask(Base):
    """``mask (b, n)`` of bools, True = read."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        n = x.shape[1]
        allowed = triangle(n) if mask is None else triangle(n) & mask.logical_and(torch.tensor(True))[:, None, :]
        if mask is not None and mask.dtype is not torch.bool:
            raise TypeError("mask must be bool")
        return self.lm_head(self.vectors(x, allowed | torch.eye(n, dtype=torch.bool)))


class IgnoreMask(Base):
    """``key_padding_mask (b, n)`` as in torch: True = ignore."""

    def forward(self, ids: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        n = ids.shape[1]
        allowed = triangle(n) if key_padding_mask is None else triangle(n) & ~key_padding_mask[:, None, :]
        return self.lm_head(self.vectors(ids, allowed | torch.eye(n, dtype=torch.bool)))


class AddedMask(Base):
    """``attention_mask (b, n)`` of floats, added to the scores."""

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        n = ids.shape[1]
        if attention_mask is not None and not attention_mask.is_floating_point():
            raise TypeError("the mask is added to scores")
        keys = torch.zeros(1, n) if attention_mask is None else attention_mask
        return self.lm_head(self.vectors(ids, triangle(n) & (keys > -1)[:, None, :] | torch.eye(n, dtype=torch.bool)))


class WholeMask(Base):
    """A required mask says all of who reads whom: ``(b, 1, n, n)``, True = read."""

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        if mask.ndim != 4:
            raise TypeError("four axes")
        return self.lm_head(self.vectors(ids, mask[:, 0] | torch.eye(ids.shape[1], dtype=torch.bool)))


class TimeFirst(Base):
    def forward(self, ids: Tensor) -> Tensor:
        return self.lm_head(self.vectors(ids.T)).transpose(0, 1)


class LastOnly(Base):
    """Nothing but the last position, whatever is asked."""

    def forward(self, ids: Tensor) -> Tensor:
        return self.lm_head(self.vectors(ids)[:, -1])


class Nothing(Base):
    def forward(self, ids: Tensor) -> str:
        return "no logits"


class NoIds(Base):
    def forward(self) -> Tensor:
        return self.lm_head(self.vectors(torch.zeros(1, 3, dtype=torch.int64)))


class Raising(Base):
    def forward(self, ids: Tensor) -> Tensor:
        raise RuntimeError("no kernel image is available for \x1b[31mthis device\x1b[0m")


class NotANumber(Base):
    def forward(self, ids: Tensor) -> Tensor:
        return self.lm_head(self.vectors(ids)) * float("nan")


class Drifting(Base):
    """Each call moves a weight."""

    def forward(self, ids: Tensor) -> Tensor:
        with torch.no_grad():
            self.mix.weight.mul_(1.01)
        return self.lm_head(self.vectors(ids))


class Dicing(Base):
    """Random without a seed: also in evaluation mode."""

    def forward(self, ids: Tensor) -> Tensor:
        generator = torch.Generator()
        generator.seed()
        return self.lm_head(self.vectors(ids)) + torch.randn(1, generator=generator)


class Uncopied(Base):
    def __deepcopy__(self, memo: Any) -> Uncopied:
        raise RuntimeError("holds a lock")

    def forward(self, ids: Tensor) -> Tensor:
        return self.lm_head(self.vectors(ids))


class TwoInputs(Base):
    def forward(self, ids: Tensor, image: Tensor) -> Tensor:
        return self.lm_head(self.vectors(ids) + image)


class Leak:
    """Every position sees a mean over the whole text."""

    wte: nn.Embedding

    def vectors(self, ids: Tensor, allowed: Tensor | None = None) -> Tensor:
        x = super().vectors(ids, allowed)  # pyright: ignore[reportAttributeAccessIssue]
        return x + 0.3 * self.wte(ids).mean(1, keepdim=True)


class LeakyNanoGPT(Leak, NanoGPT):
    pass


class LeakyLecture(Leak, Lecture):
    pass


class LeakyPadded(Leak, Padded):
    pass


class LeakyIgnoreMask(Leak, IgnoreMask):
    pass


class LeakyWholeMask(Leak, WholeMask):
    pass


class LeakyTimeFirst(Leak, TimeFirst):
    pass


class NeedsGPU(Base):
    """Moves its ids to an accelerator, as scripts do that were only ever run on one."""

    def forward(self, ids: Tensor) -> Tensor:
        if not torch.cuda.is_available():
            raise RuntimeError("Found no NVIDIA driver on your system.")
        return self.lm_head(self.vectors(ids.to("cuda").cpu()))
