"""Checkpoints: everything that going on exactly needs, whole or not there.

    checkpoints/step-00000400/
        model.safetensors       the parameters under their ids
        optimizer.safetensors   the moments under moment1.ID and moment2.ID
        state.json              counters, times, the states of the random number generators
        manifest.json           written last: size and SHA-256 of each file above

A checkpoint is written under a hidden name, flushed to the disk and renamed; older ones go only after that. A process
that is killed at any moment leaves the old checkpoint, the new one, or both.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import UserError
from ..files import discard, write_folder
from ..model import Decoder
from ..text.visible import visible
from .run_files import FORMAT, MANIFEST, WEIGHTS, json_bytes, unwritable
from .state import TrainingState
from .weights import fill, fingerprint, read_tensors, tensor_bytes, weight_bytes

OPTIMIZER, STATE = "optimizer.safetensors", "state.json"
_FILES = (WEIGHTS, OPTIMIZER, STATE)
_NAME = re.compile(r"step-(\d{8,})")


class Latest(NamedTuple):
    """The last checkpoint that is whole (None where none is), and a sentence on each later one that is not."""

    path: Path | None
    notes: tuple[str, ...]


def save_checkpoint(folder: Path, model: Decoder, state: TrainingState, keep: int = 1) -> Path:
    """Write the checkpoint of ``state`` into ``folder``, then remove all but it and the ``keep - 1`` before it.

    Returns its path. One of the same step is replaced; those of later steps go, since the run goes on from here. Raises
    ``UserError`` when it cannot be written; the others are then as they were.
    """
    path = folder / f"step-{state.step:08d}"
    contents = {
        WEIGHTS: weight_bytes(model),
        OPTIMIZER: tensor_bytes(state.optimizer),
        STATE: json_bytes(state.plain()),
    }
    files = {name: fingerprint(content) for name, content in contents.items()}
    contents[MANIFEST] = json_bytes({"format": FORMAT, "files": files})
    try:
        write_folder(path, contents)
        steps = _steps(folder)
        earlier = sorted(step for step in steps if step < state.step)
        kept = {state.step, *earlier[len(earlier) - (keep - 1) :]}
        for step in steps.keys() - kept:
            discard(steps[step])
    except OSError as problem:
        raise unwritable(path, problem) from problem
    return path


def latest(folder: Path) -> Latest:
    """The last whole checkpoint in ``folder``: every file of it is read and compared with its hash."""
    notes: list[str] = []
    for _, path in sorted(_steps(folder).items(), reverse=True):
        try:
            _contents(path)
        except ValueError as problem:
            notes.append(f"{path.name} is damaged and was passed over: {problem}")
        else:
            return Latest(path, tuple(notes))
    return Latest(None, tuple(notes))


def load_checkpoint(path: Path, model: Decoder) -> TrainingState:
    """Give ``model`` the parameters of the checkpoint ``path``; returns where the run stood.

    Raises ``UserError`` for a checkpoint that is damaged, unfinished or another model's.
    """
    try:
        contents = _contents(path)
        optimizer = read_tensors(contents[OPTIMIZER])
        state = TrainingState.of_plain(json.loads(contents[STATE]), optimizer)
        fill(model, contents[WEIGHTS])
    except (ValueError, RecursionError) as problem:
        raise UserError(
            f"The checkpoint {visible(str(path), keep='')} is damaged.",
            f"{visible(str(problem), keep='')}.",
            "Remove it to go on from the one before.",
        ) from problem
    return state


def _steps(folder: Path) -> dict[int, Path]:
    """The checkpoints in ``folder`` by step, whole or not."""
    if not folder.is_dir():
        return {}
    found = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return {int(match[1]): path for match, path in found if match is not None}


def _contents(path: Path) -> dict[str, bytes]:
    """The files of a checkpoint. Raises ``ValueError`` unless each is what its manifest says."""
    try:
        manifest: Any = json.loads((path / MANIFEST).read_bytes())
        contents = {name: (path / name).read_bytes() for name in _FILES}
    except (OSError, RecursionError) as problem:
        raise ValueError(f"{type(problem).__name__}: {problem}") from problem
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"{MANIFEST} is not that of a checkpoint of format {FORMAT}")
    files = manifest.get("files")
    for name, content in contents.items():
        if not isinstance(files, dict) or files.get(name) != fingerprint(content):
            raise ValueError(f"{name} is not what was saved")
    return contents
