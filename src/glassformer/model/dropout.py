r"""Dropout: in training, numbers drawn by chance are left out and the others made larger, so that the mean stays.

| symbol | axes | |
|---|---|---|
| ``kept_X``, ``X_D`` | ``(b, i, r)`` | of the embedded rows ``X`` |
| ``kept_A``, ``A_D`` | ``(b, h, i, j)`` | of the mixing coefficients ``A``: the rows of ``A_D`` no longer sum to 1 |
| ``kept_O``, ``O_D`` | ``(b, i, r)`` | of what attention adds to the stream |
| ``kept_F``, ``F_D`` | ``(b, i, r)`` | of what the feed-forward network adds to the stream |

A rate ``p`` is the chance of a number to be left out, each by itself: ``p_embed`` of the first row, ``p_attn`` of the
second, ``p_resid`` of the others. The mask is drawn from torch's generator and said as an input of the run: given the
same masks, a run computes the same numbers. In evaluation mode, and at rate 0, nothing is drawn and nothing computed.
Source: Srivastava et al. 2014, Dropout; scaled in training, not afterwards (as in torch.nn.functional.dropout). The
places are those of Vaswani et al. 2017, section 5.4, and of the coefficients, as in GPT-2.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from glassformer.notation import Instance, Kind, Place, Quantity, Say, group, place, quantity

from .config import DropoutConfig
from .shapes import Bool, Float


class Dropped(NamedTuple):
    """The two quantities of one place: which numbers are ``kept``, and the ``result``."""

    kept: Quantity
    result: Quantity


EMBEDDED = Dropped(
    quantity("kept_X", r"\mathcal D_X", "kept cells of the input", "输入矩阵中保留的元素", Kind.INPUT, "kept_X[i,r]"),
    quantity("X_D", "X_D", "input matrix after dropout", "Dropout 后的输入矩阵", Kind.INTERMEDIATE, """
X_D[i,r] = X[i,r]/(1 - p_embed) if kept_X[i,r] else 0
X.grad[i,r] += X_D.grad[i,r]/(1 - p_embed) if kept_X[i,r] else 0
"""),
)  # fmt: skip
COEFFICIENTS = Dropped(
    quantity("kept_A", r"\mathcal D_A", "kept coefficients", "保留的混合系数", Kind.INPUT, "kept_A[h,i,j]"),
    quantity("A_D", "A_D", "coefficients after dropout", "Dropout 后的混合系数", Kind.INTERMEDIATE, """
A_D[h,i,j] = A[h,i,j]/(1 - p_attn) if kept_A[h,i,j] else 0
A.grad[h,i,j] += A_D.grad[h,i,j]/(1 - p_attn) if kept_A[h,i,j] else 0
"""),
)  # fmt: skip
ATTENDED = Dropped(
    quantity("kept_O", r"\mathcal D_O", "kept cells of attention", "注意力输出中保留的元素", Kind.INPUT, "kept_O[i,r]"),
    quantity("O_D", "O_D", "attention output after dropout", "Dropout 后的注意力输出", Kind.INTERMEDIATE, """
O_D[i,r] = O[i,r]/(1 - p_resid) if kept_O[i,r] else 0
O.grad[i,r] += O_D.grad[i,r]/(1 - p_resid) if kept_O[i,r] else 0
"""),
)  # fmt: skip
TRANSFORMED = Dropped(
    quantity("kept_F", r"\mathcal D_F", "kept cells of the FFN", "FFN 输出中保留的元素", Kind.INPUT, "kept_F[i,r]"),
    quantity("F_D", "F_D", "FFN output after dropout", "Dropout 后的 FFN 输出", Kind.INTERMEDIATE, """
F_D[i,r] = F[i,r]/(1 - p_resid) if kept_F[i,r] else 0
F.grad[i,r] += F_D.grad[i,r]/(1 - p_resid) if kept_F[i,r] else 0
"""),
)  # fmt: skip

MASKS = frozenset(dropped.kept for dropped in (EMBEDDED, COEFFICIENTS, ATTENDED, TRANSFORMED))
"""The quantities that a run with dropout draws by chance: all of its inputs besides the text."""


def dropout_definitions(
    dropped: Dropped, rate: float, path: str, X: str, layer: int | None = None
) -> tuple[list[Instance], str]:
    """The placed dropout at ``path`` of the rows ``X``, and the id of the result; at rate 0 nothing, and ``X`` itself."""
    if rate == 0:
        return [], X
    operand = X.rpartition(".")[2]
    placed = place(group("dropout", *dropped), path, layer=layer, n_k="n", **{operand: X})
    return [placed], f"{path}.{dropped.result.name}"


def dropout_rates(config: DropoutConfig) -> dict[str, float]:
    """The rates above 0, by the names that the definitions give them."""
    rates = {"p_embed": config.embedding, "p_attn": config.attention, "p_resid": config.residual}
    return {name: rate for name, rate in rates.items() if rate > 0}


def leave_out(X: Float[Tensor, "*axes"], dropped: Dropped, rate: float, say: Say, at: Place) -> Float[Tensor, "*axes"]:
    """``X`` with each number left out with the chance ``rate`` and the others divided by ``1 - rate``.

    Any shape. At rate 0 ``X`` itself: nothing is drawn or said.
    """
    if rate == 0:
        return X
    kept = say(dropped.kept, _drawn(X, rate), at)
    return say(dropped.result, torch.where(kept, X / (1 - rate), 0.0), at)


def _drawn(X: Float[Tensor, "*axes"], rate: float) -> Bool[Tensor, "*axes"]:
    return torch.empty(X.shape, dtype=torch.bool, device=X.device).bernoulli_(1 - rate)


class Dropout(nn.Module):
    """Dropout at one place of a model: at ``rate`` in training mode, at 0 in evaluation mode."""

    def __init__(self, rate: float, dropped: Dropped, at: Place) -> None:
        super().__init__()
        self.at = at
        self.set_rate = rate
        self.dropped = dropped

    @property
    def rate(self) -> float:
        """The rate of the mode that the model is in."""
        return self.set_rate if self.training else 0.0

    def forward(self, X: Float[Tensor, "*axes"], say: Say) -> Float[Tensor, "*axes"]:
        """``X`` of any shape to the same shape."""
        return leave_out(X, self.dropped, self.rate, say, self.at)
