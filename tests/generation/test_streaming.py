"""Text streamed out of byte pair tokens: what is shown is always a beginning of the whole, in whole characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.generation import TextStream
from glassformer.text import BytePairTokenizer, CharacterTokenizer, Tokenizer
from hard_texts import hard_bytes, hard_texts, random_texts

LEARNT = BytePairTokenizer.train(random_texts(300, seed=1), 1000)
BYTES = BytePairTokenizer([])
tokenizers = st.sampled_from([LEARNT, BYTES])
BYTE_IDS = {BYTES.bytes_of(id): id for id in range(256)}


def require_streaming(tokenizer: Tokenizer, ids: list[int]) -> None:
    """After every token: what was shown is the decoded text so far, less at most the beginning of a character.

    The beginning of a character is up to 3 bytes, which alone decode to 1 to 3 replacement characters.
    """
    stream, shown = TextStream(tokenizer.bytes_of), ""
    for n, id in enumerate(ids, 1):
        shown += stream.feed(id)
        now = tokenizer.decode(ids[:n])
        assert now.startswith(shown)
        assert now[len(shown) :] in ("", "\ufffd", "\ufffd" * 2, "\ufffd" * 3)
    assert shown + stream.end() == tokenizer.decode(ids)


@given(hard_texts, tokenizers)
def test_a_text_streamed_token_by_token_is_the_text_and_nothing_broken_is_shown(
    text: str, tokenizer: BytePairTokenizer
) -> None:
    stream, shown = TextStream(tokenizer.bytes_of), ""
    for id in tokenizer.ids(text).tolist():
        shown += stream.feed(id)
        assert text.startswith(shown)
    assert shown == text
    assert stream.end() == ""


@given(hard_texts, tokenizers)
def test_at_every_place_the_stream_is_the_decoded_text_so_far(text: str, tokenizer: BytePairTokenizer) -> None:
    require_streaming(tokenizer, tokenizer.ids(text).tolist())


@given(hard_bytes)
def test_bytes_that_are_no_utf_8_come_out_as_in_decoding_the_whole(raw: bytes) -> None:
    require_streaming(BYTES, [BYTE_IDS[bytes([byte])] for byte in raw])


@given(st.data(), tokenizers)
def test_any_tokens_whatever_special_ones_among_them_stream_as_they_decode(
    data: st.DataObject, tokenizer: BytePairTokenizer
) -> None:
    ids = st.integers(0, tokenizer.vocab_size - 1) | st.sampled_from(tokenizer.specials) | st.integers(0, 255)
    require_streaming(tokenizer, data.draw(st.lists(ids, max_size=30)))


@given(hard_texts)
def test_characters_stream_one_by_one(text: str) -> None:
    tokenizer = CharacterTokenizer.of_text(text + "a", specials=True)
    stream = TextStream(tokenizer.bytes_of)
    assert [stream.feed(id) for id in tokenizer.ids(text).tolist()] == list(text)


@pytest.mark.full
@pytest.mark.parametrize("tokenizer", [LEARNT, BYTES], ids=["learnt", "bytes"])
def test_ten_thousand_random_texts_stream_as_they_decode(tokenizer: BytePairTokenizer) -> None:
    for text in random_texts(10_000, seed=4):
        stream, shown = TextStream(tokenizer.bytes_of), ""
        for id in tokenizer.ids(text).tolist():
            shown += stream.feed(id)
            assert text.startswith(shown)
        assert shown + stream.end() == text
