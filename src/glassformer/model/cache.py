"""Keys and values kept from the positions already read, so that later positions need not compute them again.

| symbol | axes | |
|---|---|---|
| ``K``, ``V`` | ``(b, h, j, c)``, ``(b, h, j, e)`` | one pair per block, for the positions read so far and the new ones |
| ``seg`` | ``(b, j)`` | the segments of the positions read so far, where rows are packed or padded |

In a causal decoder a later token changes nothing that an earlier position computes, so its keys and values stay valid:
as long as the parameters, the positions and everything before them are the same (section 12.4). A cache belongs to one
model at one state of its parameters and is refused otherwise.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glassformer.errors import UserError
from glassformer.notation import Say, silent

from .shapes import Float, Int


class LayerCache:
    """The keys and values of one block."""

    def __init__(self, cache: KeyValueCache) -> None:
        self._cache = cache
        self._K: Tensor | None = None
        self._V: Tensor | None = None

    def extended(
        self, K: Float[Tensor, "b h i c"], V: Float[Tensor, "b h i e"]
    ) -> tuple[Float[Tensor, "b h j c"], Float[Tensor, "b h j e"]]:
        """The keys and values of all positions read so far, followed by the new ones."""
        if self._K is None or self._V is None:
            self._K, self._V = self._room(K), self._room(V)
        start = self._cache.length
        end = start + K.shape[2]
        # The cells after `start` belong to nobody yet, so no tensor handed out before changes its values.
        self._K[:, :, start:end], self._V[:, :, start:end] = K, V
        return self._K[:, :, :end], self._V[:, :, :end]

    def _room(self, new: Float[Tensor, "b h i c"]) -> Float[Tensor, "b h j c"]:
        b, h, _, c = new.shape
        return new.new_zeros(b, h, self._cache.capacity, c)


class KeyValueCache:
    """What a decoder remembers of the positions it has read: ``length`` of at most ``capacity``, for a batch of rows.

    Made by ``Decoder.new_cache`` and handed to every call of the model that continues the same rows.
    """

    def __init__(self, model: nn.Module, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self._model = model
        self._state = _state(model)
        self._rows: int | None = None
        self._segments: Tensor | None = None
        self._layers: dict[int, LayerCache] = {}

    def layer(self, number: int) -> LayerCache:
        """The keys and values of block ``number``."""
        return self._layers.setdefault(number, LayerCache(self))

    @property
    def segments(self) -> Int[Tensor, "b j"] | None:
        """The segments of the positions read so far; None where rows are not packed, and before the first."""
        return self._segments

    def start(self, model: nn.Module, rows: int, n: int, say: Say, packed: bool) -> int:
        """The position of the first of ``n`` new tokens in each of ``rows`` rows, which come with segments or without.

        Raises ``UserError`` when the cache does not fit: it is of another model, the parameters were changed, other
        rows, rows of the other kind, no room, gradients are wanted, or somebody listens.
        """
        if model is not self._model:
            raise UserError("This cache belongs to another model.", "Keys and values fit their own model only.", _NEW)
        if self._state != _state(model):
            raise UserError("The model has changed since this cache was made.", "Its keys and values are stale.", _NEW)
        if self._rows not in (None, rows):
            raise UserError(f"This cache holds {self._rows} row(s), the tokens have {rows}.", "", _NEW)
        if self.length and packed != (self._segments is not None):
            held, given = ("without", "with") if packed else ("with", "without")
            raise UserError(
                f"This cache was begun {held} segments, these tokens come {given} them.",
                "Segments say what a token may read, so all tokens of a row have one or none has.",
                f"Give the tokens {held} segments, or start a new cache.",
            )
        if self.length + n > self.capacity:
            raise UserError(
                f"The cache is full: {self.length} positions are read, {n} more exceed the context of {self.capacity}.",
                "A window that slides gives every token another position, so nothing kept would be right.",
                "Start a new cache with the last tokens of the text.",
            )
        if torch.is_grad_enabled():
            raise UserError(
                "A cache keeps no gradients.", "It is for generating.", "Call the model in torch.no_grad()."
            )
        if say is not silent:
            raise UserError(
                "A cached pass cannot be recorded.",
                "The definitions need the rows that the kept keys and values came from.",
                "Record the whole text at once, without a cache.",
            )
        return self.length

    def advance(self, rows: int, n: int, segments: Int[Tensor, "b j"] | None = None) -> None:
        """Count ``n`` positions as read, after every block has added theirs: a pass that failed leaves no trace.

        ``segments (b, j)`` are those of all positions read, the new ones included.
        """
        self._rows, self._segments = rows, segments
        self.length += n


_NEW = "Start a new cache: model.new_cache()."


def _state(model: nn.Module) -> tuple[tuple[int, int, torch.dtype, torch.device], ...]:
    """Differs after any parameter was written to, replaced or converted."""
    # torch counts the writes to a tensor; tensors made for inference only are not counted.
    return tuple((id(p), 0 if p.is_inference() else p._version, p.dtype, p.device) for p in model.parameters())
