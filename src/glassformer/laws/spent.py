"""What the benches of one check share: passes made so far, and what need not be found out twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .subjects.base import Offer


@dataclass(slots=True)
class Spent:
    """Forward passes made so far, over all benches of one check; ``placing`` are those that looked for places alone."""

    forwards: int = 0
    placing: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What need not be found out anew at another precision: the factor of the weights, and which offers have an effect."""

    factor: float
    effects: Mapping[Offer, float]
