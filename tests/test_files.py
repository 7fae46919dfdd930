"""Writing whole or not at all: under a full disk, beside another writer, over what is there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from glassformer.files import discard, remove_partial, sync_folder, write_atomically, write_folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fail_at(monkeypatch: pytest.MonkeyPatch, number: int, code: int = errno.ENOSPC) -> None:
    """Let the ``number``-th flush (from 0) fail."""
    left = number
    real = os.fsync

    def fsync(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_file_is_written_and_replaced_with_the_rights_of_any_file(tmp_path: Path) -> None:
    (tmp_path / "ordinary").write_bytes(b"")
    for content in (b"one", b"two"):
        write_atomically(tmp_path / "a", content)
        assert (tmp_path / "a").read_bytes() == content
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == stat.S_IMODE((tmp_path / "ordinary").stat().st_mode)
    assert names(tmp_path) == ["a", "ordinary"]


@pytest.mark.parametrize("name", ["n" * 255, "患" * 85, "spaces and\nlines"])
def test_any_name_that_the_system_takes_can_be_written(tmp_path: Path, name: str) -> None:
    write_atomically(tmp_path / name, b"x")
    assert names(tmp_path) == [name]


def test_a_failed_write_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_atomically(tmp_path / "a", b"old")
    fail_at(monkeypatch, 0)
    with pytest.raises(OSError, match="No space"):
        write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "a").symlink_to(tmp_path / "precious")
    write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "precious").read_bytes() == b"precious"


@pytest.mark.parametrize("failing", range(4))
def test_a_folder_is_there_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    write_folder(tmp_path / "f", {"a": b"old"})
    fail_at(monkeypatch, failing)
    with pytest.raises(OSError, match="No space"):
        write_folder(tmp_path / "f", {"a": b"1", "b": b"2"})
    monkeypatch.undo()
    # The last flush is that of the new name: everything is written by then.
    whole = {"a": b"1", "b": b"2"} if failing == 3 else {"a": b"old"}
    assert {path.name: path.read_bytes() for path in (tmp_path / "f").iterdir()} == whole
    remove_partial(tmp_path)
    assert names(tmp_path) == ["f"]


def test_a_discarded_folder_is_gone(tmp_path: Path) -> None:
    write_folder(tmp_path / "f", {"a": b"1"})
    discard(tmp_path / "f")
    assert names(tmp_path) == []


def test_what_killed_writers_leave_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".a.0123abcd.partial").write_bytes(b"half")
    (tmp_path / ".f.0123abcd.partial").mkdir()
    (tmp_path / ".f.0123abcd.partial" / "a").write_bytes(b"half")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".l.0123abcd.partial").symlink_to(tmp_path / "elsewhere")
    (tmp_path / ".hidden").write_bytes(b"")
    (tmp_path / "not.partial").write_bytes(b"")
    remove_partial(tmp_path)
    assert names(tmp_path) == [".hidden", "elsewhere", "not.partial"]


@pytest.mark.parametrize(("code", "raised"), [(errno.EINVAL, False), (errno.ENOTSUP, False), (errno.EIO, True)])
def test_a_file_system_that_cannot_flush_names_is_no_error_but_a_broken_disk_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, raised: bool
) -> None:
    fail_at(monkeypatch, 0, code)
    if raised:
        with pytest.raises(OSError, match=os.strerror(code)):
            sync_folder(tmp_path)
    else:
        sync_folder(tmp_path)
