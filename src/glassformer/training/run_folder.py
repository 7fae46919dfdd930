"""A run folder being written: claimed, begun, logged, saved step by step, and sealed.

    with RunFolder.create(path) as folder:               # or RunFolder.resume(path)
        folder.begin(model, tokenizer, tokenizer_config, training, facts=...)
        outcome = run(model, data, training, folder, ...)
        folder.save(model, samples=..., meta=...)

What lies in it is listed in ``run_files.py``. Each file is whole under its name or not there. A new run never writes over
anything; a resumed one goes on in its own folder, and of two processes only one gets it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from ..errors import UserError
from ..files import remove_partial, sync_folder, write_atomically
from ..model import Decoder
from ..text.tokenizer import Tokenizer
from . import run_files
from .checkpoint import latest, load_checkpoint, save_checkpoint
from .config import TrainingConfig
from .loading import read_manifest, read_parts
from .precision import resolved
from .run_files import (
    BEFORE,
    CHECKPOINTS,
    CONFIG,
    DATA,
    FORMAT,
    MANIFEST,
    METRICS,
    RECIPE,
    RUN,
    SAMPLES,
    TOKENIZER,
    TOKENIZER_CONFIG,
    TRAINING,
    WEIGHTS,
    json_bytes,
    unwritable,
)
from .state import TrainingState, first_state
from .weights import fingerprint, weight_bytes


class RunFolder:
    """One run's folder, held by this process until ``close`` (or the end of a ``with``)."""

    def __init__(self, path: Path, lock: int | None, *, new: bool) -> None:
        """For ``create`` and ``resume``."""
        self.path = path
        self._lock = lock
        self._new = new

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """Make the folder at ``path`` and claim it; parents are made.

        Raises ``UserError`` when something is there already (an empty folder may be) or it cannot be written.
        """
        refuse_existing(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = run_files.lock(path)
            # "x": of two runs that start at the same moment only one gets the folder
            with (path / METRICS).open("x", encoding="utf-8"):
                pass
        except FileExistsError as problem:
            raise _exists(path) from problem
        except (OSError, ValueError) as problem:
            raise _unusable(path, problem) from problem
        return cls(path, lock, new=True)

    @classmethod
    def resume(cls, path: Path) -> Resumed:
        """The unfinished run in ``path``, as its last whole checkpoint left it.

        Metrics of later steps are cut off, and what a killed process was writing is removed. Raises ``UserError`` for a
        folder that is no run, a run that is finished, damaged, or being written by another process.
        """
        run_files.require_folder(path)
        folder = cls(path, run_files.lock(path), new=False)
        try:
            return folder._resumed()
        except BaseException:
            folder.close()
            raise

    @property
    def data(self) -> Path:
        """Where the tokens of the run go: a folder that is not there yet."""
        return self.path / DATA

    def begin(
        self,
        model: Decoder,
        tokenizer: Tokenizer,
        tokenizer_config: Mapping[str, Any],
        training: TrainingConfig,
        *,
        facts: Mapping[str, Any],
        recipe: str | None = None,
    ) -> TrainingConfig:
        """Write what going on needs before the first step; returns ``training`` with threads and precision settled.

        ``tokenizer_config`` is what ``tokenizer_config.json`` shall say, ``facts`` whatever a resumed run needs to know
        about its text; ``recipe``, where there is one, goes into ``recipe.toml``. Raises ``UserError`` when a file cannot
        be written, or for a precision that this machine lacks.
        """
        training = resolved(training, model.config.d)
        config = {"model_type": "glassformer", "format": FORMAT, **model.config.model_dump(mode="json")}
        contents = {
            CONFIG: json_bytes(config),
            TOKENIZER: tokenizer.to_json().encode("utf-8"),
            TOKENIZER_CONFIG: json_bytes(tokenizer_config),
            TRAINING: json_bytes(training.model_dump(mode="json")),
        }
        if recipe is not None:
            contents[RECIPE] = recipe.encode("utf-8")
        files = {name: fingerprint(content) for name, content in contents.items()}
        self._write(contents)
        self._make_checkpoints()
        self.checkpoint(model, first_state(model, training), keep=1)
        self._write({RUN: json_bytes({"format": FORMAT, "facts": dict(facts), "files": files})})
        return training

    def log(self, **values: float | int | None) -> None:
        """Append one line of metrics; raises ``UserError`` when it cannot be written."""
        line = json.dumps({k: _strict(v) for k, v in values.items()}, allow_nan=False)
        try:
            with (self.path / METRICS).open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as problem:
            raise unwritable(self.path / METRICS, problem) from problem

    def checkpoint(self, model: Decoder, state: TrainingState, *, keep: int) -> None:
        """Save where the run stands; the last ``keep`` checkpoints stay. Raises ``UserError`` when it cannot."""
        try:
            # Before the checkpoint claims its step, the lines up to it are on the disk.
            with (self.path / METRICS).open("ab") as file:
                os.fsync(file.fileno())
        except OSError as problem:
            raise unwritable(self.path / METRICS, problem) from problem
        save_checkpoint(self.path / CHECKPOINTS, model, state, keep)

    def save(self, model: Decoder, *, meta: Mapping[str, Any], samples: str, finished: bool = True) -> None:
        """Write the model, and the manifest last: from then on the folder can be loaded.

        A run that is not ``finished`` can still be resumed. Raises ``UserError`` when a file cannot be written.
        """
        self._write({WEIGHTS: weight_bytes(model), SAMPLES: samples.encode("utf-8")})
        names = (*BEFORE, RUN, METRICS, WEIGHTS, SAMPLES)
        try:
            hashes = {name: fingerprint((self.path / name).read_bytes()) for name in names}
        except OSError as problem:
            raise unwritable(self.path / MANIFEST, problem) from problem
        manifest = {"format": FORMAT, "finished": finished, "meta": dict(meta), "files": hashes}
        self._write({MANIFEST: json_bytes(manifest)})

    def abandon(self) -> None:
        """Remove a new run that ended before a first checkpoint was due, and the folder if nothing else is in it.

        What was resumed, or can be resumed after a step, stays.
        """
        checkpoints = self.path / CHECKPOINTS
        if not self._new or any(path.name > "step-00000000" for path in checkpoints.glob("step-*")):
            return
        with contextlib.suppress(OSError):
            for name in (RUN, *BEFORE, RECIPE, WEIGHTS, SAMPLES, METRICS):
                (self.path / name).unlink(missing_ok=True)
            for folder in (checkpoints, self.data):
                shutil.rmtree(folder, ignore_errors=True)
            remove_partial(self.path)
            self.path.rmdir()

    def close(self) -> None:
        """Let other processes have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _resumed(self) -> Resumed:
        path, name = self.path, run_files.shown(self.path)
        manifest = read_manifest(path)
        if manifest is not None and manifest["finished"]:
            raise UserError(
                f"{name} is finished.",
                "All of its steps are made.",
                f"Use it: glassformer generate {shlex.quote(name)}, or train a new run.",
            )
        parts = read_parts(path)
        found = latest(path / CHECKPOINTS)
        if found.path is None:
            raise run_files.damaged(name, "; ".join(("no checkpoint is whole", *found.notes)))
        state = load_checkpoint(found.path, parts.model)
        resolved(parts.training, parts.model.config.d)  # another machine may lack the precision
        try:
            # The manifest first: what it says of the metrics and the model is about to become wrong.
            (path / MANIFEST).unlink(missing_ok=True)
            sync_folder(path)
            remove_partial(path)
            remove_partial(path / CHECKPOINTS)
            _cut_metrics(path / METRICS, state.step)
        except OSError as problem:
            raise unwritable(path, problem) from problem
        return Resumed(self, parts.model, parts.tokenizer, parts.training, state, parts.facts, found.notes)

    def _make_checkpoints(self) -> None:
        try:
            (self.path / CHECKPOINTS).mkdir(exist_ok=True)
        except OSError as problem:
            raise unwritable(self.path / CHECKPOINTS, problem) from problem

    def _write(self, contents: Mapping[str, bytes]) -> None:
        for name, content in contents.items():
            try:
                write_atomically(self.path / name, content)
            except OSError as problem:
                raise unwritable(self.path / name, problem) from problem


class Resumed(NamedTuple):
    """What ``RunFolder.resume`` returns; ``notes`` are sentences about checkpoints that could not be used."""

    folder: RunFolder
    model: Decoder
    tokenizer: Tokenizer
    training: TrainingConfig
    state: TrainingState
    facts: dict[str, Any]
    notes: tuple[str, ...]


def refuse_existing(path: Path) -> None:
    """Raise ``UserError`` unless ``path`` is free or an empty folder."""
    name = run_files.shown(path)
    try:
        if path.is_dir():
            if any(path.iterdir()):
                raise _exists(path)
        elif path.exists() or path.is_symlink():
            raise UserError(f"{name} is a file, not a folder.", "", "Nothing was changed. Choose another --out.")
    except (OSError, ValueError) as problem:
        raise _unusable(path, problem) from problem


def _cut_metrics(path: Path, step: int) -> None:
    """Leave the lines up to ``step``: later ones, and one that a kill cut short, are written again."""
    content = path.read_bytes() if path.exists() else b""
    kept = 0
    for line in content.splitlines(keepends=True):
        try:
            data = json.loads(line)
        except ValueError:
            break
        if not line.endswith(b"\n") or not isinstance(data, dict) or not data.get("step", 0) <= step:
            break
        kept += len(line)
    if kept != len(content) or not path.exists():
        write_atomically(path, content[:kept])


def _strict(value: float | int | None) -> float | int | None:
    return None if value is None or not math.isfinite(value) else value


def _exists(path: Path) -> UserError:
    return UserError(
        f"{run_files.shown(path)} exists and is not empty.",
        "Nothing was changed.",
        "Choose another --out, or remove the folder first.",
    )


def _unusable(path: Path, problem: Exception) -> UserError:
    return UserError(f"{run_files.shown(path)} cannot be written.", f"{problem}.", "Choose another --out.")
