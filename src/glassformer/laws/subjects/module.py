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
from ..verdict import NotSupported, Undecided
from ..weights import scale, unsettle
from .base import Continued, Kind, ModelSubject, Offer, Outputs
from .found import found_facts
from .loops import continued
from .masks import IGNORING, READ, Convention, found_convention

NAMES: Mapping[Offer, tuple[str, ...]] = {
    Offer.MASK: ("attention_mask", "padding_mask", "pad_mask", "key_padding_mask", "mask"),
    Offer.POSITIONS: ("position_ids", "positions", "pos_ids", "pos", "input_pos"),
    Offer.SEGMENTS: ("segments", "segment_ids", "document_ids", "doc_ids", "seq_ids"),
    Offer.CACHE: ("past_key_values", "kv_cache", "cache", "past_kv", "past"),
    Offer.LABELS: ("labels", "targets", "target", "y"),
    Offer.EMBEDS: ("inputs_embeds", "input_embeddings", "embeds"),
    Offer.SOURCE: ("source", "src", "encoder_ids", "memory_ids"),
    Offer.SOURCE_MASK: ("source_mask", "src_mask", "src_key_padding_mask"),
}
"""Under which names public code takes what laws give."""

SHIFTED = ("targets", "target", "y")
"""Under these names labels are what comes next, in the place of what it is predicted from; under others, the text itself."""

IDS = ("input_ids", "ids", "idx", "tokens", "tgt", "x", "input", "inputs")
"""Under which names ids are taken where they are not the first argument."""

IGNORED = -100
"""What laws write where nothing is to be predicted, as torch does."""

KEEPING = ("use_cache", "return_intermediates", "input_not_include_cache")
"""Flags on which a cache is returned; x-transformers has the latter two, and else expects the whole text beside it."""

TRIED = (12, 8, 4, 2, 1)
"""Lengths that are tried where nothing says how long a text may be."""


class CallableSubject(ModelSubject):
    """A module called as ``module(ids, ...)``. Raises ``UserError`` where nothing tells how to call it.

    ``told`` may say ``vocab_size``, ``context``, ``kind``, ``batch_first`` (False: ids and logits have time first),
    ``extra`` (further arguments of every call, by name) and settings such as ``window``. All else is found out from the
    signature, the parts and trials on a copy, which ``trials`` counts.
    """

    def __init__(
        self, module: nn.Module, name: str | None = None, *, kind: Kind | str = Kind.CAUSAL, batch_first: bool = True,
        extra: Mapping[str, Any] | None = None, **told: Any,
    ) -> None:  # fmt: skip
        self._parameters = inspect.signature(module.forward).parameters
        self._extra = dict(extra or {})
        self._given = {offer: argument for offer, names in NAMES.items() if (argument := self._found(names))}
        self._ids = self._first()
        self._batch_first = batch_first
        found = Kind.SEQUENCE_TO_SEQUENCE if Offer.SOURCE in self._given else Kind(kind)
        super().__init__(name or type(module).__name__, module, found, found_facts(module, **told))
        self._convention: Convention | None = None
        self._width = self.facts.vocab_size
        self._scored = False
        self._ignored = IGNORED
        self._look()

    # Signature

    def _found(self, names: Sequence[str]) -> str | None:
        return next((name for name in names if name in self._parameters and name not in self._extra), None)

    def _first(self) -> str:
        """The argument that carries ids. Raises ``UserError`` where there is none, or another must be told."""
        names = [n for n, p in self._parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        taken = set(self._given.values())
        free = [name for name in names if name not in taken and name not in self._extra]
        if Offer.SOURCE in self._given:
            free = [name for name in free if name in IDS] or free
        if not free:
            raise UserError(
                "forward takes no ids.",
                f"It takes {', '.join(self._parameters) or 'nothing'}.",
                "Write a module around it whose forward takes token ids (b, n) and returns logits (b, n, N).",
            )
        left = [
            name for name in free[1:]
            if self._parameters[name].default is inspect.Parameter.empty
        ]  # fmt: skip
        if left:
            raise UserError(
                f"forward needs {', '.join(left)}.",
                f"Laws know what to give for {', '.join([free[0], *taken])}.",
                f"Say it from Python: check(model, extra={{{left[0]!r}: ...}}).",
            )
        return free[0]

    def _required(self, offer: Offer) -> bool:
        argument = self._given.get(offer)
        return argument is not None and self._parameters[argument].default is inspect.Parameter.empty

    @property
    def offers(self) -> Mapping[Offer, str]:
        return self._given

    @property
    def options(self) -> frozenset[str]:
        named = {name for name, p in self._parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
        return frozenset(named) - set(self._given.values()) - set(self._extra) - {self._ids}

    # Calls

    def call(self, module: nn.Module, inputs: Inputs, *, keep: bool = False, cache: Any = None) -> Outputs:
        given: dict[str, Any] = {**self._extra, **inputs.options}
        for option in inputs.options:
            if option not in self._parameters:
                raise NotSupported(f"forward takes no {option}", f"forward 不接受 {option}")
        given |= self._tensors(inputs)
        self._mask(given, inputs, cache)
        labels, argument = inputs.labels, self._given.get(Offer.LABELS)
        if labels is not None:
            self.require(Offer.LABELS)
        elif self._required(Offer.LABELS) or (self._scored and not inputs.bare):
            labels = inputs.ids  # some models give all logits only where they are to be scored
        if labels is not None and argument is not None:
            given[argument] = self._labels(labels)
        if keep:
            given |= self._keeping(cache)
        raw = module(**given) if inputs.embeds is not None else self._called(module, inputs.ids, given)
        outputs = outputs_of(raw, self._width, inputs.ids.shape, batch_first=self._batch_first)
        if outputs.logits.shape[1] != inputs.ids.shape[1] and not inputs.bare:
            shape = tuple(outputs.logits.shape)
            raise NotSupported(
                f"forward returned logits of shape {shape} for {inputs.ids.shape[1]} tokens",
                f"{inputs.ids.shape[1]} 个词元，forward 返回的 logits 形状为 {shape}",
            )
        return outputs if inputs.labels is not None else replace(outputs, loss=None)

    def continued(self, module: nn.Module, ids: Tensor, count: int, mask: Tensor | None = None) -> Continued:
        return continued(module, ids, count, mask)

    def calling(self, inputs: Inputs, names: Mapping[str, str]) -> str:
        ids, n = names["ids"], inputs.ids.shape[1]
        given = {
            self.offers[Offer(key)]: self._spelled(Offer(key), name, n) for key, name in names.items() if key != "ids"
        }
        for offer, needed in (
            (Offer.MASK, self._required(Offer.MASK)),
            (Offer.LABELS, self._required(Offer.LABELS) or (self._scored and not inputs.bare)),
        ):
            if needed and offer.value not in names:
                like = f"torch.ones_like({ids})" if offer is Offer.MASK else ids
                given[self.offers[offer]] = self._spelled(offer, like, n)
        if Offer.CACHE.value in names:
            given |= {flag: "True" for flag in KEEPING if flag in self._parameters}
        given |= {key: repr(value) for key, value in inputs.options.items()}
        given |= dict.fromkeys(self._extra, "...  # as told")
        first = self._turn(ids) if next(iter(self._parameters)) == self._ids else f"{self._ids}={self._turn(ids)}"
        return f"model({', '.join([first, *(f'{key}={value}' for key, value in given.items())])})"

    def _turn(self, name: str) -> str:
        return name if self._batch_first else f"{name}.T"

    def _spelled(self, offer: Offer, name: str, n: int) -> str:
        match offer:
            case Offer.MASK:
                return self.convention.spelled.format(mask=name, n=n)
            case Offer.LABELS if self.offers[offer] in SHIFTED:
                rest = f"torch.full((len({name}), 1), {self._ignored})"
                return self._turn(f"torch.cat([{name}[:, 1:], {rest}], 1)")
            case Offer.SOURCE_MASK if self.offers[offer] in IGNORING:
                return f"{name} == 0"
            case Offer.CACHE:
                return name
            case _:
                return self._turn(name)

    def _called(self, module: nn.Module, ids: Tensor, given: Mapping[str, Any]) -> Any:
        ids = self._turned(ids)
        if next(iter(self._parameters)) == self._ids:
            return module(ids, **given)
        return module(**{self._ids: ids}, **given)

    def _tensors(self, inputs: Inputs) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for offer in (Offer.POSITIONS, Offer.SEGMENTS, Offer.EMBEDS, Offer.SOURCE, Offer.SOURCE_MASK):
            value = getattr(inputs, offer.value)
            if value is not None:
                given[self.require(offer)] = self._turned(value)
        argument = self._given.get(Offer.SOURCE_MASK)
        if inputs.source_mask is not None and argument in IGNORING:
            given[argument] = inputs.source_mask == 0  # rows of the batch first, as torch has them
        return given

    def _labels(self, labels: Tensor) -> Tensor:
        if self._given[Offer.LABELS] in SHIFTED:
            labels = following(labels)
        return self._turned(torch.where(labels == IGNORED, self._ignored, labels))

    def _turned(self, tensor: Tensor) -> Tensor:
        return tensor if self._batch_first else tensor.transpose(0, 1)

    def _mask(self, given: dict[str, Any], inputs: Inputs, cache: Any) -> None:
        mask = inputs.mask
        if mask is None and not self._required(Offer.MASK):
            return
        argument = self.require(Offer.MASK)
        if mask is None:
            if cache is not None:
                raise NotSupported(f"{argument} must be given with a cache", f"使用缓存时必须给出 {argument}")
            mask = torch.ones_like(inputs.ids)
        given[argument] = self.convention.of(mask, inputs.ids.shape[1])

    def _keeping(self, cache: Any) -> dict[str, Any]:
        flags = dict.fromkeys((flag for flag in KEEPING if flag in self._parameters), True)
        return {self.require(Offer.CACHE): cache, **flags}

    # Trials

    @property
    def convention(self) -> Convention:
        """How the mask is given; found on its first use."""
        if self._convention is None:
            self._convention = READ  # what is used while looking is set by the trial itself
            try:
                self._convention = self._found_convention()
            except Undecided:
                self._convention = None
                raise
        return self._convention

    def _found_convention(self) -> Convention:
        module = self._trial_copy()
        unsettle(module, torch.Generator().manual_seed(0))
        scale(module, 3.0)
        ids = self._trial_ids(min(6, self.facts.context or 6))

        def logits(given: Tensor, convention: Convention | None) -> Tensor:
            source = ids if Offer.SOURCE in self._given else None
            mask = None if convention is None else (given >= 0).long()
            inputs = Inputs(ids=given.clamp(min=0), mask=mask, source=source)
            self._convention = convention
            return self._tried(module, inputs).logits

        return found_convention(self._given[Offer.MASK], logits, ids, required=self._required(Offer.MASK))

    def _trial_copy(self) -> nn.Module:
        return self.copied().eval()

    def _trial_ids(self, n: int) -> Tensor:
        allowed = torch.tensor([i for i in range(self.facts.vocab_size) if i not in self.facts.special])
        return allowed[torch.arange(2 * n) % len(allowed)].reshape(2, n)

    @torch.no_grad()
    def _tried(self, module: nn.Module, inputs: Inputs) -> Outputs:
        self.trials += 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.call(module, inputs)

    def _look(self) -> None:
        """Whether ids alone give the logits of every position, how wide they are, and how long a text may be.

        A module that cannot be run leaves this undecided: the probes will say what it raises.
        """
        try:
            module = self._trial_copy()
        except Undecided:
            return
        lengths = TRIED if self.facts.context is None else (min(TRIED[0], self.facts.context),)
        for n in lengths:
            try:
                raw = self._bare(module, self._trial_ids(n))
            except Exception:  # noqa: BLE001, S112 - what it raises is told by the probes, which will meet it again
                continue
            if n < lengths[0] and self.facts.context is None:
                self.facts.context = n
            self._learn(raw, n)
            break
        if Offer.LABELS in self._given:
            self._look_at_labels(module, min(lengths[0], self.facts.context or lengths[0]))

    def _look_at_labels(self, module: nn.Module, n: int) -> None:
        """Whether -1 is what the loss ignores, as in nanoGPT and minGPT: -100 is then no class, and raises."""
        for ignored in (IGNORED, -1):
            self._ignored = ignored
            try:
                ids = self._trial_ids(n)
                self._tried(module, Inputs(ids=ids, labels=ids, source=ids if Offer.SOURCE in self._given else None))
                return
            except Exception:  # noqa: BLE001, S112 - as above
                continue
        self._ignored = IGNORED

    @torch.no_grad()
    def _bare(self, module: nn.Module, ids: Tensor) -> Any:
        self.trials += 1
        given = dict(self._extra)
        inputs = Inputs(ids=ids)
        if Offer.SOURCE in self._given:
            given[self._given[Offer.SOURCE]] = self._turned(ids)
        self._mask(given, inputs, None)
        if self._required(Offer.LABELS):
            given[self._given[Offer.LABELS]] = self._labels(ids)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self._called(module, ids, given)

    def _learn(self, raw: Any, n: int) -> None:
        shape = (2, n) if self._batch_first else (n, 2)
        wide = [p for p in parts_of(raw) if isinstance(p, Tensor) and p.ndim == 3 and p.is_floating_point()]
        full = [p for p in wide if p.shape[:2] == shape]
        self._read(raw)
        if any(p.shape[-1] == self._width for p in full):
            return
        if Offer.LABELS in self._given and any(p.shape[-1] == self._width for p in wide):
            self._scored = self.last_only = n > 1
        elif len(wider := [p for p in full if p.shape[-1] > self._width]) == 1:  # a vocabulary padded to a round number
            self._width = wider[0].shape[-1]

    def _read(self, raw: Any) -> None:
        """How a program reads the logits and the cache of what a call gave."""
        if isinstance(getattr(raw, "logits", None), Tensor):
            return
        if isinstance(raw, Tensor):
            self.reading = "out"
        elif isinstance(raw, Mapping | tuple | list):
            keys = list(raw) if isinstance(raw, Mapping) else range(len(raw))
            wide = [
                k for k in keys if isinstance(raw[k], Tensor) and raw[k].ndim == 3 and raw[k].shape[-1] >= self._width
            ]
            self.reading = f"out[{wide[0]!r}]" if wide else self.reading
            self.keeping = f"out[{list(keys)[-1]!r}]"
        if not self._batch_first:
            self.reading += ".transpose(0, 1)"


def following(labels: Tensor) -> Tensor:
    """What comes next at each position, -100 at the last."""
    return torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], -100)], 1)


def parts_of(raw: Any) -> list[Any]:
    """What a forward returned, as a list: a tensor, or the members of a tuple or mapping."""
    return list(raw.values()) if isinstance(raw, Mapping) else list(raw) if isinstance(raw, tuple | list) else [raw]


def outputs_of(
    raw: Any, vocab_size: int, shape: Sequence[int] | None = None, *, batch_first: bool = True
) -> Outputs:  # fmt: skip
    """Logits, loss and cache of what a forward returned: a tensor, a tuple, a mapping, or an object with ``logits``.

    ``shape (b, n)`` of the ids lets logits be found that come flat, ``(b n, V)``. Raises ``NotSupported`` where no
    tensor of three axes ends in the vocabulary.
    """
    parts = parts_of(raw)
    logits = getattr(raw, "logits", None)
    if not isinstance(logits, Tensor):
        wide = [p for p in parts if isinstance(p, Tensor) and p.ndim == 3 and p.shape[-1] == vocab_size]
        flat = [p for p in parts if isinstance(p, Tensor) and shape is not None
                and p.shape == (shape[0] * shape[1], vocab_size)]  # fmt: skip
        if not wide and not flat:
            shapes = ", ".join(str(tuple(p.shape)) if isinstance(p, Tensor) else type(p).__name__ for p in parts)
            raise NotSupported(
                f"forward returned no (batch, positions, {vocab_size}): {shapes}",
                f"forward 没有返回 (批, 位置, {vocab_size})：{shapes}",
            )
        logits = wide[0] if wide else flat[0]
    loss = getattr(raw, "loss", None)
    if not isinstance(loss, Tensor):
        loss = next((p for p in parts if isinstance(p, Tensor) and p.ndim == 0), None)
    cache = getattr(raw, "past_key_values", None)
    if cache is None:
        rest = [p for p in parts if p is not logits and p is not None and not (isinstance(p, Tensor) and p.ndim == 0)]
        cache = rest[-1] if rest else None
    if logits.ndim == 2 and shape is not None:
        logits = logits.reshape(*(shape if batch_first else shape[::-1]), vocab_size)
    auxiliary = getattr(raw, "aux_loss", None)
    return Outputs(logits if batch_first else logits.transpose(0, 1), loss, cache, auxiliary)
