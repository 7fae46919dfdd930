"""The live examples of the book, by chapter: ``sentence`` (1 to 4), ``attention`` (5, 6), ``scale`` and ``causal`` (7)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..example import Example
from . import attention, causal, scale, sentence

EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {example.id: example for example in (*sentence.EXAMPLES, *attention.EXAMPLES, *scale.EXAMPLES, *causal.EXAMPLES)}
)
