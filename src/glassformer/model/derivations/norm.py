"""Derivations of LayerNorm: through the mean, the variance and the deviation of a row."""

from __future__ import annotations

from glassformer.notation.chain import Chain, Step

from ..norm import NORMALISED, SCALED

_DIRECT = "sum(xhat.grad[i,q]*((1 if q == r else 0) - 1/d) for q in d)/sd[i]"
_D_VAR = "mean(2*(X[i,q] - mu[i])*((1 if q == r else 0) - 1/d) for q in d)"
_THROUGH_SD = "sum(xhat.grad[i,q]*(X[i,q] - mu[i]) for q in d)/sd[i]**2"

NORM_CHAINS: tuple[Chain, ...] = (
    Chain(
        "norm-input", "gradient through LayerNorm", "穿过 LayerNorm 的梯度", "10.8", (NORMALISED,), "X",
        (
            Step(
                f"{_DIRECT} - {_THROUGH_SD}*({_D_VAR}/(2*sd[i]))",
                "row by row; μ, v and s are mean, variance and deviation of the row: "
                "dμ = mean(dx), dv = mean(2(x − μ)(dx − dμ)), ds = dv/(2s), put into the rule for quotients",
                "逐行进行；μ、v、s 是该行的均值、方差、标准差："
                "dμ = mean(dx)，dv = mean(2(x − μ)(dx − dμ))，ds = dv/(2s)，代入商的求导法则",
                ("mu", "var", "sd"),
            ),
            Step(
                f"{_DIRECT} - {_THROUGH_SD}*(2*(X[i,r] - mu[i])/d/(2*sd[i]))",
                "the deviations from the mean average to 0, so dμ drops out of dv",
                "对均值的偏差平均为 0，所以 dv 中的 dμ 消去",
                ("mu",),
            ),
            Step(
                "(xhat.grad[i,r] - mean(xhat.grad[i,q] for q in d))/sd[i]"
                " - mean(xhat.grad[i,q]*(X[i,q] - mu[i]) for q in d)/sd[i]**2*((X[i,r] - mu[i])/sd[i])",
                "the first sum keeps q = r and a mean; a sum divided by d is a mean",
                "第一个和留下 q = r 与一个平均；和除以 d 就是平均",
            ),
            Step("", "(x − μ)/s is the normalised row", "(x − μ)/s 就是标准化后的行", ("xhat",)),
        ),
    ),
    Chain(
        "norm-scale", "gradient of the norm's scale", "归一化缩放的梯度", "10.8", (SCALED,), "gamma",
        (Step("", "γ multiplies coordinate r of every row", "γ 乘每一行的坐标 r"),),
    ),
    Chain(
        "norm-shift", "gradient of the norm's shift", "归一化平移的梯度", "10.8", (SCALED,), "beta",
        (Step("", "β is added to coordinate r of every row", "β 加到每一行的坐标 r"),),
    ),
)  # fmt: skip
