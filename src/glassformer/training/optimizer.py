"""How gradients become new parameters: AdamW, fused and explicit, and plain gradient descent.

| symbol | |
|---|---|
| ``theta``, ``g`` | one parameter and its gradient |
| ``m``, ``v`` | its moments: running means of ``g`` and of ``g`` squared |
| ``eta``, ``k`` | learning rate and number of the step, from 1 |

The definitions are in ``adamw.py`` and ``descent.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from .adamw import is_decayed
from .config import OptimizerConfig

MOMENTS = ("moment1", "moment2")


class Moved(NamedTuple):
    """One parameter, any shape, and what its step reads; the last three have the parameter's shape and precision."""

    theta: Tensor
    g: Tensor
    m: Tensor
    v: Tensor


class Numbers(NamedTuple):
    """The numbers of one step of AdamW, the same for all parameters that are moved together."""

    eta: float
    k: int
    beta_1: float
    beta_2: float
    eps: float
    weight_decay: float


class Lines(NamedTuple):
    """What one step of AdamW computes for one parameter, line by line; all have its shape."""

    m_new: Tensor
    v_new: Tensor
    m_hat: Tensor
    v_hat: Tensor
    direction: Tensor
    theta_new: Tensor


@torch.no_grad()
def adamw_lines(moved: Moved, numbers: Numbers) -> Lines:
    """One step of AdamW for one parameter, line by line; nothing is changed."""
    theta, g, m, v = moved
    eta, k, beta_1, beta_2, eps, weight_decay = numbers
    m_new = beta_1 * m + (1 - beta_1) * g
    v_new = beta_2 * v + (1 - beta_2) * g.square()
    m_hat = m_new / (1 - beta_1**k)
    v_hat = v_new / (1 - beta_2**k)
    direction = m_hat / (v_hat.sqrt() + eps)
    return Lines(m_new, v_new, m_hat, v_hat, direction, theta - eta * weight_decay * theta - eta * direction)


@torch.no_grad()
def explicit_step(moved: Sequence[Moved], numbers: Numbers) -> None:
    """Give ``theta``, ``m`` and ``v`` of each parameter their values after one step of AdamW."""
    for each in moved:
        lines = adamw_lines(each, numbers)
        for old, new in ((each.m, lines.m_new), (each.v, lines.v_new), (each.theta, lines.theta_new)):
            old.copy_(new)


@torch.no_grad()
def fused_step(moved: Sequence[Moved], numbers: Numbers) -> None:
    """The same step from torch's fused kernel, that of ``torch.optim.AdamW(fused=True)``, which shows no line of it."""
    eta, k, beta_1, beta_2, eps, weight_decay = numbers
    adamw(
        [x.theta for x in moved],
        [x.g for x in moved],
        [x.m for x in moved],
        [x.v for x in moved],
        [],
        [torch.tensor(k - 1.0) for _ in moved],  # one for each: the kernel counts them up
        fused=True,
        amsgrad=False,
        beta1=beta_1,
        beta2=beta_2,
        lr=eta,
        weight_decay=weight_decay,
        eps=eps,
        maximize=False,
    )


@torch.no_grad()
def descent_step(moved: Sequence[tuple[Tensor, Tensor]], eta: float) -> None:
    """``theta - eta g`` for each ``(theta, g)``."""
    for theta, g in moved:
        theta.sub_(g, alpha=eta)


class Optimizer:
    """The optimizer of one model: its moments by parameter id, and how many steps it has made."""

    def __init__(self, model: nn.Module, config: OptimizerConfig) -> None:
        self.steps = 0
        self._config = config
        self._parameters = dict(model.named_parameters())
        kept = MOMENTS if config.kind == "adamw" else ()
        self._moments = {
            moment: {id: torch.zeros_like(theta) for id, theta in self._parameters.items()} for moment in kept
        }

    def clear(self) -> None:
        """Forget all gradients."""
        for theta in self._parameters.values():
            theta.grad = None

    def clip(self) -> float:
        """Shorten the gradient of all parameters together to the norm ``clip``; returns the norm it had.

        The factor is ``clip/(norm + 1e-6)``, where that is below 1.
        """
        longest = math.inf if self._config.clip is None else self._config.clip
        return float(nn.utils.clip_grad_norm_(self._parameters.values(), longest))

    def step(self, eta: float) -> None:
        """Move every parameter that has a gradient, with learning rate ``eta``."""
        self.steps += 1
        if self._config.kind == "gradient_descent":
            descent_step([(theta, theta.grad) for theta in self._parameters.values() if theta.grad is not None], eta)
            return
        c = self._config
        for decayed in (True, False):
            decay = c.weight_decay if decayed else 0.0
            fused_step(self._moved(decayed), Numbers(eta, self.steps, c.beta_1, c.beta_2, c.eps, decay))

    def tensors(self) -> dict[str, Tensor]:
        """Copies of the moments, under ``moment1.ID`` and ``moment2.ID``; with ``steps`` all that going on needs."""
        return {f"{kind}.{id}": x.clone() for kind, by_id in self._moments.items() for id, x in by_id.items()}

    def restore(self, steps: int, tensors: Mapping[str, Tensor]) -> None:
        """Become what ``steps`` and ``tensors`` describe. Raises ``ValueError`` unless they are this model's."""
        shapes = {name: (x.shape, x.dtype) for name, x in self.tensors().items()}
        if shapes != {name: (x.shape, x.dtype) for name, x in tensors.items()}:
            raise ValueError("the optimizer's tensors are not those of this model and optimizer")
        for kind, by_id in self._moments.items():
            for id, x in by_id.items():
                x.copy_(tensors[f"{kind}.{id}"])
        self.steps = steps

    def _moved(self, decayed: bool) -> list[Moved]:
        m, v = (self._moments[moment] for moment in MOMENTS)
        return [
            Moved(theta, theta.grad, m[id], v[id])
            for id, theta in self._parameters.items()
            if theta.grad is not None and is_decayed(id) == decayed
        ]
