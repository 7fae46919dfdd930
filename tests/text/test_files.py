"""Reading a user's file: the text, or one message that says what is wrong and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from glassformer.errors import UserError
from glassformer.text import files, read_source, read_text, visible

TEXT = "To be, or not to be.\n患者服用华法林后出现黑便。\n"


def written(folder: Path, raw: bytes) -> Path:
    path = folder / "text.txt"
    path.write_bytes(raw)
    return path


def message(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_source(path)
    assert caught.value.fact
    assert "\x1b" not in str(caught.value)
    return str(caught.value)


def test_a_utf8_file_is_read_exactly(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, TEXT.encode())) == TEXT


def test_the_mark_of_utf8_is_not_part_of_the_text(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, TEXT.encode("utf-8-sig"))) == TEXT


def test_windows_line_ends_become_line_feeds(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, TEXT.replace("\n", "\r\n").encode())) == TEXT


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        (b"", ["empty"]),
        (b"\xef\xbb\xbf", ["empty"]),
        (b"x", ["a single character"]),
        (b"aaaa", ["only one character, 4 times"]),
        (TEXT.encode("utf-16"), ["UTF-16", "iconv -f UTF-16"]),
        (TEXT.encode("utf-32"), ["UTF-32", "iconv -f UTF-32"]),
        (b"plain English".decode().encode("utf-16-le"), ["zero byte", "UTF-16 without", "byte 1 "]),
        (b"text with\x00one zero byte in a long line", ["zero byte", "binary", "byte 9 "]),
        (TEXT.encode("gb18030"), ["not UTF-8", "Byte 21", "line 2", "GB18030"]),
        ("café".encode("latin-1"), ["not UTF-8", "Byte 3", "0xe9"]),
        ("\ufeffab".encode() + b"\xff", ["not UTF-8", "Byte 5"]),
        (b"%PDF-1.7 etc", ["PDF"]),
        (b"PK\x03\x04etc", ["zip"]),
        (b"\x89PNG\r\n", ["picture"]),
        (b"\x1f\x8bxx", ["compressed"]),
    ],
)
def test_a_file_that_is_not_a_utf8_text_says_so_and_where(tmp_path: Path, raw: bytes, parts: list[str]) -> None:
    found = message(written(tmp_path, raw))
    assert [part for part in parts if part not in found] == []


def test_a_missing_file_suggests_the_one_that_is_there(tmp_path: Path) -> None:
    written(tmp_path, b"ab")
    assert 'Did you mean "text.txt"?' in message(tmp_path / "txet.txt")


@pytest.mark.parametrize("name", ["none/at/all.txt", "n" * 5000, "zero\x00byte", "\x1b[31m"])
def test_a_path_that_cannot_be_is_one_message(tmp_path: Path, name: str) -> None:
    message(tmp_path / name)


def test_a_folder_is_not_a_text(tmp_path: Path) -> None:
    assert "is a folder" in message(tmp_path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in message(tmp_path / "pipe")


def test_a_text_that_would_not_fit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LIMIT", 1 << 20)
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate((1 << 20) + 1)
    assert "larger than 1 MiB" in message(path)


def test_a_source_says_where_its_text_comes_from(tmp_path: Path) -> None:
    source = read_source(written(tmp_path, TEXT.encode()))
    assert source.text == TEXT
    assert "text.txt" in source.origin


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a␛[31mb"),
        ("a\x7fb\x9bc", "a␡b<U+009B>c"),
        ("a\u202eb\u2066c", "a<U+202E>b<U+2066>c"),
        ("line\nbreak\ttab", "line\nbreak␉tab"),
        ("[/] </script> 患者 👩\u200d👩", "[/] </script> 患者 👩\u200d👩"),
    ],
)
def test_characters_that_steer_a_terminal_are_shown_as_pictures(text: str, shown: str) -> None:
    assert visible(text) == shown
