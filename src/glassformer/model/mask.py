"""Which positions a row may read.

``allowed (i, j)`` is true where row ``i`` may read key position ``j``: the set ``J_i`` of a causal decoder holds the
row itself and everything before it, or the last ``window`` of these, so it is never empty.
"""

from __future__ import annotations

import torch
from torch import Tensor

from glassformer.notation import Instance, Kind, Place, Say, group, place, quantity

from .shapes import Bool

ALLOWED = quantity("allowed", "J", "positions allowed to be read", "允许集合", Kind.CONSTANT, """
allowed[i,j] = 1 if j <= i else 0
""")  # fmt: skip

# One row per kind of mask: the same quantity, defined by the configuration that ran.
WINDOWED = quantity("allowed", "J", "positions allowed to be read (window)", "允许集合（滑动窗口）", Kind.CONSTANT, """
allowed[i,j] = 1 if j <= i and i - j < window else 0
""")  # fmt: skip

MASK = group("mask", ALLOWED)
WINDOWED_MASK = group("mask", WINDOWED)


def mask_definitions(window: int | None, path: str) -> Instance:
    """The placed mask of a decoder at ``path``."""
    return place(MASK if window is None else WINDOWED_MASK, path, n_k="n")


def causal_mask(
    n: int, window: int | None, device: torch.device, say: Say, at: Place, start: int = 0
) -> Bool[Tensor, "i j"]:
    """``allowed (i, j)``, bool, shared by every head, every block and every row of the batch.

    ``n`` rows, the first at position ``start``; keys from position 0 on, so there are ``start + n`` of them.
    """
    key = torch.arange(start + n, device=device)
    row = key[start:, None]
    allowed = key[None, :] <= row
    if window is None:
        return say(ALLOWED, allowed, at)
    return say(WINDOWED, allowed & (row - key[None, :] < window), at)
