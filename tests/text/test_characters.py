"""The character tokenizer: one token per character, exact both ways, clear about what it does not know."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from glassformer.errors import UserError
from glassformer.text import CharacterTokenizer

HARD = "a é\u0301 👩\u200d👩 \r\n\t患者<b>[/]\x00\x1b\u2028\ufeff  "
texts = st.text(min_size=1, max_size=200)


@given(texts)
def test_decoding_an_encoding_gives_the_text_back(text: str) -> None:
    tokenizer = CharacterTokenizer.of_text(text)
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@given(texts)
def test_each_character_is_one_token_and_its_span_is_that_character(text: str) -> None:
    tokenizer = CharacterTokenizer.of_text(text)
    tokens = tokenizer.encode(text)
    assert [text[a:b] for a, b in tokens.spans] == list(text)
    assert [tokenizer.texts[i] for i in tokens.ids] == list(text)


@given(texts)
def test_ids_and_spans_are_those_of_the_library(text: str) -> None:
    tokenizer = CharacterTokenizer.of_text(text)
    encoding = Tokenizer.from_str(tokenizer.to_json()).encode(text)
    assert tokenizer.ids(text).tolist() == tokenizer.encode(text).ids.tolist() == encoding.ids
    assert tokenizer.encode(text).spans.tolist() == [list(span) for span in encoding.offsets]


def test_the_vocabulary_is_in_code_point_order_whatever_the_text() -> None:
    assert CharacterTokenizer.of_text("cab").texts == CharacterTokenizer.of_text("abcabc").texts == ("a", "b", "c")


def test_tokenizer_json_opens_with_the_plain_library_and_gives_the_same() -> None:
    tokenizer = CharacterTokenizer.of_text(HARD)
    plain = Tokenizer.from_str(tokenizer.to_json())
    assert plain.encode(HARD).ids == tokenizer.encode(HARD).ids.tolist()
    assert plain.decode(plain.encode(HARD).ids, skip_special_tokens=False) == HARD


def test_a_saved_tokenizer_is_the_same_when_read_back() -> None:
    tokenizer = CharacterTokenizer.of_text(HARD)
    assert CharacterTokenizer.from_json(tokenizer.to_json()).texts == tokenizer.texts


@pytest.mark.parametrize("method", ["encode", "ids"])
def test_an_unknown_character_is_named_with_its_position(method: str) -> None:
    tokenizer = CharacterTokenizer.of_text("ab\n")
    with pytest.raises(UserError) as caught:
        getattr(tokenizer, method)("ab\naЖbé")
    assert "'Ж' (U+0416)" in caught.value.fact
    assert "1 more" in caught.value.fact
    assert "position 4" in caught.value.context
    assert "line 2" in caught.value.context


@pytest.mark.parametrize(("character", "shown"), [("\x1b", "␛"), ("\u202e", "<U+202E>"), ("\udc80", "<U+DC80>")])
def test_an_unknown_character_that_steers_terminals_is_shown_not_obeyed(character: str, shown: str) -> None:
    with pytest.raises(UserError) as caught:
        CharacterTokenizer.of_text("ab").encode("a" + character)
    assert shown in caught.value.fact
    assert character not in str(caught.value)


@pytest.mark.parametrize("bad", [-1, 3, 10**9])
def test_an_id_outside_the_vocabulary_is_refused(bad: int) -> None:
    with pytest.raises(UserError, match=f"no token {bad}"):
        CharacterTokenizer.of_text("abc").decode([0, bad])


def test_the_empty_text_has_no_tokens() -> None:
    tokenizer = CharacterTokenizer.of_text("abc")
    tokens = tokenizer.encode("")
    assert tokens.ids.shape == (0,)
    assert tokens.spans.shape == (0, 2)
    assert tokenizer.decode([]) == ""


def changed(**parts: object) -> str:
    data = json.loads(CharacterTokenizer.of_text("abc").to_json())
    for path, value in parts.items():
        *outer, last = path.split("__")
        target = data
        for name in outer:
            target = target[name]
        target[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "{",
        "[" * 100_000,
        changed(normalizer={"type": "NFKC"}),
        changed(added_tokens=[{"id": 9, "content": "</s>"}]),
        changed(model__merges=[["a", "b"]]),
        changed(model__type="WordLevel"),
        changed(model__vocab={"a": 0, "bc": 1}),
        changed(model__vocab={"a": 0, "b": 2}),
        changed(model__vocab={"a": 0, "b": "1"}),
        changed(model__vocab=[]),
        changed(model__vocab=7),
        changed(model=None),
    ],
)
def test_anything_but_a_character_tokenizer_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        CharacterTokenizer.from_json(text)
