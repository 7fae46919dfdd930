"""Which positions a row may read.

| symbol | axes | |
|---|---|---|
| ``allowed`` | ``(i, j)`` | whether row ``i`` may read position ``j``: the set ``J_i``; ``(b, i, j)`` where rows are packed |

In a causal decoder ``J_i`` holds the row itself and everything before it, or the last ``window`` of these; where rows are
packed, it leaves out what is of another segment. It is never empty. All layers with the same window share one mask,
``mask.allowed``; where some layers have a window and others not, ``mask.allowed`` is that of the latter and
``window.allowed`` that of the former.
"""

from __future__ import annotations

from types import MappingProxyType

import torch
from torch import Tensor

from glassformer.notation import Instance, Kind, Place, Say, group, id_at, place, quantity

from .config import DecoderConfig
from .segments import SEGMENTS
from .shapes import Bool

ALLOWED = quantity("allowed", "J", "positions allowed to be read", "允许集合", Kind.CONSTANT, """
allowed[i,j] = 1 if j <= i else 0
""")  # fmt: skip

# One row per kind of mask: the same quantity, defined by the configuration that ran.
WINDOWED = quantity("allowed", "J", "positions allowed to be read (window)", "允许集合（滑动窗口）", Kind.CONSTANT, """
allowed[i,j] = 1 if j <= i and i - j < window else 0
""")  # fmt: skip

PACKED = quantity("allowed", "J", "positions allowed to be read (packed)", "允许集合（同行多段）", Kind.CONSTANT, """
allowed[i,j] = 1 if j <= i and seg[j] == seg[i] else 0
""")  # fmt: skip
PACKED_WINDOWED = quantity(
    "allowed", "J", "positions allowed to be read (packed, window)", "允许集合（同行多段，滑动窗口）", Kind.CONSTANT, """
allowed[i,j] = 1 if j <= i and i - j < window and seg[j] == seg[i] else 0
""")  # fmt: skip

_ALLOWED = MappingProxyType(
    {(False, False): ALLOWED, (True, False): WINDOWED, (False, True): PACKED, (True, True): PACKED_WINDOWED}
)
"""The definition by whether the layer has a window and whether rows are packed."""


def mask_place(config: DecoderConfig, windowed: bool) -> Place:
    """Where the mask of the layers with or without a window stands."""
    full = any(layer.attention.window is None for layer in config.layers)
    return ("window",) if windowed and full else ("mask",)


def mask_id(config: DecoderConfig, layer: int) -> str:
    """The id of the mask that block ``layer`` reads."""
    return id_at(ALLOWED, mask_place(config, config.layers[layer].attention.window is not None))


def mask_definitions(config: DecoderConfig, packed: bool) -> list[Instance]:
    """The placed masks of a decoder: those that a layer reads."""
    seg = f"embed.{SEGMENTS.name}" if packed else None
    return [
        place(group("mask", _ALLOWED[windowed, packed]), str(mask_place(config, windowed)[0]), n_k="n", seg=seg)
        for windowed in _kinds(config)
    ]


def causal_masks(
    config: DecoderConfig,
    n: int,
    device: torch.device,
    say: Say,
    start: int = 0,
    same: Bool[Tensor, "b i j"] | None = None,
) -> tuple[Bool[Tensor, "... i j"] | None, Bool[Tensor, "... i j"] | None]:
    """``allowed``, bool, of the layers without a window and of those with one; None where there are none.

    ``n`` rows, the first at position ``start``; keys from position 0 on, so there are ``start + n`` of them. ``(i, j)``,
    shared by every head and every row of the batch; where rows are packed, ``same (b, i, j)`` says what is of one
    segment, and the masks are ``(b, 1, i, j)``.
    """
    key = torch.arange(start + n, device=device)
    row, window = key[start:, None], config.window
    masks: dict[bool, Tensor] = {}
    for windowed in _kinds(config):
        allowed = key <= row
        if windowed and window is not None:
            allowed = allowed & (row - key < window)
        if same is not None:
            allowed = allowed & same
        allowed = say(_ALLOWED[windowed, same is not None], allowed, mask_place(config, windowed))
        masks[windowed] = allowed if same is None else allowed[:, None]
    return masks.get(False), masks.get(True)


def _kinds(config: DecoderConfig) -> list[bool]:
    """Whether layers have a window: [False], [True], or both."""
    return sorted({layer.attention.window is not None for layer in config.layers})
