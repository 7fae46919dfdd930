"""Token shards: what was written is read, what is damaged or unfinished is refused, a failure leaves nothing."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.text import documents, open_corpus, open_prepared, prepare, shards
from glassformer.text.shards import DTYPES, CorpusWriter, ShardedIds, StreamWriter

CONTENTS = ["To be, or not to be.", "患者服用华法林后出现黑便。", "a", "b" * 40, "To be, or not to be."]


def source(folder: Path, contents: list[str] = CONTENTS) -> Path:
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps({"text": content}) + "\n" for content in contents), "utf-8")
    return path


def prepared(folder: Path, **options: Any) -> Path:
    with documents(source(folder)) as found:
        prepare(found, folder / "out", **options)
    return folder / "out"


def message(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        open_corpus(folder)
    return str(caught.value)


# --- streams ----------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.integers(0, 200), max_size=9), min_size=1, max_size=9),
    st.sampled_from(sorted(DTYPES)),
    st.integers(1, 40),
)
def test_what_was_written_is_read_whatever_type_and_shard_size(
    contents: list[list[int]], dtype: str, shard: int
) -> None:
    contents = [[300 % np.iinfo(dtype).max, *content] for content in contents]
    with tempfile.TemporaryDirectory() as name, CorpusWriter(Path(name)) as writer:
        stream = StreamWriter(writer, "train", dtype, shard)
        for content in contents:
            stream.begin_document()
            stream.append(np.array(content, dtype=np.int64))
        about = stream.finish()
        files = [Path(name) / file for file in about["shards"]]
        limit = max(shard, np.dtype(dtype).itemsize)
        assert all(0 < file.stat().st_size <= limit for file in files)
        row = ShardedIds([np.memmap(file, DTYPES[dtype], "r") for file in files])
        whole = [id for content in contents for id in content]
        assert row[:].tolist() == whole
        starts = np.fromfile(Path(name) / about["starts"], "<i8")
        assert starts.tolist() == np.cumsum([0, *map(len, contents)])[:-1].tolist()
        assert about["tokens"] == len(row) == len(whole)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 30), st.integers(0, 30))
def test_a_slice_across_shards_is_that_of_the_whole(lengths: list[int], first: int, last: int) -> None:
    whole = np.arange(sum(lengths), dtype=np.uint16)
    row = ShardedIds(np.split(whole, np.cumsum(lengths)[:-1]))
    assert row[first:last].tolist() == whole[first:last].tolist()
    assert row[first:last].dtype == np.uint16
    assert len(row) == len(whole)


# --- opening ----------------------------------------------------------------------------------------------------------


def test_an_opened_folder_is_what_was_prepared_and_only_mapped(tmp_path: Path) -> None:
    with documents(source(tmp_path)) as found:
        written = prepare(found, tmp_path / "out", isolated=True)
    opened = open_prepared(tmp_path / "out")
    assert opened.facts == written.facts
    assert opened.tokenizer.texts == written.tokenizer.texts
    assert opened.corpus.isolated
    for part in ("train", "held_out"):
        a, b = getattr(opened.corpus, part), getattr(written.corpus, part)
        assert isinstance(a.ids, np.memmap)
        assert not a.ids.flags.writeable
        assert a.tokens(0, len(a)).tolist() == b.tokens(0, len(b)).tolist()
        assert a.starts.tolist() == b.starts.tolist()


def test_every_document_is_listed_with_its_name_and_part(tmp_path: Path) -> None:
    out = prepared(tmp_path)
    lines = [json.loads(line) for line in (out / "documents.jsonl").read_text("utf-8").splitlines()]
    assert [line["name"].rpartition(":")[2] for line in lines] == ["1", "2", "3", "4", "5"]
    assert [line["characters"] for line in lines] == [len(content) for content in CONTENTS]
    corpus = open_corpus(out)
    assert sum(line["tokens"].get("train", 0) for line in lines) == len(corpus.train)
    assert sum(line["tokens"].get("validation", 0) for line in lines) == len(corpus.held_out)


def test_the_manifest_lists_every_file_with_size_and_hash(tmp_path: Path) -> None:
    out = prepared(tmp_path, shard=16)
    manifest = json.loads((out / "manifest.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert {path.name for path in out.iterdir()} == {"manifest.json", *manifest["files"]}
    assert sum(name.startswith("train-0") for name in manifest["files"]) > 1
    assert all(len(about["sha256"]) == 64 for about in manifest["files"].values())


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "one bit": flip,
    "missing": Path.unlink,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\x00"),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "file", ["train-00000.bin", "validation-00000.bin", "train-starts.bin", "documents.jsonl", "tokenizer.json"]
)
def test_a_damaged_file_is_named(tmp_path: Path, file: str, damage: str) -> None:
    out = prepared(tmp_path)
    DAMAGES[damage](out / file)
    found = message(out)
    assert "damaged" in found
    assert file in found


def test_a_damaged_manifest_is_one_message_whatever_is_wrong(tmp_path: Path) -> None:
    out = prepared(tmp_path)
    path = out / "manifest.json"
    whole = path.read_text("utf-8")
    manifest = json.loads(whole)
    for key in manifest:
        for value in (None, 3, "x", [], {}):
            path.write_text(json.dumps({**manifest, key: value}), "utf-8")
            if key not in ("origin", "skipped", "empty_documents", "documents", "characters", "isolated"):
                message(out)
        path.write_text(json.dumps({k: v for k, v in manifest.items() if k != key}), "utf-8")
    for cut in range(0, len(whole) - 2, 97):
        path.write_text(whole[:cut], "utf-8")
        message(out)
    path.write_text("[" * 100_000, "utf-8")
    assert "not JSON" in message(out)


def test_a_manifest_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    out = prepared(tmp_path)
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    manifest["files"]["../in.jsonl"] = manifest["files"]["train-00000.bin"]
    manifest["streams"]["train"]["shards"] = ["../in.jsonl"]
    (out / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    assert "no file of such a folder" in message(out)


def test_tokens_that_the_tokenizer_does_not_know_are_refused(tmp_path: Path) -> None:
    out = prepared(tmp_path)
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    manifest["tokenizer"]["vocab_size"] = 5
    (out / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    assert "tokenizer does not know" in message(out)


def test_a_newer_folder_says_upgrade(tmp_path: Path) -> None:
    out = prepared(tmp_path)
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    (out / "manifest.json").write_text(json.dumps({**manifest, "format": 2, "surprise": 1}), "utf-8")
    assert "pip install --upgrade glassformer" in message(out)


def test_a_folder_that_is_missing_a_file_or_something_else_says_so(tmp_path: Path) -> None:
    prepared(tmp_path)
    assert 'Did you mean "out"?' in message(tmp_path / "ouut")
    assert "is a file" in message(tmp_path / "in.jsonl")
    assert "no finished data" in message(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 1}')
    assert "something else" in message(tmp_path)


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").write_text("precious")
    with pytest.raises(UserError, match="not empty"):
        prepared(tmp_path)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["notes"]
    assert (tmp_path / "out" / "notes").read_text() == "precious"


def test_a_folder_that_cannot_be_made_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UserError, match="cannot be written"):
        prepared(tmp_path)


@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("fails", range(0, 24, 3))
def test_a_full_disk_leaves_nothing_and_is_one_message(
    tmp_path: Path, fails: int, existed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if existed:
        (tmp_path / "out").mkdir()
    calls = 0
    write = shards.HashedFile.write

    def full(self: shards.HashedFile, content: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls > fails:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, content)

    monkeypatch.setattr(shards.HashedFile, "write", full)
    with pytest.raises(UserError, match="No space left") as caught:
        prepared(tmp_path, shard=16)
    assert "no manifest" in caught.value.next_step
    assert (list((tmp_path / "out").iterdir()) if existed else not (tmp_path / "out").exists()) == (
        [] if existed else True
    )


@pytest.mark.parametrize("step", ["fsync", "rename", "manifest"])
def test_a_failure_while_a_file_is_completed_leaves_nothing(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    if step == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    elif step == "rename":
        monkeypatch.setattr(Path, "rename", fail)
    else:
        monkeypatch.setattr(shards, "write_atomically", fail)
    with pytest.raises(UserError, match="cannot be written"):
        prepared(tmp_path)
    assert not (tmp_path / "out").exists()


def test_bad_text_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\n{"text": 3}\n')
    with documents(tmp_path / "bad.jsonl") as found, pytest.raises(UserError, match="line 2"):
        prepare(found, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def dying(count: int) -> Callable[[shards.HashedFile], dict[str, Any]]:
    """``finish`` that ends the process instead of completing one file more than ``count``."""
    finish, left = shards.HashedFile.finish, iter(range(count))

    def die(self: shards.HashedFile) -> dict[str, Any]:
        if next(left, None) is None:
            os._exit(9)
        return finish(self)

    return die


def test_a_writer_killed_between_any_two_files_leaves_no_manifest(tmp_path: Path) -> None:
    """In a child that leaves without cleaning up, after each number of completed files in turn."""
    finished = 0
    for count in range(50):
        folder = tmp_path / str(count)
        folder.mkdir()
        child = os.fork()
        if child == 0:
            shards.HashedFile.finish = dying(count)
            prepared(folder, shard=64)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            finished = count
            break
        assert "no finished data" in message(folder / "out")
    assert finished >= 6
    open_corpus(tmp_path / str(finished) / "out")
