"""What every tokenizer speaks of: a text as tokens, and the tokens that stand for no text.

Symbols: ``n`` tokens of a text, ``N`` tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from .visible import character_name

Ids = NDArray[np.int64]

BEGIN, END, PAD = "<bos>", "<eos>", "<pad>"
"""How the three special tokens are shown. This spelling in a text is text, never the token."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as tokens: ``ids`` (n,) and ``spans`` (n, 2), where token i covers ``text[spans[i, 0]:spans[i, 1]]``.

    Spans count characters (code points). Where a token is only a part of a character, its span is that whole character,
    so neighbouring spans may share one; otherwise they follow one another without gap or overlap.
    """

    ids: Ids
    spans: Ids


class Specials(NamedTuple):
    """The ids of the tokens that begin a document (BOS), end it (EOS) and fill a row (PAD); None where there is none.

    They differ from one another, are never found in a text, are left out by ``decode`` and have no bytes.
    """

    begin: int | None = None
    end: int | None = None
    pad: int | None = None

    @classmethod
    def after(cls, n: int) -> Specials:
        """All three, behind the ``n`` tokens of text: ids n, n + 1, n + 2."""
        return cls(n, n + 1, n + 2)

    @property
    def unwritten(self) -> tuple[int, ...]:
        """BOS and PAD, as far as there are any: no text goes on with them, so none is ever chosen in writing one."""
        return tuple(id for id in (self.begin, self.pad) if id is not None)


def checked_ids(ids: Ids | Sequence[int], vocab_size: int) -> list[int]:
    """``ids`` (n,) as a list; raises ``UserError`` naming the first one outside 0..N-1 and its position."""
    numbers = [int(id) for id in ids]
    for position, number in enumerate(numbers):
        if not 0 <= number < vocab_size:
            raise UserError(
                f"There is no token {number}.",
                f"It stands at position {position}; the vocabulary has the ids 0 to {vocab_size - 1}.",
                "Decode with the tokenizer that was saved together with the model.",
            )
    return numbers


def utf8(text: str) -> bytes:
    """The UTF-8 bytes of ``text``; raises ``UserError`` for half a surrogate pair, which has none, with its position."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise UserError(
            f"{character_name(text[problem.start])} is half a surrogate pair, not a character.",
            f"It stands at position {problem.start} of the text (counted from 0); UTF-8 cannot hold it.",
            "Repair the text: its source was probably UTF-16 that was cut or decoded wrongly.",
        ) from problem
