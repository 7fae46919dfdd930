"""When writing stops: the end-of-text token, the number of tokens, or a stop string (section 12.5)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from ..errors import UserError


class Reason(StrEnum):
    """Why a text ended."""

    LENGTH = "length"
    END = "end of text"
    STRING = "stop string"
    INTERRUPTED = "interrupted"


class StopStrings:
    """Finds the first of ``strings`` to be complete in a text that comes in parts, across any borders.

    "First to be complete" is the one that ends first, of several that end at the same place the longest: so the result
    does not depend on how the text was cut into parts. Raises ``UserError`` for an empty string.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        if "" in strings:
            raise UserError("A stop string is empty.", "It would stop before the first character.", "Leave it out.")
        self._strings = tuple(strings)
        self._held = ""
        self.found: str | None = None

    def feed(self, part: str) -> str:
        """The text that may be shown now: what no stop string can begin in. Once one is ``found``, nothing more."""
        if self.found is not None:
            return ""
        text = self._held + part
        ends = [(text.find(s) + len(s), -len(s), s) for s in self._strings if s in text]
        if ends:
            end, _, self.found = min(ends)
            self._held = ""
            return text[: end - len(self.found)]
        keep = max((self._beginning(s, text) for s in self._strings), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def end(self) -> str:
        """What was held back, when no text follows."""
        held, self._held = self._held, ""
        return held

    @staticmethod
    def _beginning(string: str, text: str) -> int:
        """How many of the last characters of ``text`` are the beginning of ``string``."""
        longest = min(len(string) - 1, len(text))
        return next((n for n in range(longest, 0, -1) if text.endswith(string[:n])), 0)
