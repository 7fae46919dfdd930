"""Reasons and shapes that several derivations share."""

from __future__ import annotations

from glassformer.notation import Quantity
from glassformer.notation.chain import Chain, Step

ONE_COORDINATE = ("of the sum over q only q = r is left", "对 q 的求和只剩 q = r")
SCALE_OUT = ("the common divisor leaves the sum", "公共的除数提到和号外")
NO_SCORE = (
    "where reading is not allowed the score is not used, and its gradient is 0",
    "不允许读取处分数没有被使用，其梯度为 0",
)
ADDED = (
    "each cell of what is added is one term of one cell of the sum, with factor 1",
    "被加的每个元素只是和中一个元素的一项，系数为 1",
)
CELL_BY_CELL = ("cell by cell: no other cell reads this one", "逐元素进行：没有别的元素读取它")


def bias(id: str, home: Quantity, target: str, en: str, zh: str, source: str) -> Chain:
    """Of a bias: one number per coordinate of ``home``, the same in every row."""
    step = Step(
        "",
        "the bias is one term of its own coordinate, with factor 1, in every row",
        "偏置是每一行中自己那个坐标的一项，系数为 1",
    )
    return Chain(id, en, zh, source, (home,), target, (step,))
