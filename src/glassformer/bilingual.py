"""What readers see is written in both languages, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Words: TypeAlias = Mapping[str, str]


def words(en: str, zh: str) -> Words:
    """A text in both languages."""
    return {"en": en, "zh": zh}


def same(text: str) -> Words:
    """A text that both languages write alike: a symbol, a token."""
    return {"en": text, "zh": text}
