"""Derivations of the embedding: the rows that tokens and positions looked up."""

from __future__ import annotations

from glassformer.notation.chain import Chain, Step

from ..embedding import EMBEDDED

_FILTER = "a product with 1 or 0 keeps or drops a term", "乘 1 或 0 即保留或去掉一项"

EMBEDDING_CHAINS: tuple[Chain, ...] = (
    Chain(
        "embedding", "gradient of the embedding matrix", "输入嵌入矩阵的梯度", "10.9", (EMBEDDED,), "E",
        (
            Step(
                "sum(X.grad[i,r]*(1 if t[i] == w else 0) for i in n)",
                "a row of X copies the row of E that its token names, coordinate by coordinate",
                "X 的一行逐坐标照抄其 Token 对应的 E 的那一行",
            ),
            Step("", *_FILTER),
        ),
        # A tied output matrix is the one other reader that a decoder can have.
        intruder="U[r,w] = E[w,r]",
    ),
    Chain(
        "positions", "gradient of the position vectors", "位置向量的梯度", "10.9", (EMBEDDED,), "P",
        (
            Step(
                "sum(X.grad[i,r]*(1 if pos[i] == s else 0) for i in n)",
                "a row of X adds the row of P of its position, coordinate by coordinate",
                "X 的一行逐坐标加上其位置对应的 P 的那一行",
            ),
            Step("", *_FILTER),
        ),
    ),
)  # fmt: skip
