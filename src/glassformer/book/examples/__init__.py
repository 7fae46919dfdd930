"""The live examples of the book, by chapter."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..example import Example
from . import attention

EXAMPLES: Mapping[str, Example] = MappingProxyType({example.id: example for example in (*attention.EXAMPLES,)})
