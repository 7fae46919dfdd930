"""What every block of a decoder reads alike, made once per text."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .rotary import Rotation
from .shapes import Bool


class Shared(NamedTuple):
    """``full`` and ``windowed``, ``(i, j)`` or ``(b, 1, i, j)``: which positions a row may read, in layers without and
    with a window;
    the ``rotation`` of queries and keys, if there is one; ``kv (h)``: which keys and values a head reads, where heads
    share them. What no layer reads is None.
    """

    full: Tensor | None
    windowed: Tensor | None
    rotation: Rotation | None = None
    kv: Tensor | None = None

    def mask(self, windowed: bool) -> Bool[Tensor, "... i j"]:
        """The mask of a layer with or without a window."""
        found = self.windowed if windowed else self.full
        assert found is not None
        return found
