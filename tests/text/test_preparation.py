"""From documents to streams: the split, the tokens, and that nothing large is ever held."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.text import BytePairTokenizer, CharacterTokenizer, Prepared, TokenStream, prepare
from glassformer.text.preparation import encoded, halve, look, training_texts
from glassformer.text.records import Document
from glassformer.text.sources import Documents

words = st.text(st.sampled_from("ab 患\n,"), min_size=1, max_size=30)


def of(contents: list[str], size: int = 7) -> Documents:
    """These contents as documents, in pieces of ``size`` characters."""

    def start() -> Any:
        for number, content in enumerate(contents):
            yield Document(f"d{number}", (content[k : k + size] for k in range(0, len(content), size)))

    return Documents(start, "a test")


def prepared(contents: list[str], kind: str = "characters", **options: Any) -> tuple[Prepared, list[list[str]]]:
    """What ``prepare`` makes, and the texts of the documents of both streams."""
    with tempfile.TemporaryDirectory() as name:
        found = prepare(of(contents), Path(name) / "out", kind, **options)
        corpus = found.corpus
        return found, [texts_of(found, stream) for stream in (corpus.train, corpus.held_out)]


def texts_of(found: Prepared, stream: TokenStream) -> list[str]:
    ids = stream.tokens(0, len(stream))
    return [found.tokenizer.decode(part) for part in np.split(ids, stream.starts[1:])]


def quiet(_stage: str, _done: int, _all: int | None) -> None:
    pass


# --- the streams ------------------------------------------------------------------------------------------------------


@given(st.lists(words, min_size=2, max_size=9), st.sampled_from(["characters", "bytes"]), st.integers(1, 60))
@settings(max_examples=25)
def test_documents_come_back_from_the_streams_each_between_bos_and_eos(
    contents: list[str], kind: str, shard: int
) -> None:
    if len(set("".join(contents))) < 2 or len(set(contents)) < 2:
        return
    with tempfile.TemporaryDirectory() as name:
        found = prepare(of([*contents, ""]), Path(name) / "out", kind, shard=shard)
        begin, end, _ = found.tokenizer.specials
        train, held_out = (texts_of(found, s) for s in (found.corpus.train, found.corpus.held_out))
        assert sorted(train + held_out) == sorted(contents)
        assert not set(train) & set(held_out)
        in_order = iter(contents)
        assert all(text in in_order for text in train)
        for stream in (found.corpus.train, found.corpus.held_out):
            for part in np.split(stream.tokens(0, len(stream)), stream.starts[1:]):
                assert (part[0], part[-1]) == (begin, end)
        assert found.facts["empty_documents"] == 1


@given(words.filter(lambda text: len(set(text)) > 1), st.integers(1, 9))
def test_one_document_is_cut_by_position_and_scored_from_the_cut(text: str, size: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        found = prepare(of([text], size), Path(name) / "out")
        assert found.tokenizer.texts == tuple(sorted(set(text)))
        train, held_out = (stream.tokens(0, len(stream)) for stream in (found.corpus.train, found.corpus.held_out))
        kept = len(text) - max(1, round(len(text) / 10))
        assert found.tokenizer.decode(train) == text[:kept]
        assert found.tokenizer.decode(held_out) == text[kept - 1 :]
        scored = [t for batch in found.corpus.validation(5, 2) for t in batch.targets[batch.scored].tolist()]
        assert found.tokenizer.decode(scored) == text[kept:]
        assert "the last" in found.corpus.describe()


def test_one_document_in_byte_pairs_is_cut_at_the_same_character() -> None:
    text = "a cat and a hat " * 20
    found, (train, held_out) = prepared([text], "bytes", vocab_size=280)
    assert train == [text[:288]]
    assert held_out[0].endswith(text[288:])
    ids = found.corpus.held_out.tokens(0, len(found.corpus.held_out))
    assert ids[0] == found.corpus.train.ids[len(found.corpus.train) - 1 :][0]
    assert ids[-1] == found.tokenizer.specials.end


def test_equal_documents_are_cut_by_position_and_stay_documents() -> None:
    found, (train, held_out) = prepared(["ab"] * 10)
    assert train == ["ab"] * 9
    assert held_out == ["", "ab"]
    assert found.facts["split"]["rule"] == "position"
    scored = [t for b in found.corpus.validation(9, 2) for t in b.targets[b.scored].tolist()]
    assert found.tokenizer.decode(scored) == "ab"


@given(st.lists(words, max_size=5), st.integers(1, 9))
def test_encoding_by_pieces_is_encoding_the_whole(parts: list[str], size: int) -> None:
    text = "".join(parts) * 3
    byte_pairs = BytePairTokenizer.train(["aa bb aa, bb 患 ab ab aab\n\n"] * 9, 300)
    for tokenizer in (byte_pairs, CharacterTokenizer("ab 患\n,")):
        pieces = [text[k : k + size] for k in range(0, len(text), size)]
        ids = [id for part in encoded(pieces, tokenizer) for id in part.tolist()]
        assert ids == tokenizer.ids(text).tolist()


@pytest.mark.parametrize(("count", "dtype"), [(250, "uint8"), (257, "uint16"), (66_000, "uint32")])
def test_ids_take_the_smallest_type_that_fits(count: int, dtype: str) -> None:
    letters = "".join(chr(0x20000 + k) for k in range(count))
    found, _ = prepared([letters, letters[:3]])
    assert found.facts["dtype"] == dtype
    assert found.tokenizer.vocab_size == count + 3


# --- the split --------------------------------------------------------------------------------------------------------


@given(st.lists(words, min_size=2, max_size=30), st.randoms())
def test_the_split_is_by_content_whatever_the_order(contents: list[str], random: Any) -> None:
    if len(set(contents)) < 2:
        return

    def held_out(order: list[str]) -> set[str]:
        flags = halve(look(of(order), quiet)).documents
        assert flags is not None
        chosen = {text for text, flag in zip(order, flags, strict=True) if flag}
        assert not chosen & {text for text, flag in zip(order, flags, strict=True) if not flag}
        assert 0 < len(chosen) < len(set(contents))
        return chosen

    mixed = contents.copy()
    random.shuffle(mixed)
    assert held_out(contents) == held_out(mixed)


def test_about_a_tenth_of_the_characters_is_held_out() -> None:
    lengths = np.random.default_rng(0).integers(1, 2000, 400).tolist()
    contents = [f"{k} " + "a" * n for k, n in enumerate(lengths)]
    flags = halve(look(of(contents, 5000), quiet)).documents
    assert flags is not None
    sizes = np.array([len(content) for content in contents])
    assert 0.095 < sizes[flags].sum() / sizes.sum() < 0.105


def test_of_two_documents_the_shorter_is_held_out_unless_it_is_more_than_the_rest() -> None:
    _, (train, held_out) = prepared(["a" * 70, "b" * 40])
    assert (train, held_out) == (["a" * 70], ["b" * 40])


def test_byte_pairs_are_learnt_from_the_training_text_alone() -> None:
    source = of([f"{k} train train train" for k in range(30)], 9)
    survey = look(source, quiet)
    halves = halve(survey)
    assert halves.documents is not None
    learnt = "".join(training_texts(source, survey, halves, quiet))
    expected = [f"{k} train train train" for k in range(30) if not halves.documents[k]]
    assert learnt == "".join(expected)
    part = "".join(training_texts(source, survey, halves, quiet, learn=len(learnt) // 3))
    assert 0.2 < len(part) / len(learnt) < 0.45
    one = of(["x" * 90 + "y" * 10], 7)
    survey = look(one, quiet)
    assert set("".join(training_texts(one, survey, halve(survey), quiet))) == {"x"}


# --- what cannot be trained on ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("contents", "part"),
    [
        ([], "is empty"),
        (["", ""], "is empty"),
        (["a"], "single character"),
        (["aa", "a"], "only one character, 3 times"),
    ],
)
def test_a_text_with_nothing_to_predict_is_refused(contents: list[str], part: str) -> None:
    with pytest.raises(UserError, match=part):
        prepared(contents)


def test_two_characters_are_enough() -> None:
    found, parts = prepared(["ab"])
    assert parts == [["a"], ["ab"]]
    assert len(found.corpus.train) == 1


def test_options_that_do_not_apply_are_refused() -> None:
    with pytest.raises(UserError, match="not free"):
        prepared(["ab", "b"], vocab_size=300)
    with pytest.raises(UserError, match='no tokenizer "words"'):
        prepared(["ab", "b"], "words")


@pytest.mark.parametrize("second", [["ab", "cd"], ["ab"], ["ab", "ce", "x"], ["ab", "cde"]])
def test_a_text_that_changes_between_the_passes_is_refused(second: list[str], tmp_path: Path) -> None:
    versions = iter([["ab", "ce"], second])
    changing = Documents(lambda: iter(of(next(versions))), "a test")
    with pytest.raises(UserError, match="changed while it was being read"):
        prepare(changing, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_progress_is_told_stage_by_stage(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    prepare(of(["ab ab ab", "cd cd"]), tmp_path / "out", "bytes", progress=lambda *step: told.append(step))
    stages = [stage for stage, _, _ in told]
    assert list(dict.fromkeys(stages)) == ["reading", "learning", "writing"]
    assert told[-1] == ("writing", 13, 13)


# --- memory -----------------------------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    """Four times the text, the same peak: no array of all tokens, no list of all pieces."""

    def peak(count: int) -> int:
        piece = "To be, or not to be, that is the question. " * 500
        contents = [f"{k} {piece}" for k in range(count)]
        source = of(contents, 1 << 14)
        tracemalloc.start()
        found = prepare(source, tmp_path / str(count))
        for batch in found.corpus.validation(64, 8):
            assert batch.scored.any()
        found.corpus.batch(64, 8, np.random.default_rng(0))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    small, large = peak(50), peak(200)
    assert large < 1.2 * small + 200_000


_ONE_LINE = """
import resource, sys
from pathlib import Path
from glassformer.text import documents, prepare
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with documents(sys.argv[1]) as found:
    prepared = prepare(found, Path(sys.argv[2]), sys.argv[3])
print(len(prepared.corpus.train), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def one_line(folder: Path, megabytes: int, kind: str) -> int:
    """MiB that preparing one line of so many MB takes beyond what the imports took."""
    with (folder / "line.txt").open("wb") as file:
        for k in range(megabytes):
            file.write((b"%06d word " % k) * (1_000_000 // 12))
    run = subprocess.run(
        [sys.executable, "-c", _ONE_LINE, str(folder / "line.txt"), str(folder / "out"), kind],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    tokens, taken = map(int, run.stdout.split())
    assert tokens > megabytes * 1000
    return taken


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_one_endless_line_takes_little_memory(tmp_path: Path, kind: str) -> None:
    assert one_line(tmp_path, 4 if kind == "bytes" else 12, kind) < 160


@pytest.mark.full
@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_one_line_of_hundreds_of_megabytes_takes_no_more(tmp_path: Path, kind: str) -> None:
    assert one_line(tmp_path, 60 if kind == "bytes" else 300, kind) < 250


def test_the_facts_can_be_written_as_json(tmp_path: Path) -> None:
    found = prepare(of(["ab", "b"]), tmp_path / "out")
    assert json.loads(json.dumps(found.facts, allow_nan=False)) == found.facts
