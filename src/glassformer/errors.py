"""Errors meant for the person who made the request."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A request that could not be carried out: the fact, its context, and what to do next.

    The command line prints the three and exits with code 2; a library user reads them in one message.
    """

    def __init__(self, fact: str, context: str = "", next_step: str = "") -> None:
        self.fact = fact
        self.context = context
        self.next_step = next_step
        super().__init__(" ".join(part for part in (fact, context, next_step) if part))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``Did you mean "W_Q"?`` for the nearest known words, or a list of the first few; empty when there are none."""
    known = list(known)
    same = [name for name in known if name.casefold() == word.casefold()]
    near = same or difflib.get_close_matches(word, known, n=3, cutoff=0.5)
    if near:
        return "Did you mean " + " or ".join(f'"{name}"' for name in near) + "?"
    if not known:
        return ""
    return "Known are: " + ", ".join(known[:12]) + (", …" if len(known) > 12 else "") + "."
