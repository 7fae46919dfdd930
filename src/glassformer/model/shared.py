"""What every block of a decoder reads alike, made once per text."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .rotary import Rotation


class Shared(NamedTuple):
    """``allowed (i, j)``: which positions a row may read; the ``rotation`` of queries and keys, if there is one;
    ``kv (h)``: which keys and values a head reads, where heads share them.
    """

    allowed: Tensor
    rotation: Rotation | None = None
    kv: Tensor | None = None
