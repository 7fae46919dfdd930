"""The bigram to beat: a true distribution, fitted without looking at the validation text."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from glassformer.text import Batch, Corpus, TokenStream
from glassformer.training import baseline, held_out, validation_loss
from glassformer.training.baseline import fit_bigram
from learning import tiny_decoder, tokens_of, words_text


def stream(ids: np.ndarray, begin: int | None = None) -> TokenStream:
    starts = np.zeros(1, dtype=np.int64) if begin is None else np.flatnonzero(ids == begin)
    return TokenStream(ids, starts, begin)


def windows(ids: np.ndarray, begin: int | None = None, n: int = 7) -> Iterator[Batch]:
    return stream(ids, begin).validation_windows(n, 4)


def plain_loss(text: str, counted: str, shares: tuple[float, float, float], size: int) -> float:
    """The definition, character by character, over the pairs of ``text``."""
    total = 0.0
    for v, w in itertools.pairwise(text):
        followed = sum(counted[k] == v for k in range(len(counted) - 1))
        both = sum(counted[k : k + 2] == v + w for k in range(len(counted) - 1))
        unigram = counted[1:].count(w) / (len(counted) - 1)
        bigram = both / followed if followed else unigram
        total -= math.log(shares[0] * bigram + shares[1] * unigram + shares[2] / size)
    return total / (len(text) - 1)


def test_the_loss_is_its_definition_character_by_character() -> None:
    text = "the cat sat on the mat; the dog did not. " * 4 + "zebra"
    tokenizer, data = tokens_of(text)
    model = fit_bigram(data.train, tokenizer.vocab_size)
    train, validation = tokenizer.decode(data.train.ids), tokenizer.decode(data.held_out.ids)
    assert model.loss(data.validation(8, 3)) == pytest.approx(
        plain_loss(validation, train, model.shares, tokenizer.vocab_size), rel=1e-12
    )


def test_the_probabilities_after_each_token_sum_to_one_and_none_is_zero() -> None:
    tokenizer, data = tokens_of(words_text(50) + "xyz")
    model = fit_bigram(data.train, tokenizer.vocab_size)
    for token in range(tokenizer.vocab_size):
        p = model.probabilities(token)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        assert (p > 0).all()


def test_the_shares_are_the_best_on_the_held_out_slice() -> None:
    generator = np.random.default_rng(0)
    ids = np.where(generator.random(4000) < 0.5, np.arange(4000) % 5, generator.integers(0, 5, 4000))
    shares = np.array(fit_bigram(stream(ids), 5).shares)
    held_out, kept = ids[3599:], ids[:3600]

    def loss(candidate: np.ndarray) -> float:
        table = np.zeros((5, 5))
        np.add.at(table, (kept[:-1], kept[1:]), 1)
        counts = np.bincount(kept[1:], minlength=5)
        p = candidate[0] * table / table.sum(1, keepdims=True) + candidate[1] * counts / counts.sum() + candidate[2] / 5
        return float(-np.log(p[held_out[:-1], held_out[1:]]).mean())

    best = loss(shares)
    assert shares.sum() == pytest.approx(1.0)
    for other in generator.dirichlet([1, 1, 1], 300):
        assert best <= loss(other) + 1e-6


def test_a_first_order_text_costs_its_conditional_entropy() -> None:
    generator = np.random.default_rng(1)
    table = generator.dirichlet([0.3] * 6, 6)
    ids = [0]
    for _ in range(40_000):
        ids.append(int(generator.choice(6, p=table[ids[-1]])))
    sequence = np.array(ids)
    frequency = np.bincount(sequence, minlength=6) / len(sequence)
    entropy = float(-(frequency[:, None] * table * np.log(np.maximum(table, 1e-300))).sum())
    assert fit_bigram(stream(sequence[:36_000]), 6).loss(windows(sequence[35_999:])) == pytest.approx(entropy, abs=0.02)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_shortest_texts_have_a_finite_loss(m: int) -> None:
    ids = np.arange(m) % 2
    assert math.isfinite(fit_bigram(stream(ids), 2).loss(windows(ids)) or math.nan)


def test_characters_never_seen_in_training_cost_something_finite() -> None:
    model = fit_bigram(stream(np.array([0, 1] * 50)), 5)
    assert math.isfinite(model.loss(windows(np.array([0, 4, 3, 1]))) or math.nan)


def test_a_large_vocabulary_needs_no_square_table() -> None:
    ids = np.random.default_rng(0).integers(0, 10**6, 5000)
    assert (fit_bigram(stream(ids), 10**6).loss(windows(ids[:100])) or 0) > 0


BOS, EOS = 4, 5


def documents(count: int, seed: int = 0) -> np.ndarray:
    """``BOS document EOS BOS document EOS ...`` over the tokens 0 to 3."""
    draw = np.random.default_rng(seed)
    parts = [[BOS, *draw.integers(0, 4, draw.integers(1, 9)), EOS] for _ in range(count)]
    return np.array([id for part in parts for id in part])


def test_the_beginning_of_a_document_is_neither_counted_nor_expected() -> None:
    ids = documents(200)
    model = fit_bigram(stream(ids, BOS), 6)
    assert model.counts[BOS] == 0
    assert model.first_counts[EOS] == 0
    assert model.first_counts[BOS] == 200
    for token in range(6):
        p = model.probabilities(token)
        assert p[BOS] == 0
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
    followers = ids[1:][ids[:-1] == BOS]
    a_2, a_1, a_0 = model.shares
    expected = a_2 * (followers == 2).mean() + a_1 * (ids == 2).sum() / (ids[1:] != BOS).sum() + a_0 / 5
    assert model.probabilities(BOS)[2] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("isolated", [False, True])
def test_model_and_bigram_are_measured_on_the_same_positions(isolated: bool) -> None:
    ids = documents(60)
    corpus = Corpus(stream(ids, BOS), stream(documents(20, seed=1), BOS), isolated=isolated)
    model = fit_bigram(corpus.train, 6)
    batches = list(held_out(corpus, 8))
    scored = [
        pair for b in batches for pair in zip(b.tokens[b.scored].tolist(), b.targets[b.scored].tolist(), strict=True)
    ]
    assert len(scored) == (documents(20, seed=1)[1:] != BOS).sum()
    mean = -np.mean([math.log(model.probabilities(v)[w]) for v, w in scored])
    assert model.loss(batches) == pytest.approx(mean, rel=1e-12)
    if not isolated:
        assert validation_loss(tiny_decoder(6), batches) == pytest.approx(math.log(6), abs=1.5)


@pytest.mark.parametrize("piece", [1, 2, 7, 100])
def test_a_stream_read_in_pieces_has_the_same_counts(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    ids = documents(40).astype(np.uint16)
    whole = fit_bigram(stream(ids, BOS), 6)
    monkeypatch.setattr(baseline, "_PIECE", piece)
    pieces = fit_bigram(stream(ids, BOS), 6)
    assert pieces.shares == pytest.approx(whole.shares, rel=1e-12)
    for a, b in zip(pieces.pairs, whole.pairs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_pieces_of_a_stream_are_no_larger_than_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    class Disk:
        largest = 0

        def __len__(self) -> int:
            return 10_000

        def __getitem__(self, index: slice) -> np.ndarray:
            part = np.arange(10_000, dtype=np.uint16)[index] % 7
            self.largest = max(self.largest, len(part))
            return part

    disk = Disk()
    monkeypatch.setattr(baseline, "_PIECE", 64)
    fit_bigram(TokenStream(disk, np.zeros(1, dtype=np.int64)), 7)
    assert disk.largest == 65
