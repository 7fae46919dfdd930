"""The split, the label convention and the windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from glassformer.errors import UserError
from glassformer.text import random_windows, shifted, split
from glassformer.text.batches import scoring_windows


@given(st.integers(2, 500))
def test_the_two_parts_are_the_text_with_one_token_seen_twice(m: int) -> None:
    ids = np.arange(m)
    parts = split(ids)
    assert parts.train.tolist() + parts.validation[1:].tolist() == ids.tolist()
    assert parts.validation[0] == parts.train[-1]


def test_the_last_tenth_is_for_validation() -> None:
    parts = split(np.arange(1000))
    assert len(parts.train) == 900
    assert parts.describe() == "the first 900 characters are for training, the last 100 for validation"


@pytest.mark.parametrize("m", [0, 1])
def test_a_text_without_two_tokens_cannot_be_split(m: int) -> None:
    with pytest.raises(UserError, match="too short"):
        split(np.arange(m))


def test_the_target_of_a_position_is_the_token_after_it() -> None:
    inputs, targets = shifted(np.array([[5, 6, 7, 8]]))
    assert inputs.tolist() == [[5, 6, 7]]
    assert targets.tolist() == [[6, 7, 8]]


def test_random_windows_are_pieces_of_the_text() -> None:
    ids = np.arange(100)
    inputs, targets = random_windows(ids, 7, 50, np.random.default_rng(0))
    assert inputs.shape == targets.shape == (50, 7)
    assert (np.diff(inputs, axis=1) == 1).all()
    assert (targets == inputs + 1).all()


def test_every_start_is_equally_likely_the_first_and_the_last_included() -> None:
    inputs, targets = random_windows(np.arange(20), 8, 12_000, np.random.default_rng(1))
    counts = np.bincount(inputs[:, 0], minlength=12)
    assert len(counts) == 12
    assert targets.max() == 19
    assert chisquare(counts).pvalue > 1e-3


def test_windows_depend_on_the_seed_alone() -> None:
    first, again, other = (random_windows(np.arange(99), 5, 4, np.random.default_rng(s))[0].tolist() for s in (3, 3, 4))
    assert first == again != other


def test_a_text_of_exactly_one_window_has_one_start() -> None:
    inputs, targets = random_windows(np.arange(6), 5, 3, np.random.default_rng(0))
    assert inputs.tolist() == [[0, 1, 2, 3, 4]] * 3
    assert targets.tolist() == [[1, 2, 3, 4, 5]] * 3


@pytest.mark.parametrize(("m", "advice"), [(5, "at most 4"), (1, "longer text.")])
def test_a_text_shorter_than_a_window_says_what_would_fit(m: int, advice: str) -> None:
    with pytest.raises(UserError, match="shorter than one window") as caught:
        random_windows(np.arange(m), 5, 1, np.random.default_rng(0))
    assert advice in caught.value.next_step


@given(st.integers(2, 300), st.integers(1, 40), st.integers(1, 9))
def test_scoring_windows_score_each_token_once_with_the_token_before_it(m: int, n: int, b: int) -> None:
    ids = np.random.default_rng(m).permutation(m)
    targets = []
    for inputs, part in scoring_windows(ids, n, b):
        assert inputs.shape == part.shape
        assert inputs.shape[0] <= b
        assert inputs.shape[1] <= n
        targets += part.ravel().tolist()
        assert [np.flatnonzero(ids == t)[0] - 1 for t in part.ravel()] == [
            np.flatnonzero(ids == t)[0] for t in inputs.ravel()
        ]
    assert targets == ids[1:].tolist()
