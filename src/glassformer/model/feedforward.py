"""Feed-forward network: the same two projections for every row, an activation between them.

| symbol | axes | |
|---|---|---|
| ``X`` | ``(b, i, r)`` | what comes in |
| ``W_1``, ``b_1`` | ``(r, f)``, ``(f)`` | first projection |
| ``B``, ``C`` | ``(b, i, f)`` | before and after the activation |
| ``W_2``, ``b_2`` | ``(f, r)``, ``(r)`` | second projection |
| ``F`` | ``(b, i, r)`` | what goes out |
"""

from __future__ import annotations

from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

from glassformer.notation import Kind, Place, Say, group, quantity

from .config import FeedForwardConfig
from .shapes import Float

FIRST_WEIGHT = quantity("W_1", "W_1", "first projection", "第一投影参数", Kind.PARAMETER, "W_1[r,f]")
FIRST_BIAS = quantity("b_1", "b_1", "first bias", "第一偏置", Kind.PARAMETER, "b_1[f]")
SECOND_WEIGHT = quantity("W_2", "W_2", "second projection", "第二投影参数", Kind.PARAMETER, "W_2[f,r]")
SECOND_BIAS = quantity("b_2", "b_2", "second bias", "第二偏置", Kind.PARAMETER, "b_2[r]")

BEFORE = quantity("B", "B", "before the activation", "激活前", Kind.INTERMEDIATE, """
B[i,f] = sum(X[i,r]*W_1[r,f] for r in d) + b_1[f]
X.grad[i,r] += sum(B.grad[i,f]*W_1[r,f] for f in d_ff)
W_1.grad[r,f] += sum(X[i,r]*B.grad[i,f] for i in n)
b_1.grad[f] += sum(B.grad[i,f] for i in n)
""")  # fmt: skip
# One row per activation: the same quantity C, defined by the configuration that ran.
GELU = quantity("C", "C", "after the activation (GELU)", "激活后（GELU）", Kind.INTERMEDIATE, """
C[i,f] = B[i,f]*(1 + erf(B[i,f]/sqrt(2)))/2
B.grad[i,f] += C.grad[i,f]*((1 + erf(B[i,f]/sqrt(2)))/2 + B[i,f]*exp(-B[i,f]**2/2)/sqrt(2*pi))
""")  # fmt: skip
RELU = quantity("C", "C", "after the activation (ReLU)", "激活后（ReLU）", Kind.INTERMEDIATE, """
C[i,f] = B[i,f] if B[i,f] > 0 else 0
B.grad[i,f] += C.grad[i,f] if B[i,f] > 0 else 0
""")  # fmt: skip
TRANSFORMED = quantity("F", "F", "feed-forward output", "前馈输出", Kind.INTERMEDIATE, """
F[i,r] = sum(C[i,f]*W_2[f,r] for f in d_ff) + b_2[r]
C.grad[i,f] += sum(F.grad[i,r]*W_2[f,r] for r in d)
W_2.grad[f,r] += sum(C[i,f]*F.grad[i,r] for i in n)
b_2.grad[r] += sum(F.grad[i,r] for i in n)
""")  # fmt: skip

ACTIVATIONS = MappingProxyType({"gelu": GELU, "relu": RELU})
FEED_FORWARD = MappingProxyType(
    {
        name: group(
            "feed-forward", FIRST_WEIGHT, FIRST_BIAS, BEFORE, activation, SECOND_WEIGHT, SECOND_BIAS, TRANSFORMED
        )
        for name, activation in ACTIVATIONS.items()
    }
)
FEED_FORWARD_BIASES = (FIRST_BIAS.name, SECOND_BIAS.name)

_FUNCTIONS = MappingProxyType({"gelu": functional.gelu, "relu": functional.relu})


class FeedForward(nn.Module):
    """Transforms each row on its own. ``gelu`` is the exact one (with erf); ReLU's derivative at 0 is taken as 0."""

    def __init__(self, d: int, config: FeedForwardConfig, at: Place) -> None:
        super().__init__()
        self.at = at
        self.activated = ACTIVATIONS[config.activation]
        self.activation = _FUNCTIONS[config.activation]
        self.W_1 = nn.Parameter(torch.zeros(d, config.d_ff))
        self.b_1 = nn.Parameter(torch.zeros(config.d_ff)) if config.bias else None
        self.W_2 = nn.Parameter(torch.zeros(config.d_ff, d))
        self.b_2 = nn.Parameter(torch.zeros(d)) if config.bias else None

    def forward(self, X: Float[Tensor, "b i r"], say: Say) -> Float[Tensor, "b i r"]:
        """``X (b, i, r)`` to ``F (b, i, r)``."""
        B = say(BEFORE, _affine(X, self.W_1, self.b_1), self.at)
        C = say(self.activated, self.activation(B), self.at)
        return say(TRANSFORMED, _affine(C, self.W_2, self.b_2), self.at)


def _affine(
    X: Float[Tensor, "b i r"], W: Float[Tensor, "r f"], bias: Float[Tensor, " f"] | None
) -> Float[Tensor, "b i f"]:
    return X @ W if bias is None else X @ W + bias
