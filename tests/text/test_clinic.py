"""The clinic language: probabilities that sum to 1, add up along every path, and are what is sampled."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from glassformer.errors import UserError
from glassformer.text import Language, clinic
from glassformer.text.clinic import END, ENGLISH, SENTENCE, following, sentence

LANGUAGES = {lang: clinic(lang) for lang in ("zh", "en")}
ZH = LANGUAGES["zh"]
WORDS = list(ENGLISH)


def every_prefix() -> dict[tuple[str, ...], Fraction]:
    """Every beginning of a sentence, the whole ones with their end among them, with its exact probability."""
    found, waiting = {}, [((), Fraction(1))]
    while waiting:
        prefix, probability = waiting.pop()
        found[prefix] = probability
        waiting += [((*prefix, word), probability * share) for word, share in following(prefix).items()]
    return found


PREFIXES = every_prefix()
WHOLE = {prefix: p for prefix, p in PREFIXES.items() if prefix[-1:] == (END,)}
OPEN = {prefix: p for prefix, p in PREFIXES.items() if prefix and prefix[-1] != END}
"""Beginnings after which a model that has read at least one word predicts the next."""


def entropy(shares: dict[str, Fraction]) -> float:
    return -math.fsum(float(p) * math.log(p) for p in shares.values())


def test_after_every_prefix_the_probabilities_sum_to_one_exactly() -> None:
    assert len(PREFIXES) > 5000
    for prefix in PREFIXES:
        shares = following(prefix)
        assert sum(shares.values()) == (0 if prefix in WHOLE else 1), prefix
        assert all(share > 0 for share in shares.values())


def test_the_probabilities_of_all_sentences_sum_to_one_and_are_listed() -> None:
    assert sum(WHOLE.values()) == 1
    listed = {
        tuple(WORDS[id] for id in row[: int(flags.sum()) + 1]): p
        for row, flags, p in zip(ZH.rows, ZH.scored, ZH.probabilities, strict=True)
    }
    assert listed.keys() == WHOLE.keys()
    for words, probability in WHOLE.items():
        assert listed[words] == pytest.approx(float(probability), rel=1e-13)


def test_the_distribution_after_any_prefix_counted_from_the_list_is_that_of_the_grammar() -> None:
    for prefix in [(), *[*OPEN][::7]]:
        p = ZH.next_distribution([WORDS.index(word) for word in prefix])
        expected = {WORDS.index(word): float(share) for word, share in following(prefix).items()}
        assert set(np.flatnonzero(p)) == expected.keys()
        assert {w: p[w] for w in expected} == pytest.approx(expected, rel=1e-12)


def test_the_notes_own_sentence_is_one_of_them_cut_as_the_notes_cut_it() -> None:
    tokens = ZH.tokenizer.encode("患者服用华法林后出现黑便。")
    assert tuple(ZH.tokenizer.texts[id] for id in tokens.ids) == SENTENCE
    assert ZH.next_distribution(tokens.ids[:5].tolist())[tokens.ids[5]] == pytest.approx(0.6)


def test_what_follows_the_symptom_slot_depends_on_words_far_back() -> None:
    after = {
        (action, drug): following(("患者", action, drug, "三天", "后", "没有", "出现"))["黑便"]
        for action in ("服用", "停用")
        for drug in ("华法林", "阿司匹林")
    }
    assert after["服用", "华法林"] != after["服用", "阿司匹林"]
    assert after["服用", "华法林"] != after["停用", "华法林"] == after["停用", "阿司匹林"]


def test_a_second_symptom_is_another_one_in_unchanged_proportion() -> None:
    begun = ("患者", "服用", "华法林", "后", "出现")
    first, second = following(begun), following((*begun, "黑便", "和"))
    assert "黑便" not in second
    assert second["头晕"] / second["恶心"] == first["头晕"] / first["恶心"]


def test_the_twin_has_the_same_sentences_with_the_same_probabilities() -> None:
    zh, en = LANGUAGES["zh"], LANGUAGES["en"]
    assert np.array_equal(zh.rows, en.rows)
    assert np.array_equal(zh.probabilities, en.probabilities)
    assert "".join(sentence("en")) == "The patient took warfarin and then had black stools."


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_sentence_is_cut_into_the_words_it_was_made_of(lang: str) -> None:
    language = LANGUAGES[lang]
    for number in range(0, len(language.rows), 5):
        words = language.rows[number, : int(language.scored[number].sum())]
        assert np.array_equal(language.tokenizer.encode(language.text(number)).ids, words)


def test_a_prefix_of_no_sentence_is_refused() -> None:
    for words in (["黑便"], [*SENTENCE, END], ["患者", "患者"], ["患者"] * 20):
        with pytest.raises(UserError, match="No sentence of this language goes on"):
            ZH.next_distribution([WORDS.index(word) for word in words])


# --- sampling --------------------------------------------------------------------------------------------------------


def test_sentences_are_sampled_as_often_as_the_grammar_says() -> None:
    count = 20_000
    drawn = Counter(ZH.sample(count, np.random.default_rng(1)).tolist())
    expected = ZH.probabilities * count
    common = np.flatnonzero(expected >= 5)
    seen = [drawn[int(s)] for s in common]
    pooled = [*expected[common], count - expected[common].sum()]
    assert len(common) > 200
    assert chisquare([*seen, count - sum(seen)], pooled).pvalue > 1e-3


def test_words_follow_a_sampled_prefix_as_often_as_the_grammar_says() -> None:
    after: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for number in ZH.sample(10_000, np.random.default_rng(2)):
        words = [WORDS[id] for id in ZH.rows[number]]
        after[tuple(words[:5])][words[5]] += 1
    prefix = SENTENCE[:5]
    seen, shares = after[prefix], following(prefix)
    total = sum(seen.values())
    assert total > 1000
    assert chisquare([seen[w] for w in shares], [float(p) * total for p in shares.values()]).pvalue > 1e-3


def test_the_same_seed_draws_the_same_sentences_and_another_seed_others() -> None:
    draws = [ZH.sample(50, np.random.default_rng(seed)).tolist() for seed in (3, 3, 4)]
    assert draws[0] == draws[1] != draws[2]


def test_a_batch_has_of_every_beginning_the_expected_number_up_to_one() -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        inputs, *_ = ZH.batch(11, 64, generator)
        seen = Counter(tuple(WORDS[id] for id in row[:5]) for row in inputs)
        for prefix, probability in OPEN.items():
            if len(prefix) == 5:
                assert abs(seen[prefix] - 64 * probability) < 1 + 1e-9


def test_over_many_batches_each_sentence_comes_as_often_as_its_probability() -> None:
    generator = np.random.default_rng(6)
    drawn = Counter(bytes(row) for _ in range(400) for row in ZH.batch(11, 64, generator)[0])
    for number in np.argsort(-ZH.probabilities)[:20]:
        expected = 400 * 64 * ZH.probabilities[number]
        assert drawn[bytes(ZH.rows[number, :-1])] == pytest.approx(expected, abs=3 * math.sqrt(400) / 2)


def test_in_a_batch_a_target_is_the_word_after_and_only_words_of_the_sentence_count() -> None:
    inputs, targets, scored, segments = ZH.batch(11, 32, np.random.default_rng(0))
    assert np.array_equal(inputs[:, 1:], targets[:, :-1])
    assert segments is None
    end = ZH.tokenizer.end_of_text
    for row, flags in zip(targets, scored, strict=True):
        assert (row[flags] == end).tolist() == [False] * (int(flags.sum()) - 1) + [True]
        assert (row[~flags] == end).all()


def test_a_context_shorter_than_the_longest_sentence_is_refused() -> None:
    with pytest.raises(UserError, match="has 11 words, the model reads 10"):
        ZH.batch(10, 1, np.random.default_rng(0))


# --- entropy and divergence ------------------------------------------------------------------------------------------


def test_the_entropy_per_word_is_that_of_the_grammar_averaged_over_all_prefixes() -> None:
    weight = math.fsum(map(float, OPEN.values()))
    exact = math.fsum(float(p) * entropy(following(prefix)) for prefix, p in OPEN.items()) / weight
    assert ZH.words_per_sentence == pytest.approx(weight, rel=1e-13)
    assert ZH.entropy == pytest.approx(exact, rel=1e-12)


def test_the_entropy_of_a_sentence_is_the_sum_of_those_of_its_words() -> None:
    assert ZH.sentence_entropy == pytest.approx(entropy(following(())) + ZH.words_per_sentence * ZH.entropy, rel=1e-12)


def logarithms(p: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(p)


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_the_divergence_of_the_truth_from_itself_is_zero(language: Language) -> None:
    assert language.divergence(logarithms(language.truth)) == 0
    assert language.loss(logarithms(language.truth)) == pytest.approx(language.entropy, rel=1e-14)


def test_the_divergence_of_the_uniform_distribution_is_what_it_lacks_in_entropy() -> None:
    N = ZH.tokenizer.vocab_size
    uniform = np.full_like(ZH.truth, -math.log(N))
    assert ZH.divergence(uniform) == pytest.approx(math.log(N) - ZH.entropy, rel=1e-12)
    assert ZH.loss(uniform) == pytest.approx(math.log(N), rel=1e-12)


def test_every_other_distribution_has_a_positive_divergence_and_an_impossible_one_an_infinite() -> None:
    mixed = 0.99 * ZH.truth + 0.01 / ZH.tokenizer.vocab_size
    assert 0 < ZH.divergence(np.log(mixed)) < 0.01
    wrong = logarithms(np.roll(ZH.truth, 1, axis=-1))
    assert ZH.divergence(wrong) == math.inf
