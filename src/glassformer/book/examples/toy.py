"""Chapter 11: the second row of the 24-parameter model, with every number that a pencil writes between its matrices."""

from __future__ import annotations

import numpy as np

from ...bilingual import words
from ...notation import Kind, group, quantity
from ..example import Example, small_program
from .shared import CONTENT, READ, SCORES_GRADIENT, WEIGHTED_MEAN

SECOND_ROW = Example(
    id="second-row",
    title=words("The second row, with nothing left out", "第二行，一步也不省"),
    program=small_program(
        group(
            "row",
            quantity("S", "s", "scores of the second row", "第二行的分数", Kind.INPUT, "S[j]"),
            CONTENT,
            quantity("W_O", "W_O", "output projection", "输出投影参数", Kind.PARAMETER, "W_O[e,r]"),
            quantity("x", "x", "the row itself", "这一行自己", Kind.INPUT, "x[r]"),
            quantity("U", "U", "vocabulary output matrix", "词表输出矩阵", Kind.PARAMETER, "U[r,w]"),
            quantity("y", "y", "id of the target", "目标编号", Kind.INPUT, "y"),
            # A power by itself, which a softmax never is: large scores would overflow. Here they are small.
            quantity("euler", "e", "Euler's number", "自然常数", Kind.INPUT, "euler"),
            quantity("power", "e^{s}", "powers of the scores", "分数的指数", Kind.INTERMEDIATE, "power[j] = euler**S[j]"),
            quantity("powers", r"\Sigma_s", "their sum", "它们的和", Kind.INTERMEDIATE, """
            powers = sum(power[j] for j in n_k)
            """),
            quantity("A", "a", "shares", "份额", Kind.COEFFICIENT, "A[j] = power[j]/powers"),
            READ,
            quantity("hidden", "h", "hidden row", "隐藏行", Kind.INTERMEDIATE, """
            hidden[r] = x[r] + sum(Z[e]*W_O[e,r] for e in d_v)
            """),
            quantity("logits", r"\ell", "scores of the vocabulary", "词表分数", Kind.INTERMEDIATE, """
            logits[w] = sum(hidden[r]*U[r,w] for r in d)
            """),
            quantity("chance", r"e^{\ell}", "their powers", "它们的指数", Kind.INTERMEDIATE, "chance[w] = euler**logits[w]"),
            quantity("chances", r"\Sigma_\ell", "sum of the powers", "指数之和", Kind.INTERMEDIATE, """
            chances = sum(chance[w] for w in N)
            """),
            quantity("p", "p", "probabilities", "概率", Kind.PROBABILITY, "p[w] = chance[w]/chances"),
            quantity("L", "L", "loss", "损失", Kind.LOSS, "L = -ln(p[y])"),
            quantity("back_l", r"\bar\ell", "gradient of the scores", "词表分数的梯度", Kind.GRADIENT, """
            back_l[w] = p[w] - (1 if w == y else 0)
            """),
            quantity("back_h", r"\bar h", "gradient of the hidden row", "隐藏行的梯度", Kind.GRADIENT, """
            back_h[r] = sum(back_l[w]*U[r,w] for w in N)
            """),
            quantity("back_Z", r"\bar z", "gradient of what was read", "读到内容的梯度", Kind.GRADIENT, """
            back_Z[e] = sum(back_h[r]*W_O[e,r] for r in d)
            """),
            quantity("back_A", r"\bar a", "gradient of the shares", "份额的梯度", Kind.GRADIENT, """
            back_A[j] = sum(back_Z[e]*V[j,e] for e in d_v)
            """),
            WEIGHTED_MEAN,
            SCORES_GRADIENT,
        ),
        {"n_k": 2, "d": 2, "d_v": 2, "N": 3},
    ),
    inputs={
        "ex.S": np.array([1, 0]), "ex.V": np.eye(2), "ex.W_O": np.eye(2), "ex.x": np.array([0, 1]),
        "ex.U": np.array([[1, 0, -1], [0, 1, 0]]), "ex.y": np.array(2), "ex.euler": np.array(np.e),
    },
    show=(
        "ex.S", "ex.V", "ex.W_O", "ex.x", "ex.U", "ex.y", "ex.power", "ex.powers", "ex.A", "ex.Z", "ex.hidden", "ex.logits",
        "ex.chance", "ex.chances", "ex.p", "ex.L", "ex.back_l", "ex.back_h", "ex.back_Z", "ex.back_A", "ex.average",
        "ex.back_S",
    ),
    labels={"N": ("A", "B", "C")},
)  # fmt: skip

EXAMPLES = (SECOND_ROW,)
