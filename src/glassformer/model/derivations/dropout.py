"""Derivation of dropout: what was left out sends nothing back."""

from __future__ import annotations

from glassformer.notation.chain import Chain, Step

from ..dropout import COEFFICIENTS

DROPOUT_CHAINS: tuple[Chain, ...] = (
    Chain(
        "dropout-coefficients", "gradient of the coefficients through dropout", "混合系数穿过 Dropout 的梯度", "",
        (COEFFICIENTS.result,), "A",
        (
            Step(
                "A_D.grad[h,i,j]*(1/(1 - p_attn) if kept_A[h,i,j] else 0)",
                "cell by cell; a cell that is kept is divided by 1 - p, and one that is left out is 0 whatever it was",
                "逐元素进行；保留的元素除以 1 − p，被丢弃的元素无论原来是多少都变成 0",
            ),
            Step("", "a product with 0 is 0", "与 0 相乘得 0"),
        ),
    ),
)  # fmt: skip
