"""Activations: a number of the feed-forward network bent on its own, cell by cell.

| symbol | axes | |
|---|---|---|
| ``B`` | ``(b, i, f)`` | before the activation (the gate ``B_G`` where the network is gated) |
| ``tau``, ``sigma`` | ``(b, i, f)`` | the tanh inside GELU's approximation, the sigmoid inside SiLU |
| ``C`` | ``(b, i, f)`` | after the activation |

Each activation is a row of its own: the same quantity ``C``, defined by the configuration that ran.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional

from glassformer.notation import Group, Kind, Place, Say, group, quantity, silent

from .shapes import Float

GELU = quantity("C", "C", "after the activation (GELU)", "激活后（GELU）", Kind.INTERMEDIATE, """
C[i,f] = B[i,f]*(1 + erf(B[i,f]/sqrt(2)))/2
B.grad[i,f] += C.grad[i,f]*((1 + erf(B[i,f]/sqrt(2)))/2 + B[i,f]*exp(-B[i,f]**2/2)/sqrt(2*pi))
""")  # fmt: skip
RELU = quantity("C", "C", "after the activation (ReLU)", "激活后（ReLU）", Kind.INTERMEDIATE, """
C[i,f] = B[i,f] if B[i,f] > 0 else 0
B.grad[i,f] += C.grad[i,f] if B[i,f] > 0 else 0
""")  # fmt: skip
SQUARED_RELU = quantity("C", "C", "after the activation (squared ReLU)", "激活后（平方 ReLU）", Kind.INTERMEDIATE, """
C[i,f] = B[i,f]**2 if B[i,f] > 0 else 0
B.grad[i,f] += 2*B[i,f]*C.grad[i,f] if B[i,f] > 0 else 0
""")  # fmt: skip

# The gradient through the inner function is part of what C sends back, hence folded.
INNER_TANH = quantity("tau", r"\tau", "tanh inside GELU", "GELU 内的 tanh", Kind.INTERMEDIATE, """
tau[i,f] = tanh(sqrt(2/pi)*(B[i,f] + 0.044715*B[i,f]**3))
""", folded=True)  # fmt: skip
GELU_TANH = quantity("C", "C", "after the activation (GELU with tanh)", "激活后（tanh 近似的 GELU）", Kind.INTERMEDIATE, """
C[i,f] = B[i,f]*(1 + tau[i,f])/2
B.grad[i,f] += C.grad[i,f]*(
    (1 + tau[i,f])/2 + B[i,f]*(1 - tau[i,f]**2)*sqrt(2/pi)*(1 + 3*0.044715*B[i,f]**2)/2
)
""")  # fmt: skip
SIGMOID = quantity("sigma", r"\sigma", "sigmoid inside SiLU", "SiLU 内的 Sigmoid", Kind.INTERMEDIATE, """
sigma[i,f] = 1/(1 + exp(-B[i,f]))
""", folded=True)  # fmt: skip
SILU = quantity("C", "C", "after the activation (SiLU)", "激活后（SiLU）", Kind.INTERMEDIATE, """
C[i,f] = B[i,f]*sigma[i,f]
B.grad[i,f] += C.grad[i,f]*sigma[i,f]*(1 + B[i,f]*(1 - sigma[i,f]))
""")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Activation:
    """One activation: its definitions, and how torch computes it with somebody looking and with nobody."""

    definitions: Group
    explicit: Callable[[Tensor, Say, Place], Tensor]
    fused: Callable[[Tensor], Tensor]

    def __call__(self, B: Float[Tensor, "b i f"], say: Say, at: Place) -> Float[Tensor, "b i f"]:
        """``B (b, i, f)`` to ``C (b, i, f)``."""
        return self.fused(B) if say is silent else self.explicit(B, say, at)


def _gelu(B: Float[Tensor, "b i f"], say: Say, at: Place) -> Float[Tensor, "b i f"]:
    return say(GELU, functional.gelu(B), at)


def _relu(B: Float[Tensor, "b i f"], say: Say, at: Place) -> Float[Tensor, "b i f"]:
    return say(RELU, functional.relu(B), at)


def _fused_squared_relu(B: Float[Tensor, "b i f"]) -> Float[Tensor, "b i f"]:
    return functional.relu(B) ** 2


def _squared_relu(B: Float[Tensor, "b i f"], say: Say, at: Place) -> Float[Tensor, "b i f"]:
    return say(SQUARED_RELU, _fused_squared_relu(B), at)


def _fused_gelu_tanh(B: Float[Tensor, "b i f"]) -> Float[Tensor, "b i f"]:
    return functional.gelu(B, approximate="tanh")


def _gelu_tanh(B: Float[Tensor, "b i f"], say: Say, at: Place) -> Float[Tensor, "b i f"]:
    tau = say(INNER_TANH, torch.tanh(math.sqrt(2 / math.pi) * (B + 0.044715 * B**3)), at)
    return say(GELU_TANH, B * (1 + tau) / 2, at)


def _silu(B: Float[Tensor, "b i f"], say: Say, at: Place) -> Float[Tensor, "b i f"]:
    sigma = say(SIGMOID, torch.sigmoid(B), at)
    return say(SILU, B * sigma, at)


ACTIVATIONS = MappingProxyType(
    {
        "gelu": Activation(group("GELU", GELU), _gelu, functional.gelu),
        "gelu_tanh": Activation(group("GELU with tanh", INNER_TANH, GELU_TANH), _gelu_tanh, _fused_gelu_tanh),
        "silu": Activation(group("SiLU", SIGMOID, SILU), _silu, functional.silu),
        "relu": Activation(group("ReLU", RELU), _relu, functional.relu),
        "relu2": Activation(group("squared ReLU", SQUARED_RELU), _squared_relu, _fused_squared_relu),
    }
)
"""By the name that a configuration gives them. ``gelu`` is the exact one; a ReLU's derivative at 0 is taken as 0."""
