"""Chapter 13: attention is not linear; a shortcut that pays in the loss."""

from __future__ import annotations

import numpy as np

from ...bilingual import words
from ...notation import Kind, Quantity, group, quantity
from ..example import Curve, Example, Slider, small_program


def _attention(name: str, en: str, zh: str) -> tuple[Quantity, ...]:
    """Scores, coefficients and output of one head whose projections are all the identity, for the rows ``name``."""
    return (
        quantity(f"S_{name}", rf"S({name})", f"scores of {en}", f"{zh}的分数", Kind.INTERMEDIATE, f"""
        S_{name}[i,j] = sum({name}[i,r]*{name}[j,r] for r in d)
        """),
        quantity(f"A_{name}", rf"A({name})", f"coefficients of {en}", f"{zh}的系数", Kind.COEFFICIENT, f"""
        A_{name}[i,j] = exp(S_{name}[i,j])/sum(exp(S_{name}[i,m]) for m in n_k)
        """),
        quantity(f"Z_{name}", rf"f({name})", f"output of {en}", f"{zh}的输出", Kind.INTERMEDIATE, f"""
        Z_{name}[i,r] = sum(A_{name}[i,j]*{name}[j,r] for j in n_k)
        """),
    )  # fmt: skip


NONLINEAR = Example(
    id="nonlinear",
    title=words("Twice the input is not twice the output", "输入加倍，输出并不加倍"),
    program=small_program(
        group(
            "nonlinear",
            quantity("X", "X", "input", "输入", Kind.INPUT, "X[i,r]"),
            quantity("scale", "c", "factor", "倍数", Kind.INPUT, "scale"),
            quantity("Y", "cX", "input times the factor", "乘以倍数的输入", Kind.INTERMEDIATE, "Y[i,r] = scale*X[i,r]"),
            *_attention("X", "the input", "输入"),
            *_attention("Y", "the scaled input", "加倍输入"),
            quantity("wanted", "cf(X)", "what a linear map would give", "线性映射会给出的", Kind.INTERMEDIATE, """
            wanted[i,r] = scale*Z_X[i,r]
            """),
            quantity("apart", r"\lVert f(cX)-cf(X)\rVert", "how far apart", "相差", Kind.INTERMEDIATE, """
            apart = sqrt(sum((Z_Y[i,r] - wanted[i,r])**2 for i in n for r in d))
            """),
        ),
        {"n": 2, "d": 2},
        n_k="n",
    ),
    inputs={"ex.X": np.array([[1, 0], [0.5, 1]]), "ex.scale": np.array(2)},
    show=("ex.X", "ex.scale", "ex.A_X", "ex.A_Y", "ex.Z_Y", "ex.wanted", "ex.apart"),
    sliders=(Slider(("ex.scale", ()), 0, 4, 0.1),),
    curves=(Curve(words("departure from linearity", "偏离线性多少"), 0, (("ex.apart", ()),)),),
)  # fmt: skip

SHORTCUT = Example(
    id="shortcut",
    title=words("A mark that gives the answer away in training", "训练时泄露答案的记号"),
    program=small_program(
        group(
            "shortcut",
            quantity("weight", "w", "weight on the mark", "记号的权重", Kind.INPUT, "weight"),
            quantity("sense", "v", "weight on what is meant", "真正线索的权重", Kind.INPUT, "sense"),
            quantity("clue", "x", "the clue, often blurred", "线索（常常模糊）", Kind.INPUT, "clue[i]"),
            quantity("mark", "m", "the mark in training", "训练时的记号", Kind.INPUT, "mark[i]"),
            quantity("other", "m'", "the mark later", "以后的记号", Kind.INPUT, "other[i]"),
            quantity("answer", "y", "right answer, plus or minus one", "正确答案（正负一）", Kind.INPUT, "answer[i]"),
            quantity("margin", r"\ell", "score of the right answer over the wrong one", "正确答案高出的分数",
                     Kind.INTERMEDIATE, """
            margin[i] = answer[i]*(sense*clue[i] + weight*mark[i])
            """),
            quantity("pair", r"(0,-\ell)", "scores of both answers", "两个答案的分数", Kind.INTERMEDIATE, """
            pair[i,w] = -w*margin[i]
            """),
            quantity("L", "L", "loss in training", "训练损失", Kind.LOSS, """
            L = mean(ln(sum(exp(pair[i,w]) for w in N)) for i in n)
            """),
            quantity("right", r"\mathrm{acc}", "share right in training", "训练时答对的比例", Kind.INTERMEDIATE, """
            right = mean(1 if margin[i] > 0 else 0 for i in n)
            """),
            quantity("later", r"\mathrm{acc}'", "share right once the mark lies", "记号失灵后答对的比例",
                     Kind.INTERMEDIATE, """
            later = mean(1 if answer[i]*(sense*clue[i] + weight*other[i]) > 0 else 0 for i in n)
            """),
        ),
        {"n": 6, "N": 2},
    ),
    inputs={
        "ex.weight": np.array(1), "ex.sense": np.array(1),
        "ex.clue": np.array([1, 0.5, 2, -1, -0.5, -2]), "ex.mark": np.array([1, 1, 1, -1, -1, -1]),
        "ex.other": np.array([-1, 1, -1, 1, -1, 1]), "ex.answer": np.array([1, 1, 1, -1, -1, -1]),
    },
    show=("ex.clue", "ex.mark", "ex.other", "ex.answer", "ex.sense", "ex.weight", "ex.L", "ex.right", "ex.later"),
    sliders=(Slider(("ex.weight", ()), 0, 4, 0.1), Slider(("ex.sense", ()), 0, 4, 0.1)),
    curves=(
        Curve(words("loss in training, share right later", "训练损失与以后答对的比例"), 0, (("ex.L", ()), ("ex.later", ()))),
    ),
)  # fmt: skip

EXAMPLES = (NONLINEAR, SHORTCUT)
