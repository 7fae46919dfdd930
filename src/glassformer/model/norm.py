"""LayerNorm and RMSNorm over the coordinates of one row.

| symbol | axes | |
|---|---|---|
| ``X`` | ``(b, i, r)`` | what comes in |
| ``mu``, ``var``, ``sd`` | ``(b, i)`` | mean, population variance (divided by ``d``), root of ``var + eps`` |
| ``rms`` | ``(b, i)`` | RMSNorm in their place: root of the mean square plus ``eps`` |
| ``xhat`` | ``(b, i, r)`` | normalised row |
| ``gamma``, ``beta`` | ``(r)`` | learned scale and shift; RMSNorm has no shift |
| ``Y`` | ``(b, i, r)`` | what goes out |
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glassformer.notation import Instance, Kind, Place, Say, group, place, quantity

from .config import NormConfig
from .shapes import Float

SCALE = quantity("gamma", r"\gamma", "norm scale", "归一化缩放", Kind.PARAMETER, "gamma[r]")
SHIFT = quantity("beta", r"\beta", "norm shift", "归一化平移", Kind.PARAMETER, "beta[r]")

# The gradient through mean and deviation is part of what xhat sends back, hence folded.
MEAN = quantity("mu", r"\mu", "mean of the row", "行均值", Kind.INTERMEDIATE, """
mu[i] = mean(X[i,r] for r in d)
""", folded=True)  # fmt: skip
VARIANCE = quantity("var", "v", "population variance of the row", "行总体方差", Kind.INTERMEDIATE, """
var[i] = mean((X[i,r] - mu[i])**2 for r in d)
""", folded=True)  # fmt: skip
DEVIATION = quantity("sd", "s", "standard deviation of the row", "行标准差", Kind.INTERMEDIATE, """
sd[i] = sqrt(var[i] + eps)
""", folded=True)  # fmt: skip

NORMALISED = quantity("xhat", r"\hat X", "normalised rows", "标准化后的行", Kind.INTERMEDIATE, """
xhat[i,r] = (X[i,r] - mu[i])/sd[i]
X.grad[i,r] += (
    xhat.grad[i,r] - mean(xhat.grad[i,q] for q in d) - xhat[i,r]*mean(xhat.grad[i,q]*xhat[i,q] for q in d)
)/sd[i]
""")  # fmt: skip
SCALED = quantity("Y", "Y", "norm output", "归一化输出", Kind.INTERMEDIATE, """
Y[i,r] = xhat[i,r]*gamma[r] + beta[r]
xhat.grad[i,r] += Y.grad[i,r]*gamma[r]
gamma.grad[r] += sum(Y.grad[i,r]*xhat[i,r] for i in n)
beta.grad[r] += sum(Y.grad[i,r] for i in n)
""")  # fmt: skip

ROOT_MEAN_SQUARE = quantity("rms", r"\mathrm{rms}", "root mean square of the row", "行均方根", Kind.INTERMEDIATE, """
rms[i] = sqrt(mean(X[i,r]**2 for r in d) + eps)
""", folded=True)  # fmt: skip
RESCALED = quantity("xhat", r"\hat X", "rows divided by their root mean square", "除以均方根后的行", Kind.INTERMEDIATE, """
xhat[i,r] = X[i,r]/rms[i]
X.grad[i,r] += (xhat.grad[i,r] - xhat[i,r]*mean(xhat.grad[i,q]*xhat[i,q] for q in d))/rms[i]
""")  # fmt: skip

NORM = group("norm", SCALE, SHIFT, MEAN, VARIANCE, DEVIATION, NORMALISED, SCALED)
RMS_NORM = group("RMS norm", SCALE, ROOT_MEAN_SQUARE, RESCALED, SCALED)


def norm_definitions(config: NormConfig, path: str, X: str, layer: int | None = None) -> Instance:
    """The placed norm at ``path`` that reads the rows ``X``; its output is ``path.Y``."""
    if config.kind == "rmsnorm":
        return place(RMS_NORM, path, layer=layer, X=X, beta=None)
    return place(NORM, path, layer=layer, X=X)


def build_norm(d: int, config: NormConfig, at: Place) -> LayerNorm | RMSNorm:
    """The module of a norm over rows of ``d`` coordinates."""
    return RMSNorm(d, config.eps, at) if config.kind == "rmsnorm" else LayerNorm(d, config.eps, at)


class LayerNorm(nn.Module):
    """Normalises each row to mean 0 and variance near 1, then scales and shifts each coordinate.

    Source: Ba et al. 2016, Layer Normalization.
    """

    def __init__(self, d: int, eps: float, at: Place) -> None:
        super().__init__()
        self.at = at
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d))
        self.beta = nn.Parameter(torch.zeros(d))

    def forward(self, X: Float[Tensor, "b i r"], say: Say) -> Float[Tensor, "b i r"]:
        """``X (b, i, r)`` to ``Y (b, i, r)``."""
        mu = say(MEAN, X.mean(-1), self.at)
        var = say(VARIANCE, ((X - mu[..., None]) ** 2).mean(-1), self.at)
        sd = say(DEVIATION, torch.sqrt(var + self.eps), self.at)
        xhat = say(NORMALISED, (X - mu[..., None]) / sd[..., None], self.at)
        return say(SCALED, xhat * self.gamma + self.beta, self.at)


class RMSNorm(nn.Module):
    """Divides each row by its root mean square, then scales each coordinate; the mean stays.

    Source: Zhang and Sennrich 2019, Root Mean Square Layer Normalization.
    """

    def __init__(self, d: int, eps: float, at: Place) -> None:
        super().__init__()
        self.at = at
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d))

    def forward(self, X: Float[Tensor, "b i r"], say: Say) -> Float[Tensor, "b i r"]:
        """``X (b, i, r)`` to ``Y (b, i, r)``."""
        rms = say(ROOT_MEAN_SQUARE, torch.sqrt((X**2).mean(-1) + self.eps), self.at)
        xhat = say(RESCALED, X / rms[..., None], self.at)
        return say(SCALED, xhat * self.gamma, self.at)
