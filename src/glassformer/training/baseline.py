"""What a model must beat: a character bigram, mixed with character frequencies so that nothing has probability 0.

    p(w | v) = a_2 count(v, w)/count(v) + a_1 count(w)/m + a_0/N,        a_2 + a_1 + a_0 = 1

with counts from the training text (m tokens, vocabulary of N). The shares a are chosen on the last tenth of the training
text with counts of its first nine tenths (expectation-maximisation, which finds the one optimum); then everything is
counted again on the whole training text. The validation text is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Numbers = NDArray[np.float64]

_HELD_OUT = 0.1
_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Bigram:
    """The fitted mixture: ``shares`` (a_2, a_1, a_0) and the counts."""

    shares: tuple[float, float, float]
    vocab_size: int
    pairs: Ids
    pair_counts: Ids
    first_counts: Ids
    counts: Ids

    def loss(self, ids: Ids) -> float:
        """Mean of -ln p(w | v) over the tokens ``ids[1:]`` (nats per token), each scored once; ``ids`` (1 + m,)."""
        before, after, times = _pairs(ids, self.vocab_size)
        return float(-times @ np.log(self._components(before, after) @ np.array(self.shares)) / times.sum())

    def probabilities(self, token: int) -> Numbers:
        """p(. | token): (N,)."""
        after = np.arange(self.vocab_size)
        return self._components(np.full_like(after, token), after) @ np.array(self.shares)

    def _components(self, before: Ids, after: Ids) -> Numbers:
        """The three estimates (m, 3) of p(after[k] | before[k]): bigram, unigram, uniform."""
        codes = before * self.vocab_size + after
        place = np.minimum(np.searchsorted(self.pairs, codes), len(self.pairs) - 1)
        together = np.where(self.pairs[place] == codes, self.pair_counts[place], 0)
        bigram = together / np.maximum(self.first_counts[before], 1)
        unigram = self.counts[after] / self.counts.sum()
        # A character never followed by anything in training has no bigram estimate; the frequencies stand in for it.
        bigram = np.where(self.first_counts[before] > 0, bigram, unigram)
        return np.stack([bigram, unigram, np.full(len(codes), 1 / self.vocab_size)], axis=-1)


def fit_bigram(ids: Ids, vocab_size: int) -> Bigram:
    """The mixture for the training tokens ``ids`` (m,), m at least 2."""
    held_out = max(1, round(len(ids) * _HELD_OUT))
    kept = len(ids) - held_out
    if kept < 2:
        return _counted(ids, vocab_size, (0.0, 0.0, 1.0))
    before, after, times = _pairs(ids[kept - 1 :], vocab_size)
    components = _counted(ids[:kept], vocab_size, (0.0, 0.0, 1.0))._components(before, after)
    shares = np.full(3, 1 / 3)
    for _ in range(_ROUNDS):
        weighted = components * shares
        shares = times @ (weighted / weighted.sum(axis=-1, keepdims=True)) / times.sum()
    # Never exactly 0: a character may appear in the validation text alone.
    shares = np.maximum(shares, 1e-6)
    a_2, a_1, a_0 = (shares / shares.sum()).tolist()
    return _counted(ids, vocab_size, (a_2, a_1, a_0))


def _counted(ids: Ids, vocab_size: int, shares: tuple[float, float, float]) -> Bigram:
    before, after, pair_counts = _pairs(ids, vocab_size)
    pairs = before * vocab_size + after
    first_counts = np.bincount(ids[:-1], minlength=vocab_size)
    return Bigram(shares, vocab_size, pairs, pair_counts, first_counts, np.bincount(ids, minlength=vocab_size))


def _pairs(ids: Ids, vocab_size: int) -> tuple[Ids, Ids, Ids]:
    """The distinct neighbours in ``ids`` in order: first tokens, second tokens, and how often each pair occurs."""
    codes, times = np.unique(ids[:-1] * vocab_size + ids[1:], return_counts=True)
    return codes // vocab_size, codes % vocab_size, times
