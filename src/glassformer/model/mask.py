"""Which positions a row may read.

``allowed (i, j)`` is true where row ``i`` may read key position ``j``: the set ``J_i`` of a causal decoder holds the
row itself and everything before it, so it is never empty.
"""

from __future__ import annotations

import torch
from torch import Tensor

from glassformer.notation import Kind, Place, Say, group, quantity

from .shapes import Bool

ALLOWED = quantity("allowed", "J", "positions allowed to be read", "允许集合", Kind.CONSTANT, """
allowed[i,j] = 1 if j <= i else 0
""")  # fmt: skip

MASK = group("mask", ALLOWED)


def causal_mask(n: int, device: torch.device, say: Say, at: Place, start: int = 0) -> Bool[Tensor, "i j"]:
    """``allowed (i, j)``, bool, shared by every head, every block and every row of the batch.

    ``n`` rows, the first at position ``start``; keys from position 0 on, so there are ``start + n`` of them.
    """
    key = torch.arange(start + n, device=device)
    return say(ALLOWED, key[None, :] <= key[start:, None], at)
