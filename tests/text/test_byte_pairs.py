"""Byte pair encoding: exact both ways for every text, tokens of whole characters, the same for other readers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers
from tokenizers import Tokenizer as HuggingFace

from glassformer.errors import UserError
from glassformer.text import BytePairTokenizer, Tokenizer, byte_pairs, last_border, read_tokenizer, tokenizer_config
from glassformer.text.byte_pairs import LONGEST, PATTERN, SMALLEST
from hard_texts import hard_bytes, hard_texts, long_runs

TRAINING = (
    "患者服用华法林后出现黑便。老人停用阿司匹林后没有头晕，患者没有恶心。",
    "The patient took warfarin and then had black stools; they'd say <eos>, <bos> and <pad>.\n\n",
    "患者用Python写程序，用Python写的程序。élève, naïve café 👩\u200d👩\u200d👧 naïve élève 汉字漢字",
)
TOKENIZER = BytePairTokenizer.train((text for text in TRAINING * 3), 600)
BARE = BytePairTokenizer.train([], 600)
"""One that learnt nothing: the bytes alone."""
MONOTONOUS = (" ", "\n", "!", "1", "\u0301", "👩", "\x00", "a\u0301", "' ")
CUT = pre_tokenizers.Split(Regex(PATTERN), "isolated")
tokenizers = st.sampled_from([TOKENIZER, BARE])


def pieces(text: str) -> list[str]:
    return [piece for piece, _ in CUT.pre_tokenize_str(text)]


# --- both ways -------------------------------------------------------------------------------------------------------


@given(hard_texts, tokenizers)
def test_decoding_an_encoding_gives_the_text_back(text: str, tokenizer: BytePairTokenizer) -> None:
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == text
    assert b"".join(tokenizer.bytes_of(id) for id in ids.tolist()) == text.encode()
    assert tokenizer.ids(text).tolist() == ids.tolist()


@given(hard_texts, tokenizers)
def test_a_span_is_the_characters_that_the_bytes_of_its_token_belong_to(
    text: str, tokenizer: BytePairTokenizer
) -> None:
    owners = [place for place, character in enumerate(text) for _ in character.encode()]
    tokens, at = tokenizer.encode(text), 0
    assert tokens.spans.shape == (len(tokens.ids), 2)
    for id, span in zip(tokens.ids.tolist(), tokens.spans.tolist(), strict=True):
        own = owners[at : at + len(tokenizer.bytes_of(id))]
        assert span == [own[0], own[-1] + 1]
        at += len(own)


@given(hard_texts, tokenizers)
def test_a_token_is_whole_characters_or_a_part_of_one(text: str, tokenizer: BytePairTokenizer) -> None:
    tokens = tokenizer.encode(text)
    for id, (start, end) in zip(tokens.ids.tolist(), tokens.spans.tolist(), strict=True):
        assert tokenizer.texts[id] == text[start:end] or end - start == 1 or "⟨" in text[start:end]


def test_the_spelling_of_a_special_token_in_a_text_is_text() -> None:
    for text in ("<eos>", "a<bos>b", "<pad><pad>", "<eos> <eos>\n<eos>"):
        ids = TOKENIZER.encode(text).ids
        assert not {*ids.tolist()} & {*TOKENIZER.specials}
        assert TOKENIZER.decode(ids) == text


def test_the_specials_are_the_last_three_ids_and_left_out_by_decoding() -> None:
    n = TOKENIZER.vocab_size
    assert TOKENIZER.specials == (n - 3, n - 2, n - 1)
    assert TOKENIZER.end_of_text == n - 2
    assert TOKENIZER.decode([n - 3, *TOKENIZER.ids("患者").tolist(), n - 2, n - 1]) == "患者"
    assert isinstance(TOKENIZER, Tokenizer)


def test_the_empty_text_has_no_tokens() -> None:
    assert TOKENIZER.encode("").spans.shape == (0, 2)
    assert TOKENIZER.encode("").ids.dtype == np.int64
    assert TOKENIZER.decode([]) == ""


@pytest.mark.parametrize("method", ["encode", "ids"])
def test_half_a_surrogate_pair_is_refused_with_its_position(method: str) -> None:
    with pytest.raises(UserError, match="position 70002") as caught:
        getattr(TOKENIZER, method)("ab" + "c" * 70_000 + "\udc80")
    assert "<U+DC80>" in caught.value.fact


@pytest.mark.parametrize("bad", [-1, 10**9, TOKENIZER.vocab_size])
def test_an_id_outside_the_vocabulary_is_refused(bad: int) -> None:
    with pytest.raises(UserError, match=f"no token {bad}"):
        TOKENIZER.decode([0, bad])


# --- what a reader sees ----------------------------------------------------------------------------------------------


def test_no_two_tokens_look_the_same() -> None:
    assert len({*TOKENIZER.texts}) == TOKENIZER.vocab_size
    assert {*"患者服用"} <= {*TOKENIZER.texts}


@given(hard_bytes | hard_texts.map(str.encode))
def test_what_is_shown_of_bytes_says_which_bytes_they_are(raw: bytes) -> None:
    shown = byte_pairs._shown(raw)
    read, at = b"", 0
    while at < len(shown):
        picture = (
            shown[at] == "⟨" and shown[at + 3 : at + 4] == "⟩" and set(shown[at + 1 : at + 3]) <= {*"0123456789ABCDEF"}
        )
        read += bytes([int(shown[at + 1 : at + 3], 16)]) if picture else shown[at].encode()
        at += 4 if picture else 1
    assert read == raw


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\xe5", "⟨E5⟩"),
        ("药".encode()[:2], "⟨E8⟩⟨8D⟩"),
        (" 药".encode(), " 药"),
        ("⟨".encode(), "⟨"),
        ("⟨E5⟩".encode(), "⟨E2⟩⟨9F⟩⟨A8⟩E5⟩"),
        (b"\x1b", "\x1b"),
    ],
)
def test_bytes_are_shown_as_characters_where_they_are_whole_ones(raw: bytes, shown: str) -> None:
    assert byte_pairs._shown(raw) == shown


# --- learning --------------------------------------------------------------------------------------------------------


def test_the_most_frequent_pieces_become_tokens_in_every_language() -> None:
    assert {"患者", "没有", "程序", "Python", " naïve", " black", "汉字漢字"} <= {*TOKENIZER.texts}


def test_with_room_for_a_few_only_the_most_frequent_are_learnt() -> None:
    # 的 costs two tokens (two of its bytes, then all three) and occurs 30 times, "ab" 20 times, 药 10 times.
    texts = ["的 "] * 30 + ["ab "] * 20 + ["药 "] * 10
    assert [BytePairTokenizer.train(texts, 259 + n).texts[256:-3] for n in (1, 2, 3, 4, 5)] == [
        ("ab",),
        ("⟨E7⟩⟨9A⟩", "的"),
        ("⟨E7⟩⟨9A⟩", "的", "ab"),
        ("⟨E7⟩⟨9A⟩", "的", "ab"),
        ("⟨E7⟩⟨9A⟩", "的", "⟨E8⟩⟨8D⟩", "药", "ab"),
    ]


def test_a_pair_of_characters_that_had_no_room_themselves_is_no_token() -> None:
    assert BytePairTokenizer.train(["的的 "] * 30, 260).vocab_size == SMALLEST


@given(st.lists(hard_texts, max_size=8), st.integers(0, 60))
def test_whatever_the_texts_tokens_are_whole_characters_or_parts_of_one_and_fit(texts: list[str], room: int) -> None:
    tokenizer = BytePairTokenizer.train(texts * 2, SMALLEST + room)
    assert tokenizer.vocab_size <= SMALLEST + room
    for id in range(256, tokenizer.vocab_size - 3):
        raw = tokenizer.bytes_of(id)
        whole = raw.decode("utf-8", "ignore").encode() == raw
        assert whole or len(byte_pairs._shown(raw)) == 4 * len(raw) <= 12, raw
    assert tokenizer.decode(tokenizer.ids("".join(texts))) == "".join(texts)


def test_a_vocabulary_has_the_size_asked_for_or_what_the_text_has() -> None:
    sizes = [BytePairTokenizer.train(TRAINING * 3, size).vocab_size for size in (SMALLEST, 260, 300, 10**6)]
    assert sizes[:3] == [259, 260, 300]
    assert 300 < sizes[3] < 1000
    assert BARE.vocab_size == BytePairTokenizer.train(["abc"], 10**6).vocab_size == 259


def test_a_vocabulary_without_room_for_the_bytes_is_refused() -> None:
    with pytest.raises(UserError, match="A vocabulary of 258 tokens is too small"):
        BytePairTokenizer.train(["abc"], 258)


def test_half_a_surrogate_pair_in_a_training_text_is_refused() -> None:
    with pytest.raises(UserError, match="half a surrogate pair"):
        BytePairTokenizer.train(["abc", "a\ud83d"], 300)


def test_texts_are_taken_one_after_another_and_once() -> None:
    def stream() -> Iterator[str]:
        yield from TRAINING * 3
        taken.append(True)

    taken: list[bool] = []
    assert BytePairTokenizer.train(stream(), 600).texts == TOKENIZER.texts
    assert taken == [True]


def test_the_same_texts_give_the_same_tokens_in_another_process() -> None:
    code = (
        "import sys, json; from glassformer.text import BytePairTokenizer\n"
        "sys.stdout.write(BytePairTokenizer.train(json.load(sys.stdin) * 3, 600).to_json())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(TRAINING), capture_output=True, text=True, check=True
    )
    assert done.stdout == TOKENIZER.to_json()


def test_a_text_full_of_special_spellings_makes_no_token_of_them() -> None:
    tokenizer = BytePairTokenizer.train(["<eos><eos> <eos>" * 50], 1000)
    assert tokenizer.texts.count("<eos>") == 1
    assert tokenizer.decode(tokenizer.ids("<eos>")) == "<eos>"


# --- pieces and borders ----------------------------------------------------------------------------------------------


@given(hard_texts)
def test_the_pieces_of_a_text_are_short_and_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text
    assert max(map(len, pieces(text)), default=0) <= LONGEST + 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They'd say 'they go'", ["They", "'d", " say", " '", "they", " go", "'"]),
        ("患者用Python写的程序，出现黑便。", ["患者用", "Python", "写的程序", "，", "出现黑便", "。"]),
        ("コーヒー 1234567 x=1", ["コーヒー", " 123", "456", "7", " x", "=", "1"]),
        ("\n'tis 'Tis", ["\n", "'", "tis", " '", "Tis"]),
        ("a\n\n  b \u0301क्षि", ["a", "\n\n ", " b", " \u0301क्षि"]),
        ("a<eos>b", ["a", "<", "eos", ">", "b"]),
    ],
)
def test_texts_are_cut_as_the_table_says(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


@pytest.mark.parametrize(("unit", "size"), [("a", 1_000_000), ("汉", 1_000_000), *((c, 140_000) for c in MONOTONOUS)])
def test_a_long_text_without_spaces_is_handed_on_in_small_parts_and_pieces(unit: str, size: int) -> None:
    text = unit * (size // len(unit))
    parts = list(byte_pairs._chunks(text))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= 1 << 16
    # Less than 64 characters were held back at each border: the work is that of the text read about once.
    assert len(parts) <= 1 + len(text) // ((1 << 16) - 64)
    assert max(len(piece) for piece in pieces(parts[1])) <= LONGEST + 1


@example(" " + "a" * 99, 32)
@example(" " * 64 + "a", 33)
@given(long_runs | hard_texts, st.integers(1, 80))
def test_a_text_cut_at_a_border_has_the_same_pieces_whatever_follows(text: str, chunk: int) -> None:
    found, waiting = [], ""
    for start in range(0, len(text), chunk):
        waiting += text[start : start + chunk]
        border = last_border(waiting)
        assert border > 0 or len(waiting) < LONGEST + 1
        found += pieces(waiting[:border])
        waiting = waiting[border:]
    assert found + pieces(waiting) == pieces(text)


@given(st.lists(hard_texts, min_size=1, max_size=4), st.integers(40, 90))
def test_a_text_encoded_in_chunks_has_the_tokens_of_the_library_at_once(texts: list[str], chunk: int) -> None:
    text = "汉".join(texts) * 3
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(byte_pairs, "_CHUNK", chunk)
        ours = TOKENIZER.ids(text).tolist()
    assert ours == TOKENIZER._tokenizer.encode(text, add_special_tokens=False).ids


# --- saved and read by others ----------------------------------------------------------------------------------------


@given(hard_texts, tokenizers)
def test_hugging_face_reads_its_json_and_gives_the_same_ids(text: str, tokenizer: BytePairTokenizer) -> None:
    theirs = HuggingFace.from_str(tokenizer.to_json())
    theirs.encode_special_tokens = True  # what `split_special_tokens` in tokenizer_config.json says to `transformers`
    encoding = theirs.encode(text)
    assert encoding.ids == tokenizer.ids(text).tolist()
    assert theirs.decode(encoding.ids, skip_special_tokens=False) == text
    assert tuple(theirs.token_to_id(mark) for mark in ("<bos>", "<eos>", "<pad>")) == tokenizer.specials


@given(st.lists(st.integers(0, TOKENIZER.vocab_size - 1), max_size=30))
def test_hugging_face_decodes_any_ids_alike(ids: list[int]) -> None:
    assert HuggingFace.from_str(TOKENIZER.to_json()).decode(ids) == TOKENIZER.decode(ids)


def test_read_again_it_is_the_same() -> None:
    for tokenizer in (TOKENIZER, BARE):
        again = read_tokenizer(tokenizer.to_json().encode())
        assert isinstance(again, BytePairTokenizer)
        assert (again.texts, again.to_json()) == (tokenizer.texts, tokenizer.to_json())


def test_the_configuration_for_transformers_names_the_specials_and_whether_texts_begin_with_one() -> None:
    config = tokenizer_config(TOKENIZER, begin=True)
    assert (config["bos_token"], config["eos_token"], config["pad_token"]) == ("<bos>", "<eos>", "<pad>")
    assert (config["add_bos_token"], config["add_eos_token"], config["split_special_tokens"]) == (True, False, True)
    assert tokenizer_config(TOKENIZER, begin=False)["add_bos_token"] is False
    json.dumps(config, allow_nan=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["model"]["vocab"].update({"he": 5000}),
        lambda data: data["model"]["vocab"].pop("!"),
        lambda data: data["model"]["vocab"].update({"!": 1}),
        lambda data: data["model"].pop("vocab"),
        lambda data: data["model"].update(vocab=[]),
        lambda data: data["model"]["merges"].append(["zq", "x"]),
        lambda data: data["model"]["merges"].append("a b"),
        lambda data: data["model"]["merges"].append(["汉", "字"]),
        lambda data: data["model"]["merges"].append([1, 2]),
        lambda data: data["model"]["merges"].pop(),
        lambda data: data["model"].update(merges=None),
        lambda data: data["model"].update(dropout=0.1),
        lambda data: data["model"].update(byte_fallback=True),
        lambda data: data["model"].update(ignore_merges=True),
        lambda data: data["model"].update(type="WordLevel"),
        lambda data: data.update(normalizer={"type": "NFC"}),
        lambda data: data.update(post_processor={"type": "ByteLevel"}),
        lambda data: data.update(pre_tokenizer={"type": "ByteLevel"}),
        lambda data: data.update(pre_tokenizer=None),
        lambda data: data["pre_tokenizer"]["pretokenizers"][0]["pattern"].update(Regex=r"\s+"),
        lambda data: data["pre_tokenizer"]["pretokenizers"][1].update(add_prefix_space=True),
        lambda data: data.update(decoder={"type": "Fuse"}),
        lambda data: data["added_tokens"].pop(),
        lambda data: data["added_tokens"].reverse(),
        lambda data: data["added_tokens"][1].update(special=False),
        lambda data: data["added_tokens"][1].update(id=0),
        lambda data: data.update(added_tokens=None),
    ],
)
def test_a_file_that_is_damaged_or_of_another_kind_is_refused(change) -> None:
    data = json.loads(TOKENIZER.to_json())
    change(data)
    with pytest.raises(UserError, match="This is not a"):
        read_tokenizer(json.dumps(data))


def test_merges_that_would_make_endless_tokens_are_refused() -> None:
    token = b"a"
    merges = []
    for _ in range(60):
        merges.append((token, token))
        token += token
        if len(token) > 1000:
            break
    with pytest.raises(UserError, match="cannot be a token"):
        BytePairTokenizer(merges)


def test_a_merge_that_spells_a_special_token_is_refused() -> None:
    merges = [(b"<", b"e"), (b"<e", b"o"), (b"<eo", b"s"), (b"<eos", b">")]
    with pytest.raises(UserError, match="cannot be a token"):
        BytePairTokenizer(merges)


def test_a_name_that_an_older_library_did_not_write_changes_nothing() -> None:
    data = json.loads(TOKENIZER.to_json())
    del data["model"]["ignore_merges"], data["normalizer"], data["model"]["unk_token"]
    assert read_tokenizer(json.dumps(data)).texts == TOKENIZER.texts
