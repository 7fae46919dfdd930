"""Writing so that a reader, or a crash, sees all of it or what was there before.

The one place where the project writes files that something later relies on: content goes under a hidden name, is flushed
to the disk, and only then gets its own name, which the system does in one step.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

PARTIAL = ".partial"
"""The end of the hidden names. What bears it was being written when its writer was killed, and may be removed."""


def write_atomically(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path``, in the place of a file that is there.

    Raises ``OSError``; a file that was there is then as it was, unless nothing but flushing the new name failed.
    """
    # A name of its own, and "x": of two writers each completes its own file, and no planted link is followed.
    partial = _hidden(path)
    try:
        _write(partial, content)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_folder(path: Path, contents: Mapping[str, bytes]) -> None:
    """Make the folder ``path`` with a file for each of ``contents``, written in this order, in the place of what is there.

    Raises ``OSError`` as ``write_atomically`` does. When a folder is replaced there is a moment without any.
    """
    aside, partial = _hidden(path), _hidden(path)
    try:
        partial.mkdir()
        for name, content in contents.items():
            _write(partial / name, content)
        sync_folder(partial)
        if path.exists():  # a folder cannot be renamed over one that holds something
            path.rename(aside)
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync_folder(path.parent)
    shutil.rmtree(aside, ignore_errors=True)


def discard(path: Path) -> None:
    """Remove the folder ``path``: at once in the eyes of a reader. Raises ``OSError``."""
    aside = _hidden(path)
    path.rename(aside)
    shutil.rmtree(aside)


def remove_partial(folder: Path) -> None:
    """Remove what killed writers left directly in ``folder``; nobody may be writing there. Raises ``OSError``."""
    for path in folder.glob(f".*{PARTIAL}"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def sync_folder(path: Path) -> None:
    """Flush the names in the folder ``path`` to the disk, where the system can: a renamed file then keeps its name."""
    if os.name != "posix":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP):  # what file systems say that cannot do it
            raise
    finally:
        os.close(number)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _hidden(path: Path) -> Path:
    """A free name beside ``path``; the beginning of a long name is enough to tell what it is."""
    return path.with_name(f".{path.name[:32]}.{secrets.token_hex(4)}{PARTIAL}")
