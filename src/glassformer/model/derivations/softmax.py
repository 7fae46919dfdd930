"""What softmax keeps of scores: their differences, as ratios; and nothing of what is added to a whole row.

Both speak of the coefficients as the model defines them, over scores that may be any finite numbers.
"""

from __future__ import annotations

from types import MappingProxyType

from glassformer.notation import Kind, Program, build_program, group, place, quantity
from glassformer.notation.lemma import Lemma
from glassformer.notation.steps import Step

from ..attention import COEFFICIENTS
from ..mask import ALLOWED

READABLE = quantity(ALLOWED.name, ALLOWED.symbol, ALLOWED.en, ALLOWED.zh, Kind.INPUT, "allowed[i,j]")
SCORE = quantity("S", "S", "matching scores", "匹配分数", Kind.INTERMEDIATE, "S[h,i,j]")
SHIFT = quantity(
    "shift", "c", "what is added to the scores of a row", "一行各分数同加的数", Kind.INTERMEDIATE, "shift[h,i]"
)
SHIFTED = quantity(
    "S", "S'", "shifted scores", "平移后的分数", Kind.INTERMEDIATE, "S[h,i,j] = before[h,i,j] + shift[h,i]"
)

ROW = group("coefficients of a row", READABLE, SCORE, COEFFICIENTS)
SHIFTED_ROW = group("coefficients of the shifted row", SHIFT, SHIFTED, COEFFICIENTS)


def program() -> Program:
    """Softmax as attention takes it, twice: of scores, and of the same scores with a number added to each row."""
    parts = [
        place(ROW, "row", n_k="n"),
        place(SHIFTED_ROW, "moved", before="row.S", allowed="row.allowed", n_k="n"),
    ]
    return build_program(parts, {"n": 5, "H": 2})


_SUM = "sum(exp(S[h,i,m]) for m in n_k)"

RATIO = Lemma(
    "softmax-ratio", "the ratio of two coefficients is e to the difference of their scores",
    "两个系数之比等于 e 的分数差次方", "6.2", program, "h i j m",
    (
        Step(
            "A[h,i,j]/A[h,i,m]",
            "how many times as much is mixed in of j as of m, which the row may read",
            "第 j 项混入的份量是第 m 项（该行允许读取）的多少倍",
        ),
        Step(
            "exp(S[h,i,j])/exp(S[h,i,m])",
            "both are exponentials over the same sum of the row, which cancels: A is the softmax of S",
            "两者都是指数除以同一个行和，行和约去：A 是 S 的 Softmax",
            ("A",),
        ),
        Step(
            "exp(S[h,i,j] - S[h,i,m])",
            "a quotient of exponentials: what else stands in the row does not matter",
            "指数之商：该行其余分数无关紧要",
        ),
    ),
)  # fmt: skip

SHIFT_CHANGES_NOTHING = Lemma(
    "softmax-shift", "a number added to every score of a row changes nothing", "一行各分数同加一数，系数不变", "6.2",
    program, "h i j",
    (
        Step("A_2[h,i,j]", "a coefficient of the shifted row", "平移后该行的一个系数"),
        Step(
            "exp(S_2[h,i,j])/sum(exp(S_2[h,i,m]) for m in n_k)",
            "softmax of the shifted row, by definition",
            "按定义，是平移后该行的 Softmax",
            ("A_2",),
        ),
        Step(
            "exp(S[h,i,j] + shift[h,i])/sum(exp(S[h,i,m] + shift[h,i]) for m in n_k)",
            "each score of the row is shifted by the same number",
            "该行每个分数都加上同一个数",
            ("S_2",),
        ),
        Step(
            f"exp(shift[h,i])*exp(S[h,i,j])/(exp(shift[h,i])*{_SUM})",
            "the exponential of a sum is a product; the factor of the row leaves the sum",
            "和的指数是积；与求和无关的因子提到和号外",
        ),
        Step(
            f"exp(S[h,i,j])/{_SUM}",
            "the factor cancels. Minus the largest score is such a number: with it no exponential overflows",
            "因子约去。取“减去最大分数”，指数便不会溢出",
        ),
        Step("A[h,i,j]", "softmax of the row, by definition", "按定义，是该行的 Softmax", ("A",)),
    ),
    names=MappingProxyType({"A": "row.A", "S": "row.S", "A_2": "moved.A", "S_2": "moved.S"}),
)  # fmt: skip

SOFTMAX_LEMMAS: tuple[Lemma, ...] = (RATIO, SHIFT_CHANGES_NOTHING)
