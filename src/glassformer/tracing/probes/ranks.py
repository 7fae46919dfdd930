"""Spearman's rank correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .reading import Array


def ranks(values: Sequence[float] | Array) -> Array:
    """``(m)``: the rank of each value, from 1; equal values share the mean of their ranks."""
    x = np.asarray(values, dtype=np.float64)
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + 1 + last) / 2)[place]


def spearman(first: Sequence[float] | Array, second: Sequence[float] | Array) -> float:
    """The correlation of the ranks of two vectors ``(m)``, from -1 to 1.

    NaN where one of them is constant or shorter than two: then there is no order to compare.
    """
    a, b = (r - r.mean() if r.size else r for r in (ranks(first), ranks(second)))
    spread = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / spread if spread else math.nan
