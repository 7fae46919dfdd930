"""Input that nothing can be made of: one message, code 2, no traceback, nothing written over, nothing left behind."""

from __future__ import annotations

import errno
import gzip
import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from glassformer.text import compression, records
from glassformer.training import load_run

from .commands import quietly, run, run_alone
from .runs import OF_CLINIC, SMALL, everything, lines_file, refused, short_samples, train, words_file

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    short_samples(monkeypatch)


def line(**row: object) -> bytes:
    return json.dumps(row).encode() + b"\n"


# --- texts ------------------------------------------------------------------------------------------------------------

FINE = line(text="abc bca")
BAD_TEXTS: dict[str, tuple[str, bytes, tuple[str, ...], tuple[str, ...]]] = {
    "empty": ("a.txt", b"", (), ("is empty",)),
    "a mark alone": ("a.txt", b"\xef\xbb\xbf", (), ("is empty",)),
    "one character": ("a.txt", b"a", (), ("single character",)),
    "one character often": ("a.txt", b"a" * 500, (), ("only one character, 500 times",)),
    "binary": ("a.txt", bytes(range(256)), (), ("zero byte", "binary")),
    "a program": ("a.txt", b"\x7fELF\x02\x01", (), ("is a program",)),
    "a picture": ("a.txt", b"\x89PNG\r\n\x1a\n", (), ("is a picture",)),
    "UTF-16": ("a.txt", ("ab " * 99).encode("utf-16"), (), ("UTF-16", "iconv")),
    "UTF-16 without a mark": ("a.txt", ("ab " * 99).encode("utf-16-le"), (), ("UTF-16 without a byte order mark",)),
    "UTF-32": ("a.txt", ("ab " * 99).encode("utf-32"), (), ("UTF-32",)),
    "NUL": ("a.txt", b"ab " * 99 + b"\x00", (), ("zero byte", "byte 297 ")),
    "Latin-1": ("a.txt", "café ".encode("latin-1") * 99, (), ("not UTF-8", "0xe9")),
    "a surrogate in UTF-8": ("a.txt", b"ab " * 99 + b"\xed\xa0\x80", (), ("not UTF-8",)),
    "cut inside a character": ("a.txt", "药".encode() * 99 + "药".encode()[:2], (), ("not UTF-8",)),
    "shorter than the context": ("a.txt", b"abcabc", (), ("shorter than one window of 8 positions",)),
    "a lone surrogate": ("a.jsonl", FINE + b'{"text": "a\\ud83d"}\n', (), ("line 2", "half a character", "U+D83D")),
    "an escaped NUL": ("a.jsonl", FINE + b'{"text": "a\\u0000"}\n', (), ("line 2", "zero character")),
    "no field": ("a.jsonl", FINE + line(texts="a"), (), ("line 2", 'no field "text"', 'mean "texts"', "--field")),
    "another field": ("a.jsonl", FINE, ("--field", "body"), ("line 1", 'no field "body"')),
    "not JSON": ("a.jsonl", FINE + b"{", (), ("line 2", "is not JSON")),
    "deep JSON": ("a.jsonl", FINE + b"[" * 100_000, (), ("line 2", "is not JSON")),
    "no object": ("a.jsonl", FINE + b"3\n", (), ("line 2", "not a JSON object")),
    "not a text": ("a.jsonl", FINE + line(text=3), (), ("line 2", "not a text")),
    "only empty documents": ("a.jsonl", line(text="") * 3 + line(text=None), (), ("is empty",)),
    "a hostile field": ("a.jsonl", line(**{"\x1b[31m": "a"}), (), ("␛[31m",)),
    "not compressed": ("a.txt.gz", b"abc" * 99, (), ("cannot be unpacked",)),
    "half a gz": ("a.txt.gz", gzip.compress(bytes(range(1, 256)) * 99)[:-20], (), ("cannot be unpacked",)),
    "half a zst": ("a.txt.zst", zstandard.compress(b"%d" % 7**4999)[:-20], (), ("cannot be unpacked",)),
    "half a Parquet": ("a.parquet", b"PAR1" + b"\x00" * 99, (), ("not a whole Parquet file",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_TEXTS)
def test_a_text_that_cannot_be_trained_on_is_one_message(kind: str, tmp_path: Path, capsys: Capture) -> None:
    name, raw, options, parts = BAD_TEXTS[kind]
    (tmp_path / name).write_bytes(raw)
    outcome = train(capsys, tmp_path / name, tmp_path / "run", *SMALL, "--steps", "1", *options)
    refused(outcome, *parts)
    assert outcome.out == ""
    assert everything(tmp_path) == {name: raw}


@pytest.mark.parametrize("options", [("--tokenizer", "bytes"), ("--isolated",)])
@pytest.mark.parametrize("raw", [b"", b"a", b"aaaa", b"ab"])
def test_a_text_too_short_for_anything_is_one_message_with_every_tokenizer(
    raw: bytes, options: tuple[str, ...], tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "a.txt").write_bytes(raw)
    refused(train(capsys, tmp_path / "a.txt", tmp_path / "run", *SMALL, "--steps", "1", *options))
    assert everything(tmp_path) == {"a.txt": raw}


def test_documents_too_short_for_the_context_each_are_one_message_or_a_run(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(line(text=c) for c in "ab" * 20))
    outcome = train(capsys, path, tmp_path / "run", *SMALL, "--isolated", "--steps", "2")
    assert outcome.code == 0
    path.write_bytes(line(text="a") + line(text="b"))
    refused(train(capsys, path, tmp_path / "other", *SMALL, "--isolated", "--steps", "2"), "shorter than one window")


def test_parquet_without_the_column_or_with_another_kind_is_one_message(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.parquet"
    for column, values, options, part in (
        ("texts", ["a"], (), 'Did you mean "texts"?'),
        ("text", [1], (), "holds int64, not text"),
        ("text", ["a"], ("--field", "body"), 'no field "body"'),
        ("text", ["a\x00b"], (), "zero character"),
    ):
        pyarrow.parquet.write_table(pyarrow.table({column: values}), path)
        refused(train(capsys, path, tmp_path / "run", *SMALL, *options), part)
        assert list(tmp_path.iterdir()) == [path]


def test_a_line_that_does_not_end_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(records, "LINE", 1 << 20)
    path = tmp_path / "a.jsonl"
    path.write_bytes(FINE + b'{"text": "' + b"a" * (3 << 20))
    refused(train(capsys, path, tmp_path / "run", *SMALL), "Line 2 of", "longer than 1 Mi characters")
    assert list(tmp_path.iterdir()) == [path]


def test_a_text_of_one_long_line_is_a_text(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"abcab" * 500_000)
    assert train(capsys, path, tmp_path / "run", *SMALL, "--steps", "1").code == 0


@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.zst", "a.jsonl.gz", "a.parquet"])
def test_a_bomb_is_one_message(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(compression, "FREE", 1 << 20)
    path = tmp_path / name
    if name.endswith("parquet"):
        pyarrow.parquet.write_table(pyarrow.table({"text": ["a" * 10_000] * 2_000}), path)
    else:
        packed = {".gz": gzip.compress, ".zst": zstandard.compress}[path.suffix]
        path.write_bytes(packed(b"\n" * (8 << 20)))
    refused(train(capsys, path, tmp_path / "run", *SMALL), "unpacks to far more than a text does")
    assert list(tmp_path.iterdir()) == [path]


def test_links_that_lead_nowhere_or_in_a_circle_are_one_message(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "circle.txt").symlink_to("circle.txt")
    (tmp_path / "nowhere.txt").symlink_to("nothing")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "up").symlink_to(folder)
    (folder / "self.txt").symlink_to("self.txt")
    before = sorted(tmp_path.rglob("*"))
    refused(train(capsys, tmp_path / "circle.txt", tmp_path / "run", *SMALL), "circle.txt")
    refused(train(capsys, tmp_path / "nowhere.txt", tmp_path / "run", *SMALL), "nowhere.txt")
    refused(train(capsys, folder, tmp_path / "run", *SMALL), "no text in the folder", "link")
    refused(train(capsys, folder, tmp_path / "circle.txt", *SMALL))
    assert sorted(tmp_path.rglob("*")) == before
    words_file(folder)
    assert train(capsys, folder, tmp_path / "run", *SMALL, "--steps", "1").code == 0


def test_a_device_is_not_read(tmp_path: Path, capsys: Capture) -> None:
    refused(train(capsys, "/dev/zero", tmp_path / "run", *SMALL), "not a regular file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["zero\x00byte", "n" * 5000, "\x1b[31m", "\ud83d"])
def test_a_path_that_cannot_be_is_one_message(name: str, tmp_path: Path, capsys: Capture) -> None:
    text = words_file(tmp_path)
    refused(train(capsys, f"{tmp_path}/{name}.txt", tmp_path / "run", *SMALL))
    refused(run(capsys, "train", "--resume", f"{tmp_path}/{name}"))
    refused(run(capsys, "generate", f"{tmp_path}/{name}", "--prompt", "a"))
    refused(run(capsys, "data", "show", f"{tmp_path}/{name}"))
    if name not in ("\x1b[31m", "\ud83d"):
        refused(train(capsys, text, Path(f"{tmp_path}/{name}"), *SMALL, "--steps", "1"))
    refused(train(capsys, text, tmp_path / "run", *SMALL, "--config", f"{tmp_path}/{name}"))
    assert list(tmp_path.iterdir()) == [text]


# --- prompts and texts to look at -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one step: of a text, of isolated documents in byte pairs."""
    folder = tmp_path_factory.mktemp("saved")
    bytes_ = ("--tokenizer", "bytes", "--vocab-size", "270", "--isolated")
    for name, source, options in (("text", words_file(folder), ()), ("bytes", lines_file(folder), bytes_)):
        with pytest.MonkeyPatch.context() as patch:
            short_samples(patch)
            assert quietly("train", str(source), "--out", str(folder / name), *SMALL, "--steps", "1", *options) == 0
    return folder


@pytest.mark.parametrize("text", ["X", "abX", "\x1b[31m", "a\ud83d", "药"])
def test_an_unknown_character_is_named(text: str, saved: Path, capsys: Capture) -> None:
    shown = "U+001B" if "\x1b" in text else f"U+{ord(text[-1]):04X}"
    refused(run(capsys, "generate", str(saved / "text"), "--prompt", text), shown)
    refused(run(capsys, "trace", str(saved / "text"), text), shown)


def test_a_lone_surrogate_is_no_text_for_byte_pairs_either(saved: Path, capsys: Capture) -> None:
    refused(run(capsys, "generate", str(saved / "bytes"), "--prompt", "a\ud83d"), "D83D")
    refused(run(capsys, "trace", str(saved / "bytes"), "a\ud83d"), "D83D")


def test_a_text_longer_than_the_context_cannot_be_traced(saved: Path, capsys: Capture) -> None:
    refused(run(capsys, "trace", str(saved / "text"), "abc bca cab abc"), "8")


def test_a_text_that_looks_like_an_option_is_explained(saved: Path, capsys: Capture) -> None:
    refused(run(capsys, "trace", str(saved / "text"), "-abc"), 'begins with "-" comes last, after --')
    refused(run(capsys, "trace", str(saved / "text"), "--", "-abc"), "U+002D")
    refused(run(capsys, "generate", str(saved / "text"), "--prompt", "-abc"), "U+002D")


def test_byte_pairs_read_any_text(saved: Path, capsys: Capture) -> None:
    outcome = run(capsys, "generate", str(saved / "bytes"), "--prompt", "-x药\x00", "--max-tokens", "3")
    assert outcome.code == 0
    assert run(capsys, "generate", str(saved / "bytes"), "--prompt", "", "--max-tokens", "3").code == 0


# --- runs that are missing or damaged ---------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors",
                                  "manifest.json"])  # fmt: skip
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "other"])
def test_a_damaged_run_is_one_message_for_every_command(
    file: str, damage: str, saved: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = Path(shutil.copytree(saved / "text", tmp_path / "run"))
    content = (path / file).read_bytes()
    if damage == "gone":
        (path / file).unlink()
    else:
        (path / file).write_bytes({"empty": b"", "cut": content[:-3], "other": b"\xff" + content[1:]}[damage])
    before = everything(path)
    refused(run(capsys, "generate", str(path), "--prompt", "ab"))
    refused(run(capsys, "trace", str(path), "ab"))
    assert everything(path) == before


# --- a full disk ------------------------------------------------------------------------------------------------------


class Full:
    """A file on a disk that has room for half of what comes."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, content: Any) -> int:
        self._file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    def __enter__(self) -> Full:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.fixture
def fill(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Fills the disk when a file of that name is written for the ``occurrence``-th time."""

    def fill(name: str, occurrence: int = 1) -> None:
        real, seen = Path.open, 0

        def open_(self: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            nonlocal seen
            file = real(self, mode, *arguments, **options)
            if set(mode) & set("wxa") and mode != "ab" and name in str(self):
                seen += 1
                if seen >= occurrence:
                    return Full(file)
            return file

        monkeypatch.setattr(Path, "open", open_)

    return fill


BEFORE_THE_FIRST_STEP = (
    "train-00000.bin", "train-starts.bin", "validation-00000.bin", "documents.jsonl", "data/.tokenizer.json",
    "data/.manifest.json", "run/.config.json", "run/.tokenizer.json", "run/.training.json", "run/.recipe.toml",
    "run/.run.json", "/optimizer.safetensors", "/state.json",
)  # fmt: skip


@pytest.mark.parametrize("name", BEFORE_THE_FIRST_STEP)
def test_a_full_disk_before_the_first_step_leaves_nothing(
    name: str, tmp_path: Path, capsys: Capture, fill: Callable[..., None]
) -> None:
    text = lines_file(tmp_path)
    fill(name)
    outcome = train(capsys, text, tmp_path / "run", *SMALL, "--steps", "3")
    refused(outcome, "cannot be written", "No space left on device")
    assert list(tmp_path.iterdir()) == [text]


@pytest.mark.parametrize(
    ("name", "occurrence", "kept"),
    [
        ("metrics.jsonl", 2, False),
        ("/optimizer.safetensors", 2, False),
        ("/model.safetensors", 2, False),
        ("run/.model.safetensors", 1, True),
        ("run/.samples.txt", 1, True),
        ("run/.manifest.json", 1, True),
    ],
)
def test_a_full_disk_later_keeps_what_was_learned_and_says_how_to_go_on(
    name: str,
    occurrence: int,
    kept: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    fill: Callable[..., None],
) -> None:
    text, path = words_file(tmp_path), tmp_path / "run"
    fill(name, occurrence)
    outcome = train(capsys, text, path, *SMALL, "--steps", "3")
    refused(outcome, "cannot be written", "No space left on device")
    assert (f"train --resume {path}" in outcome.err) == kept
    if not kept:
        assert list(tmp_path.iterdir()) == [text]
        return
    assert not list(path.glob(".*"))
    monkeypatch.undo()
    short_samples(monkeypatch)
    assert run(capsys, "train", "--resume", str(path)).code == 0
    assert load_run(path).meta["steps"] == 3


def test_a_full_disk_behind_standard_output_is_one_message(tmp_path: Path) -> None:
    import subprocess
    import sys

    command = [sys.executable, "-m", "glassformer", "train", "clinic", "--out", str(tmp_path / "run"), *OF_CLINIC,
               "--steps", "1"]  # fmt: skip
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: The system refused: No space left on device")
    assert b"Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


# --- the command itself -----------------------------------------------------------------------------------------------


def test_alone_it_shows_its_help_and_exits_with_2(capsys: Capture) -> None:
    for arguments in ((), ("data",)):
        outcome = run(capsys, *arguments)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith("Usage: ")
        assert "error" not in outcome.err
        assert "Commands:" in outcome.err


def test_it_says_its_version(capsys: Capture) -> None:
    from glassformer import __version__

    outcome = run(capsys, "--version")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"glassformer {__version__}\n", "")


def test_an_unknown_verb_or_option_is_one_message(capsys: Capture) -> None:
    refused(run(capsys, "trian"), "trian")
    refused(run(capsys, "--verson"), "--verson")


@pytest.mark.full
def test_a_real_bomb_is_one_message_in_a_process_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    path.write_bytes(b"".join(packer.compress(b"\n" * (1 << 20)) for _ in range(70)) + packer.flush())
    refused(run_alone("train", str(path), "--out", str(tmp_path / "run")), "unpacks to far more than a text does")
    assert list(tmp_path.iterdir()) == [path]


def test_a_damaged_run_is_one_message_in_a_process_of_its_own(saved: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(saved / "text", tmp_path / "copy"))
    (copy / "model.safetensors").write_bytes(b"")
    refused(run_alone("generate", str(copy), "--prompt", "ab"), "is damaged")
