"""What laws know of a model that is not theirs: how to copy it, and how to call it."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from torch import Tensor, nn

from ..law import Family
from ..runs import Inputs
from ..verdict import NotSupported


class Kind(StrEnum):
    """Which text a position reads: what came before, all of it, or before and a source beside it."""

    CAUSAL = "causal"
    MASKED = "masked"
    SEQUENCE_TO_SEQUENCE = "sequence-to-sequence"


class Offer(StrEnum):
    """What a model may take or give beside ids and logits. The signature says that it may; the bench shows its effect."""

    MASK = "mask"
    POSITIONS = "positions"
    SEGMENTS = "segments"
    CACHE = "cache"
    LABELS = "labels"
    EMBEDS = "embeds"
    SOURCE = "source"
    SOURCE_MASK = "source_mask"


@dataclass(slots=True)
class Outputs:
    """What one call gave: ``logits (b, n, V)``, a scalar ``loss`` where labels were given, the cache to go on with.

    ``auxiliary`` is a loss beside the one of the labels, such as that which balances experts.
    """

    logits: Tensor
    loss: Tensor | None = None
    cache: Any = None
    auxiliary: Tensor | None = None


@dataclass(slots=True, kw_only=True)
class Continued:
    """What a model's own loop wrote: ``ids (b, n + k)``, the ``k`` new ones from ``start`` on.

    ``logits (b, k, V)`` are those that the loop itself saw, None where it does not tell. Where the prompts went into an
    encoder they are ``source (b, m)``, and ``ids`` are the decoder's. ``forwards`` counts the passes it took.
    """

    ids: Tensor
    start: int
    logits: Tensor | None = None
    source: Tensor | None = None
    forwards: int = 0


@dataclass(slots=True, kw_only=True)
class Facts:
    """What is known of a model, found in its config or its parts; None or absent where nothing says so.

    ``settings`` holds, under our names, what probes compare with: ``eps``, ``window``, ``heads``, ``kv_heads``, ``tied``.
    ``special`` ids are never drawn for a text: padding, begin, end.
    """

    vocab_size: int
    context: int | None = None
    pad: int | None = None
    special: frozenset[int] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=dict)


SETTINGS: Mapping[str, tuple[str, ...]] = {
    "eps": ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps", "layernorm_epsilon",
            "layernorm_eps", "eps"),
    "window": ("sliding_window", "attention_window_size", "window_size", "local_attention"),
    "chunk": ("attention_chunk_size",),
    "heads": ("num_attention_heads", "n_heads", "n_head", "num_heads", "decoder_attention_heads"),
    "kv_heads": ("num_key_value_heads", "n_kv_heads", "kv_heads"),
    "tied": ("tie_word_embeddings", "tie_weights", "tied"),
}  # fmt: skip
"""Where configurations say what laws compare with."""


def settings_of(config: Any) -> dict[str, Any]:
    """What ``config``, an object or a mapping, says of ``SETTINGS``: numbers and flags only."""
    found: dict[str, Any] = {}
    for setting, names in SETTINGS.items():
        for name in names:
            value = config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)
            if isinstance(value, int | float):
                found.setdefault(setting, value)
    return found


class ModelSubject(ABC):
    """A model under test. ``module`` is the user's own and is only ever copied.

    ``trials`` counts the forward passes made to find out how to call it. ``last_only`` says that ids alone give the
    logits of the last position only. ``recipe`` are lines of Python that make ``model``, where they are known.
    """

    family = Family.MODEL

    def __init__(self, name: str, module: nn.Module, kind: Kind, facts: Facts) -> None:
        self.name = name
        self.module = module
        self.kind = kind
        self.facts = facts
        self.trials = 0
        self.last_only = False
        self.recipe: Sequence[str] = ()

    @property
    @abstractmethod
    def offers(self) -> Mapping[Offer, str]:
        """What the signature promises: the name of the argument behind each offer."""

    @property
    def options(self) -> frozenset[str]:
        """The names of further arguments that ``forward`` takes."""
        return frozenset()

    @abstractmethod
    def call(self, module: nn.Module, inputs: Inputs, *, keep: bool = False, cache: Any = None) -> Outputs:
        """Call ``module``, a copy of the subject's. With ``keep`` a cache is begun, or ``cache`` continued, and returned.

        Raises ``NotSupported`` for inputs that the subject does not offer.
        """

    def continued(self, module: nn.Module, ids: Tensor, count: int, mask: Tensor | None = None) -> Continued:
        """``ids (b, n)`` and ``count`` more, each the arg-max, by the loop that ``module``, a copy, brings along.

        ``mask (b, n)`` is 0 at pads on the left. Raises ``NotSupported`` where there is no such loop.
        """
        raise NotSupported("the model brings no decoding loop along", "模型没有自带解码循环")

    def copied_cache(self, module: nn.Module, cache: Any) -> Any:
        """A copy of ``cache`` that shares nothing with it but ``module``, to which it belongs."""
        return copy.deepcopy(cache, {id(module): module})

    def copied(self) -> nn.Module:
        """A copy on the CPU that shares nothing with the user's model. Raises ``NotSupported`` where none can be made."""
        if any(tensor.is_meta for tensor in (*self.module.parameters(), *self.module.buffers())):
            raise NotSupported(
                "its weights are on the meta device: there are no numbers", "权重在 meta 设备上：没有数值"
            )
        try:
            made = copy.deepcopy(self.module).cpu()
            made.zero_grad(set_to_none=True)
        except Exception as error:  # - what a foreign __deepcopy__ raises is anything
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise NotSupported(
                f"the model cannot be copied ({said}); laws are only ever tried on a copy",
                f"无法复制模型（{said}）；定律只在副本上检验",
            ) from error
        shared = {id(p) for p in self.module.parameters()} & {id(p) for p in made.parameters()}
        if shared:
            raise NotSupported("a copy of the model shares its weights", "模型的副本与原模型共用权重")
        return made

    def blocks(self, module: nn.Module) -> Sequence[tuple[str, nn.Module]]:
        """The repeated layers of ``module``: the children of its longest list of modules of one class."""
        best: list[tuple[str, nn.Module]] = []
        for name, part in module.named_modules():
            children = list(part.named_children()) if isinstance(part, nn.ModuleList | nn.Sequential) else []
            alike = len({type(child) for _, child in children}) == 1
            if alike and len(children) > len(best):
                best = [(f"{name}.{each}", child) for each, child in children]
        return best

    def building(self) -> Sequence[str]:
        """Lines of Python that make ``model`` without this package, for a program that reproduces a finding."""
        return self.recipe or ("model = ...  # build your model here",)

    reading = "out.logits"
    """An expression for the logits of what a call gave, ``out``."""

    beginning = "None"
    """An expression for an empty cache."""

    keeping = "out.past_key_values"
    """An expression for the cache in ``out``."""

    def calling(self, inputs: Inputs, names: Mapping[str, str]) -> str:
        """An expression of Python that calls ``model``; ``names`` gives that of each tensor, and of a cache to go on with."""
        given = [names["ids"], *(f"{self.offers[Offer(key)]}={name}" for key, name in names.items() if key != "ids")]
        if Offer.CACHE.value in names and "use_cache" in self.options:
            given.append("use_cache=True")
        return f"model({', '.join([*given, *(f'{key}={value!r}' for key, value in inputs.options.items())])})"

    def require(self, offer: Offer) -> str:
        """The argument behind ``offer``; raises ``NotSupported`` where the signature has none."""
        if offer not in self.offers:
            raise NotSupported(f"forward takes no {offer.value}", f"forward 不接受 {offer.value}")
        return self.offers[offer]
