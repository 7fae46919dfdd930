"""Three independent witnesses for every gradient.

The gradient by definition, the gradient by automatic differentiation of the model that ran, and central differences of
the loss: cell by cell where few cells are sampled (the largest gradients and random ones), and along one random
direction, which covers every cell with two forward passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.func import vmap

from ..model import Decoder
from ..notation import REPLAY_FACTOR, Program, key, magnitude, run
from .losses import ROWS_AT_ONCE, side_by_side
from .record import Sample, forward, patching

Array = np.ndarray[Any, np.dtype[Any]]

STEP = 1e-5
"""The step of the differences: at 1e-5 rounding of the loss (1e-11) dominates truncation (1e-10 times a third derivative)."""

WIDE = 2.0
"""How many times longer the step is at which truncation is measured; a short one meets few corners of an activation."""

ROOM = 1.5
"""How many times the truncation that is measured a difference may be off by: the next term of its series is far smaller."""

UNIT = 2.0**-53


@dataclass(frozen=True, slots=True)
class Differences:
    """Central differences at sampled cells (flat index, value), and the error they claim for themselves.

    ``max_abs_diff`` is the largest difference from the gradient, ``estimated_error`` the largest error claimed. Each cell
    is held to the error of its own: ``worst_share`` is the largest part of it that a cell uses up. Near a corner of an
    activation a cell claims much, and lends nothing of it to the others.
    """

    step: float
    cells: tuple[tuple[int, float], ...]
    every_cell: bool
    max_abs_diff: float
    estimated_error: float
    worst_share: float


@dataclass(frozen=True, slots=True)
class Directional:
    """The derivative along a random unit direction: from the gradient, and measured, with the error it claims."""

    defined: float
    measured: float
    estimated_error: float

    @property
    def difference(self) -> float:
        return abs(self.defined - self.measured)


@dataclass(frozen=True, slots=True)
class Witness:
    """What the three witnesses say about one gradient.

    ``err_autograd`` is ``max|definition - autograd| / max|autograd|``. ``zero_in_theory`` says that every cell is zero
    up to rounding (below ``64 u mag``), in which case that ratio means nothing and the magnitude bound decides.
    """

    err_autograd: float
    within_magnitude: bool
    zero_in_theory: bool
    central: Differences
    directional: Directional

    @property
    def agree(self) -> bool:
        # Where a gradient is a small difference of large numbers (p - 1 of a confident model), no ratio to its own size
        # means anything; the magnitude bound still does.
        exact = self.within_magnitude or (self.err_autograd <= 1e-12 and not self.zero_in_theory)
        return (
            exact and self.central.worst_share <= 1 and self.directional.difference <= self.directional.estimated_error
        )


def err(a: Array, b: Array) -> float:
    """The error of ``a`` against ``b``: ``max|a - b| / max(1e-300, max|b|)``; equal infinities differ by nothing."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where(a == b, 0.0, np.abs(a - b))
    finite = np.abs(b[np.isfinite(b)])
    return float(apart.max(initial=0.0) / max(1e-300, finite.max(initial=0.0)))


def gradients_by_definition(program: Program, values: Mapping[str, Array]) -> dict[str, Array]:
    """Every gradient from the definitions alone, starting from the recorded forward values and ``L.grad = 1``."""
    start = {name: value for name, value in values.items() if not name.endswith((".grad", ".new", ".after"))}
    start["loss.L.grad"] = np.ones(())
    known = run(program.backward, start, program.scalars)
    return {name: value for name, value in known.items() if name.endswith(".grad")}


def gradient_magnitudes(program: Program, values: Mapping[str, Array]) -> dict[str, Array]:
    """The magnitude of every gradient end to end: no sum on the way from the loss may cancel.

    Contributions are linear in the gradients they read, so reading magnitudes instead gives the magnitude. A gradient
    below ``64 u`` times it cannot be told from zero: that of a key bias, whose shift softmax takes out again.
    """
    known = dict(values)
    known["loss.L.grad"] = np.ones(())
    begun: set[str] = set()
    for s in program.backward:
        name = key(s.target, "grad")
        part = magnitude(s.expr, s.letters, known, program.scalars)
        known[name] = known[name] + part if name in begun else part
        begun.add(name)
    return {name: known[name] for name in begun}


class Witnesses:
    """Questions put to one model at one sample. ``model`` is in float64 and is left as it was."""

    def __init__(
        self, model: Decoder, sample: Sample, program: Program, values: Mapping[str, Array], seed: int = 0
    ) -> None:
        self.model = model
        self.sample = sample
        self.program = program
        self.values = values
        self.defined = gradients_by_definition(program, values)
        self.magnitudes = gradient_magnitudes(program, values)
        self.parameters = {name: p.detach() for name, p in model.named_parameters()}
        self.generator = np.random.default_rng(seed)
        # The loss is a difference of logits, so its rounding follows the largest of them.
        self.scale = float(np.abs(values["head.logits"]).max())

    def testify(self, id: str, cells: int | None) -> Witness:
        """All three witnesses for the gradient of ``id``; ``cells`` caps the sampled cells (None: every cell)."""
        recorded = self.values[key(id, "grad")]
        defined = self.defined[key(id, "grad")]
        bound = REPLAY_FACTOR * UNIT * self.magnitudes[key(id, "grad")]
        central, directional = self._measured(id, defined, cells)
        return Witness(
            err_autograd=err(defined, recorded),
            within_magnitude=bool((np.abs(defined - recorded) <= bound).all()),
            zero_in_theory=bool((np.abs(recorded) <= bound).all() and (np.abs(defined) <= bound).all()),
            central=central,
            directional=directional,
        )

    def _measured(self, id: str, gradient: Array, cells: int | None) -> tuple[Differences, Directional]:
        """The differences at the chosen cells and along one random direction, measured side by side."""
        flat = gradient.reshape(-1)
        chosen = self._chosen(flat, cells)
        direction = self.generator.standard_normal(gradient.shape)
        direction = direction / max(1e-300, float(np.sqrt((direction**2).sum())))
        directions = np.zeros((chosen.size + 1, flat.size))
        directions[np.arange(chosen.size), chosen] = 1.0
        directions[-1] = direction.reshape(-1)
        slopes, own = self._slopes(
            id, directions.reshape(-1, *gradient.shape), np.append(flat[chosen], (gradient * direction).sum())
        )
        apart = np.abs(slopes[:-1] - flat[chosen])
        found = tuple((int(cell), float(slope)) for cell, slope in zip(chosen, slopes[:-1], strict=True))
        along = Directional(float((gradient * direction).sum()), float(slopes[-1]), float(own[-1]))
        worst, claimed, share = (float(x.max(initial=0.0)) for x in (apart, own[:-1], apart / own[:-1]))
        return Differences(STEP, found, chosen.size == flat.size, worst, claimed, share), along

    def _chosen(self, flat: Array, cells: int | None) -> Array:
        """Which cells are moved: every one, or the largest gradients and random others in equal parts."""
        if cells is None or cells >= flat.size:
            return np.arange(flat.size)
        largest = np.argsort(-np.abs(flat), kind="stable")[: cells // 2]
        others = np.setdiff1d(np.arange(flat.size), largest)
        return np.concatenate([largest, self.generator.choice(others, cells - largest.size, replace=False)])

    def _slopes(self, id: str, directions: Array, defined: Array) -> tuple[Array, Array]:
        """The slope of the loss along each of ``directions``, and what it may be off by.

        Rounding of the loss explains most differences from the ``defined`` slopes. Only where it does not, a longer step
        tells how much of the difference is truncation: what agrees is what would agree with that measured everywhere.
        """
        slopes = self._differences(id, directions, STEP)
        own = np.full(slopes.shape, 32 * UNIT * max(1.0, self.scale) / STEP)
        apart = ~(np.abs(slopes - defined) <= own)
        if apart.any():
            wide = self._differences(id, directions[apart], WIDE * STEP)
            # The error of a step is proportional to its square: the two are WIDE**2 - 1 times that at STEP apart.
            own[apart] += ROOM * np.abs(wide - slopes[apart]) / (WIDE**2 - 1)
        return slopes, own

    def _differences(self, id: str, directions: Array, step: float) -> Array:
        """``(L(x + step v) - L(x - step v)) / 2 step`` for each ``v`` of ``directions``, where ``x`` is the tensor ``id``."""
        found = []
        at_once = max(1, ROWS_AT_ONCE // (2 * self.sample.length))
        for start in range(0, len(directions), at_once):
            moves = step * torch.from_numpy(directions[start : start + at_once])
            up, down = self._losses(id, torch.cat([moves, -moves])).reshape(2, -1).numpy()
            found.append((up - down) / (2 * step))
        return np.concatenate(found)

    def _losses(self, id: str, moves: torch.Tensor) -> torch.Tensor:
        """The loss with the tensor ``id`` moved by each of ``moves``, all runs side by side in one forward pass."""
        if id in self.parameters:
            return side_by_side(self.model, self.sample, {id: self.parameters[id] + moves}, len(moves))

        def one(move: torch.Tensor) -> torch.Tensor:
            # Adding to minus infinity leaves it where it is, so masked scores stay masked.
            return forward(self.model, self.sample, patching({id: lambda x: x + move})).loss

        # As in ``side_by_side``: masks that are given are the only chance there may be.
        with torch.no_grad():
            return vmap(one, randomness="same" if self.sample.masks else "error")(moves)
