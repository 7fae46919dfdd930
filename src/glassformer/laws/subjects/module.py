"""Any ``nn.Module`` that maps token ids to logits: what it takes is read from its signature, what it gives from a call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import UserError
from ..runs import Inputs
from ..verdict import NotSupported
from .base import Continued, Facts, Kind, ModelSubject, Offer, Outputs
from .loops import continued

NAMES: Mapping[Offer, tuple[str, ...]] = {
    Offer.MASK: ("attention_mask", "padding_mask", "pad_mask", "key_padding_mask", "mask"),
    Offer.POSITIONS: ("position_ids", "positions", "pos_ids", "pos", "input_pos"),
    Offer.SEGMENTS: ("segments", "segment_ids", "document_ids", "doc_ids", "seq_ids"),
    Offer.CACHE: ("past_key_values", "kv_cache", "cache", "past_kv", "past"),
    Offer.LABELS: ("labels", "targets", "target", "y"),
    Offer.EMBEDS: ("inputs_embeds", "input_embeddings", "embeds"),
}
"""Under which names public code takes what laws give."""

SHIFTED = ("targets", "target", "y")
"""Under these names labels are what comes next, in the place of what it is predicted from; under others, the text itself."""

CONTEXT = ("block_size", "context_length", "context_size", "context", "ctx_len", "n_positions", "n_ctx", "max_seq_len",
           "max_position_embeddings", "seq_len", "max_len")  # fmt: skip
VOCABULARY = ("vocab_size", "n_vocab", "vocabulary_size", "num_tokens", "n_tokens")
CONFIGS = ("config", "cfg", "args", "params")


class CallableSubject(ModelSubject):
    """A module called as ``module(ids, ...)``. Raises ``UserError`` where nothing tells how to call it."""

    def __init__(self, module: nn.Module, name: str | None = None, **told: Any) -> None:
        self._parameters = inspect.signature(module.forward).parameters
        self._given = {offer: argument for offer, names in NAMES.items() if (argument := self._found(names))}
        facts = found_facts(module, **told)
        super().__init__(name or type(module).__name__, module, Kind.CAUSAL, facts)
        self.kind = self._kind()

    def _found(self, names: Sequence[str]) -> str | None:
        return next((name for name in names if name in self._parameters), None)

    @property
    def offers(self) -> Mapping[Offer, str]:
        return self._given

    @property
    def options(self) -> frozenset[str]:
        return frozenset(self._parameters) - set(self._given.values())

    def call(self, module: nn.Module, inputs: Inputs, *, keep: bool = False, cache: Any = None) -> Outputs:
        given: dict[str, Any] = dict(inputs.options)
        for option in given:
            if option not in self._parameters:
                raise NotSupported(f"forward takes no {option}", f"forward 不接受 {option}")
        for offer in (Offer.MASK, Offer.POSITIONS, Offer.SEGMENTS, Offer.EMBEDS):
            value = getattr(inputs, offer.value)
            if value is not None:
                given[self.require(offer)] = value
        labels = inputs.labels
        argument = self._given.get(Offer.LABELS)
        if labels is not None:
            self.require(Offer.LABELS)
        elif argument in SHIFTED:
            labels = inputs.ids  # some models give all logits only where they are to be scored
        if labels is not None and argument is not None:
            given[argument] = following(labels) if argument in SHIFTED else labels
        if keep:
            if "use_cache" in self._parameters:
                given["use_cache"] = True
            given[self.require(Offer.CACHE)] = cache
        raw = module(**given) if inputs.embeds is not None else module(inputs.ids, **given)
        outputs = outputs_of(raw, self.facts.vocab_size)
        return outputs if inputs.labels is not None else replace(outputs, loss=None)

    def continued(self, module: nn.Module, ids: Tensor, count: int, mask: Tensor | None = None) -> Continued:
        return continued(module, ids, count, mask)

    def _kind(self) -> Kind:
        """Masked where a later token moves earlier logits of every row: whether that is meant, the user may tell."""
        return Kind.CAUSAL


def following(labels: Tensor) -> Tensor:
    """What comes next at each position, -100 at the last."""
    return torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], -100)], 1)


def outputs_of(raw: Any, vocab_size: int) -> Outputs:
    """Logits, loss and cache of what a forward returned: a tensor, a tuple, a mapping, or an object with ``logits``.

    Raises ``NotSupported`` where no tensor of three axes ends in the vocabulary.
    """
    parts = list(raw.values()) if isinstance(raw, Mapping) else list(raw) if isinstance(raw, tuple | list) else [raw]
    logits = getattr(raw, "logits", None)
    if logits is None:
        wide = [p for p in parts if isinstance(p, Tensor) and p.ndim == 3 and p.shape[-1] == vocab_size]
        if not wide:
            shapes = ", ".join(str(tuple(p.shape)) if isinstance(p, Tensor) else type(p).__name__ for p in parts)
            raise NotSupported(
                f"forward returned no (batch, positions, {vocab_size}): {shapes}",
                f"forward 没有返回 (批, 位置, {vocab_size})：{shapes}",
            )
        logits = wide[0]
    loss = getattr(raw, "loss", None)
    if loss is None:
        loss = next((p for p in parts if isinstance(p, Tensor) and p.ndim == 0), None)
    cache = getattr(raw, "past_key_values", None)
    if cache is None:
        rest = [p for p in parts if p is not logits and p is not None and not (isinstance(p, Tensor) and p.ndim == 0)]
        cache = rest[-1] if rest else None
    return Outputs(logits, loss, cache, getattr(raw, "aux_loss", None))


def found_facts(module: nn.Module, vocab_size: int | None = None, context: int | None = None, **settings: Any) -> Facts:
    """Vocabulary and context as told, or as the module, its config or its embedding says. Raises ``UserError``."""
    config = next((c for name in CONFIGS if (c := getattr(module, name, None)) is not None), None)
    tables = [part for part in module.modules() if isinstance(part, nn.Embedding)]
    if vocab_size is None:
        vocab_size = _read(module, config, VOCABULARY) or (tables[0].num_embeddings if tables else None)
    if vocab_size is None:
        raise UserError(
            f"The vocabulary of {type(module).__name__} was not found.",
            "It has no vocab_size and no embedding table.",
            "Say it: vocab_size=... (on the command line --vocab-size).",
        )
    return Facts(vocab_size=vocab_size, context=context or _read(module, config, CONTEXT), settings=settings)


def _read(module: nn.Module, config: Any, names: Sequence[str]) -> int | None:
    for holder in (config, module):
        for name in names:
            value = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None
