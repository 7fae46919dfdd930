"""A model and the tokens it reads, and running it with quantities replaced.

``say`` may return another tensor, and that is all an intervention needs: everything after it is computed by the model
from what was put in its place. Numbers are float64, and the explicit arithmetic runs (somebody looks).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from ...errors import UserError
from ...model import Decoder, definitions
from ...model.inputs import check_tokens
from ...notation import Place, Program, Quantity, SaidTwice, id_at
from ..traceable import require_traceable, said_again
from .report import Provenance

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Change: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""From a tensor that was said (with its batch axis) to the one that takes its place."""

Changes: TypeAlias = Mapping[str, Change]

NO_CHANGES: Changes = MappingProxyType({})

AT_ONCE = 32
"""How many changed runs share one forward pass."""


@dataclass(frozen=True, slots=True)
class Reading:
    """``model`` (float64, evaluation mode) reads ``tokens`` (n); ``vocabulary`` holds the text of every token.

    ``program`` are the model's definitions on this many tokens.
    """

    model: Decoder
    tokens: tuple[int, ...]
    vocabulary: tuple[str, ...]
    provenance: Provenance
    program: Program = field(repr=False)

    @property
    def n(self) -> int:
        return len(self.tokens)

    def text(self, position: int) -> str:
        """The text of the token at ``position``."""
        return self.vocabulary[self.tokens[position]]

    def until(self, row: int) -> Reading:
        """The same reading, ended after ``row``: in a causal model no earlier row knows of what is cut off."""
        return self.of(self.tokens[: row + 1])

    def of(self, tokens: Sequence[int]) -> Reading:
        """The same model, reading ``tokens``. Raises ``UserError`` for tokens it cannot read."""
        _check_tokens(self.model, tokens)
        program = self.program if len(tokens) == self.n else definitions(self.model.config, len(tokens))
        return replace(self, tokens=tuple(map(int, tokens)), program=program)


class Scored(NamedTuple):
    """Which loss is differentiated: ``targets (n)`` int64 and ``scored (n)`` bool, as the model takes them."""

    targets: torch.Tensor
    scored: torch.Tensor


@dataclass(frozen=True, slots=True)
class Aim:
    """The number that is explained: the logit, and the loss ``-ln p[row, target]``, of ``target`` at ``row``."""

    row: int
    target: int

    def scored(self, n: int) -> Scored:
        """The loss of this row alone, in a text of ``n`` tokens."""
        at = torch.arange(n) == self.row
        return Scored(torch.where(at, self.target, 0), at)


def reading_of(
    model: Decoder,
    tokens: Sequence[int],
    vocabulary: Sequence[str] | None = None,
    provenance: Provenance = "measured",
) -> Reading:
    """A float64 copy of ``model``, reading ``tokens`` (ids). Without ``vocabulary`` a token's text is its id.

    ``model`` itself is never changed. Raises ``UserError`` for tokens that the model cannot read, and for a model that
    cannot be traced (``traceable.py``).
    """
    require_traceable(model)
    _check_tokens(model, tokens)
    observed = copy.deepcopy(model).cpu().double().eval()
    texts = tuple(vocabulary) if vocabulary is not None else tuple(map(str, range(model.config.vocab_size)))
    program = definitions(model.config, len(tokens))
    return Reading(observed, tuple(map(int, tokens)), texts, provenance, program)


def aim_at(reading: Reading, row: int | None = None, target: int | None = None) -> Aim:
    """The aim at ``row`` (the last one that has a next token when None) and ``target`` (that next token when None).

    Negative rows count from the end. Raises ``UserError`` for a row or target that does not exist.
    """
    n, vocab_size = reading.n, reading.model.config.vocab_size
    row = (n - 1 if target is not None or n == 1 else n - 2) if row is None else row
    if not -n <= row < n:
        raise UserError(f"There is no row {row}.", f"The text has {n} tokens.", f"Give a row from 0 to {n - 1}.")
    row %= n
    if target is None:
        if row == n - 1:
            raise UserError(
                f"Row {row} has no next token in this text.", "It is the last one.", "Name the target that it predicts."
            )
        target = reading.tokens[row + 1]
    if not 0 <= target < vocab_size:
        raise UserError(f"Target id {target} is not in the vocabulary.", f"Ids run from 0 to {vocab_size - 1}.")
    return Aim(row, target)


def check_layer(reading: Reading, layer: int) -> int:
    """``layer`` counted from 0; negative ones count from the end. Raises ``UserError`` for one that does not exist."""
    blocks = reading.model.config.blocks
    if not -blocks <= layer < blocks:
        raise UserError(f"There is no layer {layer}.", f"The model has {blocks}.", f"Give one from 0 to {blocks - 1}.")
    return layer % blocks


def next_tokens(reading: Reading) -> Scored:
    """The mean loss of every row that has a next token. Raises ``UserError`` for a text of one token."""
    if reading.n < 2:
        raise UserError("The text has one token.", "Each token predicts the next one.", "Give a longer text.")
    tokens = torch.tensor(reading.tokens)
    return Scored(tokens.roll(-1), torch.arange(reading.n) < reading.n - 1)


def watch(reading: Reading, changes: Changes = NO_CHANGES, loss: Scored | None = None) -> dict[str, Array]:
    """Every parameter and every quantity of one run by id, without batch axis, as they were after ``changes``.

    With a ``loss``, ``id.grad`` is its gradient by automatic differentiation (zero where it does not depend on a
    quantity). Raises ``UserError`` where parts of the run are computed again for the gradients.
    """
    said: dict[str, torch.Tensor] = {}

    def say(quantity: Quantity, tensor: torch.Tensor, at: Place) -> torch.Tensor:
        id = id_at(quantity, at)
        if id in said:
            raise SaidTwice(f"{id} was said twice in one run")
        change = changes.get(id)
        tensor = tensor if change is None else change(tensor)
        if tensor.requires_grad:
            tensor.retain_grad()
        said[id] = tensor
        return tensor

    program, model = reading.program, reading.model
    model.zero_grad(set_to_none=True)
    with torch.set_grad_enabled(loss is not None):
        targets, scored = (None, None) if loss is None else (loss.targets[None], loss.scored[None])
        out = model(torch.tensor([reading.tokens]), targets, scored, say=say)
        if loss is not None:
            try:
                out.loss.backward()
            except SaidTwice as again:
                raise said_again(again) from None
    arrays: dict[str, Array] = {}
    for id, tensor in {**dict(model.named_parameters()), **said}.items():
        axes = len(program.quantities[id].axes)
        arrays[id] = _plain(tensor, axes)
        if loss is not None and tensor.is_floating_point():
            grad = tensor.grad if tensor.requires_grad and tensor.grad is not None else torch.zeros_like(tensor)
            arrays[f"{id}.grad"] = _plain(grad, axes)
    model.zero_grad(set_to_none=True)
    return arrays


def rerun(reading: Reading, row: int, alternatives: Sequence[Changes]) -> Array:
    """The logits ``(len(alternatives), N)`` at ``row``, once for each set of changes.

    A change here gets the tensor of its own run with a batch axis of one, so only quantities that differ between the
    texts of a batch can be changed (not masks and tables, which are shared).
    """
    rows = [_rerun_together(reading, row, part) for part in _parts(alternatives)]
    return np.concatenate(rows) if rows else np.zeros((0, reading.model.config.vocab_size))


def _rerun_together(reading: Reading, row: int, alternatives: Sequence[Changes]) -> Array:
    concerned = {id for changes in alternatives for id in changes}

    def say(quantity: Quantity, tensor: torch.Tensor, at: Place) -> torch.Tensor:
        id = id_at(quantity, at)
        if id not in concerned:
            return tensor
        own = (changes.get(id) for changes in alternatives)
        parts = zip(own, tensor.split(1), strict=True)
        return torch.cat([part if change is None else change(part) for change, part in parts])

    tokens = torch.tensor([reading.tokens]).expand(len(alternatives), -1)
    with torch.no_grad():
        return reading.model(tokens, say=say).logits[:, row].numpy()


def _parts(alternatives: Sequence[Changes]) -> Iterator[Sequence[Changes]]:
    for start in range(0, len(alternatives), AT_ONCE):
        yield alternatives[start : start + AT_ONCE]


def losses(logits: Array, target: int) -> Array:
    """``-ln p[target]`` of each row of ``logits (..., N)``, in nats."""
    top = logits.max(-1)
    return top + np.log(np.exp(logits - top[..., None]).sum(-1)) - logits[..., target]


def _plain(tensor: torch.Tensor, axes: int) -> Array:
    array = tensor.detach().numpy()
    return np.array(array[0] if array.ndim == axes + 1 else array, order="C")


def _check_tokens(model: Decoder, tokens: Sequence[int]) -> None:
    if not len(tokens):
        raise UserError("The text is empty.", "There is nothing to look at.", "Give a text of at least one token.")
    check_tokens(torch.tensor([list(map(int, tokens))]), model.config.vocab_size, model.config.context)
