"""From streams of token ids to what training and validation read: windows with inputs, targets and scored positions.

Symbols: ``m`` tokens in a stream, ``k`` documents in it, ``n`` positions of a window (the context length), ``b`` windows
in a batch. A stream of several documents is ``BOS document EOS BOS document EOS ...``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]

VALIDATION_SHARE = 0.1
_REDRAWS = 100


class Batch(NamedTuple):
    """What one call of the model reads and is asked.

    ``tokens`` and ``targets`` are (b, n); ``scored`` (b, n) is true where the target counts; ``segments`` (b, n) numbers
    the documents of each row where a position may read only its own, and is None where it may read its whole row.
    """

    tokens: Ids
    targets: Ids
    scored: Flags
    segments: Ids | None = None


@runtime_checkable
class Data(Protocol):
    """What can be trained on.

    ``batch`` gives ``b`` rows of at most ``n`` positions, from the random numbers of ``generator`` alone. ``validation``
    gives batches of at most ``b`` rows in which every token of the validation text that can be scored is scored exactly
    once; there may be none. ``describe`` is one sentence for people: what is for training, what for validation.
    """

    def batch(self, n: int, b: int, generator: np.random.Generator) -> Batch: ...

    def validation(self, n: int, b: int) -> Iterator[Batch]: ...

    def describe(self) -> str: ...


@runtime_checkable
class IdArray(Protocol):
    """A row of token ids that may lie on disk: it has a length, and slices of it are arrays."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: slice, /) -> NDArray[Any]: ...


def labels(window: Ids, begin: int | None = None, segments: Ids | None = None) -> Batch:
    """The label convention: what each position reads, what it is asked to predict, and whether the answer counts.

    ``window`` (..., n + 1) holds neighbours ``t_1 .. t_(n+1)`` of a stream. Position i reads ``t_i`` (and, through the
    model, those before it); its target is the token after it:

        tokens    t_1  t_2  ...  t_n
        targets   t_2  t_3  ...  t_(n+1)

    This is the first of the two array conventions of section 4.1: both arrays have n entries, and each position has a
    target. In the second one the whole window is read and the last position, whose target is unknown, is left unscored;
    libraries with that convention often shift inside the model. The two must not be mixed: a target shifted twice is two
    tokens away. Here nothing else shifts, neither the model nor the loss.

    What begins and ends a document:

    - ``begin`` (BOS) is read, so that the first token of a document is a target like any other; where a stream has no
      BOS, its first token is only read. BOS itself is never a scored target: nothing says that a document follows.
    - EOS is a scored target: the last token of a document is asked to predict that the document is over. A full stop
      or a line break does not end a document.
    - With ``segments`` (..., n + 1), the document of each token, a target of another document is not scored either, so
      the EOS of a document is its last scored target.

    The result has n positions; its segments are None exactly if ``segments`` is.
    """
    tokens, targets = window[..., :-1], window[..., 1:]
    scored = np.ones(targets.shape, dtype=np.bool_) if begin is None else targets != begin
    if segments is None:
        return Batch(tokens, targets, scored)
    return Batch(tokens, targets, scored & (segments[..., :-1] == segments[..., 1:]), segments[..., :-1])


@dataclass(frozen=True, slots=True, eq=False)
class TokenStream:
    """Documents one after another: ``ids`` (m,) of any integer type, perhaps memory-mapped.

    ``starts`` (k,) are the places in ``ids`` where a document begins (that of its BOS), ascending; ``begin`` is the id of
    BOS, None where the stream has none.
    """

    ids: IdArray
    starts: Ids
    begin: int | None = None

    def __len__(self) -> int:
        """m, BOS and EOS included."""
        return len(self.ids)

    def tokens(self, first: int, last: int) -> Ids:
        """The ids at the places ``first`` to ``last - 1``: (last - first,), read now."""
        return np.asarray(self.ids[first:last], dtype=np.int64)

    def random_windows(self, n: int, b: int, generator: np.random.Generator, *, isolated: bool = False) -> Batch:
        """``b`` windows of ``n`` positions; every place is equally likely to be the first, drawn with replacement.

        A window in which nothing could be scored is drawn again. With ``isolated`` segments are given. Raises
        ``UserError`` when the stream has fewer than n + 1 tokens, or nothing to score.
        """
        require_window(self.ids, n)
        first = generator.integers(0, len(self) - n, size=b)
        batch = self._windows(first, n, isolated=isolated)
        for _ in range(_REDRAWS):
            idle = ~batch.scored.any(axis=-1)
            if not idle.any():
                return batch
            first = np.where(idle, generator.integers(0, len(self) - n, size=b), first)
            batch = self._windows(first, n, isolated=isolated)
        raise UserError(
            "The training text has hardly anything to predict.",
            f"Of windows of {n} positions almost none has a scored target.",
            "Use longer documents or a larger context.",
        )

    def validation_windows(self, n: int, b: int, *, isolated: bool = False) -> Iterator[Batch]:
        """Windows one after another without overlap: each token but the first is a target exactly once.

        The i-th position of a window sees at most i tokens of it. At most ``b`` windows to a batch; the last window may be
        shorter and comes in a batch of its own; a batch in which nothing is scored is left out. Nothing for fewer than
        two tokens.
        """
        whole = max(0, len(self) - 1) // n
        rest = len(self) - 1 - whole * n
        parts = [(np.arange(k, min(k + b, whole)) * n, n) for k in range(0, whole, b)]
        for first, width in [*parts, (np.array([whole * n]), rest)] if rest > 0 else parts:
            batch = self._windows(first, width, isolated=isolated)
            if batch.scored.any():  # the model refuses a batch in which nothing counts
                yield batch

    def _windows(self, first: Ids, n: int, *, isolated: bool) -> Batch:
        """The windows that begin at the places ``first`` (b,)."""
        window = np.stack([self.tokens(int(f), int(f) + n + 1) for f in first])
        if not isolated:
            return labels(window, self.begin)
        document = np.searchsorted(self.starts, first[:, None] + np.arange(n + 1), side="right").astype(np.int64)
        return labels(window, self.begin, document - document[:, :1])


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Two streams, one to train on and one held out for validation; it is ``Data``.

    With ``isolated`` a position reads its own document only, and batches have segments; otherwise a window is read as one
    text, whatever documents lie in it. With ``by_position`` the text was cut in two by position, and ``held_out`` starts
    with the last training token, which is there only to be read.
    """

    train: TokenStream
    held_out: TokenStream
    isolated: bool = False
    by_position: bool = False

    def batch(self, n: int, b: int, generator: np.random.Generator) -> Batch:
        """``b`` random windows (b, n) of ``train``; errors as ``TokenStream.random_windows``."""
        return self.train.random_windows(n, b, generator, isolated=self.isolated)

    def validation(self, n: int, b: int) -> Iterator[Batch]:
        """The windows of ``held_out`` in order, at most ``b`` to a batch, each token that can be scored scored once."""
        return self.held_out.validation_windows(n, b, isolated=self.isolated)

    def describe(self) -> str:
        """One sentence for people: which tokens are which."""
        train, held_out = len(self.train), len(self.held_out)
        if self.by_position:
            return f"the first {train:,} tokens are for training, the last {held_out - 1:,} for validation"
        documents = (
            f"{k:,} document{'s' if k > 1 else ''}" for k in (len(self.train.starts), len(self.held_out.starts))
        )
        first, last = documents
        return f"{first} ({train:,} tokens) for training, {last} ({held_out:,} tokens) for validation"


def split(ids: Ids) -> Corpus:
    """Cut one text ``ids`` (m,) by position: the last tenth (rounded, at least one token) is the validation text.

    No chance is involved, so every run on the same text measures the same thing. The validation stream starts with the
    last training token, so that every token of the validation text has a predecessor and is scored. Raises ``UserError``
    below two tokens.
    """
    cut = cut_by_position(len(ids))
    start = np.zeros(1, dtype=np.int64)
    return Corpus(TokenStream(ids[:cut], start), TokenStream(ids[cut - 1 :], start), by_position=True)


def cut_by_position(m: int) -> int:
    """How many of ``m`` tokens are for training when a text is cut by position; ``UserError`` below two tokens."""
    if m < 2:
        raise UserError("The text is too short to be split.", f"It has {m} token(s).", "Use a longer text.")
    return m - max(1, round(m * VALIDATION_SHARE))


def require_window(ids: IdArray, n: int) -> None:
    """Raise ``UserError`` when ``ids`` (m,) has fewer than the n + 1 tokens of one window."""
    if len(ids) > n:
        return
    raise UserError(
        f"The training text is shorter than one window of {n} positions.",
        f"A window takes {n + 1} tokens (the last one is only a target); the training text has {len(ids)}.",
        "Use a longer text" + (f" or a context of at most {len(ids) - 1}." if len(ids) > 1 else "."),
    )


def first_scored(batches: Iterable[Batch], limit: int) -> Iterator[Batch]:
    """``batches`` until ``limit`` positions have been scored, row by row; what comes after is left out or not scored."""
    left = limit
    for batch in batches:
        if left <= 0:
            return
        count = batch.scored.cumsum().reshape(batch.scored.shape)
        yield batch._replace(scored=batch.scored & (count <= left))
        left -= int(count[-1, -1])
