"""Chapter 7, first half: the size of a dot product, the variance of a sum, two ways in which a softmax saturates.

A random variable is a table over outcomes that are equally likely, as in ``model/derivations/dot_product.py``.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from ...bilingual import words
from ...notation import Kind, group, quantity
from ..example import Array, Curve, Example, Slider, small_program

LONGEST = 6
"""Coordinates at most: every pattern of so many signs is an outcome."""


def _signs() -> Array:
    """All 64 patterns of six signs, ``(outcome, coordinate)``."""
    return np.array(list(product((1.0, -1.0), repeat=LONGEST)))


_AVERAGE = quantity("average", r"\mathbb{E}D", "mean", "均值", Kind.INTERMEDIATE, """
average = mean(D[i] for i in n)
""")  # fmt: skip

SIGNS = Example(
    id="signs",
    title=words("A dot product whose terms are signs: every outcome counted", "每项都是正负一的点积：数遍所有结果"),
    program=small_program(
        group(
            "signs",
            quantity("width", "d_k", "coordinates", "坐标数", Kind.INPUT, "width"),
            quantity("Y", "Y", "products, outcome by outcome", "各结果中的乘积", Kind.INPUT, "Y[i,r]"),
            quantity("D", "D", "dot product, outcome by outcome", "各结果中的点积", Kind.INTERMEDIATE, """
            D[i] = sum(Y[i,r] for r in d if r < width)
            """),
            quantity("reached", "x", "values it can take", "可能取的值", Kind.INTERMEDIATE, "reached[w] = 2*w - width"),
            quantity("chance", r"\pi", "probability of each", "各值的概率", Kind.PROBABILITY, """
            chance[w] = mean(1 if D[i] == 2*w - width else 0 for i in n)
            """),
            _AVERAGE,
            quantity("var", r"\operatorname{Var}D", "variance", "方差", Kind.INTERMEDIATE, """
            var = mean((D[i] - average)**2 for i in n)
            """),
            quantity("sd", r"\operatorname{SD}D", "standard deviation", "标准差", Kind.INTERMEDIATE, "sd = sqrt(var)"),
            quantity("by_root", "v_1", "variance after division by the root",
                     "除以根号后的方差", Kind.INTERMEDIATE, """
            by_root = mean((D[i]/sqrt(width) - average/sqrt(width))**2 for i in n)
            """),
            quantity("by_width", "v_2", "variance after division by d_k", "除以 d_k 后的方差",
                     Kind.INTERMEDIATE, """
            by_width = mean((D[i]/width - average/width)**2 for i in n)
            """),
        ),
        {"n": 2**LONGEST, "d": LONGEST, "N": LONGEST + 1},
    ),
    inputs={"ex.width": np.array(4), "ex.Y": _signs()},
    show=("ex.width", "ex.reached", "ex.chance", "ex.average", "ex.var", "ex.sd", "ex.by_root", "ex.by_width"),
    sliders=(Slider(("ex.width", ()), 1, LONGEST, 1),),
    curves=(
        Curve(
            words(
                "variance against d_k: as it is, divided by the root, divided by d_k",
                "方差随 d_k：不除、除以根号、除以 d_k",
            ),
            0,
            (("ex.var", ()), ("ex.by_root", ()), ("ex.by_width", ())),
        ),
    ),
    notes={
        "ex.chance": words(
            "Values beyond d_k have probability 0.", "超过 d_k 的值概率为 0。"
        )
    },
)  # fmt: skip


def _sampled() -> tuple[Array, Array]:
    """Queries and keys drawn once from the standard normal distribution, one decimal kept."""
    rng = np.random.default_rng(7)
    return rng.normal(size=(5, 4)).round(1), rng.normal(size=(5, 4)).round(1)


OWN = Example(
    id="own",
    title=words("Your own queries and keys", "换上你自己的查询与键"),
    program=small_program(
        group(
            "own",
            quantity("Q", "Q", "queries", "查询", Kind.INPUT, "Q[i,c]"),
            quantity("K", "K", "keys", "键", Kind.INPUT, "K[j,c]"),
            quantity("lift", r"\mu", "added to every coordinate", "每个坐标同加", Kind.INPUT, "lift"),
            quantity("D", "D", "dot products of all pairs", "所有配对的点积", Kind.INTERMEDIATE, """
            D[i,j] = sum((Q[i,c] + lift)*(K[j,c] + lift) for c in d_k)
            """),
            quantity("average", r"\bar D", "their mean", "它们的均值", Kind.INTERMEDIATE, """
            average = mean(D[i,j] for i in n for j in n_k)
            """),
            quantity("var", r"\operatorname{Var}D", "their variance", "它们的方差", Kind.INTERMEDIATE, """
            var = mean((D[i,j] - average)**2 for i in n for j in n_k)
            """),
            quantity("scaled", "v_1", "variance after division by the root",
                     "除以根号后的方差", Kind.INTERMEDIATE, "scaled = var/d_k"),
        ),
        {"n": 5, "n_k": 5, "d_k": 4},
    ),
    inputs={"ex.Q": _sampled()[0], "ex.K": _sampled()[1], "ex.lift": np.array(0)},
    show=("ex.Q", "ex.K", "ex.lift", "ex.D", "ex.average", "ex.var", "ex.scaled"),
    sliders=(Slider(("ex.lift", ()), -2, 2, 0.1),),
    curves=(Curve(words("variance against the common shift", "方差随共同平移的变化"), 0, (("ex.var", ()),)),),
    notes={
        "ex.Q": words("Sampled once from a standard normal distribution.", "从标准正态分布抽样一次得到。"),
    },
)  # fmt: skip

SUMS = Example(
    id="sums",
    title=words("The variance of a sum of two", "两个变量之和的方差"),
    program=small_program(
        group(
            "sums",
            quantity("X", "X", "first variable, outcome by outcome", "第一个变量（逐个结果）", Kind.INPUT, "X[i]"),
            quantity("free", "F", "a sign of its own", "与它无关的正负号", Kind.INPUT, "free[i]"),
            quantity("tie", r"\rho", "how far the second follows the first", "第二个跟随第一个的程度", Kind.INPUT, "tie"),
            quantity("lift", r"\mu", "added to the second", "第二个变量的平移", Kind.INPUT, "lift"),
            quantity("Y", "Y", "second variable", "第二个变量", Kind.INTERMEDIATE, """
            Y[i] = tie*X[i] + sqrt(1 - tie**2)*free[i] + lift
            """),
            quantity("var_X", r"\operatorname{Var}X", "variance of the first", "第一个的方差", Kind.INTERMEDIATE, """
            var_X = mean((X[i] - mean(X[j] for j in n_k))**2 for i in n)
            """),
            quantity("var_Y", r"\operatorname{Var}Y", "variance of the second", "第二个的方差", Kind.INTERMEDIATE, """
            var_Y = mean((Y[i] - mean(Y[j] for j in n_k))**2 for i in n)
            """),
            quantity("cov", r"\operatorname{Cov}(X,Y)", "covariance", "协方差", Kind.INTERMEDIATE, """
            cov = mean(X[i]*Y[i] for i in n) - mean(X[i] for i in n)*mean(Y[i] for i in n)
            """),
            quantity("whole", r"\operatorname{Var}(X+Y)", "variance of the sum", "和的方差", Kind.INTERMEDIATE, """
            whole = mean((X[i] + Y[i] - mean(X[j] + Y[j] for j in n_k))**2 for i in n)
            """),
            quantity("identity", r"\Sigma",
                     "two variances and twice the covariance", "两个方差加二倍协方差", Kind.INTERMEDIATE, """
            identity = var_X + var_Y + 2*cov
            """),
            quantity("square", r"\mathbb{E}(X+Y)^2", "mean square of the sum", "和的平方的均值", Kind.INTERMEDIATE, """
            square = mean((X[i] + Y[i])**2 for i in n)
            """),
        ),
        {"n": 4},
        n_k="n",
    ),
    inputs={
        "ex.X": np.array([1, 1, -1, -1]), "ex.free": np.array([1, -1, 1, -1]), "ex.tie": np.array(0), "ex.lift": np.array(0),
    },
    show=(
        "ex.X", "ex.free", "ex.tie", "ex.lift", "ex.Y", "ex.var_X", "ex.var_Y", "ex.cov", "ex.whole", "ex.identity",
        "ex.square",
    ),
    sliders=(Slider(("ex.tie", ()), -1, 1, 0.1), Slider(("ex.lift", ()), -2, 2, 0.1)),
    curves=(
        Curve(words("variance of the sum against the tie", "和的方差随跟随程度的变化"), 0, (("ex.whole", ()),)),
        Curve(
            words("variance and mean square against the shift", "方差与平方均值随平移的变化"),
            1,
            (("ex.whole", ()), ("ex.square", ())),
        ),
    ),
)  # fmt: skip

SATURATION = Example(
    id="saturation",
    title=words("Attention: the sharper the shares, the smaller their derivatives", "注意力：份额越尖锐，导数越小"),
    program=small_program(
        group(
            "saturation",
            quantity("raw", "s", "scores before the factor", "放大之前的分数", Kind.INPUT, "raw[j]"),
            quantity("times", r"\lambda", "factor on the scores", "分数的倍数", Kind.INPUT, "times"),
            quantity("A", "a", "mixing coefficients", "混合系数", Kind.COEFFICIENT, """
            A[j] = exp(times*raw[j])/sum(exp(times*raw[m]) for m in n_k)
            """),
            quantity("J", "J", "softmax Jacobian", "Softmax 的 Jacobian", Kind.INTERMEDIATE, """
            J[j,m] = A[j]*((1 if j == m else 0) - A[m])
            """),
            quantity("largest", r"\max|J|", "its largest entry", "其中最大的绝对值", Kind.INTERMEDIATE, """
            largest = max(abs(J[j,m]) for j in n_k for m in n_k)
            """),
        ),
        {"n_k": 3},
    ),
    inputs={"ex.raw": np.array([1, 0, -1]), "ex.times": np.array(6)},
    show=("ex.raw", "ex.times", "ex.A", "ex.J", "ex.largest"),
    sliders=(Slider(("ex.times", ()), 0, 12, 0.1),),
    curves=(
        Curve(
            words("first share, and largest derivative, against the factor", "第一个份额与最大导数随倍数的变化"),
            0,
            (("ex.A", (0,)), ("ex.largest", ())),
        ),
    ),
)  # fmt: skip

CONFIDENT = Example(
    id="confident",
    title=words(
        "Output with cross-entropy: the surer of a wrong token, the nearer to −1",
        "输出层配交叉熵：错得越自信，梯度越接近 −1",
    ),
    program=small_program(
        group(
            "confident",
            quantity("raw", r"\ell", "scores before the factor", "放大之前的词表分数", Kind.INPUT, "raw[w]"),
            quantity("times", r"\lambda", "factor on the scores", "分数的倍数", Kind.INPUT, "times"),
            quantity("y", "y", "id of the target", "目标编号", Kind.INPUT, "y"),
            quantity("p", "p", "probabilities", "概率", Kind.PROBABILITY, """
            p[w] = exp(times*raw[w])/sum(exp(times*raw[v]) for v in N)
            """),
            quantity("back", r"\bar\ell", "gradient of the scores", "词表分数的梯度", Kind.GRADIENT, """
            back[w] = p[w] - (1 if w == y else 0)
            """),
            quantity("own", "g", "derivative of softmax alone at the target", "目标处 Softmax 自身的导数",
                     Kind.INTERMEDIATE, "own = p[y]*(1 - p[y])"),
        ),
        {"N": 3},
    ),
    inputs={"ex.raw": np.array([1, 0, -1]), "ex.times": np.array(6), "ex.y": np.array(2)},
    show=("ex.raw", "ex.times", "ex.y", "ex.p", "ex.back", "ex.own"),
    sliders=(Slider(("ex.times", ()), 0, 12, 0.1),),
    curves=(
        Curve(
            words(
                "gradient at the target, and softmax's own derivative, against the factor",
                "目标处的梯度与 Softmax 自身导数随倍数的变化",
            ),
            0,
            (("ex.back", (2,)), ("ex.own", ())),
        ),
    ),
)  # fmt: skip

EXAMPLES = (SIGNS, OWN, SUMS, SATURATION, CONFIDENT)
