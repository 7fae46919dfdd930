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

from ..model import Decoder
from ..notation import REPLAY_FACTOR, Program, key, magnitude, run
from .record import Sample, forward, patching

Array = np.ndarray[Any, np.dtype[Any]]

STEP = 1e-5
"""The step of the differences: at 1e-5 rounding of the loss (1e-11) dominates truncation (1e-10 times a third derivative)."""

UNIT = 2.0**-53


@dataclass(frozen=True, slots=True)
class Differences:
    """Central differences at sampled cells (flat index, value), and the error they claim for themselves."""

    step: float
    cells: tuple[tuple[int, float], ...]
    every_cell: bool
    max_abs_diff: float
    estimated_error: float


@dataclass(frozen=True, slots=True)
class Directional:
    """The derivative along a random unit direction: from the gradient, and measured."""

    defined: float
    measured: float

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
        exact = self.within_magnitude if self.zero_in_theory else self.err_autograd <= 1e-12
        sampled = self.central.max_abs_diff <= self.central.estimated_error
        return exact and sampled and self.directional.difference <= 1e-8


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
        self.parameters = dict(model.named_parameters())
        self.generator = np.random.default_rng(seed)
        self.loss = float(values["loss.L"])

    def testify(self, id: str, cells: int | None) -> Witness:
        """All three witnesses for the gradient of ``id``; ``cells`` caps the sampled cells (None: every cell)."""
        recorded = self.values[key(id, "grad")]
        defined = self.defined[key(id, "grad")]
        bound = REPLAY_FACTOR * UNIT * self._magnitude(id)
        return Witness(
            err_autograd=err(defined, recorded),
            within_magnitude=bool((np.abs(defined - recorded) <= bound).all()),
            zero_in_theory=bool((np.abs(recorded) <= bound).all() and (np.abs(defined) <= bound).all()),
            central=self._differences(id, defined, cells),
            directional=self._directional(id, defined),
        )

    def _magnitude(self, id: str) -> Array:
        """The magnitude of the gradient of ``id``: that of its contributions, read from defined gradients."""
        known = {**self.values, **self.defined}
        parts = [magnitude(s.expr, s.letters, known, self.program.scalars) for s in self.program.contributions(id)]
        return np.sum(parts, axis=0)

    def _differences(self, id: str, gradient: Array, cells: int | None) -> Differences:
        flat = gradient.reshape(-1)
        chosen = np.arange(flat.size)
        if cells is not None and cells < flat.size:
            largest = np.argsort(-np.abs(flat), kind="stable")[: cells // 2]
            others = np.setdiff1d(chosen, largest)
            chosen = np.concatenate([largest, self.generator.choice(others, cells - largest.size, replace=False)])
        found = []
        for cell in chosen:
            direction = np.zeros(flat.size)
            direction[cell] = 1.0
            found.append((int(cell), self._slope(id, direction.reshape(gradient.shape), STEP)))
        worst = max((abs(value - flat[cell]) for cell, value in found), default=0.0)
        return Differences(STEP, tuple(found), len(chosen) == flat.size, float(worst), self._own_error(id, gradient))

    def _own_error(self, id: str, gradient: Array) -> float:
        """What differences at ``STEP`` may be off by: rounding of the loss, and truncation seen at larger steps."""
        steepest = np.zeros(gradient.size)
        steepest[int(np.abs(gradient).argmax())] = 1.0
        steepest = steepest.reshape(gradient.shape)
        truncation = abs(self._slope(id, steepest, 30 * STEP) - self._slope(id, steepest, 10 * STEP)) / 800
        return 32 * UNIT * max(1.0, abs(self.loss)) / STEP + 4 * truncation

    def _directional(self, id: str, gradient: Array) -> Directional:
        direction = self.generator.standard_normal(gradient.shape)
        direction = direction / max(1e-300, float(np.sqrt((direction**2).sum())))
        return Directional(float((gradient * direction).sum()), self._slope(id, direction, STEP))

    def _slope(self, id: str, direction: Array, step: float) -> float:
        """``(L(x + step v) - L(x - step v)) / 2 step`` where ``x`` is the tensor ``id``."""
        v = torch.from_numpy(np.ascontiguousarray(direction))
        return (self._moved(id, step * v) - self._moved(id, -step * v)) / (2 * step)

    def _moved(self, id: str, by: torch.Tensor) -> float:
        with torch.no_grad():
            if id not in self.parameters:
                # Adding to minus infinity leaves it where it is, so masked scores stay masked.
                return float(forward(self.model, self.sample, patching({id: lambda x: x + by})).loss)
            parameter = self.parameters[id]
            before = parameter.detach().clone()
            try:
                parameter.copy_(before + by)
                return float(forward(self.model, self.sample, patching({})).loss)
            finally:
                parameter.copy_(before)
