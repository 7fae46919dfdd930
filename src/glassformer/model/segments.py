"""Several texts in one row, each as if it stood alone: packing and padding.

| symbol | axes | |
|---|---|---|
| ``seg`` | ``(b, i)`` | which text of its row a token belongs to: any number that no other text of the row has |
| ``pos`` | ``(b, i)`` | positions, from 0 in every segment |

The tokens of a segment stand side by side. A row reads only its own segment (``mask.py``), so documents packed into one
row know nothing of each other; padding is a segment of its own, on either side, that nobody reads and nobody scores.
"""

from __future__ import annotations

import torch
from torch import Tensor

from glassformer.notation import Kind, quantity

from .shapes import Bool, Int

SEGMENTS = quantity("seg", r"\mathrm{seg}", "segments", "文段编号", Kind.INPUT, "seg[i]")
PACKED_POSITIONS = quantity("pos", r"\mathrm{pos}", "positions in the segment", "文段内的位置编号", Kind.CONSTANT, """
pos[i] = sum(1 for m in n_k if seg[m] == seg[i] and m < i)
""")  # fmt: skip


def same_segment(segments: Int[Tensor, "b j"], start: int) -> Bool[Tensor, "b i j"]:
    """Whether row ``i`` and position ``j`` are of one segment; the first row is position ``start``.

    Every mask and the positions follow from it, so it is computed once per text.
    """
    return segments[:, start:, None] == segments[:, None, :]


def positions_in_segment(same: Bool[Tensor, "b i j"]) -> Int[Tensor, "b i"]:
    """``pos (b, i)`` int64: how many tokens of its segment stand before each row."""
    rows, keys = same.shape[1:]
    key = torch.arange(keys, device=same.device)
    return (same & (key < key[keys - rows :, None])).sum(-1)
