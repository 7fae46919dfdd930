"""What lies in a run folder, and the few things that reading and writing it share.

| file | what | written |
|---|---|---|
| ``config.json`` | ``model_type: glassformer`` and the fields of ``DecoderConfig`` | before the first step |
| ``tokenizer.json`` | Hugging Face ``tokenizers`` format | before the first step |
| ``tokenizer_config.json`` | Hugging Face format: which tokens are special, and whether a prompt begins with BOS | before |
| ``training.json`` | the fields of ``TrainingConfig``, threads and precision settled | before the first step |
| ``recipe.toml`` | what the run was told, for another like it: ``recipe.py`` | before the first step |
| ``run.json`` | facts about the text; size and SHA-256 of each file above: the run can be resumed | last of these |
| ``data/`` | the tokens, where there are documents | before these |
| ``metrics.jsonl`` | one JSON object per reported step | as the run goes on |
| ``checkpoints/`` | where the run stands: ``checkpoint.py`` | as the run goes on |
| ``model.safetensors`` | the parameters under their ids | at the end |
| ``samples.txt`` | text the model wrote | at the end |
| ``manifest.json`` | facts about the run; size and SHA-256 of each file: the run can be loaded | last of all |

A folder claims no more than is true of it: without ``run.json`` nothing, with it that it can be resumed, with
``manifest.json`` that it can be loaded. Nothing that is read back is executed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import UserError, did_you_mean
from ..text.visible import visible
from .weights import fingerprint

FORMAT = 2
"""Rises when an older glassformer could misread a folder."""

CONFIG, TOKENIZER, TOKENIZER_CONFIG = "config.json", "tokenizer.json", "tokenizer_config.json"
TRAINING, RUN, METRICS = "training.json", "run.json", "metrics.jsonl"
WEIGHTS, SAMPLES, MANIFEST = "model.safetensors", "samples.txt", "manifest.json"
DATA, CHECKPOINTS = "data", "checkpoints"

RECIPE = "recipe.toml"
BEFORE = (CONFIG, TOKENIZER, TOKENIZER_CONFIG, TRAINING)
"""The files of which ``run.json`` has the hashes."""


def shown(path: Path) -> str:
    """``path`` as messages name it."""
    return visible(str(path), keep="")


def json_bytes(data: Mapping[str, Any]) -> bytes:
    """``data`` as strict JSON for people: indented, nothing escaped, no NaN. Raises ``ValueError`` for what is none."""
    return (json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


def read_json(content: bytes, file: str, name: str) -> dict[str, Any]:
    """The object in ``content``, of this format. Raises ``UserError`` for anything else."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise damaged(name, f"{file} is not JSON: {problem}") from problem
    if not isinstance(data, dict):
        raise damaged(name, f"{file} is not a JSON object")
    return data


def check_format(data: Mapping[str, Any], file: str, name: str) -> None:
    """Raise ``UserError`` unless ``data`` is of the format that this version reads."""
    found = data.get("format")
    if type(found) is not int:
        raise damaged(name, f"{file} does not say its format")
    if found > FORMAT:
        raise UserError(
            f"{name} was written by a newer glassformer.",
            f"{file} has format {found}; this version reads format {FORMAT}.",
            "Upgrade: pip install --upgrade glassformer.",
        )
    if found < FORMAT:
        raise UserError(
            f"{name} was written by an older glassformer.",
            f"{file} has format {found}; this version reads format {FORMAT}.",
            "Train again into a new folder.",
        )


def checked_files(path: Path, wanted: tuple[str, ...], hashes: Any, name: str) -> dict[str, bytes]:
    """The bytes of each of the ``wanted`` files, read once, equal to what ``hashes`` says. Raises ``UserError``."""
    contents = {}
    for file in wanted:
        expected = hashes.get(file) if isinstance(hashes, dict) else None
        content = read_bytes(path / file, name)
        if content is None:
            raise damaged(name, f"{file} is missing")
        if fingerprint(content) != expected:
            size = expected.get("bytes") if isinstance(expected, dict) else None
            raise damaged(name, f"{file} is not what was saved: {len(content):,} bytes, {size} when it was written")
        contents[file] = content
    return contents


def read_bytes(path: Path, name: str) -> bytes | None:
    """The content of ``path``, None where nothing is there. Raises ``UserError`` where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise UserError(f"{name} cannot be read.", f"{problem}.", "Check the path and its permissions.") from problem


def require_folder(path: Path) -> None:
    """Raise ``UserError`` unless ``path`` is a folder."""
    name = shown(path)
    try:
        if path.is_dir():
            return
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        fact = f"{name} is a file, not a run folder." if path.exists() else f"There is no run folder {name}."
    except (OSError, ValueError) as problem:
        raise UserError(f"{name} cannot be read.", f"{problem}.", "Check the path and its permissions.") from problem
    near = visible(did_you_mean(path.name, siblings), keep="")
    raise UserError(fact, near, "Check the path, or train a run: glassformer train clinic --out runs/clinic")


def lock(path: Path) -> int | None:
    """Keep other processes from writing into the folder ``path`` until the number is closed or this process ends.

    None where the system has no such locks. Raises ``UserError`` when another process holds it.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    number = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        os.close(number)
        raise UserError(
            f"{shown(path)} is being written by another process.",
            "Two runs in one folder would mix their files.",
            "Wait for it, or stop it first.",
        ) from problem
    except OSError:
        # A file system without locks: the run is as safe as its user is careful.
        os.close(number)
        return None
    return number


def damaged(name: str, what: str) -> UserError:
    """The refusal of a run folder that is not what was saved."""
    return UserError(
        f"The run folder {name} is damaged.", f"{visible(what, keep='')}.", "Restore it from a copy, or train again."
    )


def unwritable(path: Path, problem: Exception) -> UserError:
    """The refusal to go on when ``path`` cannot be written in the middle of a run."""
    return UserError(
        f"{shown(path)} cannot be written.",
        f"{problem}.",
        "Make room or choose another --out; what was saved before is still whole, and nothing else claims to be.",
    )
