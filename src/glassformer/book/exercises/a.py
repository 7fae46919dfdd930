"""Exercises of chapters 1 to 7: those to compute, and in ``EXERCISES`` those of ``a_choices`` too.

``SHAPES``, ``SHIFT_AND_SCALE`` and ``NO_PEEKING`` are the first three of the notes' six.
"""

from __future__ import annotations

from ...bilingual import words
from ...notation import Kind, Quantity, group, quantity
from ..example import small_program
from ..examples.shared import COEFFICIENTS, CONTENT, EMBEDDING_GRADIENT, KEYS, QUERIES, READ, SCORES, SHARES
from ..exercise import Compute, Draw, Exercise
from .a_choices import (
    DISTRIBUTION_CHOICE,
    HULL_LEAVES,
    ID_DISTANCE,
    NO_PEEKING,
    SAME_PROBABILITIES,
    SHARED_PROJECTION,
    SHIFT_AND_SCALE,
    TWO_SATURATIONS,
    WHAT_IS_UPDATED,
    WHOSE_TARGET,
)

TWICE_THE_TOKEN = Compute(
    id="twice-the-token",
    title=words("Gradient of the embedding", "嵌入矩阵的梯度"),
    program=small_program(
        group(
            "twice",
            quantity("t", "t", "token ids", "词元编号", Kind.INPUT, "t[i]"),
            quantity("X_back", r"\bar X", "gradient at each position", "各位置收到的梯度", Kind.INPUT, "X_back[i,r]"),
            EMBEDDING_GRADIENT,
        ),
        {"n": 4, "N": 3, "d": 2},
    ),
    draw={"ex.t": Draw(0, 2), "ex.X_back": Draw(-4, 4)},
    ask=("ex.back",),
    text=words(
        "Four positions looked up rows of E and received these gradients. What is the gradient of E?",
        "四个位置各查了 E 的一行，收到如下梯度。E 的梯度是什么？",
    ),
)  # fmt: skip

_SIZES = (
    ("size_n", "n", "positions", "位置数"),
    ("size_d", "d", "model dimension", "模型维度"),
    ("size_k", "d_k", "coordinates of a query", "查询的坐标数"),
    ("size_v", "d_v", "coordinates of a value", "内容的坐标数"),
    ("size_H", "H", "heads", "头数"),
    ("size_N", "N", "vocabulary", "词表大小"),
)
_SHAPES = (
    ("Q", "Q", "of Q, one head", "单头 Q", "size_n", "size_k"),
    ("A", "A", "of A, one head", "单头 A", "size_n", "size_n"),
    ("C", "C", "of all heads side by side", "各头拼接", "size_n", "size_H*size_v"),
    ("W_O", "W_O", "of W_O", "W_O", "size_H*size_v", "size_d"),
    ("U", "U", "of U", "U", "size_d", "size_N"),
)


def _shape(name: str, symbol: str, en: str, zh: str, rows: str, columns: str) -> tuple[Quantity, Quantity]:
    sides = (("rows", en, "行数", rows), ("columns", en, "列数", columns))
    first, second = (
        quantity(
            f"{side}_{name}",
            rf"\operatorname{{{side}}}\,{symbol}",
            f"{side} {of}",
            f"{zh}的{count}",
            Kind.INTERMEDIATE,
            f"{side}_{name} = {size}",
        )
        for side, of, count, size in sides
    )
    return first, second


SHAPES = Compute(
    id="shapes",
    title=words("Shapes", "形状"),
    program=small_program(
        group(
            "shapes",
            *(quantity(name, symbol, en, zh, Kind.INPUT, name) for name, symbol, en, zh in _SIZES),
            *(part for shape in _SHAPES for part in _shape(*shape)),
        ),
        {},
    ),
    draw={
        "ex.size_n": Draw(3, 9), "ex.size_d": Draw(8, 16, 2), "ex.size_k": Draw(2, 5), "ex.size_v": Draw(2, 5),
        "ex.size_H": Draw(2, 4), "ex.size_N": Draw(50, 200, 50),
    },
    ask=tuple(f"ex.{side}_{name}" for name, *_ in _SHAPES for side in ("rows", "columns")),
    text=words(
        "Which shapes have Q and A of one head, the heads side by side, W_O, and U? (Which two sizes does the divisor of "
        "the scores not depend on?)",
        "单头的 Q 与 A、各头拼接的结果、W_O、U 各是什么形状？（顺便想想：分数的除数与哪两个大小无关？）",
    ),
)  # fmt: skip

MATCHING = Compute(
    id="matching",
    title=words("Queries against keys", "查询与键"),
    program=small_program(
        group(
            "matching",
            quantity("X", "X", "two rows", "两行", Kind.INPUT, "X[i,r]"),
            quantity("W_Q", "W_Q", "query projection", "Q 投影参数", Kind.INPUT, "W_Q[r,c]"),
            quantity("W_K", "W_K", "key projection", "K 投影参数", Kind.INPUT, "W_K[r,c]"),
            QUERIES,
            KEYS,
            SCORES,
        ),
        {"n": 2, "d": 2, "d_k": 1},
        n_k="n",
    ),
    draw={"ex.X": Draw(-2, 3), "ex.W_Q": Draw(-2, 2), "ex.W_K": Draw(-2, 2)},
    ask=("ex.Q", "ex.K", "ex.S"),
    text=words(
        "Compute the queries, the keys and all four scores; nothing is masked. Is the matrix symmetric?",
        "算出查询、键和全部四个分数，没有掩码。这个矩阵对称吗？",
    ),
)  # fmt: skip

_POWER = quantity("power", r"\omega", "numbers", "几个数", Kind.INPUT, "power[j]")

MIX = Compute(
    id="mix",
    title=words("From scores to what is read", "从分数到读到的内容"),
    program=small_program(
        group(
            "mix", _POWER,
            CONTENT,
            quantity("S", "s", "scores", "分数", Kind.INTERMEDIATE, "S[j] = ln(power[j])"),
            SHARES,
            READ,
        ),
        {"n_k": 3, "d_v": 2},
    ),
    draw={"ex.power": Draw(1, 4), "ex.V": Draw(-4, 4, 2)},
    ask=("ex.A", "ex.Z"),
    text=words(
        "The scores are the logarithms of three numbers. Which coefficients are they, and which point is read?",
        "三个分数是三个数的对数。混合系数是多少，读到哪一点？",
    ),
)  # fmt: skip

VARIANCE_OF_TWO = Compute(
    id="variance-of-two",
    title=words("The variance of a sum", "和的方差"),
    program=small_program(
        group(
            "two",
            quantity("X", "X", "first variable, outcome by outcome", "第一个变量（逐个结果）", Kind.INPUT, "X[i]"),
            quantity("Y", "Y", "second variable, outcome by outcome", "第二个变量（逐个结果）", Kind.INPUT, "Y[i]"),
            quantity("var_X", r"\operatorname{Var}X", "variance of the first", "第一个的方差", Kind.INTERMEDIATE, """
            var_X = mean(X[i]**2 for i in n) - mean(X[i] for i in n)**2
            """),
            quantity("var_Y", r"\operatorname{Var}Y", "variance of the second", "第二个的方差", Kind.INTERMEDIATE, """
            var_Y = mean(Y[i]**2 for i in n) - mean(Y[i] for i in n)**2
            """),
            quantity("cov", r"\operatorname{Cov}(X,Y)", "covariance", "协方差", Kind.INTERMEDIATE, """
            cov = mean(X[i]*Y[i] for i in n) - mean(X[i] for i in n)*mean(Y[i] for i in n)
            """),
            quantity("whole", r"\operatorname{Var}(X+Y)", "variance of the sum", "和的方差", Kind.INTERMEDIATE, """
            whole = var_X + var_Y + 2*cov
            """),
        ),
        {"n": 4},
    ),
    draw={"ex.X": Draw(-4, 4, 2), "ex.Y": Draw(-4, 4, 2)},
    ask=("ex.var_X", "ex.var_Y", "ex.cov", "ex.whole"),
    text=words(
        "Four outcomes are equally likely. Compute both variances, the covariance and the variance of the sum.",
        "四个结果等可能。算出两个方差、协方差与和的方差。",
    ),
)  # fmt: skip

MASKED_SHARES = Compute(
    id="masked-shares",
    title=words("Shares under the mask", "掩码之下的份额"),
    program=small_program(
        group(
            "masked",
            quantity("power", r"\omega", "powers of e, one per score", "各分数的指数", Kind.INPUT, "power[i,j]"),
            quantity("S", "S", "scores after the mask", "掩码之后的分数", Kind.INTERMEDIATE, """
            S[i,j] = ln(power[i,j]) if j <= i else -inf
            """),
            COEFFICIENTS,
        ),
        {"n": 3},
        n_k="n",
    ),
    draw={"ex.power": Draw(1, 5)},
    ask=("ex.A",),
    text=words(
        "The powers of e of all scores are given, the forbidden ones too. Compute the causal coefficients.",
        "每个分数的指数已经给出，被禁止的也在内。算出因果掩码之下的混合系数。",
    ),
)  # fmt: skip

TWO_LAYERS = Compute(
    id="two-layers",
    title=words("Who depends on whom after two layers", "两层之后谁依赖谁"),
    program=small_program(
        group(
            "layers",
            quantity("link", "B", "whether earlier positions may be read", "更早的位置是否允许读取", Kind.INPUT, "link[i,j]"),
            quantity("reads", "J", "whether the row reads the position", "这一行是否读取该位置", Kind.INTERMEDIATE, """
            reads[i,j] = link[i,j] if j < i else (1 if j == i else 0)
            """),
            quantity("dep_2", r"\delta^{(2)}", "whether the row depends on the token", "这一行是否依赖该词元",
                     Kind.INTERMEDIATE, """
            dep_2[i,m] = 1 if sum(reads[i,j]*reads[j,m] for j in n_k) > 0 else 0
            """),
        ),
        {"n": 4},
        n_k="n",
    ),
    draw={"ex.link": Draw(0, 1)},
    ask=("ex.reads", "ex.dep_2"),
    text=words(
        "Every row reads itself and those earlier rows that B allows; both layers have the same mask. On which tokens can "
        "each row depend afterwards? Answer with 1 and 0.",
        "每一行读自己，以及 B 所允许的更早的行；两层用同一个掩码。两层之后，每一行可能依赖哪些词元？用 1 和 0 回答。",
    ),
)  # fmt: skip

EXERCISES: tuple[Exercise, ...] = (
    DISTRIBUTION_CHOICE, ID_DISTANCE, TWICE_THE_TOKEN, SHAPES, WHAT_IS_UPDATED, WHOSE_TARGET, SAME_PROBABILITIES,
    MATCHING, SHARED_PROJECTION, MIX, SHIFT_AND_SCALE, HULL_LEAVES, VARIANCE_OF_TWO, MASKED_SHARES, NO_PEEKING,
    TWO_SATURATIONS, TWO_LAYERS,
)  # fmt: skip
