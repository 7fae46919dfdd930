"""Stop strings across any borders, and text that never shows half a character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.generation import Choice, Continuation, Reason, Request, StopStrings, TextStream, continuation
from glassformer.text import BytePairTokenizer
from hard_texts import hard_texts, random_texts
from learning import tiny_decoder

TOKENIZER = BytePairTokenizer.train(random_texts(300, seed=1), 1000)

letters = st.text("ab", max_size=12)
needles = st.lists(st.text("ab", min_size=1, max_size=4), max_size=3)


def cut(text: str, borders: list[int]) -> list[str]:
    """``text`` in parts, cut at ``borders`` (taken modulo its length, so some parts may be empty)."""
    places = sorted(b % (len(text) + 1) for b in borders)
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def shown(strings: list[str], parts: list[str]) -> tuple[str, str | None]:
    stopping = StopStrings(strings)
    text = "".join(stopping.feed(part) for part in parts)
    return text + stopping.end(), stopping.found


def first_complete(strings: list[str], text: str) -> tuple[str, str | None]:
    """By definition: the shortest beginning of ``text`` that ends with a string, less the longest such string."""
    for end in range(len(text) + 1):
        complete = [s for s in strings if text[:end].endswith(s)]
        if complete:
            longest = max(complete, key=len)
            return text[: end - len(longest)], longest
    return text, None


@given(needles, letters, st.lists(st.integers(0, 12), max_size=6))
def test_the_text_ends_before_the_first_complete_stop_string_however_it_is_cut(
    strings: list[str], text: str, borders: list[int]
) -> None:
    assert shown(strings, cut(text, borders)) == first_complete(strings, text)


@given(st.data(), hard_texts.filter(bool))
def test_a_stop_string_is_found_across_the_borders_of_byte_pair_tokens(data: st.DataObject, text: str) -> None:
    places = st.tuples(st.integers(0, len(text) - 1), st.integers(1, 4))
    strings = [text[a : a + n] for a, n in data.draw(st.lists(places, min_size=1, max_size=3))]
    written = [Choice(id, 1.0, 1.0) for id in TOKENIZER.ids(text).tolist()]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(continuation, "choices", lambda *_: iter(written))
        made = Continuation(tiny_decoder(4), TOKENIZER, (0,), Request(len(written), stop=strings))
        shown = "".join(made)
    assert (shown, made.stop) == first_complete(strings, text)
    assert made.reason is Reason.STRING
    # Nothing is written in vain: the last token is the one that completes the stop string.
    before = TOKENIZER.decode([choice.token for choice in made.choices[:-1]]).removesuffix("\ufffd")
    assert first_complete(strings, before)[1] is None


@given(needles, letters)
def test_nothing_is_held_back_that_no_stop_string_can_begin_in(strings: list[str], text: str) -> None:
    stopping, seen, out = StopStrings(strings), "", ""
    for character in text:
        out += stopping.feed(character)
        seen += character
        if stopping.found is None:
            held = seen[len(out) :]
            assert held == "" or any(s.startswith(held) for s in strings)


def test_a_stop_string_is_found_across_parts() -> None:
    assert shown(["\n\n"], ["one", "\n", "\ntwo"]) == ("one", "\n\n")
    assert shown(["黑便。"], ["出现", "黑", "便", "。", "后"]) == ("出现", "黑便。")


def test_after_a_stop_string_nothing_more_is_shown() -> None:
    stopping = StopStrings(["b"])
    assert [stopping.feed(part) for part in ("ab", "a", "b")] == ["a", "", ""]


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(UserError, match="stop string is empty"):
        StopStrings(["a", ""])


# --- whole characters ------------------------------------------------------------------------------------------------


def streamed(pieces: list[bytes]) -> list[str]:
    stream = TextStream(pieces.__getitem__)
    return [*(stream.feed(id) for id in range(len(pieces))), stream.end()]


@given(st.text(max_size=8), st.lists(st.integers(0, 40), max_size=8))
def test_text_cut_into_bytes_anywhere_comes_out_whole(text: str, borders: list[int]) -> None:
    raw = text.encode("utf-8")
    places = sorted(b % (len(raw) + 1) for b in borders)
    pieces = [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]
    parts = streamed(pieces)
    assert "".join(parts) == text
    assert "\ufffd" not in "".join(parts) or "\ufffd" in text


@given(st.lists(st.binary(max_size=3), max_size=8))
def test_any_bytes_give_the_same_text_in_a_stream_as_at_once(pieces: list[bytes]) -> None:
    assert "".join(streamed(pieces)) == b"".join(pieces).decode("utf-8", "replace")


def test_a_character_is_shown_when_its_last_byte_comes_and_not_before() -> None:
    a, b, c = (bytes([byte]) for byte in "药".encode())
    assert streamed([a, b, c]) == ["", "", "药", ""]
    assert streamed([a, b]) == ["", "", "\ufffd"]
