"""Where results go: files that are never written over unasked, and JSON to a file or to standard output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import UserError
from .console import write_text


def refuse_existing(path: Path | str | None, force: bool) -> None:
    """Raise ``UserError`` before any work is done when an output exists and is not to be replaced, or has no folder."""
    if path is None:
        return
    path = Path(path)
    if path.is_dir():
        raise UserError(f"{path} is a folder.", "Nothing was written.", "Give the path of a file in it.")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a regular file.", "Nothing was written.", "Give the path of a file.")
    if path.exists() and not force:
        raise UserError(
            f"{path} exists already.", "Nothing was overwritten.", "Give another path, or add --force to replace it."
        )
    if not path.parent.is_dir():
        raise UserError(
            f"There is no folder {path.parent}.", "Nothing was written.", "Make the folder first, or give another path."
        )


def emit_json(data: Mapping[str, Any], path: str, force: bool, *, indent: int | None = None) -> None:
    """Write ``data`` as strict JSON to ``path``, or to standard output where it is ``-``. Raises ``UserError``."""
    from ..tracing.file import write_whole

    text = json.dumps(data, allow_nan=False, indent=indent) + "\n"
    if path == "-":
        write_text(text)
    else:
        write_whole(Path(path), text.encode("ascii"), replace=force)
