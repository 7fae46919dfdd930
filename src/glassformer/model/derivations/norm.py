"""Derivations of the norms: through the mean, the variance and the deviation of a row, or its root mean square."""

from __future__ import annotations

from glassformer.notation.chain import Chain, Step

from ..norm import DEVIATION, MEAN, NORMALISED, RESCALED, ROOT_MEAN_SQUARE, SCALED, VARIANCE

_D_MU = "((1 if r == q else 0) - 1/d)"

INNER = (
    Chain(
        "norm-mean", "the mean by one coordinate", "均值对一个坐标的导数", "10.8", (MEAN,), "X",
        (Step("1/d", "dμ = mean(dx): every coordinate has the same share", "dμ = mean(dx)：每个坐标份额相同"),),
        partial="q",
    ),
    Chain(
        "norm-variance", "the variance by one coordinate", "方差对一个坐标的导数", "10.8", (VARIANCE,), "X",
        (
            Step(
                f"mean(2*(X[i,r] - mu[i])*{_D_MU} for r in d)",
                "dv = mean(2(x − μ)(dx − dμ)) with dμ = mean(dx); any number would do for μ here, as dx − dμ sums to 0",
                "dv = mean(2(x − μ)(dx − dμ))，其中 dμ = mean(dx)；这里 μ 换成任何数都成立，因为 dx − dμ 总和为 0",
            ),
            Step(
                "2*(X[i,q] - mu[i])/d",
                "the deviations from the mean average to 0, so dμ drops out of dv",
                "对均值的偏差平均为 0，所以 dv 中的 dμ 消去",
                ("mu",),
            ),
        ),
        partial="q",
    ),
    Chain(
        "norm-deviation", "the deviation by one coordinate", "标准差对一个坐标的导数", "10.8", (DEVIATION,), "X",
        (
            Step(
                f"mean(2*(X[i,r] - mu[i])*{_D_MU} for r in d)/(2*sd[i])",
                "s is the root of v + ε, with v and μ those of the row: ds = dv/(2s)",
                "s 是 v + ε 的平方根，v 与 μ 属于该行：ds = dv/(2s)",
                ("mu", "var", "sd"),
            ),
            Step(
                "(X[i,q] - mu[i])/(d*sd[i])",
                "the deviations from the mean average to 0, and 2 cancels",
                "对均值的偏差平均为 0，2 约去",
                ("mu",),
            ),
        ),
        partial="q",
    ),
    Chain(
        "rms-root", "the root mean square by one coordinate", "均方根对一个坐标的导数", "10.8", (ROOT_MEAN_SQUARE,), "X",
        (
            Step(
                "mean(2*X[i,r]*(1 if r == q else 0) for r in d)/(2*rms[i])",
                "the derivative of a root is 1 over twice the root, which is rms",
                "平方根的导数是 1 除以两倍的根，而这个根就是 rms",
                ("rms",),
            ),
            Step("X[i,q]/(d*rms[i])", "only r = q is left, and 2 cancels", "只剩 r = q，2 约去"),
        ),
        partial="q",
    ),
)  # fmt: skip

_DIRECT = "sum(xhat.grad[i,q]*((1 if q == r else 0) - 1/d) for q in d)/sd[i]"
_D_VAR = "mean(2*(X[i,q] - mu[i])*((1 if q == r else 0) - 1/d) for q in d)"
_THROUGH_SD = "sum(xhat.grad[i,q]*(X[i,q] - mu[i]) for q in d)/sd[i]**2"

NORM_CHAINS: tuple[Chain, ...] = (
    *INNER,
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
        "rms-input", "gradient through RMSNorm", "穿过 RMSNorm 的梯度", "10.8", (RESCALED,), "X",
        (
            Step(
                "sum(xhat.grad[i,q]*(1 if q == r else 0) for q in d)/rms[i]"
                " - sum(xhat.grad[i,q]*X[i,q] for q in d)/rms[i]**2*(2*X[i,r]/d/(2*rms[i]))",
                "row by row; rms is the root mean square of the row: d rms = mean(2x dx)/(2 rms), "
                "put into the rule for quotients",
                "逐行进行；rms 是该行的均方根：d rms = mean(2x dx)/(2 rms)，代入商的求导法则",
                ("rms",),
            ),
            Step(
                "xhat.grad[i,r]/rms[i] - mean(xhat.grad[i,q]*X[i,q] for q in d)/rms[i]**2*(X[i,r]/rms[i])",
                "the first sum keeps q = r; a sum divided by d is a mean",
                "第一个和只留下 q = r；和除以 d 就是平均",
            ),
            Step("", "x/rms is the normalised row", "x/rms 就是标准化后的行", ("xhat",)),
        ),
    ),
    Chain(
        "norm-rows", "gradient of the normalised rows", "标准化后各行的梯度", "10.8", (SCALED,), "xhat",
        (Step("", "coordinate r of a row is multiplied by γ, and nothing else", "一行的坐标 r 只被乘以 γ"),),
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
