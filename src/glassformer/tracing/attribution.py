"""Which parameters lowered the loss: the exact change of a joint step, shared out among groups of parameters.

The first-order prediction is a sum, so it splits by itself. The exact change is not: what a group does depends on which
others have moved. Shapley's values (1953) are the only shares that add up to the exact change, treat equal groups equally,
give nothing to a group that never matters and are linear: the mean, over all orders in which the groups may move, of what
a group adds when its turn comes.

Up to ``EXACT_GROUPS`` groups, every set of moved groups is evaluated, once. Above that, orders are drawn at random; their
mean adds up to the exact change all the same, and ``error`` is its standard error.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

By = Literal["tensor", "part", "block"]
Change = Callable[[frozenset[str]], float]

EXACT_GROUPS = 8
"""Up to this many groups, all ``2**groups`` sets of them are evaluated."""

ORDERS = 64
"""How many random orders are drawn where there are more groups, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Share:
    """One group of parameters: first-order change of the loss, exact change moved alone, Shapley value.

    ``error`` is the standard error of the Shapley value: 0 where it is exact.
    """

    group: str
    members: tuple[str, ...]
    predicted: float
    alone: float
    shapley: float
    error: float


@dataclass(frozen=True, slots=True)
class Attribution:
    """The shares of all groups. ``orders`` is None where every set was evaluated, else how many orders were drawn."""

    by: str
    shares: tuple[Share, ...]
    evaluations: int
    orders: int | None
    seed: int | None


def groups_of(parameters: Sequence[str], by: By) -> dict[str, tuple[str, ...]]:
    """Parameters in groups: each ``tensor`` alone, by ``part`` (``attn``, ``ffn``, ``embed``, ...), or by ``block``.

    What belongs to no block is a group of its own under its part's name; norms are one part.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for id in parameters:
        name = id if by == "tensor" else _part(id) if by == "part" else _block(id)
        groups[name] = (*groups.get(name, ()), id)
    return groups


def usual(parameters: Sequence[str]) -> By:
    """Each tensor alone where there are few enough for exact shares, else parts."""
    return "tensor" if len(parameters) <= EXACT_GROUPS else "part"


def attribute(
    groups: Mapping[str, Sequence[str]],
    predicted: Mapping[str, float],
    change: Change,
    *,
    by: str,
    orders: int = ORDERS,
    seed: int = 0,
) -> Attribution:
    """Share out ``change(all parameters)`` among ``groups`` (name to parameter ids).

    ``change`` gives the exact change of the loss when a set of parameters moves, ``predicted`` the first-order change of
    each parameter. Each set is asked for once. Raises ``ValueError`` for fewer than two ``orders`` where they are drawn.
    """
    known: dict[frozenset[str], float] = {frozenset(): 0.0}

    def worth(names: Iterable[str]) -> float:
        moved = frozenset(names)
        if moved not in known:
            known[moved] = change(frozenset(id for name in moved for id in groups[name]))
        return known[moved]

    names = list(groups)
    exact = len(names) <= EXACT_GROUPS
    values = {name: (_exactly(name, names, worth), 0.0) for name in names} if exact else _sampled(
        names, worth, orders, seed
    )  # fmt: skip
    shares = tuple(
        Share(name, tuple(groups[name]), sum(predicted[id] for id in groups[name]), worth([name]), *values[name])
        for name in names
    )
    evaluations = len(known) - 1
    return Attribution(by, shares, evaluations, None if exact else orders, None if exact else seed)


def _exactly(name: str, names: Sequence[str], worth: Callable[[Iterable[str]], float]) -> float:
    others = [other for other in names if other != name]
    total = 0.0
    for size in range(len(names)):
        weight = 1 / (len(names) * math.comb(len(others), size))
        for before in itertools.combinations(others, size):
            total += weight * (worth((*before, name)) - worth(before))
    return total


def _sampled(
    names: Sequence[str], worth: Callable[[Iterable[str]], float], orders: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Mean and standard error over random orders of what each group adds when its turn comes."""
    if orders < 2:
        raise ValueError(f"{orders} orders have no standard error; draw at least 2")
    generator = np.random.default_rng(seed)
    added = np.zeros((orders, len(names)))
    for row in added:
        last, moved = 0.0, []
        for at in generator.permutation(len(names)):
            moved.append(names[at])
            now = worth(moved)
            row[at], last = now - last, now
    errors = added.std(axis=0, ddof=1) / math.sqrt(orders)
    return {name: (float(m), float(e)) for name, m, e in zip(names, added.mean(axis=0), errors, strict=True)}


def _part(id: str) -> str:
    parts = [part for part in id.split(".")[:-1] if part != "blocks" and not part.isdigit()]
    last = parts[-1] if parts else id
    return "norm" if "norm" in last else last


def _block(id: str) -> str:
    found = re.match(r"blocks\.\d+", id)
    return found[0] if found else _part(id)
