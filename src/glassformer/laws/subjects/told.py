"""From an object to what can be checked: a model, an adapter, or a part of ``torch.nn``; with what the user told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from ...errors import UserError, did_you_mean
from ...model import Decoder
from ...text.tokenizer import Tokenizer as OwnTokenizer
from ..law import Family
from .base import Kind, ModelSubject
from .huggingface import HuggingFaceSubject, is_huggingface
from .module import CallableSubject
from .own import DecoderSubject
from .text import HubTokenizer, LibraryTokenizer, tokenizer_subject
from .wrapped import is_core, wrapped

TOLD = ("name", "vocab_size", "context", "kind", "batch_first", "extra", "mask", "window", "eps", "pad")
"""What may be told of a subject."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the user said about a subject; only what was said is in ``values``. Raises ``UserError`` for other words."""

    values: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            if name not in TOLD:
                raise UserError(f'Nothing is known as "{name}".', "", did_you_mean(name, TOLD))
            if name in ("vocab_size", "context") and (not isinstance(value, int) or value < 1):
                raise UserError(f"{name} is {value!r}.", "", "Give a whole number of at least 1.")
        kinds = [kind.value for kind in Kind]
        if self.values.get("kind", kinds[0]) not in kinds:
            raise UserError(f'There is no kind "{self.values["kind"]}".', "", f"Kinds are {', '.join(kinds)}.")

    def only(self, *names: str, what: str) -> dict[str, Any]:
        """Those of ``names``; raises ``UserError`` where something else was told, which would have no effect."""
        for name in self.values:
            if name not in (*names, "name"):
                raise UserError(
                    f"{name} cannot be told of {what}.", "It says so itself.", f"Leave {name} out."
                )  # fmt: skip
        return {name: value for name, value in self.values.items() if name in names}


def subject_of(thing: object, told: Told | None = None) -> Any:
    """The subject that ``thing`` is, or can be checked as. Raises ``UserError`` for what cannot."""
    told = told or Told()
    name = told.values.get("name")
    if isinstance(getattr(thing, "family", None), Family) and not isinstance(thing, type):
        told.only(what="an adapter")
        return thing
    if isinstance(thing, Decoder):
        told.only(what="a Decoder")
        return DecoderSubject(thing, *([name] if name else []))
    if isinstance(thing, OwnTokenizer | HubTokenizer | LibraryTokenizer):
        told.only(what="a tokenizer")
        return tokenizer_subject(thing, name)
    if not isinstance(thing, nn.Module):
        raise UserError(
            f"A {type(thing).__name__} cannot be checked.",
            "Laws are tried on an nn.Module that maps token ids to logits, on a tokenizer, or on an adapter of "
            "glassformer.laws.subjects.",
            "Give one of these, or a function that returns one.",
        )
    if is_huggingface(thing):
        given = told.only("kind", what="a model of transformers")
        return HuggingFaceSubject(thing, name, **{key: Kind(value) for key, value in given.items()})
    return _module(thing, name, told)


def _module(module: nn.Module, name: str | None, told: Told) -> ModelSubject:
    if is_core(module):
        given = told.only("kind", "mask", what="a part of torch.nn")
        mask = given.get("mask")
        if mask is not None and not (isinstance(mask, Tensor) and mask.ndim == 2 and mask.shape[0] == mask.shape[1]):
            raise UserError("mask is not a square tensor.", "", "Give the mask as torch takes it, of the longest text.")
        causal = given.get("kind", Kind.CAUSAL if mask is not None else Kind.MASKED) == Kind.CAUSAL
        kind = Kind.CAUSAL if causal else Kind.MASKED
        return CallableSubject(wrapped(module, causal=causal, mask=mask), name or type(module).__name__, kind=kind)
    if "mask" in told.values:
        raise UserError("mask can be told of torch's own parts only.", "", "Use extra={...} for arguments of yours.")
    given = {key: value for key, value in told.values.items() if key != "name"}
    return CallableSubject(module, name, **given)
