"""Weights under which a fault shows: an untrained model of deviation 0.02 hides a leak of the whole future at 5e-7.

Everything here works in place on a copy that belongs to a bench.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

TINY = 1e-12
"""Below this deviation a matrix counts as all zero, as output projections are at the start of some models."""

NUDGE = 0.2
"""Deviation of what is added to biases and norm weights, so that none keeps the value at which it does nothing."""

HOPELESS = 16.0
"""From this factor on a past without effect is taken as that."""


def parameters(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Every floating-point parameter once, tied ones too; those that learn, or all where none does."""
    named = [(name, p) for name, p in module.named_parameters() if p.is_floating_point()]
    learning = [(name, p) for name, p in named if p.requires_grad]
    yield from learning or named


@torch.no_grad()
def unsettle(module: nn.Module, generator: torch.Generator) -> None:
    """Take biases, norm weights, pad rows and zero matrices off the values at which they do nothing."""
    for _, p in parameters(module):
        noise = torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype)
        if p.ndim < 2:
            p.add_(NUDGE * noise)
            continue
        rows = p.reshape(p.shape[0], -1)
        spread = float(rows.std(unbiased=False))
        if spread < TINY:
            p.copy_(noise / max(1, rows.shape[1]) ** 0.5)
        else:  # a row left at zero is the pad row of a table
            empty = (rows == 0).all(1).reshape(-1, *[1] * (p.ndim - 1))
            p.copy_(torch.where(empty, spread * noise, p))


@torch.no_grad()
def scale(module: nn.Module, factor: float) -> None:
    """Multiply every matrix by ``factor``."""
    for _, p in parameters(module):
        if p.ndim >= 2:
            p.mul_(factor)


@torch.no_grad()
def jitter(module: nn.Module, size: float, generator: torch.Generator) -> None:
    """Multiply every number of every parameter by one plus ``size`` times a standard normal."""
    for _, p in parameters(module):
        p.mul_(1 + size * torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype))


@contextmanager
def restored(tensors: Iterable[Tensor]) -> Iterator[None]:
    """Whatever is done to ``tensors`` inside, afterwards they are bit for bit as before."""
    before = [(p, _compact(p.detach())) for p in tensors]
    try:
        yield
    finally:
        with torch.no_grad():
            for p, value in before:
                p.copy_(value)


def _compact(value: Tensor) -> Tensor:
    """A copy in single precision where that loses nothing, as of weights that were read so: half as large."""
    single = value.float()
    return single if single.dtype is not value.dtype and torch.equal(single.to(value.dtype), value) else value.clone()


@contextmanager
def shaken_by(module: nn.Module, size: float, generator: torch.Generator) -> Iterator[None]:
    """Inside, the parameters are jittered; afterwards they are bit for bit as before."""
    with restored(p for _, p in parameters(module)):
        jitter(module, size, generator)
        yield


def amplified(
    module: nn.Module, telling: Callable[[nn.Module], tuple[float, float]], begin: float = 1.0, limit: int = 8,
    *, jump: bool = False,
) -> tuple[float, bool]:  # fmt: skip
    """Scale the matrices of ``module`` until logits spread and depend on what was read before.

    Returns the factor, and whether ``telling`` was asked with it last.

    ``telling`` gives the standard deviation of the logits and how far what was read before moves the last logits, in
    those deviations. Either is NaN where numbers overflow; then the last good factor is kept. Where the past has no effect
    at all, larger weights would not give it one. ``begin`` is the factor to begin with;
    with ``jump`` logits that spread too little are made up for in one step, as they grow at least with the last matrix.
    """
    factor = begin
    if begin != 1:
        scale(module, begin)
    for _ in range(limit):
        spread, reach = telling(module)
        if not (spread == spread and reach == reach):
            scale(module, 0.5)
            factor /= 2
            if jump:
                continue
            return factor, False
        if spread >= 1 and (reach >= 0.05 or factor >= HOPELESS):
            return factor, True
        step = 2.0 ** min(6, max(1, math.ceil(-math.log2(spread)))) if jump and spread > 0 else 2.0
        scale(module, step)
        factor *= step
    return factor, False


def usual_factor(module: nn.Module) -> float:
    """The power of two that brings the gain of the median matrix, its deviation times the root of its width, near 1.5."""
    gains = sorted(
        float(p.detach().std()) * (p.numel() / p.shape[0]) ** 0.5 for _, p in parameters(module) if p.ndim >= 2
    )
    middle = gains[len(gains) // 2] if gains else 0.0
    return 2.0 ** max(-6, min(6, round(math.log2(1.5 / middle)))) if 0 < middle < math.inf else 1.0


@contextmanager
def without_dropout(module: nn.Module) -> Iterator[None]:
    """Every rate of dropout of ``module``, a copy that belongs to a bench, and of its configs at zero; afterwards back."""
    changed: list[tuple[Any, str, float]] = []

    def silence(holder: Any, inside: bool, depth: int) -> None:
        for name, value in list(vars(holder).items()):
            drops = inside or "drop" in name
            if isinstance(value, float) and drops:
                changed.append((holder, name, value))
                object.__setattr__(holder, name, 0.0)  # configs may be frozen
            elif depth and _holds_settings(value):
                silence(value, drops, depth - 1)

    for part in module.modules():
        silence(part, "drop" in type(part).__name__.lower(), 2)
    try:
        yield
    finally:
        # Parts share their configs, which are met again with the rate already at zero.
        for holder, name, value in reversed(changed):
            object.__setattr__(holder, name, value)


def _holds_settings(value: Any) -> bool:
    simple = isinstance(value, nn.Module | Tensor | type | str | int | float | dict | list | tuple | set)
    return value is not None and not simple and not callable(value) and bool(getattr(value, "__dict__", None))
