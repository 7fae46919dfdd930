"""The exercises of the book: ``a`` for chapters 1 to 7, ``b`` for the others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..exercise import Exercise
from . import a, b

EXERCISES: Mapping[str, Exercise] = MappingProxyType(
    {exercise.id: exercise for exercise in (*a.EXERCISES, *b.EXERCISES)}
)
