"""The derivative of a residual block: the identity plus that of the branch, and what this does not promise.

Vectors are rows, so a small change ``dR`` goes forward as ``dR (I + J)`` and a gradient comes back as ``g (I + J)^T``.
Books that use columns write the transpose of both; one line below shows the step from one to the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glassformer.notation import Kind, Program, build_program, group, place, quantity
from glassformer.notation.lemma import Lemma, Operands, Premise
from glassformer.notation.operands import Array
from glassformer.notation.steps import Step

from ..activation import ACTIVATIONS
from ..block import FEED_FORWARD_RESIDUAL
from ..feedforward import FIRST_PROJECTION, SECOND_PROJECTION

STREAM = quantity("R", "R", "stream before the branch", "分支之前的流", Kind.INTERMEDIATE, "R[i,r]")
BRANCH = quantity("J", "J_F", "derivative of the branch, in rows", "分支的导数（按行）", Kind.INTERMEDIATE, """
J[i,q,r] = sum(W_1[q,f]*(2*B[i,f] if B[i,f] > 0 else 0)*W_2[f,r] for f in d_ff)
""")  # fmt: skip
COLUMNS = quantity("J_C", "J_C", "the same in columns", "同一导数（按列）", Kind.INTERMEDIATE, """
J_C[i,r,q] = J[i,q,r]
""")  # fmt: skip

DERIVATIVES = group("derivatives of the branch", BRANCH, COLUMNS)


def program() -> Program:
    """The model's feed-forward network, with a squared ReLU, on its residual stream, without a norm."""
    parts = [
        place(group("stream", STREAM), "in"),
        place(FIRST_PROJECTION, "ffn", X="in.R"),
        place(ACTIVATIONS["relu2"].definitions, "ffn", B="ffn.B"),
        place(SECOND_PROJECTION, "ffn", C="ffn.C"),
        place(FEED_FORWARD_RESIDUAL, "out", R="in.R", F="ffn.F"),
        place(DERIVATIVES, "out", W_1="ffn.W_1", W_2="ffn.W_2", B="ffn.B"),
    ]
    return build_program(parts, {"n": 3, "d": 4, "d_ff": 5, "H": 1})


def _opposite(values: Mapping[str, Array], rng: np.random.Generator) -> Operands:
    n, d, _ = values["J"].shape
    return {"J": np.broadcast_to(-np.eye(d), (n, d, d)).copy()}


OPPOSITE = Premise("opposite", "the branch is F(x) = −x", "分支是 F(x) = −x", _opposite)

_SAME = "(1 if r == q else 0)"

JACOBIAN = Lemma(
    "residual-jacobian", "the derivative of a residual block is I + J", "残差块的导数是 I + J", "8.3", program, "i q r",
    (
        Step("", "differentiate the sum, the branch opened", "对和求导，并展开分支"),
        Step(
            f"{_SAME} + sum(W_1[q,f]*(2*B[i,f] if B[i,f] > 0 else 0)*W_2[f,r] for f in d_ff)",
            "the stream passes itself on; through the branch a coordinate q acts by W_1, the slope of the activation at B, "
            "and W_2",
            "流原样传过；经过分支时，坐标 q 依次通过 W_1、激活在 B 处的斜率和 W_2 起作用",
            ("B",),
        ),
        Step(f"{_SAME} + J[i,q,r]", "the second term is the derivative of the branch", "第二项就是分支的导数", ("J",)),
        Step(
            f"{_SAME} + J_C[i,r,q]",
            "the same with columns: the identity is its own transpose, J becomes its transpose",
            "换成列向量记号：单位阵不变，J 换成转置",
            ("J_C",),
        ),
    ),
    derivative=("X", "R[i,q]"),
)  # fmt: skip

GRADIENT = Lemma(
    "residual-gradient", "one part of the gradient does not pass the branch", "有一份梯度不经过分支", "8.3", program, "i q",
    (
        Step(
            f"sum(X.grad[i,r]*({_SAME} + J[i,q,r]) for r in d)",
            "the chain rule over the coordinates after the block",
            "对块输出各坐标使用链式法则",
        ),
        Step(
            "X.grad[i,q] + sum(X.grad[i,r]*J[i,q,r] for r in d)",
            "the first sum keeps r = q: the gradient itself, whatever the branch does",
            "第一个和只留下 r = q：梯度本身，与分支无关",
        ),
    ),
)  # fmt: skip

LOST = Lemma(
    "residual-can-lose", "which promises nothing: F(x) = −x loses everything", "但这不是保证：F(x) = −x 会丢掉一切", "8.3",
    program, "i q",
    (
        Step(
            "X.grad[i,q] + sum(X.grad[i,r]*J[i,q,r] for r in d)",
            "the gradient before the block",
            "块之前的梯度",
        ),
        Step("0", "J is −I, so the two parts cancel", "J 是 −I，两份相互抵消", ("opposite",)),
    ),
    (OPPOSITE,),
)  # fmt: skip

RESIDUAL_LEMMAS: tuple[Lemma, ...] = (JACOBIAN, GRADIENT, LOST)
