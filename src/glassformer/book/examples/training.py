"""Chapters 9 and 10: the likelihood of a text, a step against the gradient, what a gradient of a matrix is."""

from __future__ import annotations

import numpy as np

from ...bilingual import words
from ...notation import Kind, group, quantity
from ..example import Curve, Example, Slider, small_program

SEQUENCE = Example(
    id="sequence",
    title=words("A text's probability, and the loss", "一段文字的概率与损失"),
    program=small_program(
        group(
            "sequence",
            quantity("given", "p", "probability of each next token", "每个下一词元的概率", Kind.INPUT, "given[i]"),
            quantity("nll", r"-\ln p", "its negative logarithm", "它的负对数", Kind.INTERMEDIATE, """
            nll[i] = -ln(given[i])
            """),
            quantity("total", r"\Sigma", "sum", "和", Kind.INTERMEDIATE, "total = sum(nll[i] for i in n)"),
            quantity("whole", r"\Pi", "probability of what follows", "第一个词元之后的文字的概率", Kind.PROBABILITY, """
            whole = sum(given[i] for i in n if i == 0)*sum(given[i] for i in n if i == 1)*sum(given[i] for i in n if i == 2)
            """),
            quantity("mean", "L", "mean: the loss", "平均：损失", Kind.LOSS, "mean = mean(nll[i] for i in n)"),
        ),
        {"n": 3},
    ),
    inputs={"ex.given": np.array([0.5, 0.8, 0.25])},
    show=("ex.given", "ex.nll", "ex.total", "ex.whole", "ex.mean"),
    sliders=tuple(Slider(("ex.given", (i,)), 0.05, 1, 0.05) for i in range(3)),
)  # fmt: skip

DESCENT = Example(
    id="descent",
    title=words("A step against the gradient, and steps that are too long", "逆着梯度走一步，以及走得太长"),
    program=small_program(
        group(
            "descent",
            quantity("theta", r"\theta", "two parameters", "两个参数", Kind.INPUT, "theta[r]"),
            quantity("steep", "a", "how steep each direction is", "两个方向的陡峭程度", Kind.INPUT, "steep[r]"),
            quantity("length", r"\eta", "step size", "学习率", Kind.INPUT, "length"),
            quantity("L", "L", "loss", "损失", Kind.LOSS, "L = sum(steep[r]*theta[r]**2 for r in d)/2"),
            quantity("slope", "g", "gradient", "梯度", Kind.GRADIENT, "slope[r] = steep[r]*theta[r]"),
            quantity("moved", r"\theta'", "after the step", "走一步之后", Kind.INTERMEDIATE, """
            moved[r] = theta[r] - length*slope[r]
            """),
            quantity("later", "L'", "loss after the step", "之后的损失", Kind.LOSS, """
            later = sum(steep[r]*moved[r]**2 for r in d)/2
            """),
            quantity("promised", r"L-\eta\lVert g\rVert^2", "what first order promises", "一阶展开的预言",
                     Kind.INTERMEDIATE, """
            promised = L - length*sum(slope[r]**2 for r in d)
            """),
        ),
        {"d": 2},
    ),
    inputs={"ex.theta": np.array([2, 1]), "ex.steep": np.array([1, 4]), "ex.length": np.array(0.1)},
    show=("ex.theta", "ex.steep", "ex.length", "ex.L", "ex.slope", "ex.moved", "ex.later", "ex.promised"),
    sliders=(Slider(("ex.length", ()), 0, 0.6, 0.01),),
    curves=(
        Curve(words("loss after the step, and what first order promises", "走一步之后的损失与一阶预言"), 0,
              (("ex.later", ()), ("ex.promised", ()))),
    ),
)  # fmt: skip

EXAMPLES = (SEQUENCE, DESCENT)
