"""Run a model once with somebody looking: every quantity it says, and its gradient from automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import torch

from ..model import Decoder
from ..model.dropout import MASKS
from ..notation import Place, Program, Quantity, SaidTwice, Say, id_at
from .traceable import said_again

Arrays: TypeAlias = dict[str, np.ndarray[Any, np.dtype[Any]]]
Patch: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Sample:
    """What a run reads: token ids, targets and scored flags, each of shape (n,), without batch axis.

    ``segments (n,)``, where the row is packed, numbers the texts in it. ``masks`` are those of dropout by id, each
    (1, ...) as it was said: a run is given them in the stead of new ones.
    """

    tokens: torch.Tensor
    targets: torch.Tensor
    scored: torch.Tensor
    segments: torch.Tensor | None = None
    masks: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.tokens.shape == self.targets.shape == self.scored.shape or self.tokens.ndim != 1:
            raise ValueError("tokens, targets and scored are vectors of one length")
        if self.segments is not None and self.segments.shape != self.tokens.shape:
            raise ValueError("each token belongs to one segment")

    @property
    def length(self) -> int:
        return int(self.tokens.shape[0])


class Recorder:
    """Keeps every tensor said in one forward pass, and asks for its gradient.

    It never copies what flows on. ``versions`` are checked afterwards, so an in-place edit of a recorded tensor is an
    error and not a wrong number.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self._versions: dict[str, int] = {}

    def say(self, quantity: Quantity, tensor: torch.Tensor, at: Place) -> torch.Tensor:
        name = id_at(quantity, at)
        if name in self.tensors:
            raise SaidTwice(f"{name} was said twice in one forward pass; a place must be unique")
        if tensor.requires_grad and not tensor.is_leaf:
            tensor.retain_grad()
        self.tensors[name] = tensor
        self._versions[name] = tensor._version
        return tensor

    def unchanged(self) -> None:
        """Raise ``RuntimeError`` when a recorded tensor was edited in place after it was said."""
        edited = [name for name, t in self.tensors.items() if t._version != self._versions[name]]
        if edited:
            raise RuntimeError(f"edited in place after being recorded: {', '.join(edited)}")


def saying_once() -> Say:
    """A ``say`` that changes nothing, and raises ``SaidTwice`` for what it has heard before."""
    heard: set[str] = set()

    def say(quantity: Quantity, tensor: Any, at: Place) -> Any:
        name = id_at(quantity, at)
        if name in heard:
            raise SaidTwice(f"{name} was said twice in one forward pass; a place must be unique")
        heard.add(name)
        return tensor

    return say


def patching(patches: Mapping[str, Patch]) -> Say:
    """A ``say`` that returns ``patches[id](tensor)`` for the named quantities and leaves the others as they are."""

    def say(quantity: Quantity, tensor: Any, at: Place) -> Any:
        patch = patches.get(id_at(quantity, at))
        return tensor if patch is None else patch(tensor)

    return say


def forward(model: Decoder, sample: Sample, say: Say) -> Any:
    """One forward pass of ``sample`` as a batch of one."""
    arguments, keywords = call_of(sample, say)
    return model(*arguments, **keywords)


def call_of(sample: Sample, say: Say) -> tuple[tuple[torch.Tensor], dict[str, Any]]:
    """The positional and keyword arguments with which a model reads ``sample`` as a batch of one."""
    if sample.masks:
        say = _given(sample.masks, say)
    keywords = {"targets": sample.targets[None], "scored": sample.scored[None], "say": say}
    if sample.segments is not None:
        keywords["segments"] = sample.segments[None]
    return (sample.tokens[None],), keywords


def _given(masks: Mapping[str, torch.Tensor], say: Say) -> Say:
    """``say``, but for the masks that a model in training mode draws: it hears, and the run goes on with, ``masks``."""

    def with_masks(quantity: Quantity, tensor: Any, at: Place) -> Any:
        return say(quantity, masks[id_at(quantity, at)] if quantity in MASKS else tensor, at)

    return with_masks


def with_drawn_masks(model: Decoder, sample: Sample) -> Sample:
    """``sample`` with the masks that ``model``, in training mode, draws for it now; without dropout there are none."""
    masks: dict[str, torch.Tensor] = {}

    def say(quantity: Quantity, tensor: Any, at: Place) -> Any:
        if quantity in MASKS:
            masks[id_at(quantity, at)] = tensor
        return tensor

    with torch.no_grad():
        forward(model, sample, say)
    return replace(sample, masks=masks)


def record(model: Decoder, sample: Sample, program: Program) -> Arrays:
    """Values and gradients of one forward and backward pass, by key, without the batch axis.

    Parameters are included; ``model`` keeps no gradient afterwards.
    """
    recorder = Recorder()
    model.zero_grad(set_to_none=True)
    loss = forward(model, sample, recorder.say).loss
    try:
        loss.backward()
    except SaidTwice as again:
        raise said_again(again) from None
    recorder.unchanged()
    arrays: Arrays = {}
    for name, tensor in {**dict(model.named_parameters()), **recorder.tensors}.items():
        axes = len(program.quantities[name].axes)
        arrays[name] = _plain(tensor, axes)
        if program.contributions(name):
            # A tensor that the loss does not depend on gets no gradient from autograd; its gradient is zero.
            grad = tensor.grad if tensor.grad is not None else torch.zeros_like(tensor)
            arrays[f"{name}.grad"] = _plain(grad, axes)
    arrays["loss.L.grad"] = np.ones(())
    model.zero_grad(set_to_none=True)
    return arrays


def record_forward(model: Decoder, sample: Sample, program: Program) -> Arrays:
    """Values of one forward pass, without parameters and gradients."""
    recorder = Recorder()
    with torch.no_grad():
        forward(model, sample, recorder.say)
    return {name: _plain(t, len(program.quantities[name].axes)) for name, t in recorder.tensors.items()}


def _plain(tensor: torch.Tensor, axes: int) -> np.ndarray[Any, np.dtype[Any]]:
    array = tensor.detach().numpy()
    return np.array(array[0] if array.ndim == axes + 1 else array, order="C")
