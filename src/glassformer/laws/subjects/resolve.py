"""From what a user types to what can be checked."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ...errors import UserError, did_you_mean
from ..law import Family
from .base import Kind
from .huggingface import HuggingFaceSubject
from .module import CallableSubject
from .told import Told, subject_of

TOY = "toy24"
LIBRARY = "transformers:"
OWN = "glassformer"
"""The ``model_type`` of our own runs."""

GIVE = "Give the folder of a run, a Hugging Face folder, transformers:NAME, package.module:callable, or toy24."


def subjects_from(text: str, told: Told | None = None, seed: int = 0) -> Sequence[Any]:
    """The subjects that ``text`` names: the model first. Raises ``UserError`` for what names none."""
    told = told or Told()
    if text == TOY:
        from ...model.toy24 import toy24_model

        told.only(what=TOY)
        return (subject_of(toy24_model(), Told({"name": TOY})),)
    if text.startswith(LIBRARY):
        from .architectures import tiny_subject

        told.only(what="an architecture of transformers")
        return (tiny_subject(text.removeprefix(LIBRARY), seed),)
    path = Path(text)
    if path.is_dir():
        return _folder(path, told)
    if ":" in text and not path.exists():
        torch.manual_seed(seed)  # of whatever random weights it begins with
        return (_called(text, told, seed),)
    if path.exists():
        raise UserError(f"{text} is a file.", "A model is a folder.", GIVE)
    near = did_you_mean(text, [TOY, LIBRARY + "llama", LIBRARY + "gpt2", LIBRARY + "bert"])
    raise UserError(
        f'There is nothing called "{text}".', "", f"{near if near.startswith('Did') else ''} {GIVE}".strip()
    )


# Folders


def _folder(path: Path, told: Told) -> Sequence[Any]:
    config = _json(path / "config.json")
    if (
        config is not None
        and config.get("model_type") != OWN
        and {"model_type", "architectures", "auto_map"} & set(config)
    ):
        told.only("kind", what="a Hugging Face folder")
        return (_huggingface(path, config, told), *_tokenizer(path))
    from ...training import load_run
    from .run import run_subjects

    told.only(what="a run")
    run = load_run(path)
    return run_subjects(run.model, run.tokenizer, str(path))


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _huggingface(path: Path, config: dict[str, Any], told: Told) -> HuggingFaceSubject:
    """The model of a folder, from safetensors alone and with the code of ``transformers`` alone. Raises ``UserError``."""
    from .architectures import library

    for name in ("config.json", "tokenizer_config.json", "processor_config.json"):
        if "auto_map" in (_json(path / name) or {}):
            raise UserError(
                f"{path / name} asks for code of its own (auto_map).",
                "Code of a model folder is never run.",
                "Import the class yourself and check it from Python: glassformer.laws.check(model).",
            )
    if not any(path.glob("*.safetensors")):
        raise UserError(
            f"{path} holds no safetensors file.",
            "Pickled weights can run code and are not read.",
            "Save the model anew: model.save_pretrained(folder, safe_serialization=True).",
        )
    transformers = library()
    names = config.get("architectures") or []
    cls: Any = getattr(transformers, str(names[0]), None) if names else None
    if not (inspect.isclass(cls) and issubclass(cls, transformers.PreTrainedModel)):
        said = names[0] if names else "none"
        raise UserError(
            f"{path} names the class {said}.", f"transformers {transformers.__version__} has none such.", ""
        )
    try:
        model, info = cls.from_pretrained(  # pyright: ignore[reportAttributeAccessIssue]
            str(path), local_files_only=True, trust_remote_code=False, use_safetensors=True, output_loading_info=True
        )
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise UserError(f"{path} could not be loaded.", said, "Check the folder.") from error
    kind = told.values.get("kind")
    recipe = (
        f"from transformers import {cls.__name__}",
        f"model = {cls.__name__}.from_pretrained({str(path)!r}).eval()",
    )
    subject = HuggingFaceSubject(model.eval(), str(path), Kind(kind) if kind else None, recipe)
    lost = {key: sorted(map(str, info.get(key) or ()))[:5] for key in ("missing_keys", "unexpected_keys")}
    subject.facts.settings = {**subject.facts.settings, **{key: ", ".join(keys) for key, keys in lost.items() if keys}}
    return subject


def _tokenizer(path: Path) -> Sequence[Any]:
    """The tokenizer of a Hugging Face folder, where its file is there to be read."""
    if not (path / "tokenizer.json").is_file():
        return ()
    from transformers import AutoTokenizer

    try:
        made = AutoTokenizer.from_pretrained(str(path), local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise UserError(f"The tokenizer of {path} could not be loaded.", _said(error), "Check the folder.") from error
    return (subject_of(made, Told({"name": str(path)})),)


# Callables


def _called(text: str, told: Told, seed: int) -> Any:
    """What ``package.module:callable`` returns, as a subject. The current folder is importable, as for ``python -m``."""
    place, _, name = text.partition(":")
    if not place or not name or not all(part.isidentifier() for part in (*place.split("."), *name.split("."))):
        raise UserError(f'"{text}" is not package.module:callable.', "", GIVE)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    thing = _fetched(place, name)
    adapter = isinstance(getattr(thing, "family", None), Family) and not isinstance(thing, type)
    if callable(thing) and not adapter and not isinstance(thing, nn.Module):
        thing = _made(text, thing)
    subject = subject_of(thing, Told({"name": text, **told.values}))
    if isinstance(subject, CallableSubject | HuggingFaceSubject):
        first = name.split(".")[0]
        subject.recipe = (
            "import torch",
            f"from {place} import {first}",
            f"torch.manual_seed({seed})",
            f"model = {name}()",
            "model.eval()",
        )
    return subject


def _fetched(place: str, name: str) -> Any:
    try:
        thing: Any = importlib.import_module(place)
    except ModuleNotFoundError as missing:
        if missing.name is not None and (place == missing.name or place.startswith(missing.name + ".")):
            near = sorted(path.stem for path in Path.cwd().glob("*.py"))
            raise UserError(
                f'There is no module "{place}".', "The current folder can be imported from.", did_you_mean(place, near)
            ) from missing
        raise UserError(f"{place} imports {missing.name}.", "It is not installed.", "Install it.") from missing
    except Exception as error:
        raise UserError(f"Importing {place} raised.", _said(error), "") from error
    for part in name.split("."):
        known = [each for each in dir(thing) if not each.startswith("_")]
        if part not in dir(thing):
            raise UserError(f'{place} has no "{part}".', "", did_you_mean(part, known))
        thing = getattr(thing, part)
    return thing


def _made(text: str, build: Any) -> Any:
    try:
        required = [
            n for n, p in inspect.signature(build).parameters.items()
            if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]  # fmt: skip
    except (TypeError, ValueError):
        required = []
    if required:
        raise UserError(f"{text} needs {', '.join(required)}.", "It is called without arguments.", "Write a function.")
    try:
        return build()
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{text} raised.", _said(error), "Make it return a model when called without arguments."
        ) from error


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
