"""Derivations of the feed-forward network: activations, the gate, the projections."""

from __future__ import annotations

from glassformer.notation import Quantity
from glassformer.notation.chain import Chain, Step

from ..activation import GELU, GELU_TANH, RELU, SILU, SQUARED_RELU
from ..feedforward import BEFORE, GATE, GATED, TRANSFORMED
from .steps import CELL_BY_CELL, ONE_COORDINATE, bias

ACTIVATIONS = (
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
        "gelu-tanh", "gradient through GELU with tanh", "穿过 tanh 近似 GELU 的梯度", "10.8", (GELU_TANH,), "B",
        (
            Step(
                "C.grad[i,f]*((1 + tau[i,f])/2"
                " + B[i,f]*((1 - tau[i,f]**2)*sqrt(2/pi)*(1 + 0.044715*3*B[i,f]**2))/2)",
                "cell by cell; τ is the tanh, whose derivative is 1 − τ²",
                "逐元素进行；τ 就是 tanh，其导数是 1 − τ²",
                ("tau",),
            ),
            Step("", "collect the constants", "合并常数"),
        ),
    ),
    Chain(
        "silu", "gradient through SiLU", "穿过 SiLU 的梯度", "10.8", (SILU,), "B",
        (
            Step(
                "C.grad[i,f]*(sigma[i,f] + B[i,f]*(sigma[i,f]*(1 - sigma[i,f])))",
                "cell by cell; σ is the sigmoid, whose derivative is σ(1 − σ)",
                "逐元素进行；σ 就是 Sigmoid，其导数是 σ(1 − σ)",
                ("sigma",),
            ),
            Step("", "take out the common factor", "提出公因子"),
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
        "relu2", "gradient through squared ReLU", "穿过平方 ReLU 的梯度", "10.8", (SQUARED_RELU,), "B",
        (
            Step(
                "",
                "cell by cell; the slope of x² is 2x above 0, and 0 below and at 0",
                "逐元素进行；大于 0 处 x² 的斜率为 2x，小于等于 0 处为 0",
            ),
        ),
    ),
)  # fmt: skip

GATING = (
    Chain(
        "gated-activation", "the gate's side of the product", "乘积中门的一侧", "10.8", (GATED,), "C",
        (Step("", *CELL_BY_CELL),),
    ),
    Chain(
        "gated-rows", "the other side of the product", "乘积中被门控的一侧", "10.8", (GATED,), "B",
        (Step("", *CELL_BY_CELL),),
    ),
)  # fmt: skip


def _first(kind: str, home: Quantity, rows: str, weight: str, offset: str, en: str, zh: str) -> tuple[Chain, ...]:
    """The three operands of a projection into the network: ``rows`` is its output's name in the text of steps."""
    return (
        Chain(
            f"ffn-{kind}-weights", f"gradient of the {en} projection", f"{zh}投影参数的梯度", "10.8", (home,), weight,
            (
                Step(
                    f"sum({rows}.grad[i,f]*sum(X[i,q]*(1 if q == r else 0) for q in d) for i in n)",
                    "every row uses this weight, and only for coordinate f",
                    "每一行都用到这个参数，且只用于坐标 f",
                ),
                Step("", *ONE_COORDINATE),
            ),
        ),
        Chain(
            f"ffn-{kind}-input", f"what the {en} projection sends back to its rows", f"{zh}投影传回各行的梯度", "10.8",
            (home,), "X",
            (
                Step(
                    f"sum({rows}.grad[i,f]*sum((1 if q == r else 0)*{weight}[q,f] for q in d) for f in d_ff)",
                    "row i of the input becomes row i of the output, every coordinate f of it",
                    "输入的第 i 行只变成输出的第 i 行，影响其中每个坐标 f",
                ),
                Step("", *ONE_COORDINATE),
            ),
        ),
        bias(f"ffn-{kind}-bias", home, offset, f"gradient of the {en} bias", f"{zh}偏置的梯度", "10.8"),
    )  # fmt: skip


SECOND = (
    Chain(
        "ffn-second-weights", "gradient of the second projection", "第二投影参数的梯度", "10.8", (TRANSFORMED,), "W_2",
        (
            Step(
                "",
                "this weight multiplies coordinate f in every row, and adds to coordinate r alone",
                "这个参数在每一行乘坐标 f，只加到坐标 r",
            ),
        ),
    ),
    Chain(
        "ffn-inside", "what the second projection sends back", "第二投影传回的梯度", "10.8", (TRANSFORMED,), "C",
        (
            Step(
                "",
                "coordinate f stays in row i, and goes to every coordinate r with weight W_2",
                "坐标 f 留在第 i 行，以权重 W_2 进入每个坐标 r",
            ),
        ),
    ),
    bias("ffn-second-bias", TRANSFORMED, "b_2", "gradient of the second bias", "第二偏置的梯度", "10.8"),
)  # fmt: skip

FEED_FORWARD_CHAINS: tuple[Chain, ...] = (
    *SECOND,
    *GATING,
    *ACTIVATIONS,
    *_first("first", BEFORE, "B", "W_1", "b_1", "first", "第一"),
    *_first("gate", GATE, "B_G", "W_G", "b_G", "gate", "门"),
)
