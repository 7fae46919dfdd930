"""Arrays whose axes are letters: the small algebra that evaluation is built on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 20_000
"""Multiplications from which a contraction is planned before it is computed."""


@dataclass(frozen=True, slots=True, init=False)
class Named:
    """An array and the letter of each of its axes, all different."""

    array: NDArray[Any]
    letters: tuple[str, ...]

    def __init__(self, array: Any, letters: tuple[str, ...]) -> None:
        # NumPy's operations turn arrays without axes into bare scalars.
        object.__setattr__(self, "array", np.asarray(array))
        object.__setattr__(self, "letters", letters)


def union(*parts: Sequence[str]) -> tuple[str, ...]:
    """All letters in order of first appearance."""
    return tuple(dict.fromkeys(letter for part in parts for letter in part))


def spread(x: Named, letters: Sequence[str]) -> NDArray[Any]:
    """``x`` with one axis per letter of ``letters`` (length one where ``x`` lacks it), ready to broadcast."""
    order = [x.letters.index(letter) for letter in letters if letter in x.letters]
    moved: NDArray[Any] = np.transpose(x.array, order)
    return moved.reshape([x.array.shape[x.letters.index(a)] if a in x.letters else 1 for a in letters])


def together(*xs: Named) -> tuple[list[NDArray[Any]], tuple[str, ...]]:
    """All of ``xs`` spread over the union of their letters."""
    letters = union(*(x.letters for x in xs))
    return [spread(x, letters) for x in xs], letters


def contract(factors: Sequence[Named], out: Sequence[str]) -> Named:
    """The sum over all letters not in ``out`` of the product of ``factors``."""
    numbers = {letter: k for k, letter in enumerate(union(*(f.letters for f in factors)))}
    operands: list[Any] = []
    for factor in factors:
        operands += [factor.array.astype(np.float64, copy=False), [numbers[a] for a in factor.letters]]
    kept = tuple(a for a in out if a in numbers)
    sizes = {a: size for f in factors for a, size in zip(f.letters, f.array.shape, strict=True)}
    # Pairing factors and going through BLAS is five to ten times faster on large tensors; on small ones choosing the
    # pairs costs more than the sum itself.
    large = len(factors) > 1 and math.prod(sizes.values()) > LARGE
    result = np.einsum(*operands, [numbers[a] for a in kept], optimize="greedy" if large else False)
    return Named(np.asarray(result), kept)
