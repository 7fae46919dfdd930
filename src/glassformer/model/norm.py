"""LayerNorm over the coordinates of one row.

| symbol | axes | |
|---|---|---|
| ``X`` | ``(b, i, r)`` | what comes in |
| ``mu``, ``var``, ``sd`` | ``(b, i)`` | mean, population variance (divided by ``d``), root of ``var + eps`` |
| ``xhat`` | ``(b, i, r)`` | normalised row |
| ``gamma``, ``beta`` | ``(r)`` | learned scale and shift |
| ``Y`` | ``(b, i, r)`` | what goes out |
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glassformer.notation import Kind, Place, Say, group, quantity

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

NORM = group("norm", SCALE, SHIFT, MEAN, VARIANCE, DEVIATION, NORMALISED, SCALED)


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
