"""The split, the label convention, the windows: what is read, what is asked, what counts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from glassformer.errors import UserError
from glassformer.text import Batch, Corpus, Data, TokenStream, clinic, first_scored, labels, split

BOS, EOS = 100, 101
ALONE = np.zeros(1, dtype=np.int64)

documents = st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=12)


def stream_of(contents: list[list[int]], dtype: type = np.uint8) -> TokenStream:
    """BOS document EOS BOS document EOS ..."""
    whole = [[BOS, *content, EOS] for content in contents]
    starts = np.cumsum([0, *map(len, whole)])[:-1]
    return TokenStream(np.concatenate(whole).astype(dtype), starts, BOS)


def plain(m: int) -> TokenStream:
    return TokenStream(np.arange(m), ALONE)


def batch_of(stream: TokenStream, n: int, b: int, seed: int) -> Batch:
    return stream.random_windows(n, b, np.random.default_rng(seed))


# --- the split --------------------------------------------------------------------------------------------------------


@given(st.integers(2, 500))
def test_the_two_parts_are_the_text_with_one_token_seen_twice(m: int) -> None:
    ids = np.arange(m)
    corpus = split(ids)
    train, held_out = (part.tokens(0, len(part)) for part in (corpus.train, corpus.held_out))
    assert train.tolist() + held_out[1:].tolist() == ids.tolist()
    assert held_out[0] == train[-1]


def test_the_last_tenth_is_for_validation() -> None:
    corpus = split(np.arange(1000))
    assert len(corpus.train) == 900
    assert corpus.describe() == "the first 900 tokens are for training, the last 100 for validation"


@pytest.mark.parametrize("m", [0, 1])
def test_a_text_without_two_tokens_cannot_be_split(m: int) -> None:
    with pytest.raises(UserError, match="too short"):
        split(np.arange(m))


def test_a_corpus_of_documents_says_how_many_are_for_what() -> None:
    corpus = Corpus(stream_of([[1, 2], [3]]), stream_of([[4]]))
    assert corpus.describe() == "2 documents (7 tokens) for training, 1 document (3 tokens) for validation"


def test_a_corpus_and_a_language_are_data() -> None:
    assert isinstance(split(np.arange(20)), Data)
    assert isinstance(clinic(), Data)
    assert "sentences" in clinic().describe()


# --- the label convention ---------------------------------------------------------------------------------------------


def test_the_target_of_a_position_is_the_token_after_it() -> None:
    tokens, targets, scored, segments = labels(np.array([[5, 6, 7, 8]]))
    assert tokens.tolist() == [[5, 6, 7]]
    assert targets.tolist() == [[6, 7, 8]]
    assert scored.all()
    assert segments is None


def test_bos_is_read_and_never_scored_as_a_target_while_eos_is() -> None:
    window = np.array([[BOS, 1, 2, EOS, BOS, 3, EOS]])
    tokens, targets, scored, _ = labels(window, BOS)
    assert tokens.tolist() == [[BOS, 1, 2, EOS, BOS, 3]]
    assert targets[scored].tolist() == [1, 2, EOS, 3, EOS]


def test_with_segments_no_target_of_another_document_is_scored_even_without_bos() -> None:
    tokens, targets, scored, segments = labels(np.array([[1, 2, 3, 4, 5]]), None, np.array([[0, 0, 0, 1, 1]]))
    assert targets[scored].tolist() == [2, 3, 5]
    assert segments is not None
    assert segments.tolist() == [[0, 0, 0, 1]]
    assert segments.shape == tokens.shape


@given(documents, st.integers(2, 9), st.integers(0, 99))
def test_when_isolated_labels_never_cross_documents(contents: list[list[int]], n: int, seed: int) -> None:
    stream = stream_of(contents)
    n = min(n, len(stream) - 1)
    if n < 2:
        return
    owner = np.repeat(np.arange(len(contents)), [len(content) + 2 for content in contents])
    numbered = TokenStream(np.arange(len(stream)), stream.starts)  # the same documents, each token its own place
    generators = (np.random.default_rng(seed) for _ in range(2))
    batch, places = (
        s.random_windows(n, 5, g, isolated=True) for s, g in zip((stream, numbered), generators, strict=True)
    )
    assert batch.segments is not None
    for row, segments, scored, targets in zip(places.tokens, batch.segments, batch.scored, batch.targets, strict=True):
        assert segments.tolist() == (owner[row] - owner[row[0]]).tolist()
        assert segments[0] == 0
        assert scored.tolist() == [bool(owner[place] == owner[place + 1]) for place in row]
        assert BOS not in targets[scored]


def test_when_isolated_the_eos_is_the_last_scored_target_of_its_document() -> None:
    (batch,) = stream_of([[1, 2], [], [3]]).validation_windows(50, 4, isolated=True)
    assert batch.segments is not None
    last = {int(s): int(t) for s, t in zip(batch.segments[batch.scored], batch.targets[batch.scored], strict=True)}
    assert last == {0: EOS, 1: EOS, 2: EOS}


# --- training windows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int64])
def test_random_windows_are_pieces_of_the_text_whatever_its_type(dtype: type) -> None:
    stream = TokenStream(np.arange(100, dtype=dtype), ALONE)
    tokens, targets, scored, segments = batch_of(stream, 7, 50, 0)
    assert tokens.shape == targets.shape == scored.shape == (50, 7)
    assert (tokens.dtype, targets.dtype, scored.dtype) == (np.int64, np.int64, np.bool_)
    assert (np.diff(tokens, axis=1) == 1).all()
    assert (targets == tokens + 1).all()
    assert segments is None


def test_windows_of_a_file_are_those_of_the_array(tmp_path: Path) -> None:
    ids = np.random.default_rng(0).integers(0, 250, 1000).astype(np.uint8)
    ids.tofile(tmp_path / "ids.bin")
    mapped = TokenStream(np.memmap(tmp_path / "ids.bin", np.uint8, "r"), ALONE)
    for first, second in zip(
        batch_of(mapped, 9, 6, 1)[:3], batch_of(TokenStream(ids, ALONE), 9, 6, 1)[:3], strict=True
    ):
        assert np.array_equal(first, second)  # pyright: ignore[reportArgumentType]


def test_every_start_is_equally_likely_the_first_and_the_last_included() -> None:
    batch = batch_of(plain(20), 8, 12_000, 1)
    counts = np.bincount(batch.tokens[:, 0], minlength=12)
    assert len(counts) == 12
    assert batch.targets.max() == 19
    assert chisquare(counts).pvalue > 1e-3


def test_windows_depend_on_the_generator_alone() -> None:
    first, again, other = (batch_of(plain(99), 5, 4, seed).tokens.tolist() for seed in (3, 3, 4))
    assert first == again != other


def test_a_text_of_exactly_one_window_has_one_start() -> None:
    batch = batch_of(plain(6), 5, 3, 0)
    assert batch.tokens.tolist() == [[0, 1, 2, 3, 4]] * 3
    assert batch.targets.tolist() == [[1, 2, 3, 4, 5]] * 3


def test_every_row_of_a_batch_has_something_to_predict() -> None:
    stream = stream_of([[1], [], [2]])
    targets = [batch_of(stream, 1, 3, seed).targets for seed in range(50)]
    assert BOS not in np.concatenate(targets)
    assert {1, 2, EOS} == set(np.concatenate(targets).ravel().tolist())


def test_documents_of_one_token_in_isolation_have_nothing_to_predict_and_say_so() -> None:
    stream = TokenStream(np.arange(9), np.arange(9))
    with pytest.raises(UserError, match="hardly anything to predict"):
        stream.random_windows(4, 2, np.random.default_rng(0), isolated=True)


@pytest.mark.parametrize(("m", "advice"), [(5, "at most 4"), (1, "longer text.")])
def test_a_text_shorter_than_a_window_says_what_would_fit(m: int, advice: str) -> None:
    with pytest.raises(UserError, match="shorter than one window") as caught:
        batch_of(plain(m), 5, 1, 0)
    assert advice in caught.value.next_step


# --- validation windows -----------------------------------------------------------------------------------------------


@given(documents, st.integers(1, 40), st.integers(1, 9), st.booleans())
def test_every_token_that_can_be_scored_is_scored_exactly_once(
    contents: list[list[int]], n: int, b: int, isolated: bool
) -> None:
    stream = stream_of(contents)
    ids: NDArray[np.int64] = stream.tokens(0, len(stream))
    numbered = TokenStream(np.arange(len(ids)), stream.starts)
    scored: list[int] = []
    for batch in Corpus(stream, stream, isolated).validation(n, b):
        assert batch.tokens.shape[0] <= b
        assert batch.tokens.shape[1] <= n
        assert (batch.segments is not None) == isolated
        scored += batch.targets[batch.scored].tolist()
    assert scored == [int(after) for _, after in pairwise(ids) if after != BOS]
    for batch in numbered.validation_windows(n, b):
        assert (batch.targets == batch.tokens + 1).all()


@given(st.integers(0, 300), st.integers(1, 40), st.integers(1, 9))
def test_a_text_without_documents_is_scored_from_its_second_token_on(m: int, n: int, b: int) -> None:
    targets = [t for batch in plain(m).validation_windows(n, b) for t in batch.targets[batch.scored].tolist()]
    assert targets == list(range(1, m))


@given(documents, st.integers(1, 9), st.integers(1, 5), st.integers(0, 40))
def test_the_first_scored_positions_are_those_and_no_more(
    contents: list[list[int]], n: int, b: int, limit: int
) -> None:
    stream = stream_of(contents)
    everything = [t for x in stream.validation_windows(n, b) for t in x.targets[x.scored].tolist()]
    some = [t for x in first_scored(stream.validation_windows(n, b), limit) for t in x.targets[x.scored].tolist()]
    assert some == everything[:limit]
