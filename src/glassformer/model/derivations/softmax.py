"""What every softmax has: shares that sum to one, ratios that depend on differences, no change under a common shift."""

from __future__ import annotations

from glassformer.notation import Kind, Program, build_program, group, place, quantity
from glassformer.notation.lemma import Lemma
from glassformer.notation.steps import Step

from ..attention import COEFFICIENTS
from ..mask import ALLOWED

# The gradient lines beside the definition speak of it; every score here is of a position that may be read.
READABLE = quantity(ALLOWED.name, ALLOWED.symbol, ALLOWED.en, ALLOWED.zh, Kind.INPUT, "allowed[i,j]")
FINITE = quantity("S", "S", "scores of what may be read", "允许读取处的分数", Kind.INTERMEDIATE, "S[h,i,j]")
COMMON = quantity("plus", "c", "added to every score of a row", "一行的分数同加的数", Kind.INTERMEDIATE, "plus[h,i]")
TOTAL = quantity("total", r"\Sigma", "logarithm of the row's sum", "行和的对数", Kind.INTERMEDIATE, """
total[h,i] = ln(sum(exp(S[h,i,m]) for m in n_k))
""")  # fmt: skip

ROW = group("softmax", READABLE, FINITE, COMMON, TOTAL, COEFFICIENTS)


def program() -> Program:
    """Two heads, three rows, scores of five positions each."""
    return build_program([place(ROW, "attn")], {"n": 3, "n_k": 5, "H": 2})


SUM = Lemma(
    "softmax-sum", "the shares of a row sum to one", "一行份额之和为一", "6.2", program, "h i",
    (
        Step("sum(A[h,i,j] for j in n_k)", "all shares of a row", "一行的全部份额"),
        Step(
            "sum(exp(S[h,i,j])/sum(exp(S[h,i,m]) for m in n_k) for j in n_k)",
            "softmax of the row, by definition",
            "按定义，是该行的 Softmax",
            ("A",),
        ),
        Step("1", "what divides is the sum of what is divided", "分母正是各分子之和"),
    ),
)  # fmt: skip

RATIO = Lemma(
    "softmax-ratio", "the ratio of two shares depends on the difference of their scores", "两个份额之比只取决于分数之差",
    "6.2", program, "h i j m",
    (
        Step("ln(A[h,i,j]) - ln(A[h,i,m])", "the logarithm of the ratio", "比值的对数"),
        Step(
            "(S[h,i,j] - total[h,i]) - (S[h,i,m] - total[h,i])",
            "a share is a power of e over the sum of its row, so its logarithm is the score minus that of the sum",
            "份额是指数除以行和，所以它的对数是分数减去行和的对数",
            ("A",),
        ),
        Step(
            "S[h,i,j] - S[h,i,m]",
            "the row's sum cancels: the ratio is e to the power of the difference",
            "行和消去：比值就是 e 的“分数之差”次幂",
        ),
    ),
)  # fmt: skip

SHIFT = Lemma(
    "softmax-shift", "a number added to all scores of a row changes no share", "一行分数同加一个数，份额不变", "6.2",
    program, "h i j",
    (
        Step(
            "exp(S[h,i,j] + plus[h,i])/sum(exp(S[h,i,m] + plus[h,i]) for m in n_k)",
            "softmax of the shifted row",
            "平移之后的 Softmax",
        ),
        Step(
            "exp(S[h,i,j])/sum(exp(S[h,i,m]) for m in n_k)",
            "a power of a sum is a product of powers: one factor stands above and below, and cancels",
            "和的指数是指数之积：分子分母有同一个因子，约去",
        ),
        Step("A[h,i,j]", "the share as it was", "正是原来的份额", ("A",)),
    ),
)  # fmt: skip

SOFTMAX_LEMMAS: tuple[Lemma, ...] = (SUM, RATIO, SHIFT)
