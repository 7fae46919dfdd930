"""Feed-forward network: the same two projections for every row, an activation between them, perhaps a gate.

| symbol | axes | |
|---|---|---|
| ``X`` | ``(b, i, r)`` | what comes in |
| ``W_1``, ``b_1`` | ``(r, f)``, ``(f)`` | first projection |
| ``W_G``, ``b_G`` | ``(r, f)``, ``(f)`` | projection of the gate, where there is one |
| ``B``, ``B_G`` | ``(b, i, f)`` | the first projection's output; the gate's |
| ``C`` | ``(b, i, f)`` | after the activation: of ``B``, or of ``B_G`` where there is a gate |
| ``D`` | ``(b, i, f)`` | with a gate: ``C`` times ``B``, cell by cell |
| ``W_2``, ``b_2`` | ``(f, r)``, ``(r)`` | second projection, of ``C`` or of ``D`` |
| ``F`` | ``(b, i, r)`` | what goes out |
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glassformer.notation import Instance, Kind, Place, Say, group, place, quantity

from .activation import ACTIVATIONS
from .config import FeedForwardConfig
from .shapes import Float

FIRST_WEIGHT = quantity("W_1", "W_1", "first projection", "第一投影参数", Kind.PARAMETER, "W_1[r,f]")
FIRST_BIAS = quantity("b_1", "b_1", "first bias", "第一偏置", Kind.PARAMETER, "b_1[f]")
GATE_WEIGHT = quantity("W_G", "W_G", "gate projection", "门投影参数", Kind.PARAMETER, "W_G[r,f]")
GATE_BIAS = quantity("b_G", "b_G", "gate bias", "门偏置", Kind.PARAMETER, "b_G[f]")
SECOND_WEIGHT = quantity("W_2", "W_2", "second projection", "第二投影参数", Kind.PARAMETER, "W_2[f,r]")
SECOND_BIAS = quantity("b_2", "b_2", "second bias", "第二偏置", Kind.PARAMETER, "b_2[r]")

BEFORE = quantity("B", "B", "before the activation", "激活前", Kind.INTERMEDIATE, """
B[i,f] = sum(X[i,r]*W_1[r,f] for r in d) + b_1[f]
X.grad[i,r] += sum(B.grad[i,f]*W_1[r,f] for f in d_ff)
W_1.grad[r,f] += sum(X[i,r]*B.grad[i,f] for i in n)
b_1.grad[f] += sum(B.grad[i,f] for i in n)
""")  # fmt: skip
GATE = quantity("B_G", "B_G", "gate before the activation", "激活前的门", Kind.INTERMEDIATE, """
B_G[i,f] = sum(X[i,r]*W_G[r,f] for r in d) + b_G[f]
X.grad[i,r] += sum(B_G.grad[i,f]*W_G[r,f] for f in d_ff)
W_G.grad[r,f] += sum(X[i,r]*B_G.grad[i,f] for i in n)
b_G.grad[f] += sum(B_G.grad[i,f] for i in n)
""")  # fmt: skip
GATED = quantity("D", "D", "gated", "过门后", Kind.INTERMEDIATE, """
D[i,f] = C[i,f]*B[i,f]
C.grad[i,f] += D.grad[i,f]*B[i,f]
B.grad[i,f] += D.grad[i,f]*C[i,f]
""")  # fmt: skip
TRANSFORMED = quantity("F", "F", "feed-forward output", "前馈输出", Kind.INTERMEDIATE, """
F[i,r] = sum(C[i,f]*W_2[f,r] for f in d_ff) + b_2[r]
C.grad[i,f] += sum(F.grad[i,r]*W_2[f,r] for r in d)
W_2.grad[f,r] += sum(C[i,f]*F.grad[i,r] for i in n)
b_2.grad[r] += sum(F.grad[i,r] for i in n)
""")  # fmt: skip

FIRST_PROJECTION = group("first projection", FIRST_WEIGHT, FIRST_BIAS, BEFORE)
GATE_PROJECTION = group("gate projection", GATE_WEIGHT, GATE_BIAS, GATE)
GATING = group("gating", GATED)
SECOND_PROJECTION = group("second projection", SECOND_WEIGHT, SECOND_BIAS, TRANSFORMED)


def feed_forward_definitions(config: FeedForwardConfig, path: str, X: str, layer: int) -> list[Instance]:
    """The placed groups of the network at ``path`` that reads the rows ``X``; its output is ``path.F``."""

    def biased(name: str) -> dict[str, None]:
        return {} if config.bias else {name: None}

    B, C = f"{path}.B", f"{path}.C"
    parts = [place(FIRST_PROJECTION, path, layer=layer, X=X, **biased(FIRST_BIAS.name))]
    if config.gated:
        parts.append(place(GATE_PROJECTION, path, layer=layer, X=X, **biased(GATE_BIAS.name)))
    activated = f"{path}.{GATE.name}" if config.gated else B
    parts.append(place(ACTIVATIONS[config.activation].definitions, path, layer=layer, B=activated))
    if config.gated:
        parts.append(place(GATING, path, layer=layer, B=B, C=C))
    inside = f"{path}.{GATED.name}" if config.gated else C
    parts.append(place(SECOND_PROJECTION, path, layer=layer, C=inside, **biased(SECOND_BIAS.name)))
    return parts


class FeedForward(nn.Module):
    """Transforms each row on its own.

    Source of the gate: Shazeer 2020, GLU Variants Improve Transformer.
    """

    def __init__(self, d: int, config: FeedForwardConfig, at: Place) -> None:
        super().__init__()
        self.at = at
        self.activation = ACTIVATIONS[config.activation]
        d_ff, gated = config.d_ff, config.gated
        self.W_1 = nn.Parameter(torch.zeros(d, d_ff))
        self.b_1 = nn.Parameter(torch.zeros(d_ff)) if config.bias else None
        self.W_G = nn.Parameter(torch.zeros(d, d_ff)) if gated else None
        self.b_G = nn.Parameter(torch.zeros(d_ff)) if gated and config.bias else None
        self.W_2 = nn.Parameter(torch.zeros(d_ff, d))
        self.b_2 = nn.Parameter(torch.zeros(d)) if config.bias else None

    def forward(self, X: Float[Tensor, "b i r"], say: Say) -> Float[Tensor, "b i r"]:
        """``X (b, i, r)`` to ``F (b, i, r)``."""
        B = say(BEFORE, _affine(X, self.W_1, self.b_1), self.at)
        if self.W_G is None:
            inside = self.activation(B, say, self.at)
        else:
            C = self.activation(say(GATE, _affine(X, self.W_G, self.b_G), self.at), say, self.at)
            inside = say(GATED, C * B, self.at)
        return say(TRANSFORMED, _affine(inside, self.W_2, self.b_2), self.at)


def _affine(
    X: Float[Tensor, "b i r"], W: Float[Tensor, "r f"], bias: Float[Tensor, " f"] | None
) -> Float[Tensor, "b i f"]:
    return X @ W if bias is None else X @ W + bias
