"""Reading a run folder back: the finished model, or the parts with which an unfinished run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import ValidationError

from ..errors import UserError
from ..model import Decoder, DecoderConfig, read_config
from ..text.tokenizer import Tokenizer, read_tokenizer
from . import run_files
from .config import TrainingConfig
from .run_files import BEFORE, CONFIG, MANIFEST, RUN, TOKENIZER, TOKENIZER_CONFIG, TRAINING, WEIGHTS, damaged
from .weights import fill


class LoadedRun(NamedTuple):
    """What ``load_run`` returns; ``meta`` holds the facts of the run as they were saved.

    ``begin`` says whether a prompt begins with BOS, as every text did that the model was trained on.
    """

    model: Decoder
    tokenizer: Tokenizer
    meta: dict[str, Any]
    begin: bool = False


class Parts(NamedTuple):
    """What an unfinished run was begun with; ``model`` has the right shape and no values that mean anything."""

    model: Decoder
    tokenizer: Tokenizer
    training: TrainingConfig
    facts: dict[str, Any]


def load_run(path: str | Path) -> LoadedRun:
    """The model (float32, evaluation mode), tokenizer and facts saved in the run folder ``path``.

    Raises ``UserError`` for a folder that is missing, unfinished (it says how to go on), damaged (every file read is
    compared with its hash), of another version, or whose parts do not fit one another.
    """
    path = Path(path)
    run_files.require_folder(path)
    name = run_files.shown(path)
    manifest = read_manifest(path)
    if manifest is None:
        raise _unfinished(path, name)
    contents = run_files.checked_files(path, (CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG), manifest["files"], name)
    model, tokenizer = _model_and_tokenizer(contents, name)
    try:
        fill(model, contents[WEIGHTS])
    except ValueError as problem:
        raise damaged(name, f"{WEIGHTS}: {problem}") from problem
    begin = _begin(run_files.read_json(contents[TOKENIZER_CONFIG], TOKENIZER_CONFIG, name), name)
    return LoadedRun(model.eval(), tokenizer, manifest["meta"], begin)


def read_manifest(path: Path) -> dict[str, Any] | None:
    """What the manifest of the run folder ``path`` says; None where there is none. Raises ``UserError``."""
    name = run_files.shown(path)
    content = run_files.read_bytes(path / MANIFEST, name)
    if content is None:
        return None
    manifest = run_files.read_json(content, MANIFEST, name)
    run_files.check_format(manifest, MANIFEST, name)
    kinds = {"files": dict, "meta": dict, "finished": bool}
    if not all(isinstance(manifest.get(part), kind) for part, kind in kinds.items()):
        raise damaged(name, f"{MANIFEST} lacks one of {', '.join(kinds)}")
    return manifest


def read_parts(path: Path) -> Parts:
    """What the run in ``path`` was begun with. Raises ``UserError`` where it was not begun, or is damaged."""
    name = run_files.shown(path)
    content = run_files.read_bytes(path / RUN, name)
    if content is None:
        raise _unfinished(path, name)
    run = run_files.read_json(content, RUN, name)
    run_files.check_format(run, RUN, name)
    if not isinstance(run.get("facts"), dict):
        raise damaged(name, f"{RUN} lacks its facts")
    contents = run_files.checked_files(path, BEFORE, run.get("files"), name)
    model, tokenizer = _model_and_tokenizer(contents, name)
    try:
        training = TrainingConfig.model_validate(run_files.read_json(contents[TRAINING], TRAINING, name))
    except ValidationError as problem:
        fault = problem.errors()[0]
        raise damaged(name, f"{TRAINING}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from problem
    return Parts(model, tokenizer, training, run["facts"])


def _unfinished(path: Path, name: str) -> UserError:
    """What is the matter with a folder without a manifest."""
    if (path / RUN).exists():
        return UserError(
            f"{name} is not a finished run.",
            f"It has no {MANIFEST}, which is written last: the run was interrupted, or is still going on.",
            f"Go on with it: glassformer train --resume {name}",
        )
    return UserError(
        f"{name} is not a finished run.",
        f"It has neither {MANIFEST} nor {RUN}: the run was interrupted before its first step, or this is another folder.",
        "Train again into a new folder: glassformer train FILE --out NEW.",
    )


def _model_and_tokenizer(contents: dict[str, bytes], name: str) -> tuple[Decoder, Tokenizer]:
    config = _config(contents[CONFIG], name)
    try:
        text = contents[TOKENIZER].decode("utf-8")
    except UnicodeDecodeError as problem:
        raise damaged(name, f"{TOKENIZER} is not UTF-8: {problem}") from problem
    tokenizer = read_tokenizer(text)
    if tokenizer.vocab_size != config.vocab_size:
        raise damaged(
            name, f"the model has {config.vocab_size} tokens in its vocabulary, the tokenizer {tokenizer.vocab_size}"
        )
    return Decoder(config, torch.Generator()), tokenizer  # its own: nobody's random numbers are disturbed


def _config(content: bytes, name: str) -> DecoderConfig:
    data = run_files.read_json(content, CONFIG, name)
    run_files.check_format(data, CONFIG, name)
    if data.pop("model_type", None) != "glassformer":
        raise UserError(f"{name} holds another kind of model.", f"{CONFIG} does not say model_type glassformer.", "")
    del data["format"]
    return read_config(data)


def _begin(config: dict[str, Any], name: str) -> bool:
    begin = config.get("add_bos_token", False)
    if not isinstance(begin, bool):
        raise damaged(name, f"{TOKENIZER_CONFIG} says neither yes nor no to add_bos_token")
    return begin
