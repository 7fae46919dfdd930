"""One model's program: what is computed, in which order, from what.

A program is the quantities and statements of a whole model with global ids (``blocks.0.attn.S``): forward in dependency
order, then the gradient contributions in the opposite order. It is plain data; nothing in it knows how the model is run.
``compose.py`` makes programs out of groups.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..errors import UserError, did_you_mean
from .quantity import Quantity
from .tree import Expr

LettersOf = tuple[tuple[str, str], ...]

FACES = ("grad", "new", "after")
"""What else a quantity has beside its value: gradient, value after the update, value of the forward pass after it."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A quantity of this model: its id, its declaration, its axes as (letter, dimension).

    ``names`` is what the short names of its group stand for here (quantities and dimensions).
    """

    id: str
    quantity: Quantity
    axes: LettersOf
    layer: int | None
    path: str
    names: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def shape(self, scalars: Mapping[str, float]) -> tuple[int, ...]:
        """The sizes of its axes, given the sizes of the dimensions."""
        return tuple(int(scalars[dim]) for _, dim in self.axes)


@dataclass(frozen=True, slots=True)
class Statement:
    """``target.face[letters] = expr`` with global ids; ``consumer`` is the quantity beside which it is written."""

    target: str
    face: str
    letters: LettersOf
    expr: Expr
    adds: bool
    consumer: str
    quantity: Quantity
    line: int


@dataclass(frozen=True)
class Program:
    """A whole model as statements over named quantities.

    ``scalars`` holds the sizes of dimensions and hyperparameters; ``aliases`` maps further names to ids (``h`` to the
    final hidden state). Raises ``NotationError`` when a definition breaks a rule of the language.
    """

    quantities: Mapping[str, Placed]
    forward: tuple[Statement, ...]
    backward: tuple[Statement, ...]
    scalars: Mapping[str, float]
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.forward + self.backward

    @property
    def layers(self) -> int:
        """How many layers the program has (1 when none is numbered)."""
        return 1 + max((p.layer for p in self.quantities.values() if p.layer is not None), default=0)

    def definition(self, id: str) -> Statement | None:
        """The forward definition of ``id``; None for parameters and inputs."""
        return next((s for s in self.forward if s.target == id), None)

    def contributions(self, id: str) -> tuple[Statement, ...]:
        """What its consumers send back to the gradient of ``id``, in the order in which they add up."""
        return tuple(s for s in self.backward if s.target == id)

    def shape(self, id: str) -> tuple[int, ...]:
        return self.quantities[id].shape(self.scalars)

    def with_scalars(self, **scalars: float) -> Program:
        """The same program with other sizes or hyperparameters."""
        return replace(self, scalars={**self.scalars, **scalars})

    def resolve(self, name: str, layer: int | None = None) -> str:
        """The id that ``name`` means: an id, an alias, or any unambiguous end of an id, within ``layer`` if one is given.

        Raises ``UserError`` for an unknown or ambiguous name, a layer that is not there, and a name outside the layer.
        """
        if name in self.quantities:
            found = [name]
        elif name in self.aliases:
            found = [self.aliases[name]]
        else:
            found = [id for id in self.quantities if id.endswith(f".{name}")]
        if not found:
            raise self._unknown(name)
        if layer is not None:
            found = self._in_layer(name, found, layer)
        if len(found) > 1:
            layered = layer is None and len({self.quantities[id].layer for id in found}) > 1
            raise UserError(
                f'"{name}" is the name of {len(found)} quantities.',
                f"They are {', '.join(found[:8])}{', …' if len(found) > 8 else ''}.",
                "Give one of these ids." + (" Or say which layer: --layer 0, in Python layer=0." if layered else ""),
            )
        return found[0]

    def _unknown(self, name: str) -> UserError:
        known = [*self.quantities, *self.aliases, *dict.fromkeys(id.rpartition(".")[2] for id in self.quantities)]
        base = name.rpartition(".")[0]
        faces = [f"{base}.{face}" for face in FACES] if base in known else []
        return UserError(f'There is no quantity "{name}".', "", did_you_mean(name, [*known, *faces]))

    def _in_layer(self, name: str, found: list[str], layer: int) -> list[str]:
        """Those of ``found`` that belong to ``layer``."""
        if not 0 <= layer < self.layers:
            raise UserError(
                f"There is no layer {layer}.",
                f"Layers are counted from 0, and there {'is one' if self.layers == 1 else f'are {self.layers}'}.",
                f"Use 0 to {self.layers - 1}." if self.layers > 1 else "Use 0.",
            )
        inside = [id for id in found if self.quantities[id].layer == layer]
        if not inside:
            raise UserError(
                f'"{name}" is not in layer {layer}.', f"It is {', '.join(found[:8])}.", "Leave the layer out."
            )
        return inside

    def example(self, id: str, face: str = "") -> str:
        """The first cell of a quantity as readers write it, with as many indices as it has axes: ``A[0,0,0]``."""
        rank = len(self.shape(id))
        return f"{id}{'.' + face if face else ''}" + (f"[{','.join('0' * rank)}]" if rank else "")

    def reference(self, text: str, layer: int | None = None) -> tuple[str, str, tuple[int, ...] | None]:
        """``W_Q.grad[1,0]`` as (id, face, 0-based cell or None). The head index may be left out when H is 1.

        ``layer`` says which of several quantities of one name is meant. Raises ``UserError`` for an unknown name, a wrong
        number of indices, or an index out of range.
        """
        match = re.fullmatch(
            r"\s*(?P<name>[A-Za-z0-9_.]+?)(?:\.(?P<face>grad|new|after))?\s*(?:\[(?P<at>[^\]]*)\])?\s*", text
        )
        if match is None:
            some = next((id for id in reversed(list(self.quantities)) if self.shape(id)), None)
            hint = "" if some is None else f"Write for example {some} or {self.example(some)}."
            raise UserError(f'"{text}" does not name a quantity or a cell.', "", hint)
        id, face = self.resolve(match["name"], layer), match["face"] or ""
        placed = self.quantities[id]
        if match["at"] is None:
            return id, face, None
        try:
            cell = tuple(int(part) for part in match["at"].split(",")) if match["at"].strip() else ()
        except ValueError:
            raise UserError(f'"{match["at"]}" is not a list of indices.', "Indices are whole numbers from 0.") from None
        shape, letters = placed.shape(self.scalars), [letter for letter, _ in placed.axes]
        if len(cell) == len(shape) - 1 and "h" in letters and shape[letters.index("h")] == 1:
            at = letters.index("h")
            cell = (*cell[:at], 0, *cell[at:])
        axes = ", ".join(f"{letter} of {size}" for letter, size in zip(letters, shape, strict=True)) or "none"
        if len(cell) != len(shape):
            raise UserError(
                f"{id} has {len(shape)} axes, not {len(cell)}.",
                f"Its axes are: {axes}.",
                f"Write for example {self.example(id, face)}.",
            )
        for index, size, letter in zip(cell, shape, letters, strict=True):
            if not 0 <= index < size:
                raise UserError(
                    f"Index {index} is out of range for axis {letter} of {id}.",
                    f"The axis has {size} cells.",
                    f"Use 0 to {size - 1}; indices are counted from 0.",
                )
        return id, face, cell
