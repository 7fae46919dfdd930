"""The word tokenizer: longest match, exact round trip, the same as what its ``tokenizer.json`` says to others."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as HuggingFace

from glassformer.errors import UserError
from glassformer.text import CharacterTokenizer, WordTokenizer, read_tokenizer

WORDS = ("患", "患者", "服用", " and", " and then", "者", "<end>")
TOKENIZER = WordTokenizer(WORDS, "<end>")

texts = st.lists(st.sampled_from(WORDS[:-1])).map("".join)


@given(texts)
def test_the_words_of_a_text_joined_are_the_text_and_their_spans_cover_it(text: str) -> None:
    tokens = TOKENIZER.encode(text)
    assert TOKENIZER.decode(tokens.ids) == text
    assert "".join(text[a:b] for a, b in tokens.spans) == text
    assert [text[a:b] for a, b in tokens.spans] == [TOKENIZER.texts[id] for id in tokens.ids]
    assert b"".join(TOKENIZER.bytes_of(int(id)) for id in tokens.ids).decode() == text


@given(texts.filter(bool))
def test_its_json_read_by_the_hugging_face_library_cuts_and_joins_alike(text: str) -> None:
    theirs = HuggingFace.from_str(TOKENIZER.to_json())
    encoding, tokens = theirs.encode(text), TOKENIZER.encode(text)
    assert encoding.ids == tokens.ids.tolist()
    assert encoding.offsets == [tuple(span) for span in tokens.spans.tolist()]
    assert theirs.decode([*encoding.ids, 6]) == text


def test_at_each_place_the_longest_word_is_taken() -> None:
    assert [TOKENIZER.texts[id] for id in TOKENIZER.encode("患者患 and then and").ids] == [
        "患者",
        "患",
        " and then",
        " and",
    ]


def test_the_end_of_text_is_written_as_nothing_and_never_found_in_a_text() -> None:
    assert TOKENIZER.decode([1, 6]) == "患者"
    assert TOKENIZER.bytes_of(6) == b""
    with pytest.raises(UserError, match="No word of the vocabulary fits at '<'"):
        TOKENIZER.encode("患者<end>")


def test_a_place_where_no_word_fits_is_named_with_the_words_there_are() -> None:
    with pytest.raises(UserError) as caught:
        TOKENIZER.encode("患者X")
    assert "'X' (U+0058)" in caught.value.fact
    assert "position 2" in caught.value.context
    assert '"服用"' in caught.value.next_step


def test_an_empty_text_has_no_tokens() -> None:
    assert TOKENIZER.encode("").spans.shape == (0, 2)


@pytest.mark.parametrize("end", [None, "<end>"])
def test_saved_and_read_again_it_is_the_same_and_of_the_same_kind(end: str | None) -> None:
    again = read_tokenizer(WordTokenizer(WORDS, end).to_json())
    assert isinstance(again, WordTokenizer)
    assert (again.texts, again.end_of_text) == (WORDS, None if end is None else 6)
    assert isinstance(read_tokenizer(CharacterTokenizer("ab").to_json()), CharacterTokenizer)


@pytest.mark.parametrize("words", [(), ("a", ""), ("a", "a")])
def test_words_that_are_empty_or_repeated_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="different words"):
        WordTokenizer(words)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["model"].update(continuing_subword_prefix="##"),
        lambda data: data["model"]["vocab"].update(more=40),
        lambda data: data.update(normalizer={"type": "Lowercase"}),
        lambda data: data["model"].pop("vocab"),
        lambda data: data["model"].update(type="Unigram"),
        lambda data: data.pop("model"),
    ],
)
def test_a_file_that_is_damaged_or_of_another_kind_is_refused(change) -> None:
    data = json.loads(TOKENIZER.to_json())
    change(data)
    with pytest.raises(UserError, match="tokenizer"):
        read_tokenizer(json.dumps(data))


@pytest.mark.parametrize("text", ["", "[]", "null", '{"model": 3}'])
def test_what_is_no_tokenizer_at_all_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="damaged"):
        read_tokenizer(text)
