"""The completeness audit: no floating-point operation of a step lies outside the definition of some quantity.

A dispatch mode sees every operation of one forward pass, backward pass and update. An operation is covered when its
result flows into a quantity that is said later (or a gradient or parameter that is recorded); what is left over is a
computation that no formula speaks of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..model import Decoder
from ..notation import Place, Quantity, id_at
from .optimizers import Update, take
from .record import Sample, forward


@dataclass(frozen=True, slots=True)
class Audit:
    """How many floating-point operations ran, and those that no quantity covers, in words."""

    operations: int
    uncovered: tuple[str, ...]


@dataclass(slots=True)
class _Operation:
    name: str
    inputs: tuple[int, ...]
    after: str
    arithmetic: bool
    covered: bool = False


@dataclass
class _Ledger(TorchDispatchMode):
    """Every floating-point operation with the operations whose results it read."""

    operations: list[_Operation] = field(default_factory=list)
    maker: dict[int, int] = field(default_factory=dict)
    alive: list[torch.Tensor] = field(default_factory=list)
    last: str = "the start"

    def __post_init__(self) -> None:
        super().__init__()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled under the ledger; the default would load all of the compiler (seconds) to say so."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        made = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.is_floating_point()]
        if made:
            read = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
            inputs = tuple(self.maker[id(t)] for t in read if id(t) in self.maker)
            self.operations.append(_Operation(str(func), inputs, self.last, not func.is_view))
            for t in made:
                self.maker[id(t)] = len(self.operations) - 1
                # Ids are only unique among living objects, so the tensors are kept for the length of the audit.
                self.alive.append(t)
        return result

    def cover(self, tensor: torch.Tensor, name: str) -> None:
        """Mark the operation that made ``tensor``, and all that led to it, as belonging to a quantity."""
        self.last = name
        self.alive.append(tensor)
        pending = [self.maker[id(tensor)]] if id(tensor) in self.maker else []
        while pending:
            operation = self.operations[pending.pop()]
            if not operation.covered:
                operation.covered = True
                pending += operation.inputs


def audit(model: Decoder, sample: Sample, update: Update) -> Audit:
    """Run one step of ``update`` under the ledger. ``model`` is left without gradients and with its parameters."""
    ledger = _Ledger()

    def say(quantity: Quantity, tensor: torch.Tensor, at: Place) -> torch.Tensor:
        name = id_at(quantity, at)
        if tensor.requires_grad:

            def returned(grad: torch.Tensor) -> None:
                ledger.cover(grad, f"{name}.grad")

            tensor.register_hook(returned)
        ledger.cover(tensor, name)
        return tensor

    model.zero_grad(set_to_none=True)
    with ledger:
        forward(model, sample, say).loss.backward()
        parameters = dict(model.named_parameters())
        gradients = {id: torch.zeros_like(p) if p.grad is None else p.grad for id, p in parameters.items()}
        for id, g in gradients.items():
            ledger.cover(g, f"{id}.grad")
        take(update, {id: p.detach() for id, p in parameters.items()}, gradients, lambda id, t: ledger.cover(t, id))
    model.zero_grad(set_to_none=True)
    # A view or a detach rearranges numbers without computing any.
    computed = [o for o in ledger.operations if o.arithmetic]
    return Audit(len(computed), tuple(_describe(computed)))


def _describe(operations: Iterable[_Operation]) -> Iterable[str]:
    return (f"{o.name} after {o.after}" for o in operations if not o.covered)
