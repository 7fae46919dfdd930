"""Why scores are divided by the root of d_k: the variance of a dot product, one assumption per step.

A random variable is a table over outcomes that are equally likely, ``Q[i,r]`` in outcome ``i``; its expectation is the
mean over outcomes. Every line is then a number that can be computed, and every assumption a property that a table has or
lacks. Nothing here says that the queries and keys of a trained model have these properties.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glassformer.notation import Kind, Program, build_program, group, place, quantity
from glassformer.notation.lemma import Lemma, Operands, Premise
from glassformer.notation.operands import Array
from glassformer.notation.steps import Step

QUERY = quantity("Q", "q", "query, outcome by outcome", "查询（逐个结果）", Kind.INTERMEDIATE, "Q[i,r]")
KEY = quantity("K", "k", "key, outcome by outcome", "键（逐个结果）", Kind.INTERMEDIATE, "K[i,r]")
PRODUCT = quantity(
    "Y", "y", "product of two coordinates", "两个坐标的乘积", Kind.INTERMEDIATE, "Y[i,r] = Q[i,r]*K[i,r]"
)
ONE = quantity("X_1", "X", "first summand", "第一个加数", Kind.INTERMEDIATE, "X_1[i]")
OTHER = quantity("X_2", "Y", "second summand", "第二个加数", Kind.INTERMEDIATE, "X_2[i]")
DOT = quantity("D", "D", "a dot product", "一个点积", Kind.INTERMEDIATE, "D[i]")

COORDINATES = group("coordinates", QUERY, KEY, PRODUCT, ONE, OTHER, DOT)

# 12 outcomes are a grid of 4 by 3: independent variables each follow one side of it.
_SIDES = (4, 3)


def program() -> Program:
    """Twelve outcomes, four coordinates; the dimension ``d`` of the letters ``r q`` is d_k here, ``n_k`` outcomes too."""
    part = place(COORDINATES, "dot", n_k="n", d="d_k")
    return build_program([part], {"n": _SIDES[0] * _SIDES[1], "d_k": 4, "H": 1})


def _independent(values: Mapping[str, Array], rng: np.random.Generator) -> Operands:
    """A query that follows the rows of the grid and a key that follows its columns: every pair is equally likely."""
    rows, columns = np.divmod(np.arange(_SIDES[0] * _SIDES[1]), _SIDES[1])
    return {"Q": values["Q"][rows], "K": values["K"][columns]}


def _centred(en: str, zh: str, *names: str) -> Premise:
    return Premise(
        f"zero mean of {' and '.join(names)}",
        en,
        zh,
        lambda values, rng: {name: values[name] - values[name].mean(0) for name in names},
    )


def _unit(x: Array) -> Array:
    centre = x.mean(0)
    return centre + (x - centre) / x.std(0)


def _uncorrelated(x: Array) -> Array:
    """Columns with the means and variances of ``x`` of which no two vary together."""
    centre, size = x.mean(0), x.std(0)
    # Beside a column of ones, so that the others stay orthogonal to it: their mean is 0.
    basis = np.linalg.qr(np.column_stack([np.ones(len(x)), x - centre]))[0][:, 1:]
    return centre + basis / basis.std(0) * size


INDEPENDENT = Premise(
    "independent",
    "query and key are independent: every pair of their values is as likely as the values alone make it",
    "查询与键相互独立：每一对取值的概率等于各自概率的乘积",
    _independent,
)
ZERO_MEAN = _centred("query and key have mean 0 in every coordinate", "查询与键的每个坐标均值为 0", "Q", "K")
UNIT_VARIANCE = Premise(
    "unit variance",
    "every coordinate has variance 1",
    "每个坐标方差为 1",
    lambda values, rng: {name: _unit(values[name]) for name in ("Q", "K")},
)
NO_COVARIANCE = Premise(
    "no covariance",
    "products of different coordinates do not vary together",
    "不同坐标的乘积协方差为 0",
    lambda values, rng: {"Y": _uncorrelated(values["Y"])},
)
ZERO_MEAN_PRODUCTS = _centred("every product of coordinates has mean 0", "每个坐标乘积的均值为 0", "Y")
NO_COVARIANCE_OF_TWO = Premise(
    "no covariance of two",
    "the two summands do not vary together",
    "两个加数的协方差为 0",
    lambda values, rng: dict(
        zip(("X_1", "X_2"), _uncorrelated(np.stack([values["X_1"], values["X_2"]], 1)).T, strict=True)
    ),
)
ZERO_MEAN_OF_TWO = _centred("both summands have mean 0", "两个加数的均值都是 0", "X_1", "X_2")
VARIANCE_D_K = Premise(
    "variance d_k",
    "the dot product has variance d_k",
    "点积的方差是 d_k",
    lambda values, rng: {"D": values["D"] / values["D"].std() * np.sqrt(values["Q"].shape[1])},
)

_FACTORS = (
    "the expectation of a product of independent variables is the product of their expectations",
    "独立变量乘积的期望等于期望的乘积",
)
_SQUARE = (
    "multiply out: the variance is the mean of squares minus the square of the mean",
    "展开：方差等于平方的均值减均值的平方",
)

MEAN_OF_PRODUCT = Lemma(
    "mean-of-a-product", "the mean of one product of coordinates", "一个坐标乘积的均值", "7.1", program, "r",
    (
        Step("mean(Q[i,r]*K[i,r] for i in n)", "the expectation of one product", "一个乘积的期望"),
        Step("mean(Q[i,r] for i in n)*mean(K[i,r] for i in n)", *_FACTORS, ("independent",)),
        Step("0", "both means are 0; one would do", "两个均值都是 0（一个为 0 即可）", (ZERO_MEAN.name,)),
    ),
    (INDEPENDENT, ZERO_MEAN),
)  # fmt: skip

SECOND_MOMENT = Lemma(
    "second-moment-of-a-product", "the second moment of one product of coordinates", "一个坐标乘积的二阶矩", "7.1",
    program, "r",
    (
        Step("mean((Q[i,r]*K[i,r])**2 for i in n)", "the expectation of its square", "其平方的期望"),
        Step("mean(Q[i,r]**2 for i in n)*mean(K[i,r]**2 for i in n)", *_FACTORS, ("independent",)),
        Step(
            "1",
            "with mean 0 the second moment is the variance, which is 1",
            "均值为 0 时二阶矩就是方差，而方差为 1",
            (ZERO_MEAN.name, "unit variance"),
        ),
    ),
    (INDEPENDENT, ZERO_MEAN, UNIT_VARIANCE),
)  # fmt: skip

VARIANCE_OF_DOT_PRODUCT = Lemma(
    "variance-of-a-dot-product", "a dot product of d_k coordinates has variance d_k", "d_k 个坐标的点积方差为 d_k", "7.1",
    program, "",
    (
        Step(
            "mean((sum(Y[i,r] for r in d) - mean(sum(Y[m,r] for r in d) for m in n_k))**2 for i in n)",
            "the variance of the sum, by definition",
            "按定义写出和的方差",
        ),
        Step(
            "sum(mean(Y[i,r]*Y[i,q] for i in n) - mean(Y[i,r] for i in n)*mean(Y[i,q] for i in n)"
            " for r in d for q in d)",
            "multiply out: the variance of a sum is the sum of all covariances, of each term with itself too",
            "展开：和的方差等于所有协方差之和，包括每一项与自己的",
        ),
        Step(
            "sum(mean(Y[i,r]**2 for i in n) - mean(Y[i,r] for i in n)**2 for r in d)",
            "different products do not vary together (independence is more than enough), so only q = r is left",
            "不同坐标的乘积协方差为 0（独立是充分条件），只剩 q = r",
            ("no covariance",),
        ),
        Step(
            "sum(mean(Y[i,r]**2 for i in n) for r in d)",
            "each product has mean 0, as shown for one of them",
            "每个乘积均值为 0，前面已对单个乘积证明",
            (ZERO_MEAN_PRODUCTS.name,),
        ),
        Step(
            "sum(mean(Q[i,r]**2 for i in n)*mean(K[i,r]**2 for i in n) for r in d)",
            "y is the product of query and key, which are independent",
            "y 是查询与键的乘积，二者独立",
            ("independent", "Y"),
        ),
        Step(
            "d",
            "with mean 0 the second moments are the variances, all 1: one for each coordinate",
            "均值为 0 时二阶矩就是方差，全为 1：每个坐标贡献 1",
            (ZERO_MEAN.name, "unit variance"),
        ),
    ),
    (INDEPENDENT, ZERO_MEAN, UNIT_VARIANCE, NO_COVARIANCE, ZERO_MEAN_PRODUCTS),
)  # fmt: skip

SCALED = Lemma(
    "scaled-dot-product", "divided by the root of d_k its variance is 1", "除以 √d_k 后方差为 1", "7.1", program, "",
    (
        Step(
            "mean((D[i]/sqrt(d) - mean(D[m]/sqrt(d) for m in n_k))**2 for i in n)",
            "the variance of the divided score",
            "相除之后分数的方差",
        ),
        Step(
            "mean((D[i] - mean(D[m] for m in n_k))**2 for i in n)/d",
            "a divisor leaves the mean, and is squared: Var(cD) = c² Var(D)",
            "除数可提到均值之外并被平方：Var(cD) = c² Var(D)",
        ),
        Step("1", "the variance of the dot product is d_k", "点积的方差是 d_k", ("variance d_k",)),
    ),
    (VARIANCE_D_K,),
)  # fmt: skip

DIVIDED_BY_D_K = Lemma(
    "divided-by-d_k", "divided by d_k itself it would shrink to 1/d_k", "若除以 d_k，方差会缩小为 1/d_k", "7.1", program, "",
    (
        Step(
            "mean((D[i]/d - mean(D[m]/d for m in n_k))**2 for i in n)",
            "the variance after a division by d_k",
            "除以 d_k 之后的方差",
        ),
        Step(
            "mean((D[i] - mean(D[m] for m in n_k))**2 for i in n)/d**2",
            "a divisor is squared",
            "除数被平方",
        ),
        Step("1/d", "the variance of the dot product is d_k", "点积的方差是 d_k", ("variance d_k",)),
    ),
    (VARIANCE_D_K,),
)  # fmt: skip

_COVARIANCE = "mean(X_1[i]*X_2[i] for i in n) - mean(X_1[i] for i in n)*mean(X_2[i] for i in n)"
_SUM_VARIANCE = "mean((X_1[i] + X_2[i] - mean(X_1[m] + X_2[m] for m in n_k))**2 for i in n)"
_VARIANCES = " + ".join(f"mean(({x}[i] - mean({x}[m] for m in n_k))**2 for i in n)" for x in ("X_1", "X_2"))

VARIANCE_OF_SUM = Lemma(
    "variance-of-a-sum", "the variance of a sum of two", "两个变量之和的方差", "7.2", program, "",
    (
        Step(_SUM_VARIANCE, "by definition", "按定义"),
        Step(
            f"{_VARIANCES} + 2*({_COVARIANCE})",
            "multiply out; this holds for any two variables: Var(X + Y) = Var(X) + Var(Y) + 2 Cov(X, Y)",
            "展开；对任意两个变量成立：Var(X + Y) = Var(X) + Var(Y) + 2 Cov(X, Y)",
        ),
        Step(
            _VARIANCES,
            "the covariance is 0; independence is enough for that, and more than is needed",
            "协方差为 0；独立足以保证，但并非必需",
            ("no covariance of two",),
        ),
    ),
    (NO_COVARIANCE_OF_TWO,),
)  # fmt: skip

SHORT_VARIANCE_OF_SUM = Lemma(
    "variance-of-a-centred-sum", "with mean 0 the variance is the mean square", "均值为 0 时方差就是平方的均值", "7.2",
    program, "",
    (
        Step(_SUM_VARIANCE, "by definition", "按定义"),
        Step(
            "mean((X_1[i] + X_2[i])**2 for i in n)",
            "both means are 0, so that of the sum is 0; nothing is assumed about how the two depend on each other",
            "两个均值都是 0，和的均值也是 0；这一步不需要独立",
            (ZERO_MEAN_OF_TWO.name,),
        ),
        Step(
            "mean(X_1[i]**2 for i in n) + 2*mean(X_1[i]*X_2[i] for i in n) + mean(X_2[i]**2 for i in n)",
            "multiply out",
            "展开",
        ),
        Step(
            "mean(X_1[i]**2 for i in n) + mean(X_2[i]**2 for i in n)",
            "the means are 0 and the covariance is 0, so the mixed term is 0",
            "均值为 0 且协方差为 0，交叉项为 0",
            (ZERO_MEAN_OF_TWO.name, "no covariance of two"),
        ),
    ),
    (NO_COVARIANCE_OF_TWO, ZERO_MEAN_OF_TWO),
)  # fmt: skip

DOT_PRODUCT_LEMMAS: tuple[Lemma, ...] = (
    MEAN_OF_PRODUCT,
    SECOND_MOMENT,
    VARIANCE_OF_DOT_PRODUCT,
    SCALED,
    DIVIDED_BY_D_K,
    VARIANCE_OF_SUM,
    SHORT_VARIANCE_OF_SUM,
)
