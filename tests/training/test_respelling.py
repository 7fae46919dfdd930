"""Tokens as characters: what a bigram of characters sees is the text itself, whatever the tokenizer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text import BytePairTokenizer, CharacterTokenizer, Prepared, TokenStream, documents, prepare
from glassformer.text.batches import Batch, first_scored
from glassformer.text.tokenizer import Tokenizer
from glassformer.training import respelling
from glassformer.training.baseline import fit_bigram
from glassformer.training.respelling import in_characters
from learning import words_text

BEGIN, END = "\x02", "\x03"
"""What stands for BOS and EOS where the test spells a text itself."""

TEXTS = [words_text(30, seed) + "é药😀 "[seed % 4] for seed in range(8)]


def prepared(folder: Path, texts: Sequence[str], kind: str, *, isolated: bool = False) -> Prepared:
    folder.mkdir(exist_ok=True)
    path = folder / "lines.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    size = 290 if kind == "bytes" else None
    with documents(path) as found:
        return prepare(found, folder / f"{kind}-{isolated}", kind, size, isolated=isolated)


def spelled(tokenizer: Tokenizer, stream: TokenStream) -> str:
    """The text of ``stream`` with its marks, token by token: right where no character is cut."""
    begin, end, _ = tokenizer.specials
    raw = b"".join(
        {begin: BEGIN.encode(), end: END.encode()}.get(id) or tokenizer.bytes_of(id)
        for id in stream.tokens(0, len(stream)).tolist()
    )
    return raw.decode("utf-8")


def oracle(train: str, held_out: str) -> float:
    """Nats per scored character: the bigram fitted to the text itself, each character a number."""
    alphabet = sorted(set(train + held_out))
    ids, asked = (np.array([alphabet.index(c) for c in text], np.int64) for text in (train, held_out))
    begin = alphabet.index(BEGIN) if BEGIN in alphabet else None
    starts = np.flatnonzero(ids == begin) if begin is not None else np.zeros(1, np.int64)
    scored = np.ones(len(asked) - 1, np.bool_) if begin is None else asked[1:] != begin
    batch = Batch(asked[None, :-1], asked[None, 1:], scored[None])
    loss = fit_bigram(TokenStream(ids, starts, begin), len(alphabet)).loss([batch])
    assert loss is not None
    return loss


def through(ready: Prepared, n: int, b: int, limit: int = 10**9) -> tuple[float, int]:
    """The same through ``in_characters``, from windows of ``n`` tokens, ``b`` to a batch; and how many were scored."""
    batches = list(first_scored(ready.corpus.validation(n, b), limit))
    size, train, asked = in_characters(ready.tokenizer, ready.corpus.train, batches)
    loss = fit_bigram(train, size).loss(asked)
    assert loss is not None
    return loss, sum(int(batch.scored.sum()) for batch in asked)


@pytest.mark.parametrize("kind", ["characters", "bytes"])
@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize(("n", "b"), [(5, 3), (1, 4), (1000, 1), (7, 1)])
def test_the_bigram_is_the_one_of_the_text_itself(tmp_path: Path, kind: str, isolated: bool, n: int, b: int) -> None:
    ready = prepared(tmp_path, TEXTS, kind, isolated=isolated)
    train, held_out = (spelled(ready.tokenizer, stream) for stream in (ready.corpus.train, ready.corpus.held_out))
    assert train.count(BEGIN) == train.count(END) == len(ready.corpus.train.starts) > 1
    loss, scored = through(ready, n, b)
    assert loss == pytest.approx(oracle(train, held_out), rel=1e-12)
    assert scored == len(held_out) - held_out.count(BEGIN)


@pytest.mark.parametrize("texts", [TEXTS, ["".join(TEXTS)]])
def test_two_tokenizers_of_the_same_documents_have_the_same_bigram_to_beat(tmp_path: Path, texts: list[str]) -> None:
    characters, pairs = (prepared(tmp_path, texts, kind) for kind in ("characters", "bytes"))
    if len(texts) > 1:
        assert through(characters, 6, 4) == through(pairs, 9, 2)
        return
    # A single text has no marks as characters, and an end as byte pairs: it is one more to predict.
    assert through(pairs, 9, 2)[1] == through(characters, 6, 4)[1] + 1


def test_a_text_cut_by_position_is_read_from_its_last_training_character_on(tmp_path: Path) -> None:
    """Also where the last token of training is a part of a character: here every token is one byte."""
    text = "患者服用华法林后出现黑便。" * 30
    path = tmp_path / "zh.txt"
    path.write_text(text)
    with documents(path) as found:
        ready = prepare(found, tmp_path / "data", "bytes", 259)
    assert ready.tokenizer.bytes_of(int(ready.corpus.held_out.tokens(0, 1)[0])) != b""
    cut = len(text) * 9 // 10
    loss, scored = through(ready, 7, 3)
    assert scored == len(text) - cut + 1
    assert loss == pytest.approx(oracle(BEGIN + text[:cut], text[cut - 1 :] + END), rel=1e-12)


@given(st.integers(1, 60))
def test_what_is_asked_ends_with_the_last_scored_token(limit: int) -> None:
    tokenizer = CharacterTokenizer.of_characters(set("abc "), specials=True)
    begin, end, _ = tokenizer.specials
    assert begin is not None
    assert end is not None
    ids = np.concatenate([[begin, *tokenizer.ids(words_text(9, seed)), end] for seed in range(2)])
    stream = TokenStream(ids, np.flatnonzero(ids == begin), begin)
    batches = list(first_scored(stream.validation_windows(5, 2), limit))
    _, _, asked = in_characters(tokenizer, stream, batches)
    assert sum(int(batch.scored.sum()) for batch in asked) == sum(int(batch.scored.sum()) for batch in batches)


BYTES = BytePairTokenizer.train(["ab" * 40], 261)


@given(st.lists(st.integers(0, BYTES.vocab_size - 1), min_size=3, max_size=40), st.integers(1, 5))
def test_tokens_that_are_no_text_are_characters_that_cannot_be_read(ids: list[int], piece: int) -> None:
    """Any tokens in any order, however they come in pieces: as Python replaces what is no UTF-8 between the marks."""
    begin, end, pad = BYTES.specials
    ids = [id for id in ids if id != pad]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(respelling, "_PIECE", piece)
        pieces = [np.array(ids[k : k + piece], np.int64) for k in range(0, len(ids), piece)]
        found = np.concatenate([*respelling._spelled(BYTES, pieces), np.zeros(0, np.uint32)])
    expected, raw = [], b""
    for id in [*ids, None]:
        if id in (begin, end, None):
            expected += [ord(c) for c in raw.decode("utf-8", "replace")]
            expected += [] if id is None else [respelling._BEGIN if id == begin else respelling._END]
            raw = b""
        else:
            raw += BYTES.bytes_of(id)
    assert found.tolist() == expected


def test_of_a_long_text_only_the_beginning_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = prepared(tmp_path, TEXTS, "bytes")
    monkeypatch.setattr(respelling, "LIMIT", 20)
    batches = list(ready.corpus.validation(5, 2))
    _, train, _ = in_characters(ready.tokenizer, ready.corpus.train, batches)
    first = TokenStream(ready.corpus.train.tokens(0, 20), ready.corpus.train.starts[:1], ready.corpus.train.begin)
    assert len(train) == len(spelled(ready.tokenizer, first))
