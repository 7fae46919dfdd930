"""A stream of any tokens as a stream of characters, so that a bigram of characters can be compared with any model."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..text.batches import Batch, Ids, TokenStream, labels
from ..text.tokenizer import Tokenizer

LIMIT = 1 << 25
"""Tokens of a training stream that are looked at, at most: their characters are held in memory."""

_BEGIN, _END = 0x110000, 0x110001  # beyond the last character of Unicode
_CUT = 0xFFFD  # what stands for a part of a character
_LONGEST = 4  # bytes of a character, and so tokens, at most
_PIECE = 1 << 20  # tokens that are spelled at a time

Codes = NDArray[np.uint32]


def in_characters(
    tokenizer: Tokenizer, stream: TokenStream, batches: Sequence[Batch]
) -> tuple[int, TokenStream, list[Batch]]:
    """How many different characters there are, ``stream`` in characters, and what ``batches`` ask, in characters.

    BOS and EOS count as a character each. ``batches`` are windows of one text, one after another; their scored targets
    come in one row, up to the last of them.
    """
    m = min(len(stream), LIMIT)
    pieces = (stream.tokens(first, min(first + _PIECE, m)) for first in range(0, m, _PIECE))
    train = np.concatenate([*_spelled(tokenizer, pieces), np.zeros(0, np.uint32)])
    asked = _asked(tokenizer, stream, batches)
    known = np.unique(np.concatenate([train, asked]))
    begin = int(np.searchsorted(known, _BEGIN)) if _BEGIN in known else None
    ids = np.searchsorted(known, train)
    starts = np.flatnonzero(ids == begin) if begin is not None else np.zeros(1, np.int64)
    return len(known), TokenStream(ids, starts, begin), [labels(np.searchsorted(known, asked)[None], begin)]


def _asked(tokenizer: Tokenizer, stream: TokenStream, batches: Sequence[Batch]) -> Codes:
    """What the scored positions of ``batches`` read and predict; of the first token, which is only read, one character."""
    tokens = np.concatenate([batch.tokens.ravel() for batch in batches])
    targets = np.concatenate([batch.targets.ravel() for batch in batches])
    last = int(np.flatnonzero(np.concatenate([batch.scored.ravel() for batch in batches]))[-1])
    first = np.concatenate(list(_spelled(tokenizer, [tokens[:1]])))
    if _CUT in first:
        # Only a text that is cut by position begins so, and then with the last token of the training text.
        last_ones = stream.tokens(max(0, len(stream) - _LONGEST), len(stream))
        first = np.concatenate(list(_spelled(tokenizer, [last_ones])))
    rest = np.concatenate(list(_spelled(tokenizer, [np.append(tokens[1 : last + 1], targets[last])])))
    return np.concatenate([first[-1:], rest])


def _spelled(tokenizer: Tokenizer, pieces: Iterable[Ids]) -> Iterator[Codes]:
    """The characters of ``pieces`` joined, as numbers."""
    begin, end, _ = tokenizer.specials
    marks = {begin: _BEGIN, end: _END}
    table = [tokenizer.bytes_of(id) for id in range(tokenizer.vocab_size)]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for ids in pieces:
        special = np.isin(ids, [mark for mark in marks if mark is not None])
        for run in np.split(ids, np.flatnonzero(special)):
            numbers = run.tolist()
            if numbers and numbers[0] in marks:
                # What is left of a character that the mark cut short is one that cannot be read.
                yield _codes(decoder.decode(b"", final=True))
                yield np.array([marks[numbers[0]]], np.uint32)
            yield _codes(decoder.decode(b"".join(table[id] for id in numbers)))
    yield _codes(decoder.decode(b"", final=True))


def _codes(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-32-le"), "<u4")
