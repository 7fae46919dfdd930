"""Derivations of the embedding: the rows that tokens and positions looked up."""

from __future__ import annotations

from glassformer.notation.chain import Chain, Step

from ..embedding import EMBEDDED
from ..head import TIED_WEIGHT

_FILTER = "a product with 1 or 0 keeps or drops a term", "乘 1 或 0 即保留或去掉一项"

EMBEDDING_CHAINS: tuple[Chain, ...] = (
    Chain(
        "embedding", "gradient of the embedding matrix", "输入嵌入矩阵的梯度", "10.9", (EMBEDDED,), "E",
        (
            Step(
                "sum(X.grad[i,r]*(1 if t[i] == w else 0) for i in n)",
                "a row of X copies the row of E that its token names, coordinate by coordinate",
                "X 的一行逐坐标照抄其词元对应的 E 的那一行",
            ),
            Step("", *_FILTER),
        ),
        # A tied output matrix is the one other reader that a decoder can have.
        intruder="U[r,w] = E[w,r]",
    ),
    Chain(
        "tied-embedding", "gradient of an embedding that is also the output matrix", "与输出矩阵共用的嵌入的梯度", "9.4",
        (EMBEDDED, TIED_WEIGHT), "E",
        (
            Step(
                "sum(X.grad[i,r]*(1 if t[i] == w else 0) for i in n) + U.grad[r,w]",
                "two readers: the rows that were looked up, coordinate by coordinate, and the output matrix, whose "
                "column w is row w of E; their contributions add up",
                "有两个读取者：被查到的行（逐坐标照抄），以及输出矩阵，它的第 w 列就是 E 的第 w 行；两份贡献相加",
            ),
            Step("", *_FILTER),
        ),
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
