"""Tiny random models of the architectures of the installed ``transformers``, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ...errors import UserError, did_you_mean
from .base import Kind
from .huggingface import HuggingFaceSubject
from .tiny import TRIED, VOCABULARY, tiny

MOST = 6_000_000
"""Parameters of the largest model that still counts as small."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """A language-model class of ``transformers`` and the configuration it is built from."""

    model_type: str
    cls: str
    kind: Kind


def library() -> Any:
    """``transformers``, quiet. Raises ``UserError`` where it is not installed."""
    try:
        import transformers
    except ImportError as missing:
        raise UserError(
            "Hugging Face models are checked through the package transformers.",
            "It is not installed.",
            'Install it: pip install "glassformer[hf]"',
        ) from missing
    transformers.logging.set_verbosity_error()
    return transformers


def architectures() -> tuple[Architecture, ...]:
    """Every class with a language-model head, each once."""
    library()
    from transformers.models.auto import modeling_auto as auto

    mappings = (
        # The order decides what a class that stands in several is taken for.
        (auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, Kind.SEQUENCE_TO_SEQUENCE),
        (auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, Kind.CAUSAL),
        (auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, Kind.MASKED),
    )
    found: dict[str, Architecture] = {}
    for mapping, kind in mappings:
        for model_type, names in mapping.items():
            for name in names if isinstance(names, tuple | list) else (names,):
                known = found.get(name)
                if known is None or (known.kind is kind and _apart(model_type, name) < _apart(known.model_type, name)):
                    found[name] = Architecture(model_type, name, kind)
    return tuple(found.values())


def _apart(model_type: str, cls: str) -> int:
    """0 where a class is named after a model type, else 1: LlamaForCausalLM belongs to llama, whoever else uses it."""
    return int(not cls.lower().startswith(model_type.replace("_", "").replace("-", "")))


def architecture(name: str) -> Architecture:
    """The architecture called ``name``: a model type (``llama``) or a class (``BertLMHeadModel``).

    A type that has several classes gives the one of its own kind: masked for an encoder such as ``bert``. Raises
    ``UserError``, with the nearest names, for any other.
    """
    known = architectures()
    by_class = [each for each in known if each.cls == name]
    if by_class:
        return by_class[0]
    by_type = [each for each in known if each.model_type == name]
    if not by_type:
        names = [*dict.fromkeys(each.model_type for each in known), *dict.fromkeys(each.cls for each in known)]
        raise UserError(f'transformers has no architecture "{name}".', "", did_you_mean(name, names))
    masked = [each for each in by_type if each.kind is Kind.MASKED]
    beside = [each for each in by_type if each.kind is Kind.SEQUENCE_TO_SEQUENCE]
    return (beside or masked or by_type)[0]


def tiny_subject(name: str, seed: int = 0) -> HuggingFaceSubject:
    """A tiny random model of an architecture. Raises ``UserError`` where none could be built and run, with the reason."""
    chosen = architecture(name)
    told: list[str] = []
    for sizes in TRIED:
        try:
            given, model = _built(chosen, sizes, seed)
        except Exception as error:  # noqa: BLE001 - foreign constructors raise anything; the reason is passed on
            told.append(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
            continue
        subject = HuggingFaceSubject(model, f"transformers:{chosen.cls}", recipe=_recipe(given, model, seed))
        subject.facts.settings = {**subject.facts.settings, "untrained": True}
        return subject
    raise UserError(f"No small model of {chosen.cls} could be built.", told[0], "Build one and check it from Python.")


def _built(chosen: Architecture, sizes: Any, seed: int) -> tuple[Mapping[str, Any], nn.Module]:
    model_class = getattr(library(), chosen.cls)
    config_class = model_class.config_class
    defaults = config_class().to_dict()
    given = tiny(defaults, sizes, chosen.model_type, usual=_usual)
    if chosen.kind is Kind.CAUSAL and defaults.get("is_decoder") is False:
        given["is_decoder"] = True
    if chosen.kind is Kind.SEQUENCE_TO_SEQUENCE and defaults.get("decoder_start_token_id") is None:
        given["decoder_start_token_id"] = 0  # its own loop begins with it
    with torch.device("meta"):  # a setting that was missed would fill the memory
        size = sum(p.numel() for p in model_class(config_class(**given)).parameters())
    if size > MOST:
        raise ValueError(f"it would have {size:,} parameters")
    torch.manual_seed(seed)
    model = model_class(config_class(**given)).eval()
    _runs(model, chosen.kind)
    return given, model


def _usual(model_type: str) -> Mapping[str, Any]:
    """The settings of a model type by itself; none where it never stands alone."""
    from transformers import AutoConfig

    try:
        return AutoConfig.for_model(model_type).to_dict()
    except ValueError:
        return {}


@torch.no_grad()
def _runs(model: nn.Module, kind: Kind) -> None:
    """Raise unless ``model`` gives logits for a short text."""
    ids = torch.arange(5, 13).expand(2, -1) % VOCABULARY
    beside = {"decoder_input_ids": ids} if kind is Kind.SEQUENCE_TO_SEQUENCE else {}
    logits = model(input_ids=ids, **beside).logits
    if logits.ndim != 3 or logits.shape[:2] != ids.shape:
        raise ValueError(f"its logits have the shape {tuple(logits.shape)} for 2 texts of {ids.shape[1]} tokens")


def _recipe(given: Mapping[str, Any], model: nn.Module, seed: int) -> tuple[str, ...]:
    return tuple(_lines(given, model, seed))


def _lines(given: Mapping[str, Any], model: nn.Module, seed: int) -> Iterator[str]:
    config: Any = model.config
    config_class = type(config).__name__
    yield "import torch"
    yield f"from transformers import {config_class}, {type(model).__name__}"
    yield f"config = {config_class}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
    yield f"torch.manual_seed({seed})"
    yield f"model = {type(model).__name__}(config).eval()"
