"""Every kind of tokenizer: random texts of all planes go in and come out, whole or streamed; no file makes it crash."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from glassformer.errors import UserError
from glassformer.text import BytePairTokenizer, CharacterTokenizer, Tokenizer, WordTokenizer, clinic, read_tokenizer
from hard_texts import random_texts

LEARNT_FROM = list(random_texts(300, seed=1))
KINDS = ("characters", "characters with specials", "words", "byte pairs", "bytes")


def tokenizer_for(kind: str, texts: list[str]) -> Tokenizer:
    """A tokenizer of ``kind`` that can encode ``texts``."""
    characters = sorted({character for text in texts for character in text})
    if kind == "words":
        longer = {text[a : a + 4] for text in texts[:50] for a in range(0, len(text) - 4, 4)} - {*characters}
        return WordTokenizer([*characters, *sorted(longer), "the end"], "the end")
    if kind == "byte pairs":
        return BytePairTokenizer.train(LEARNT_FROM, 1000)
    if kind == "bytes":
        return BytePairTokenizer([])
    return CharacterTokenizer.of_characters(characters, specials="specials" in kind)


def require_round_trip(kind: str, count: int) -> None:
    texts = list(random_texts(count, seed=2))
    tokenizer = tokenizer_for(kind, texts)
    assert sum(map(len, texts)) > 10 * count
    for text in texts:
        tokens = tokenizer.encode(text)
        assert tokenizer.decode(tokens.ids) == text
        assert b"".join(tokenizer.bytes_of(id) for id in tokens.ids.tolist()) == text.encode()
        assert not {*tokens.ids.tolist()} & {*tokenizer.specials}
        spans = tokens.spans.tolist()
        covered = [span for k, span in enumerate(spans) if span not in spans[:k]]
        assert [place for a, b in covered for place in range(a, b)] == list(range(len(text)))


@pytest.mark.parametrize("kind", KINDS)
def test_random_texts_of_all_planes_round_trip(kind: str) -> None:
    require_round_trip(kind, 300)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_random_texts_round_trip(kind: str) -> None:
    require_round_trip(kind, 10_000)


# --- files -----------------------------------------------------------------------------------------------------------

SAVED = {
    "characters": CharacterTokenizer.of_text("abc药", specials=True),
    "words": clinic().tokenizer,
    "byte pairs": BytePairTokenizer.train(["the then 药药"] * 3, 280),
}
ODD = (None, True, -1, 0, 1e308, "", "a", "\ud800", "\x1b[31m", [], {}, [[]], {"a": 1}, "汉")


def damaged(data: Any, generator: random.Random) -> Any:
    """A copy of ``data`` with one place, at any depth, removed, doubled or replaced."""
    if not isinstance(data, dict | list) or not data or generator.random() < 0.1:
        return generator.choice(ODD)
    place = generator.choice(list(data) if isinstance(data, dict) else range(len(data)))
    changed = data.copy()
    act = generator.random()
    if act < 0.15:
        del changed[place]
    elif act < 0.25:
        changed = {**changed, "more": generator.choice(ODD)} if isinstance(data, dict) else [*changed, changed[place]]
    else:
        changed[place] = damaged(data[place], generator)
    return changed


@pytest.mark.parametrize("kind", SAVED)
def test_any_damage_is_one_message_or_changes_nothing(kind: str) -> None:
    original = SAVED[kind]
    data, generator, refused = json.loads(original.to_json()), random.Random(3), list[str]()
    for _ in range(400):
        try:
            read = read_tokenizer(json.dumps(damaged(data, generator)))
        except UserError as problem:
            refused.append(str(problem))
        else:
            assert read.specials.end in (None, read.vocab_size - 2, read.vocab_size - 1)
            assert len(read.texts) == read.vocab_size
            assert read_tokenizer(read.to_json()).texts == read.texts
    assert len(refused) > 100
    assert all(message.isprintable() for message in refused)


@pytest.mark.parametrize("kind", SAVED)
def test_a_file_cut_short_at_any_place_is_one_message(kind: str) -> None:
    raw = SAVED[kind].to_json().encode()
    for end in [*range(0, len(raw), 97), len(raw) - 1]:
        with pytest.raises(UserError, match=r"tokenizer\.json is damaged"):
            read_tokenizer(raw[:end])


LATIN = CharacterTokenizer("é").to_json().encode("latin-1")


@pytest.mark.parametrize(
    "raw", [LATIN, b"\xff\xfe{}", b"\x80", "{}".encode("utf-16"), b"\xef\xbb\xbf{}", b"\x00" * 10, b"{" * 10**6]
)
def test_bytes_that_are_no_json_in_utf_8_are_one_message(raw: bytes) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.json is damaged"):
        read_tokenizer(raw)
