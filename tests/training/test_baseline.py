"""The bigram to beat: a true distribution, fitted without looking at the validation text."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from glassformer.training.baseline import fit_bigram
from learning import tokens_of, words_text


def plain_loss(text: str, counted: str, shares: tuple[float, float, float], size: int) -> float:
    """The definition, character by character, over the pairs of ``text``."""
    total = 0.0
    for v, w in itertools.pairwise(text):
        followed = sum(counted[k] == v for k in range(len(counted) - 1))
        both = sum(counted[k : k + 2] == v + w for k in range(len(counted) - 1))
        unigram = counted.count(w) / len(counted)
        bigram = both / followed if followed else unigram
        total -= math.log(shares[0] * bigram + shares[1] * unigram + shares[2] / size)
    return total / (len(text) - 1)


def test_the_loss_is_its_definition_character_by_character() -> None:
    text = "the cat sat on the mat; the dog did not. " * 4 + "zebra"
    tokenizer, data = tokens_of(text)
    model = fit_bigram(data.train.ids, tokenizer.vocab_size)
    train, validation = tokenizer.decode(data.train.ids), tokenizer.decode(data.held_out.ids)
    assert model.loss(data.held_out.ids) == pytest.approx(
        plain_loss(validation, train, model.shares, tokenizer.vocab_size), rel=1e-12
    )


def test_the_probabilities_after_each_token_sum_to_one_and_none_is_zero() -> None:
    tokenizer, data = tokens_of(words_text(50) + "xyz")
    model = fit_bigram(data.train.ids, tokenizer.vocab_size)
    for token in range(tokenizer.vocab_size):
        p = model.probabilities(token)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        assert (p > 0).all()


def test_the_shares_are_the_best_on_the_held_out_slice() -> None:
    generator = np.random.default_rng(0)
    ids = np.where(generator.random(4000) < 0.5, np.arange(4000) % 5, generator.integers(0, 5, 4000))
    shares = np.array(fit_bigram(ids, 5).shares)
    held_out, kept = ids[3599:], ids[:3600]

    def loss(candidate: np.ndarray) -> float:
        table = np.zeros((5, 5))
        np.add.at(table, (kept[:-1], kept[1:]), 1)
        counts = np.bincount(kept, minlength=5)
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
    assert fit_bigram(sequence[:36_000], 6).loss(sequence[35_999:]) == pytest.approx(entropy, abs=0.02)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_shortest_texts_have_a_finite_loss(m: int) -> None:
    ids = np.arange(m) % 2
    assert math.isfinite(fit_bigram(ids, 2).loss(ids))


def test_characters_never_seen_in_training_cost_something_finite() -> None:
    model = fit_bigram(np.array([0, 1] * 50), 5)
    assert math.isfinite(model.loss(np.array([0, 4, 3, 1])))


def test_a_large_vocabulary_needs_no_square_table() -> None:
    ids = np.random.default_rng(0).integers(0, 10**6, 5000)
    assert fit_bigram(ids, 10**6).loss(ids[:100]) > 0
