"""Documents out of files, folders and standard input: each once, in order, or one message."""

from __future__ import annotations

import errno
import gzip
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.text import compression, documents, records, sources
from glassformer.text.records import json_documents

PACKED = {"": lambda raw: raw, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}


def read(place: Path | str, field: str | None = None) -> list[tuple[str, str]]:
    with documents(place, field) as found:
        once, again = ([(document.name, "".join(document.pieces)) for document in found] for _ in range(2))
    assert once == again
    return once


def message(place: Path | str, field: str | None = None) -> str:
    with pytest.raises(UserError) as caught:
        read(place, field)
    assert "\x1b" not in str(caught.value)
    return str(caught.value)


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def table_of(path: Path, rows: list[str | None], column: str = "text", **options: object) -> Path:
    pyarrow.parquet.write_table(pyarrow.table({column: pyarrow.array(rows, pyarrow.string())}), path, **options)
    return path


# --- kinds of files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.TXT"])
def test_a_text_file_is_one_document_packed_or_not(tmp_path: Path, name: str, packing: str) -> None:
    path = put(tmp_path / (name + packing), PACKED[packing]("\ufeff一\r\ntwo".encode()))
    assert read(path) == [(str(path), "一\ntwo")]


@pytest.mark.parametrize("packing", PACKED)
def test_json_lines_give_one_document_a_line(tmp_path: Path, packing: str) -> None:
    lines = '{"text": "one\\r\\n1"}\n\n{"other": 3, "text": "二\\u2028"}\r\n{"text": null}'
    path = put(tmp_path / ("a.jsonl" + packing), PACKED[packing](lines.encode()))
    assert read(path) == [(f"{path}:1", "one\n1"), (f"{path}:3", "二\u2028"), (f"{path}:4", "")]


@pytest.mark.parametrize("packing", PACKED)
def test_parquet_gives_one_document_a_row_through_all_row_groups(tmp_path: Path, packing: str) -> None:
    rows = [f"row {k} 行" for k in range(300)]
    plain = table_of(tmp_path / "a.parquet", [*rows, None], row_group_size=70)
    path = put(tmp_path / ("b.parquet" + packing), PACKED[packing](plain.read_bytes()))
    assert read(path) == [*((f"{path}:{k + 1}", row) for k, row in enumerate(rows)), (f"{path}:301", "")]


def test_a_single_file_with_any_ending_is_read_as_text(tmp_path: Path) -> None:
    assert read(put(tmp_path / "notes.log", "abc"))[0][1] == "abc"
    assert read(put(tmp_path / "README", "abc"))[0][1] == "abc"


@given(st.lists(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))), st.integers(1, 9))
def test_json_lines_are_the_same_however_they_are_cut(contents: list[str], size: int) -> None:
    whole = "\n".join(json.dumps({"text": content}, ensure_ascii=False) for content in contents)
    pieces = [whole[k : k + size] for k in range(0, len(whole), size)]
    found = ["".join(document.pieces) for document in json_documents(pieces, "it", "text")]
    assert found == [content.replace("\r\n", "\n") for content in contents]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ('{"text": "cut off', ["line 2", "not JSON"]),
        ("[1, 2]", ["line 2", "not a JSON object"]),
        ("{}", ["line 2", 'no field "text"', "no fields at all"]),
        ('{"texts": "a"}', ["line 2", 'no field "text"', 'Did you mean "texts"', "--field"]),
        ('{"\x1b[31m": "a"}'.replace("\x1b", "\\u001b"), ["line 2", "␛[31m"]),
        ('{"text": 3}', ["line 2", "not a text", "a number"]),
        ('{"text": ["a"]}', ["line 2", "not a text", "a list"]),
        ('{"text": "a\\ud83d"}', ["line 2", "half a character", "U+D83D", "character 1 "]),
        ('{"text": "a\\u0000"}', ["line 2", "zero character", "character 1 "]),
        ("[" * 100_000, ["line 2", "not JSON"]),
        ('{"text": ' + "9" * 5000 + "}", ["line 2"]),
    ],
)
def test_a_wrong_line_of_json_lines_is_named(tmp_path: Path, line: str, parts: list[str]) -> None:
    found = message(put(tmp_path / "a.jsonl", '{"text": "fine"}\n' + line + "\n"))
    assert [part for part in parts if part not in found] == []


def test_a_line_without_end_is_refused_with_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "LINE", 1 << 20)
    path = put(tmp_path / "a.jsonl", '{"text": "fine"}\n{"text": "' + "a" * (3 << 20))
    assert "Line 2 of" in message(path)
    assert "longer than 1 Mi characters" in message(path)


def test_a_field_can_be_named(tmp_path: Path) -> None:
    assert read(put(tmp_path / "a.jsonl", '{"body": "x", "text": "y"}'), "body")[0][1] == "x"
    assert read(table_of(tmp_path / "a.parquet", ["x"], "body"), "body")[0][1] == "x"


def test_a_field_for_a_file_without_fields_is_refused(tmp_path: Path) -> None:
    assert "Leave --field out" in message(put(tmp_path / "a.txt", "abc"), "body")
    assert "Leave --field out" in message("-", "body")


def test_parquet_without_the_column_or_with_another_type_says_so(tmp_path: Path) -> None:
    path = table_of(tmp_path / "a.parquet", ["x"], "texts")
    assert 'Did you mean "texts"?' in message(path)
    pyarrow.parquet.write_table(pyarrow.table({"text": [1, 2]}), path)
    assert "holds int64, not text" in message(path)


@pytest.mark.parametrize("keep", [0, 4, 100, -9])
def test_damaged_parquet_is_one_message(tmp_path: Path, keep: int) -> None:
    path = table_of(tmp_path / "a.parquet", ["some text"] * 50)
    path.write_bytes(path.read_bytes()[:keep])
    assert "not a whole Parquet file" in message(path)


def test_without_pyarrow_parquet_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table_of(tmp_path / "a.parquet", ["x"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert 'pip install "glassformer[parquet]"' in message(path)


# --- compressed files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_several_compressed_parts_in_one_file_are_one_text(tmp_path: Path, packing: str) -> None:
    parts = PACKED[packing]("患者".encode()[:4]) + PACKED[packing]("患者".encode()[4:])
    assert read(put(tmp_path / f"a.txt{packing}", parts))[0][1] == "患者"


@pytest.mark.parametrize("packing", [".gz", ".zst"])
@pytest.mark.parametrize("keep", [5, 60, -1])
def test_a_compressed_file_that_ends_too_early_is_refused(tmp_path: Path, packing: str, keep: int) -> None:
    raw = PACKED[packing](b"".join(b"%d " % (k * k * 7919) for k in range(2000)))
    assert "cannot be unpacked" in message(put(tmp_path / f"a.txt{packing}", raw[:keep]))


@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_what_is_not_compressed_as_its_name_says_is_refused(tmp_path: Path, packing: str) -> None:
    assert "cannot be unpacked" in message(put(tmp_path / f"a.txt{packing}", b"plain text"))


@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, packing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "FREE", 1 << 20)
    bomb = put(tmp_path / f"a.jsonl{packing}", PACKED[packing](b"\n" * (8 << 20)))
    assert "far more than a text does" in message(bomb)
    ordinary = put(tmp_path / f"b.txt{packing}", PACKED[packing](b"".join(b"%d\n" % k for k in range(400_000))))
    assert len(read(ordinary)[0][1]) > 2 << 20


def test_parquet_that_repeats_one_value_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "FREE", 1 << 20)
    path = table_of(tmp_path / "a.parquet", ["a" * 10_000] * 2_000)
    assert path.stat().st_size < 100_000
    assert "far more than a text does" in message(path)


# --- folders ----------------------------------------------------------------------------------------------------------


def test_a_folder_gives_its_files_in_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.md", "a/b/c.txt", "c.jsonl", "B.txt", "a.txt"):
        put(tmp_path / name, '{"text": "x"}')
    assert [name for name, _ in read(tmp_path)] == ["B.txt", "a/b/c.txt", "a/z.md", "a.txt", "b.txt", "c.jsonl:1"]


def test_hidden_files_are_passed_over_and_other_kinds_counted(tmp_path: Path) -> None:
    put(tmp_path / "a.txt", "one")
    for name in (".hidden.txt", ".git/b.txt", "c.png", "d", "e.csv"):
        put(tmp_path / name, "two")
    assert read(tmp_path) == [("a.txt", "one")]
    with documents(tmp_path) as found:
        assert found.skipped == ("3 files of other kinds",)
        assert "(1 file)" in found.origin


def test_links_are_safe_and_no_file_is_read_twice(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside.txt", "secret")
    folder = tmp_path / "folder"
    put(folder / "data", "linked")
    put(folder / "sub" / "a.txt", "one")
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "self.txt").symlink_to("self.txt")
    (folder / "gone.txt").symlink_to("nothing")
    (folder / "twice.txt").symlink_to("sub/a.txt")
    (folder / "hard.txt").hardlink_to(folder / "sub" / "a.txt")
    (folder / "named.txt").symlink_to("data")
    (folder / "out.txt").symlink_to(outside)
    (folder / "outdir").symlink_to(tmp_path)
    assert sorted(text for _, text in read(folder)) == ["linked", "one"]
    with documents(folder) as found:
        assert "4 links out of it" in found.skipped


def test_a_folder_named_by_a_link_is_read(tmp_path: Path) -> None:
    put(tmp_path / "folder" / "a.txt", "one")
    (tmp_path / "link").symlink_to("folder")
    assert read(tmp_path / "link") == [("a.txt", "one")]


def test_a_folder_without_text_says_what_it_holds(tmp_path: Path) -> None:
    assert "no text in the folder" in message(tmp_path)
    put(tmp_path / "a.bin", "x")
    assert "1 file of another kind" in message(tmp_path)


def test_a_wrong_file_in_a_folder_is_named(tmp_path: Path) -> None:
    put(tmp_path / "a.txt", "fine")
    put(tmp_path / "sub" / "b.txt", "café".encode("latin-1"))
    assert "sub/b.txt is not UTF-8" in message(tmp_path)


def test_a_file_with_a_hostile_name_is_shown_harmless(tmp_path: Path) -> None:
    put(tmp_path / "a\x1b[31m.txt", "x")
    assert read(tmp_path) == [("a␛[31m.txt", "x")]


# --- standard input ---------------------------------------------------------------------------------------------------


def test_standard_input_is_one_document_and_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("患者\r\n".encode())))
    assert read("-") == [("standard input", "患者\n")]


def test_standard_input_that_is_not_text_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\xff\xfea\x00")))
    assert "standard input is written in UTF-16" in message("-")


def test_a_full_disk_under_standard_input_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"abc")))
    monkeypatch.setattr(sources.tempfile, "TemporaryFile", Full)
    assert "TMPDIR" in message("-")
