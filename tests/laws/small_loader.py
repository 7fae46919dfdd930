"""A small correct loader and data file, written to be changed line by line."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

SIZE = 24
SEED = 5


def order(epoch: int) -> list[int]:
    """All samples, shuffled anew for each epoch, for all ranks alike."""
    samples = list(range(SIZE))
    random.Random(SEED + epoch).shuffle(samples)
    return samples


def samples(epoch: int, rank: int, ranks: int) -> list[int]:
    return order(epoch)[rank::ranks]


def resumed(epoch: int, rank: int, ranks: int, after: int) -> Iterator[int]:
    state = epoch
    yield from samples(state, rank, ranks)[after:]
    yield from samples(state + 1, rank, ranks)


def kept(ids: NDArray[np.int64], vocab_size: int) -> NDArray[np.int64]:
    """Through the bytes of a file."""
    dtype = np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")
    return np.frombuffer(ids.astype(dtype).tobytes(), dtype).astype(np.int64)


def scored(m: int, n: int) -> Iterator[int]:
    """Windows of n positions and one more token, each beginning with the last token of the one before."""
    for first in range(0, m - 1, n):
        last = min(first + n + 1, m)
        yield from range(first + 1, last)
