"""Arrays whose axes are letters: the small algebra that evaluation is built on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Named:
    """An array and the letter of each of its axes, all different."""

    array: np.ndarray[Any, np.dtype[Any]]
    letters: tuple[str, ...]


def union(*parts: Sequence[str]) -> tuple[str, ...]:
    """All letters in order of first appearance."""
    return tuple(dict.fromkeys(letter for part in parts for letter in part))


def spread(x: Named, letters: Sequence[str]) -> np.ndarray[Any, np.dtype[Any]]:
    """``x`` with one axis per letter of ``letters`` (length one where ``x`` lacks it), ready to broadcast."""
    order = [x.letters.index(letter) for letter in letters if letter in x.letters]
    moved = x.array.transpose(order)
    return moved.reshape([x.array.shape[x.letters.index(a)] if a in x.letters else 1 for a in letters])


def together(*xs: Named) -> tuple[list[np.ndarray[Any, np.dtype[Any]]], tuple[str, ...]]:
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
    # Plain einsum (no pairing) is five to ten times slower on every contraction of three factors.
    result = np.einsum(*operands, [numbers[a] for a in kept], optimize="greedy" if len(factors) > 1 else False)
    return Named(np.asarray(result), kept)
