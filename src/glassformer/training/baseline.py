"""What a model must beat: a bigram, mixed with frequencies so that nothing has probability 0.

    p(w | v) = a_2 count(v, w)/count(v) + a_1 count(w)/m + a_0/N,        a_2 + a_1 + a_0 = 1

with counts over the m pairs of neighbours (v, w) of the training stream. A pair whose second token is BOS is no pair, and
BOS is not among the N tokens that may follow: nothing says that a document begins. The shares a are chosen on the last
tenth of the stream with counts of its first nine tenths (expectation-maximisation, which finds the one optimum); then
everything is counted again on the whole stream. The validation text is not looked at.

Over characters it is the character bigram. The stream may lie on disk: it is read a piece at a time, and what is kept
grows with the number of different pairs alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..text.batches import Batch, TokenStream

Ids = NDArray[np.int64]
Numbers = NDArray[np.float64]

_HELD_OUT = 0.1
_ROUNDS = 200
_PIECE = 1 << 20  # tokens that are looked at together


class Pairs(NamedTuple):
    """Different neighbours in order of their codes: first tokens (p,), second tokens (p,), and how often each is met."""

    before: Ids
    after: Ids
    times: Ids


@dataclass(frozen=True, slots=True)
class Bigram:
    """The fitted mixture: ``shares`` (a_2, a_1, a_0), the counts, and BOS (None where the stream has none)."""

    shares: tuple[float, float, float]
    vocab_size: int
    begin: int | None
    pairs: Pairs
    first_counts: Ids
    counts: Ids

    def loss(self, batches: Iterable[Batch]) -> float | None:
        """Mean of -ln p(target | token) over the scored positions of ``batches`` (nats per token); None without any.

        The same positions as ``validation_loss`` on the same batches, so the two can be compared.
        """
        total, count = 0.0, 0
        for batch in batches:
            met = _distinct(batch.tokens[batch.scored], batch.targets[batch.scored], self.vocab_size)
            total -= float(met.times @ np.log(self._components(met.before, met.after) @ np.array(self.shares)))
            count += int(met.times.sum())
        return total / count if count else None

    def probabilities(self, token: int) -> Numbers:
        """p(. | token): (vocab_size,), 0 for BOS."""
        after = np.arange(self.vocab_size)
        return self._components(np.full_like(after, token), after) @ np.array(self.shares)

    def _components(self, before: Ids, after: Ids) -> Numbers:
        """The three estimates (p, 3) of p(after[k] | before[k]): bigram, unigram, uniform."""
        codes, known = before * self.vocab_size + after, self.pairs.before * self.vocab_size + self.pairs.after
        place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        together = np.where(known[place] == codes, self.pairs.times[place], 0) if len(known) else np.zeros(len(codes))
        bigram = together / np.maximum(self.first_counts[before], 1)
        unigram = self.counts[after] / max(1, self.counts.sum())
        # A token never followed by anything in training has no bigram estimate; the frequencies stand in for it.
        bigram = np.where(self.first_counts[before] > 0, bigram, unigram)
        uniform = np.full(len(codes), 1 / self.vocab_size)
        if self.begin is not None:
            uniform = np.where(after == self.begin, 0.0, 1 / (self.vocab_size - 1))
        return np.stack([bigram, unigram, uniform], axis=-1)


def fit_bigram(stream: TokenStream, vocab_size: int) -> Bigram:
    """The mixture for the training tokens of ``stream`` (m,), m at least 2."""
    m = len(stream)
    kept = m - max(1, round(m * _HELD_OUT))
    if kept < 2:
        return _counted(stream, m, vocab_size, (0.0, 0.0, 1.0))
    met = _merged(_pieces(stream, kept - 1, m, vocab_size), vocab_size)
    components = _counted(stream, kept, vocab_size, (0.0, 0.0, 1.0))._components(met.before, met.after)
    shares = np.full(3, 1 / 3)
    for _ in range(_ROUNDS if len(met.times) else 0):
        weighted = components * shares
        shares = met.times @ (weighted / weighted.sum(axis=-1, keepdims=True)) / met.times.sum()
    # Never exactly 0: a token may appear in the validation text alone.
    shares = np.maximum(shares, 1e-6)
    a_2, a_1, a_0 = (shares / shares.sum()).tolist()
    return _counted(stream, m, vocab_size, (a_2, a_1, a_0))


def _counted(stream: TokenStream, m: int, vocab_size: int, shares: tuple[float, float, float]) -> Bigram:
    """The mixture with the counts of the first ``m`` tokens."""
    pairs = _merged(_pieces(stream, 0, m, vocab_size), vocab_size)
    first_counts, counts = np.zeros(vocab_size, dtype=np.int64), np.zeros(vocab_size, dtype=np.int64)
    np.add.at(first_counts, pairs.before, pairs.times)
    np.add.at(counts, pairs.after, pairs.times)
    return Bigram(shares, vocab_size, stream.begin, pairs, first_counts, counts)


def _pieces(stream: TokenStream, first: int, last: int, vocab_size: int) -> Iterator[Pairs]:
    """The pairs among the tokens at ``first`` to ``last - 1``, a piece at a time; neighbouring pieces share a token."""
    for start in range(first, last - 1, _PIECE):
        ids = stream.tokens(start, min(start + _PIECE + 1, last))
        before, after = ids[:-1], ids[1:]
        counts = np.ones(len(after), dtype=np.bool_) if stream.begin is None else after != stream.begin
        yield _distinct(before[counts], after[counts], vocab_size)


def _merged(pieces: Iterable[Pairs], vocab_size: int) -> Pairs:
    nothing = np.zeros(0, dtype=np.int64)
    merged = Pairs(nothing, nothing, nothing)
    for piece in pieces:
        both = Pairs(*(np.concatenate(parts) for parts in zip(merged, piece, strict=True)))
        merged = _distinct(both.before, both.after, vocab_size, both.times)
    return merged


def _distinct(before: Ids, after: Ids, vocab_size: int, times: Ids | None = None) -> Pairs:
    codes, where, counts = np.unique(before * vocab_size + after, return_inverse=True, return_counts=True)
    if times is not None:
        counts = np.zeros(len(codes), dtype=np.int64)
        np.add.at(counts, where, times)
    return Pairs(codes // vocab_size, codes % vocab_size, counts.astype(np.int64))
