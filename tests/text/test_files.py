"""Bytes to text in pieces: the text, or one message that says what is wrong and where."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.text import documents, visible
from glassformer.text.files import cut, text_pieces
from glassformer.text.sources import require_variety

TEXT = "To be, or not to be.\n患者服用华法林后出现黑便。\n"

characters = st.characters(exclude_characters="\x00", exclude_categories=["Cs"])
texts = st.lists(st.sampled_from(["\r\n", "\r", "\n", "\ufeff", "a", "患", "😀"]) | characters).map("".join)


def written(folder: Path, raw: bytes) -> Path:
    path = folder / "text.txt"
    path.write_bytes(raw)
    return path


def read(path: Path) -> str:
    """The text at ``path``, as those need it who train on it."""
    with documents(path) as found:
        text = "".join(piece for document in found for piece in document.pieces)
        require_variety(set(text), len(text), found.origin)
        return text


def message(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read(path)
    assert caught.value.fact
    assert "\x1b" not in str(caught.value)
    return str(caught.value)


def in_pieces(raw: bytes, size: int) -> list[bytes]:
    return [raw[k : k + size] for k in range(0, len(raw), size)]


@given(texts, st.integers(1, 9), st.integers(1, 9))
def test_reading_by_pieces_is_reading_the_whole(text: str, bytes_at_once: int, size: int) -> None:
    raw = text.encode()
    whole = text.removeprefix("\ufeff").replace("\r\n", "\n")
    pieces = list(text_pieces(in_pieces(raw, bytes_at_once), "it", size))
    assert "".join(pieces) == whole
    assert [len(piece) for piece in pieces[:-1]] == [size] * (len(pieces) - 1)
    assert pieces == list(text_pieces([raw], "it", size))


@given(st.binary(max_size=40), st.integers(1, 7))
def test_a_wrong_byte_is_found_at_the_same_place_however_the_bytes_come(raw: bytes, bytes_at_once: int) -> None:
    def outcome(chunks: list[bytes]) -> str:
        try:
            return "".join(text_pieces(chunks, "it"))
        except UserError as problem:
            # what comes first, a zero byte or a wrong one, depends on where the chunks end
            return "refused" if b"\x00" in raw else str(problem)

    assert outcome(in_pieces(raw, bytes_at_once)) == outcome([raw])


@given(st.lists(st.text(max_size=9)), st.integers(1, 7))
def test_cutting_loses_nothing_and_makes_no_empty_piece(parts: list[str], size: int) -> None:
    pieces = list(cut(parts, size))
    assert "".join(pieces) == "".join(parts)
    assert all(0 < len(piece) <= size for piece in pieces)


def test_the_mark_of_utf8_is_dropped_at_the_start_only(tmp_path: Path) -> None:
    assert read(written(tmp_path, TEXT.encode("utf-8-sig"))) == TEXT
    assert read(written(tmp_path, ("a\ufeff" + TEXT).encode("utf-8-sig"))) == "a\ufeff" + TEXT


def test_windows_line_ends_become_line_feeds(tmp_path: Path) -> None:
    assert read(written(tmp_path, TEXT.replace("\n", "\r\n").encode())) == TEXT


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
        (b"abc\n\xed\xa0\x80", ["not UTF-8", "Byte 4", "line 2"]),
        (b"%PDF-1.7 etc", ["PDF"]),
        (b"PK\x03\x04etc", ["zip"]),
        (b"\x89PNG\r\n", ["picture"]),
        (b"\x1f\x8bxx", ["compressed", ".gz"]),
        (b"\x28\xb5\x2f\xfdxx", ["compressed", ".zst"]),
        (b"PAR1xx", ["Parquet", ".parquet"]),
    ],
)
def test_a_file_that_is_not_a_utf8_text_says_so_and_where(tmp_path: Path, raw: bytes, parts: list[str]) -> None:
    found = message(written(tmp_path, raw))
    assert [part for part in parts if part not in found] == []


def test_a_wrong_byte_far_into_a_file_is_counted_from_its_start(tmp_path: Path) -> None:
    found = message(written(tmp_path, b"\xe6\x82\xa3\n" * 700_000 + b"\xff"))
    assert "Byte 2800000 " in found
    assert "in line 700001," in found


def test_a_missing_file_suggests_the_one_that_is_there(tmp_path: Path) -> None:
    written(tmp_path, b"ab")
    assert 'Did you mean "text.txt"?' in message(tmp_path / "txet.txt")


@pytest.mark.parametrize("name", ["none/at/all.txt", "n" * 5000, "zero\x00byte", "\x1b[31m"])
def test_a_path_that_cannot_be_is_one_message(tmp_path: Path, name: str) -> None:
    message(tmp_path / name)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in message(tmp_path / "pipe")


def test_a_device_is_refused() -> None:
    assert "not a regular file" in message(Path("/dev/zero"))


def test_a_file_that_the_system_refuses_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    path = written(tmp_path, b"ab")
    monkeypatch.setattr(Path, "open", refuse)
    assert "cannot be read" in message(path)
    assert "permissions" in message(path)


def test_a_source_says_where_its_text_comes_from(tmp_path: Path) -> None:
    with documents(written(tmp_path, TEXT.encode())) as found:
        assert "text.txt" in found.origin


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
