"""A pairwise covering array: few cases in which every value of every option meets every value of every other."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Options: TypeAlias = Mapping[str, Sequence[Any]]
Case: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[tuple[str, Any], tuple[str, Any]]


def pairs_of(case: Mapping[str, Any]) -> set[Pair]:
    """Every two settings of ``case``."""
    return set(itertools.combinations(case.items(), 2))


def all_pairs(options: Options) -> set[Pair]:
    """Every two settings that some choice of ``options`` holds together."""
    return {
        ((a, x), (b, y)) for a, b in itertools.combinations(options, 2) for x in options[a] for y in options[b]
    }  # fmt: skip


def covering_array(options: Options) -> list[Case]:
    """Cases that together hold every pair, found greedily: each begins with a pair still missing and adds, option by
    option, the value that meets most missing pairs (of equal ones the first).

    Values must be hashable.
    """
    missing = all_pairs(options)
    cases: list[Case] = []
    while missing:
        # Sets have no order of their own: the first missing pair is sought in the order of the options.
        start = next(
            ((a, x), (b, y))
            for a, b in itertools.combinations(options, 2)
            for x in options[a]
            for y in options[b]
            if ((a, x), (b, y)) in missing
        )
        chosen: Case = dict(start)
        for name in options:
            if name not in chosen:
                chosen[name] = max(options[name], key=lambda value: _gain(name, value, chosen, options, missing))
        case = {name: chosen[name] for name in options}
        missing -= pairs_of(case)
        cases.append(case)
    return cases


def _gain(name: str, value: Any, chosen: Case, options: Options, missing: set[Pair]) -> int:
    """How many missing pairs ``name = value`` makes with what is ``chosen`` already."""
    before = list(options)
    met = 0
    for other, theirs in chosen.items():
        pair = ((name, value), (other, theirs))
        met += (pair if before.index(name) < before.index(other) else pair[::-1]) in missing
    return met
