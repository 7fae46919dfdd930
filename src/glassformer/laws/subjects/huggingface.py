"""Models of ``transformers``: causal, masked, sequence-to-sequence; with attention, recurrent or both."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from torch import Tensor, nn

from ...errors import UserError
from ..runs import Inputs
from ..verdict import NotSupported
from .base import Continued, Facts, Kind, ModelSubject, Offer, Outputs, settings_of
from .loops import continued
from .module import following

CACHES = ("past_key_values", "cache_params", "cache", "state")
"""The argument and the output that carry what is kept of earlier tokens, by age and family."""

DECODER: Mapping[Offer, tuple[str, ...]] = {
    Offer.MASK: ("attention_mask",),
    Offer.POSITIONS: ("position_ids",),
    Offer.CACHE: CACHES,
    Offer.LABELS: ("labels",),
    Offer.EMBEDS: ("inputs_embeds",),
}
BESIDE_A_SOURCE: Mapping[Offer, tuple[str, ...]] = {
    Offer.MASK: ("decoder_attention_mask",),
    Offer.POSITIONS: ("decoder_position_ids",),
    Offer.CACHE: CACHES,
    Offer.LABELS: ("labels",),
    Offer.EMBEDS: ("decoder_inputs_embeds",),
    Offer.SOURCE: ("input_ids",),
    Offer.SOURCE_MASK: ("attention_mask",),
}

BOTH_WAYS = frozenset({"xlnet", "xlm", "flaubert"})
"""Read in both directions unless told otherwise, although their class also stands among the causal ones."""

VOCABULARY = ("vocab_size", "n_vocab", "decoder_vocab_size", "tgt_vocab_size")
CONTEXT = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_target_positions", "seq_length")


def is_huggingface(module: object) -> bool:
    """Whether ``module`` is a model of ``transformers``; that is not imported to find out."""
    library = sys.modules.get("transformers")
    return library is not None and isinstance(module, library.PreTrainedModel)


class HuggingFaceSubject(ModelSubject):
    """A model of ``transformers`` with a language-model head. ``recipe`` are lines that build it.

    Raises ``UserError`` for a class without such a head.
    """

    def __init__(
        self, module: nn.Module, name: str | None = None, kind: Kind | None = None, recipe: Sequence[str] = ()
    ) -> None:
        config: Any = module.config
        found = kind or kind_of(module)
        super().__init__(name or type(module).__name__, module, found, facts_of(config))
        if (said := _tied(module)) is not None:
            self.facts.settings = {**self.facts.settings, "tied": said}
        self.recipe = recipe
        self._parameters = inspect.signature(module.forward).parameters
        self._further = _annotated(self._parameters.values())
        wanted = BESIDE_A_SOURCE if found is Kind.SEQUENCE_TO_SEQUENCE else DECODER
        offers = {offer: arg for offer, names in wanted.items() if (arg := self._first(names)) is not None}
        if found is Kind.MASKED:
            offers.pop(Offer.CACHE, None)
        self._offers = offers
        kept = self._offers.get(Offer.CACHE)
        self.keeping = f"out.{kept}" if kept else "None"

    def _first(self, names: Sequence[str]) -> str | None:
        return next((name for name in names if name in self._parameters), None)

    @property
    def offers(self) -> Mapping[Offer, str]:
        return self._offers

    @property
    def options(self) -> frozenset[str]:
        named = {name for name, p in self._parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
        return frozenset((named | self._further) - set(self._offers.values()) - {self.ids_argument})

    @property
    def ids_argument(self) -> str:
        """The argument that carries the ids whose logits are returned."""
        return "decoder_input_ids" if self.kind is Kind.SEQUENCE_TO_SEQUENCE else "input_ids"

    def call(self, module: nn.Module, inputs: Inputs, *, keep: bool = False, cache: Any = None) -> Outputs:
        given = dict(inputs.options)
        for option in given:
            if option not in self._parameters and option not in self._further:
                raise NotSupported(f"forward takes no {option}", f"forward 不接受 {option}")
        for offer in (Offer.MASK, Offer.POSITIONS, Offer.SEGMENTS, Offer.EMBEDS, Offer.SOURCE, Offer.SOURCE_MASK):
            value = getattr(inputs, offer.value)
            if value is not None:
                given[self.require(offer)] = value
        if inputs.embeds is None:
            given[self.ids_argument] = inputs.ids
        if inputs.labels is not None:
            given[self.require(Offer.LABELS)] = self._labels(inputs.labels)
        if keep:
            if "use_cache" in self._parameters:
                given["use_cache"] = True
            argument = self.require(Offer.CACHE)
            if cache is not None:
                given[argument] = cache
        elif self.kind is not Kind.MASKED and "use_cache" in self._parameters:
            given.setdefault("use_cache", False)
        raw = module(**given)
        logits = getattr(raw, "logits", None)
        if not isinstance(logits, Tensor):
            raise NotSupported(f"forward returned {type(raw).__name__} without logits", "forward 没有返回 logits")
        auxiliary = getattr(raw, "aux_loss", None)
        return Outputs(logits, getattr(raw, "loss", None), self._kept(raw) if keep else None, auxiliary)

    def continued(self, module: nn.Module, ids: Tensor, count: int, mask: Tensor | None = None) -> Continued:
        return continued(module, ids, count, mask)

    def _labels(self, labels: Tensor) -> Tensor:
        # A decoder beside an encoder scores logits at i against label i; the others shift, or have nothing to shift.
        # Contiguous: the losses of several classes call view on them.
        return (following(labels) if self.kind is Kind.SEQUENCE_TO_SEQUENCE else labels).contiguous()

    def _kept(self, raw: Any) -> Any:
        kept = next((value for name in CACHES if (value := getattr(raw, name, None)) is not None), None)
        if kept is None:
            raise NotSupported("with use_cache no cache was returned", "use_cache 时没有返回缓存")
        return kept

    def calling(self, inputs: Inputs, names: Mapping[str, str]) -> str:
        given = [f"{self.ids_argument}={names['ids']}"]
        given += [f"{self.offers[Offer(key)]}={name}" for key, name in names.items() if key != "ids"]
        if "use_cache" in self._parameters:
            given.append(f"use_cache={Offer.CACHE.value in names}")
        given += [f"{key}={value!r}" for key, value in inputs.options.items()]
        return f"model({', '.join(given)})"


def _annotated(parameters: Iterable[inspect.Parameter]) -> frozenset[str]:
    """The names that ``**kwargs: Unpack[SomeTypedDict]`` promises to take."""
    found: set[str] = set()
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            for part in get_args(parameter.annotation):
                found |= set(getattr(part, "__annotations__", {}))
    return frozenset(found)


def kind_of(module: nn.Module) -> Kind:
    """What a class is for, as ``transformers`` itself lists it. Raises ``UserError`` for one that has no such head."""
    from transformers.models.auto import modeling_auto as auto

    config: Any = module.config
    name, model_type = type(module).__name__, str(config.model_type)
    masked = auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    beside_an_encoder = bool(getattr(config, "is_encoder_decoder", False))
    if name in _classes(auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES) and not beside_an_encoder:
        # Listed there are also decoders that read sound: text alone is no source of theirs.
        raise UserError(
            f"{name} reads something beside text.", "Its source is no row of tokens.", "Check its language model alone."
        )
    if beside_an_encoder:
        return Kind.SEQUENCE_TO_SEQUENCE
    if name in _classes(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        told = bool(getattr(config, "is_decoder", True)) and model_type not in BOTH_WAYS
        both_ways = model_type in BOTH_WAYS and not getattr(config, "causal", False)
        return Kind.MASKED if both_ways or (model_type in masked and not told) else Kind.CAUSAL
    if name in _classes(masked):
        return Kind.MASKED
    if module.get_output_embeddings() is None:  # pyright: ignore[reportCallIssue]
        raise UserError(
            f"{name} gives no logits over a vocabulary.",
            "It has no language-model head.",
            "Check a class such as ...ForCausalLM, ...ForMaskedLM or ...ForConditionalGeneration.",
        )
    return Kind.SEQUENCE_TO_SEQUENCE if getattr(config, "is_encoder_decoder", False) else Kind.CAUSAL


def _classes(mapping: Mapping[Any, Any]) -> set[str]:
    found = (value if isinstance(value, tuple | list) else (value,) for value in mapping.values())
    return {name for names in found for name in names}


def facts_of(config: Any) -> Facts:
    """Vocabulary, context, special ids and settings, as the text part of ``config`` says them. Raises ``UserError``."""
    text = config.get_text_config(decoder=True)
    # As dicts: an attribute that differs between layers raises.
    holders = (text.to_dict(), config.to_dict())
    sizes = [value for holder in holders for name in VOCABULARY if _count(value := holder.get(name))]
    if not sizes:
        raise UserError(f"The configuration of {config.model_type} names no vocabulary.", "", "Check another class.")
    settings = settings_of(text.to_dict())
    if isinstance(end := holders[0].get("eos_token_id"), int):
        settings["eos"] = end
    if not _windowed(text):
        settings.pop("window", None)
    return Facts(
        vocab_size=int(sizes[0]),
        context=next((int(v) for name in CONTEXT if _count(v := holders[0].get(name))), None),
        pad=text.pad_token_id if isinstance(getattr(text, "pad_token_id", None), int) else None,
        special=frozenset(_special(holders[1])),
        settings={**settings, "model_type": str(config.model_type)},
    )


def _tied(module: nn.Module) -> bool | None:
    """Whether the configuration of the innermost model that has the head says that it is tied; None where it does not say.

    A wrapper and the model of text inside it may say different things: ``transformers`` asks the one that owns the head.
    """
    from transformers import PreTrainedModel

    holders = [part for part in module.modules() if isinstance(part, PreTrainedModel)]
    with_head = [part for part in holders if part.get_output_embeddings() is not None]
    said = getattr(with_head[-1].config, "tie_word_embeddings", None) if with_head else None
    return said if isinstance(said, bool) else None


def _windowed(text: Any) -> bool:
    kinds = getattr(text, "layer_types", None)
    return kinds is None or any("full" not in str(kind) for kind in kinds)


def _special(config: Mapping[str, Any]) -> set[int]:
    found: set[int] = set()
    for name, value in config.items():
        if isinstance(value, Mapping):
            found |= _special(value)
        elif str(name).endswith(("_token_id", "_token_index")):
            values = value if isinstance(value, list) else [value]
            found |= {v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0}
    return found


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
