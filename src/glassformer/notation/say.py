"""``say``: how a forward pass tells what it computes.

The model is handed one function ``say(quantity, tensor, at)`` that returns the tensor. ``silent`` does nothing; a
recorder keeps the value; a patch returns another tensor. ``at`` is the place of the part, a tuple fixed when the part is
built (never a string made during a forward pass, which would cost one compiled graph per block).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from .quantity import Quantity

Place: TypeAlias = tuple[str | int, ...]
Tensor = TypeVar("Tensor")
Say: TypeAlias = Callable[[Quantity, Any, Place], Any]


def silent(quantity: Quantity, tensor: Tensor, at: Place) -> Tensor:
    """Say nothing: the default, and all that a run pays when nobody looks."""
    return tensor


def id_at(quantity: Quantity, at: Place) -> str:
    """The id of ``quantity`` at the place ``at``: ``("blocks", 0, "attn")`` and ``S`` give ``blocks.0.attn.S``."""
    return ".".join([*map(str, at), quantity.name])


class SaidTwice(RuntimeError):
    """A forward pass said one quantity twice at one place."""


def dictionary_recorder(into: dict[str, Any]) -> Say:
    """A ``say`` that keeps each tensor in ``into`` under its id, as it is (no copy)."""

    def say(quantity: Quantity, tensor: Any, at: Place) -> Any:
        name = id_at(quantity, at)
        if name in into:
            raise SaidTwice(f"{name} was said twice in one forward pass; a place must be unique")
        into[name] = tensor
        return tensor

    return say
