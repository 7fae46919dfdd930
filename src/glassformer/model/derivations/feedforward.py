"""Derivations of the feed-forward network: the activation, and the projection before it."""

from __future__ import annotations

from glassformer.notation.chain import Chain, Step

from ..activation import GELU, RELU
from ..feedforward import BEFORE

FEED_FORWARD_CHAINS: tuple[Chain, ...] = (
    Chain(
        "gelu", "gradient through GELU", "穿过 GELU 的梯度", "10.8", (GELU,), "B",
        (
            Step(
                "C.grad[i,f]*((1 + erf(B[i,f]/sqrt(2)))/2"
                " + B[i,f]*(2/sqrt(pi)*exp(-(B[i,f]/sqrt(2))**2)/sqrt(2))/2)",
                "cell by cell; the derivative of erf(x) is 2/sqrt(pi) exp(-x^2)",
                "逐元素进行；erf(x) 的导数是 2/√π · exp(−x²)",
            ),
            Step("", "collect the constants", "合并常数"),
        ),
    ),
    Chain(
        "relu", "gradient through ReLU", "穿过 ReLU 的梯度", "10.8", (RELU,), "B",
        (
            Step(
                "",
                "cell by cell; the slope is 1 above 0 and 0 below, and at 0 the definition chooses 0",
                "逐元素进行；大于 0 处斜率为 1，小于 0 处为 0，等于 0 处按定义取 0",
            ),
        ),
    ),
    Chain(
        "ffn-first-weights", "gradient of the first projection", "第一投影参数的梯度", "10.8", (BEFORE,), "W_1",
        (
            Step(
                "sum(B.grad[i,f]*sum(X[i,q]*(1 if q == r else 0) for q in d) for i in n)",
                "every row uses this weight, and only for coordinate f",
                "每一行都用到这个参数，且只用于坐标 f",
            ),
            Step("", "of the sum over q only q = r is left", "对 q 的求和只剩 q = r"),
        ),
    ),
)  # fmt: skip
