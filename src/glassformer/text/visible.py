"""Text of users and models, made safe to print: characters that steer a terminal become pictures of themselves."""

from __future__ import annotations

import unicodedata

_PICTURES = 0x2400  # U+2400 SYMBOL FOR NULL; the pictures of the 32 control characters follow in order
_DELETE = 0x7F
_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"  # needed by scripts and emoji, harmless


def visible(text: str, *, keep: str = "\n") -> str:
    """``text`` with every control, format and private-use character shown instead of obeyed.

    Escape becomes ``␛``, a character that reverses the reading direction ``<U+202E>``. Characters in ``keep`` (line
    breaks by default) and the two joiners stay. Markup of any library is not touched: print the result as plain text.
    """
    return "".join(c if c in keep or c in _JOINERS else _picture(c) for c in text)


def _picture(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == _DELETE:
        return "\u2421"
    if unicodedata.category(character) in _HIDDEN:
        return f"<U+{code:04X}>"
    return character


def character_name(character: str) -> str:
    """``'Ж' (U+0416)``: how messages name one character."""
    return f"'{visible(character, keep='')}' (U+{ord(character):04X})"
