"""A language small enough to be listed: every sentence with its exact probability.

Symbols: ``m`` sentences, ``n`` words of the longest, ``N`` vocabulary. A *prefix* is a beginning of a sentence that is
not empty and not all of it with its end; its probability is that of all sentences that begin so. A model that reads
prefixes is measured on them, each weighted with its probability, per predicted word (the end of the sentence is one).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from .batches import Batch, labels
from .words import WordTokenizer

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]
_HELD_OUT = 4096  # sentences
_GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, fill the unit interval evenly from the first on

Following = Callable[[Sequence[str]], dict[str, Fraction]]


@dataclass(frozen=True, eq=False)
class Language:
    """All sentences: ``rows`` (m, n + 1) with the end after each and as padding, their ``probabilities`` (m,).

    ``scored`` (m, n) is true where the target (the word after the position) belongs to the sentence; ``truth`` (m, n, N)
    is the exact distribution of that target.
    """

    tokenizer: WordTokenizer
    rows: Ids
    scored: Flags
    probabilities: Numbers
    truth: Numbers

    @classmethod
    def of(cls, following: Following, words: Sequence[str], tokenizer: WordTokenizer) -> Language:
        """List what ``following`` allows; ``words`` are its names for the tokens, in the order of their ids.

        ``following`` must end every sentence (return nothing) after the tokenizer's end of text and there only.
        """
        ids = {word: id for id, word in enumerate(words)}
        sentences = list(_sentences(following, (), Fraction(1)))
        n = max(len(sentence) for sentence, _ in sentences) - 1
        assert tokenizer.end_of_text is not None
        rows = np.full((len(sentences), n + 1), tokenizer.end_of_text, dtype=np.int64)
        truth = np.zeros((len(sentences), n, len(words)))
        for row, targets, (sentence, _) in zip(rows, truth, sentences, strict=True):
            row[: len(sentence)] = [ids[word] for word in sentence]
            for place in range(1, len(sentence)):
                for word, share in following(sentence[:place]).items():
                    targets[place - 1, ids[word]] = float(share)
        probabilities = np.array([float(probability) for _, probability in sentences])
        return cls(tokenizer, rows, truth.sum(-1) > 0, probabilities / probabilities.sum(), truth)

    def next_distribution(self, prefix: Sequence[int]) -> Numbers:
        """The exact distribution (N,) of the word after the ids ``prefix``, from the list of sentences.

        Raises ``UserError`` when no sentence goes on from ``prefix``.
        """
        n = len(prefix)
        begins = (self.rows[:, :n] == np.array(prefix, dtype=np.int64)).all(1) if n < self.rows.shape[1] else None
        if begins is None or not begins.any() or self.tokenizer.end_of_text in prefix:
            text = self.tokenizer.decode(prefix)
            raise UserError(f'No sentence of this language goes on from "{text}".', "", "Give a beginning of one.")
        p = np.zeros(self.tokenizer.vocab_size)
        np.add.at(p, self.rows[begins, n], self.probabilities[begins])
        return p / p.sum()

    def sample(self, count: int, generator: np.random.Generator) -> Ids:
        """The numbers (count,) of sentences drawn with their probabilities."""
        return generator.choice(len(self.rows), size=count, p=self.probabilities)

    def text(self, sentence: int) -> str:
        """The text of a sentence by number."""
        return self.tokenizer.decode(self.rows[sentence])

    def batch(self, n: int, b: int, generator: np.random.Generator) -> Batch:
        """``b`` sentences, one to a row: each array (b, width), padding after the end of a sentence not scored.

        Each sentence is as probable as in ``sample``, but the draws are spread evenly over the list, which stands in the
        order of the grammar: of every beginning a batch has the expected number, up to one. Raises ``UserError`` when
        the longest sentence has more than ``n`` words.
        """
        if self.scored.shape[1] > n:
            raise UserError(
                f"The longest sentence has {self.scored.shape[1]} words, the model reads {n}.",
                "",
                "Use a larger context.",
            )
        return self._at((np.arange(b, dtype=np.float64) + generator.random()) / b)

    def validation(self, n: int, b: int) -> Iterator[Batch]:
        """Sentences spread over the list as evenly as their probabilities allow, always the same, ``b`` to a batch.

        Their mean loss is near the expected one, which ``loss`` gives exactly; so is that of any first part of them.
        """
        for first in range(0, _HELD_OUT, b):
            yield self._at(np.arange(first, min(first + b, _HELD_OUT), dtype=np.float64) * _GOLDEN % 1)

    def _at(self, places: Numbers) -> Batch:
        """The sentences at ``places`` (b,) between 0 and 1, each taking as much room as it is probable."""
        drawn = np.searchsorted(self.probabilities.cumsum(), places, side="right").clip(max=len(self.rows) - 1)
        return labels(self.rows[drawn])._replace(scored=self.scored[drawn])

    def describe(self) -> str:
        """One sentence for people: what is trained on, and what takes the place of a validation text."""
        return f"{len(self.rows):,} sentences drawn with known probabilities, against which the model is measured"

    @property
    def words_per_sentence(self) -> float:
        """How many words a sentence asks to predict, on average: all but its first, and its end."""
        return float(self.probabilities @ self.scored.sum(1))

    @property
    def entropy(self) -> float:
        """Nats per predicted word: the loss of a model that knows the truth, which no model can fall below."""
        return -self._mean(self.truth, _log(self.truth))

    @property
    def sentence_entropy(self) -> float:
        """Nats per sentence, the choice of its first word included."""
        return float(-self.probabilities @ _log(self.probabilities))

    def loss(self, log_q: Numbers) -> float:
        """The expected loss, in nats per predicted word, of a model that says ``log_q`` (m, n, N) for every position."""
        return -self._mean(self.truth, log_q)

    def divergence(self, log_q: Numbers) -> float:
        """KL from the truth to a model that says ``log_q`` (m, n, N): nats per predicted word above ``entropy``.

        sum of P(prefix) p(w | prefix) (ln p(w | prefix) - ln q(w | prefix)) over all prefixes and words,
        divided by the sum of P(prefix)
        """
        # Over all sentences and their places: each prefix is met in the sentences that begin so, weighted with theirs.
        return self._mean(self.truth, _log(self.truth) - log_q)

    def _mean(self, p: Numbers, x: Numbers) -> float:
        """Expectation of ``x`` (m, n, N) under ``p`` at every scored place; where ``p`` is 0, ``x`` does not count."""
        terms = np.where(p > 0, p * np.where(p > 0, x, 0.0), 0.0).sum(-1)
        return float(self.probabilities @ terms.sum(1)) / self.words_per_sentence


def _sentences(
    following: Following, prefix: tuple[str, ...], probability: Fraction
) -> list[tuple[tuple[str, ...], Fraction]]:
    continuations = following(prefix)
    if not continuations:
        return [(prefix, probability)]
    return [
        whole
        for word, share in continuations.items()
        for whole in _sentences(following, (*prefix, word), probability * share)
    ]


def _log(p: Numbers) -> Numbers:
    """ln p, and 0 where p is 0: such terms have no weight."""
    return np.log(np.where(p > 0, p, 1.0))
