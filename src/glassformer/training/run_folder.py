"""A run folder: the trained model, its tokenizer, and how it came about.

| file | what |
|---|---|
| ``metrics.jsonl`` | one JSON object per reported step, appended while the run goes on |
| ``config.json`` | ``model_type: glassformer`` and the fields of ``DecoderConfig`` |
| ``model.safetensors`` | the parameters under their ids |
| ``tokenizer.json`` | Hugging Face ``tokenizers`` format |
| ``samples.txt`` | text the model wrote |
| ``manifest.json`` | written last: format, facts about the run, size and SHA-256 of each file above |

A folder without a manifest claims nothing: a run that was killed, or a disk that was full, leaves one of those. Nothing
is ever written over: a new run takes a new folder. Nothing that is read back is executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError

from ..errors import UserError, did_you_mean
from ..model import Decoder, DecoderConfig, read_config
from ..text.tokenizer import Tokenizer, read_tokenizer
from ..text.visible import visible

FORMAT = 1
"""Rises when an older glassformer could misread a folder."""

METRICS, CONFIG, WEIGHTS, TOKENIZER = "metrics.jsonl", "config.json", "model.safetensors", "tokenizer.json"
SAMPLES, MANIFEST = "samples.txt", "manifest.json"
_NEEDED = (CONFIG, WEIGHTS, TOKENIZER)


class LoadedRun(NamedTuple):
    """What ``load_run`` returns; ``meta`` holds the facts of the run as they were saved."""

    model: Decoder
    tokenizer: Tokenizer
    meta: dict[str, Any]


class RunFolder:
    """A folder being written: metrics line by line, then ``save`` once."""

    def __init__(self, path: Path) -> None:
        """Create the folder at ``path`` and claim it; parents are made.

        Raises ``UserError`` when something is there already (an empty folder may be) or it cannot be written.
        """
        self.path = path
        self._name = visible(str(path), keep="")
        refuse_existing(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            # "x": of two runs that start at the same moment only one gets the folder
            with (path / METRICS).open("x", encoding="utf-8"):
                pass
        except FileExistsError as problem:
            raise _exists(self._name) from problem
        except (OSError, ValueError) as problem:
            raise _unwritable(self._name, problem, "Choose another --out.") from problem

    def log(self, **values: float | int | None) -> None:
        """Append one line of metrics; raises ``UserError`` when it cannot be written."""
        line = json.dumps({k: _strict(v) for k, v in values.items()}, allow_nan=False)
        try:
            with (self.path / METRICS).open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as problem:
            raise _unwritable(str(self.path / METRICS), problem, _INCOMPLETE) from problem

    def save(self, model: Decoder, tokenizer: Tokenizer, *, meta: Mapping[str, Any], samples: str) -> None:
        """Write everything, the manifest last; raises ``UserError`` when a file cannot be written.

        Each file is complete under its name or not there: it is written under another name, flushed to the disk and
        renamed.
        """
        tensors = {name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}
        config = {"model_type": "glassformer", "format": FORMAT, **model.config.model_dump(mode="json")}
        contents = {
            CONFIG: _json(config),
            WEIGHTS: safetensors.torch.save(tensors, {"format": "pt"}),
            TOKENIZER: tokenizer.to_json().encode("utf-8"),
            SAMPLES: samples.encode("utf-8"),
        }
        self._write(contents)
        hashes = {name: _fingerprint((self.path / name).read_bytes()) for name in (METRICS, *contents)}
        self._write({MANIFEST: _json({"format": FORMAT, "meta": dict(meta), "files": hashes})})

    def abandon(self) -> None:
        """Remove the metrics, and the folder if nothing else is in it: for a run that ended before ``save``."""
        with contextlib.suppress(OSError):
            (self.path / METRICS).unlink()
            self.path.rmdir()

    def _write(self, contents: Mapping[str, bytes]) -> None:
        for name, content in contents.items():
            try:
                write_atomically(self.path / name, content)
            except OSError as problem:
                raise _unwritable(str(self.path / name), problem, _INCOMPLETE) from problem


def refuse_existing(path: Path) -> None:
    """Raise ``UserError`` unless ``path`` is free or an empty folder."""
    name = visible(str(path), keep="")
    try:
        if path.is_dir():
            if any(path.iterdir()):
                raise _exists(name)
        elif path.exists() or path.is_symlink():
            raise UserError(f"{name} is a file, not a folder.", "", "Nothing was changed. Choose another --out.")
    except (OSError, ValueError) as problem:
        raise _unwritable(name, problem, "Choose another --out.") from problem


def write_atomically(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` so that a reader, or a crash, sees all of it or what was there before."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def load_run(path: Path) -> LoadedRun:
    """The model (float32, evaluation mode), tokenizer and facts saved in the run folder ``path``.

    Raises ``UserError`` for a folder that is missing, unfinished, damaged (every file read is compared with its hash),
    written by a newer glassformer, or whose parts do not fit one another.
    """
    name = visible(str(path), keep="")
    manifest = _manifest(path, name)
    contents = {file: _checked(path, file, manifest["files"].get(file), name) for file in _NEEDED}
    config = _config(contents[CONFIG], name)
    tokenizer = read_tokenizer(contents[TOKENIZER])
    if tokenizer.vocab_size != config.vocab_size:
        raise _damaged(
            name, f"The model has {config.vocab_size} tokens in its vocabulary, the tokenizer {tokenizer.vocab_size}"
        )
    return LoadedRun(_model(config, contents[WEIGHTS], name), tokenizer, manifest["meta"])


def _manifest(path: Path, name: str) -> dict[str, Any]:
    try:
        if not path.is_dir():
            siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            fact = f"{name} is a file, not a run folder." if path.exists() else f"There is no run folder {name}."
            raise UserError(fact, "", did_you_mean(path.name, siblings))
        if not (path / MANIFEST).exists():
            raise UserError(
                f"{name} is not a finished run.",
                f"It has no {MANIFEST}, which is written last: the run was interrupted, or this is another folder.",
                "Train again into a new folder: glassformer train FILE --out NEW.",
            )
        manifest = json.loads((path / MANIFEST).read_bytes())
    except OSError as problem:
        raise UserError(f"{name} cannot be read.", f"{problem}.", "Check the path and its permissions.") from problem
    except (ValueError, RecursionError) as problem:
        raise _damaged(name, f"{MANIFEST} is not JSON: {problem}") from problem
    _refuse_newer(manifest, MANIFEST, name)
    if not isinstance(manifest.get("files"), dict) or not isinstance(manifest.get("meta"), dict):
        raise _damaged(name, f"{MANIFEST} lacks its list of files or its facts")
    return manifest


def _refuse_newer(data: Any, file: str, name: str) -> None:
    if not isinstance(data, dict) or not isinstance(data.get("format"), int):
        raise _damaged(name, f"{file} does not say its format")
    if data["format"] > FORMAT:
        raise UserError(
            f"{name} was written by a newer glassformer.",
            f"{file} has format {data['format']}; this version reads up to {FORMAT}.",
            "Upgrade: pip install --upgrade glassformer.",
        )


def _checked(path: Path, file: str, expected: Any, name: str) -> bytes:
    """The bytes of ``file``, read once, equal in size and hash to what the manifest says."""
    try:
        content = (path / file).read_bytes()
    except FileNotFoundError as problem:
        raise _damaged(name, f"{file} is missing") from problem
    except OSError as problem:
        raise UserError(f"{name}/{file} cannot be read.", f"{problem}.", "Check its permissions.") from problem
    if _fingerprint(content) != expected:
        size = expected.get("bytes") if isinstance(expected, dict) else None
        raise _damaged(name, f"{file} is not what was saved: {len(content):,} bytes, {size} in the manifest")
    return content


def _config(content: bytes, name: str) -> DecoderConfig:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise _damaged(name, f"{CONFIG} is not JSON: {problem}") from problem
    _refuse_newer(data, CONFIG, name)
    if data.pop("model_type", None) != "glassformer":
        raise UserError(f"{name} holds another kind of model.", f"{CONFIG} does not say model_type glassformer.", "")
    del data["format"]
    return read_config(data)


def _model(config: DecoderConfig, content: bytes, name: str) -> Decoder:
    try:
        tensors = safetensors.torch.load(content)
    except (SafetensorError, ValueError, KeyError) as problem:
        raise _damaged(name, f"{WEIGHTS} is not a safetensors file: {problem}") from problem
    model = Decoder(config, torch.Generator())  # its own: loading must not disturb anybody's random numbers
    wanted = {key: tuple(p.shape) for key, p in model.named_parameters()}
    found = {key: tuple(t.shape) for key, t in tensors.items()}
    for key in sorted(wanted.keys() | found.keys()):
        if wanted.get(key) != found.get(key):
            raise _damaged(name, f"{key} has shape {found.get(key)} in {WEIGHTS}, {wanted.get(key)} in the model")
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(tensors[key])
    return model.eval()


def _fingerprint(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


def _strict(value: float | int | None) -> float | int | None:
    return None if value is None or not math.isfinite(value) else value


_INCOMPLETE = "Make room or choose another --out; the folder has no manifest, so nothing will mistake it for a run."


def _exists(name: str) -> UserError:
    return UserError(
        f"{name} exists and is not empty.", "Nothing was changed.", "Choose another --out, or remove the folder first."
    )


def _unwritable(name: str, problem: Exception, next_step: str) -> UserError:
    return UserError(f"{visible(name, keep='')} cannot be written.", f"{problem}.", next_step)


def _damaged(name: str, what: str) -> UserError:
    return UserError(f"The run folder {name} is damaged.", f"{what}.", "Restore it from a copy, or train again.")
