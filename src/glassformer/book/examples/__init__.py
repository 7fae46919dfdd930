"""The live examples of the book, by chapter.

``sentence`` (1 to 4), ``attention`` (5, 6), ``scale`` and ``causal`` (7), ``parts`` (8), ``training`` (9, 10), ``toy`` (11),
``writing`` (12), ``use`` (13).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..example import Example
from . import attention, causal, parts, scale, sentence, toy, training, use, writing

_FILES = (sentence, attention, scale, causal, parts, training, toy, writing, use)

EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {example.id: example for file in _FILES for example in file.EXAMPLES}
)
