"""The trace file: tensors in the safetensors layout, with a JSON header that holds the definitions.

Nothing in it executes. A checksum tells a file that was damaged on its way from the one that was written; files of
earlier versions have none. A file is readable by every later version: ``SCHEMA`` grows by one when the header changes, and
each old schema keeps its reader and its golden file in the tests.

| schema | new in it |
|---|---|
| 2 | lines of the optimizer as quantities and statements; ``attribution``, ``watched``, ``coincidences``, ``missed`` |
| 2, optional | ``lemmas``; ``probes`` (reports) and ``command`` (what traces the same again) where there are any |
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from ..errors import UserError
from ..files import write_atomically

SCHEMA = 2
_KEY = "glassformer.trace"
_CHECKSUM = "glassformer.sha256"

Array = np.ndarray[Any, np.dtype[Any]]


def write_trace_file(
    path: Path, header: Mapping[str, Any], tensors: Mapping[str, Array], *, replace: bool = False
) -> None:
    """Write a trace. Raises ``UserError`` when ``path`` exists (and not ``replace``) or cannot be written."""
    text = json.dumps(header, ensure_ascii=True, allow_nan=False)
    plain = {k: np.array(v, order="C") for k, v in tensors.items()}
    data = safetensors.numpy.save(plain, {_KEY: text, _CHECKSUM: _checksum(text, plain)})
    write_whole(path, data, replace=replace)


def read_trace_file(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and tensors of a trace file. Raises ``UserError`` when it is missing, damaged, newer, or something else."""
    if not path.is_file():
        raise UserError(
            f"There is no trace file {path}.", "", "Make one with: glassformer trace toy24 --out toy24.trace"
        )
    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise UserError(
            f"{path} is damaged or not a trace file.", f"Reading it says: {error}.", "Write it again."
        ) from None
    if _KEY not in metadata:
        raise UserError(
            f"{path} holds tensors but no trace.",
            "The header of a trace is missing.",
            "Open a model with: glassformer trace RUN TEXT",
        )
    try:
        header = json.loads(metadata[_KEY])
        schema = header["schema"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise UserError(
            f"{path} is damaged.", "Its header is not readable JSON with a schema.", "Write it again."
        ) from None
    if type(schema) is not int or schema < 1:
        raise UserError(f"{path} is damaged.", f"Its schema is {schema!r}.", "Write it again.")
    if schema > SCHEMA:
        raise UserError(
            f"{path} was written by a newer glassformer.",
            f"Its schema is {schema}; this version reads up to {SCHEMA}.",
            "Upgrade glassformer.",
        )
    if metadata.get(_CHECKSUM, checksum := _checksum(metadata[_KEY], tensors)) != checksum:
        raise UserError(
            f"{path} is damaged.", "Its numbers or its header are not those that were written.", "Write it again."
        )
    return header, tensors


def _checksum(header: str, tensors: Mapping[str, Array]) -> str:
    """SHA-256 of the header and of every tensor with its name, type and shape, in the order of the names."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"\0{name} {array.dtype.str} {array.shape}\0".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write_whole(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Write ``data`` so that ``path`` holds all of it or is untouched.

    Raises ``UserError`` when ``path`` exists and ``replace`` is false, or when it cannot be written.
    """
    if (path.exists() or path.is_symlink()) and not path.is_file():
        raise UserError(f"{path} is not a regular file.", "Nothing was written.", "Give the path of a file.")
    if path.exists() and not replace:
        raise UserError(
            f"{path} exists already.", "Nothing was overwritten.", "Give another path, or add --force to replace it."
        )
    try:
        write_atomically(path, data)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written.",
            f"The system says: {error.strerror or error}.",
            "Give a path in a folder that exists and can be written.",
        ) from None
