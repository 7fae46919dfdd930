"""Which positions a row may read.

| symbol | axes | |
|---|---|---|
| ``allowed`` | ``(i, j)`` | whether row ``i`` may read position ``j``: the set ``J_i`` |

In a causal decoder ``J_i`` holds the row itself and everything before it, or the last ``window`` of these, so it is never
empty. All layers with the same window share one mask: ``mask.allowed``; where some layers have a window and others not,
``mask.allowed`` is that of the latter and ``window.allowed`` that of the former.
"""

from __future__ import annotations

import torch
from torch import Tensor

from glassformer.notation import Instance, Kind, Place, Say, group, id_at, place, quantity

from .config import DecoderConfig
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


def mask_place(config: DecoderConfig, windowed: bool) -> Place:
    """Where the mask of the layers with or without a window stands."""
    full = any(layer.attention.window is None for layer in config.layers)
    return ("window",) if windowed and full else ("mask",)


def mask_id(config: DecoderConfig, layer: int) -> str:
    """The id of the mask that block ``layer`` reads."""
    return id_at(ALLOWED, mask_place(config, config.layers[layer].attention.window is not None))


def mask_definitions(config: DecoderConfig) -> list[Instance]:
    """The placed masks of a decoder: those that a layer reads."""
    return [
        place(WINDOWED_MASK if windowed else MASK, str(mask_place(config, windowed)[0]), n_k="n")
        for windowed in _kinds(config)
    ]


def causal_masks(
    config: DecoderConfig, n: int, device: torch.device, say: Say, start: int = 0
) -> tuple[Bool[Tensor, "i j"] | None, Bool[Tensor, "i j"] | None]:
    """``allowed (i, j)``, bool, of the layers without a window and of those with one; None where there are none.

    ``n`` rows, the first at position ``start``; keys from position 0 on, so there are ``start + n`` of them. Shared by
    every head and every row of the batch.
    """
    key = torch.arange(start + n, device=device)
    row = key[start:, None]
    full, windowed = None, None
    for kind in _kinds(config):
        allowed = key[None, :] <= row
        if kind:
            allowed = allowed & (row - key[None, :] < config.window)
            windowed = say(WINDOWED, allowed, mask_place(config, kind))
        else:
            full = say(ALLOWED, allowed, mask_place(config, kind))
    return full, windowed


def _kinds(config: DecoderConfig) -> list[bool]:
    """Whether layers have a window: [False], [True], or both."""
    return sorted({layer.attention.window is not None for layer in config.layers})
