"""Exercises of chapters 8 to 13 to compute; ``EXERCISES`` holds those of ``b_choices`` too."""

from __future__ import annotations

from ...bilingual import words
from ...notation import Kind, group, quantity
from ..example import small_program
from ..examples.shared import SCORES_GRADIENT, WEIGHTED_MEAN
from ..exercise import Compute, Draw, Exercise
from .b_choices import FROM_A_AND_V, LOSS_AND_ACCURACY, NO_EXPLANATION, ORDER, PRE_AND_POST, TWO_ROLES

NORMALISE = Compute(
    id="normalise",
    title=words("Mean and variance of a row", "一行的均值与方差"),
    program=small_program(
        group(
            "normalise",
            quantity("x", "x", "a row", "一行", Kind.INPUT, "x[r]"),
            quantity("mu", r"\mu", "mean", "均值", Kind.INTERMEDIATE, "mu = mean(x[r] for r in d)"),
            quantity("var", "v", "population variance", "总体方差", Kind.INTERMEDIATE, """
            var = mean((x[r] - mu)**2 for r in d)
            """),
            quantity("centred", r"x-\mu", "less its mean", "减去均值", Kind.INTERMEDIATE, "centred[r] = x[r] - mu"),
        ),
        {"d": 4},
    ),
    draw={"ex.x": Draw(-4, 4)},
    ask=("ex.mu", "ex.var", "ex.centred"),
    text=words(
        "What LayerNorm needs first: the mean, the variance (divide by four, not three), the row less its mean.",
        "LayerNorm 先要这三样：均值、方差（除以四，不是三）、减去均值之后的行。",
    ),
)  # fmt: skip

WHOLE_TEXT = Compute(
    id="whole-text",
    title=words("The likelihood of a text", "一段文字的似然"),
    program=small_program(
        group(
            "likelihood",
            quantity("power", r"e^{\ell}", "powers of e of the scores, a row a position", "分数的指数，每个位置一行",
                     Kind.INPUT, "power[i,w]"),
            quantity("y", "y", "ids of the targets", "目标编号", Kind.INPUT, "y[i]"),
            quantity("p", "p", "probability of each target", "各目标的概率", Kind.PROBABILITY, """
            p[i] = sum(power[i,w] for w in N if w == y[i])/sum(power[i,w] for w in N)
            """),
            quantity("whole", r"\Pi", "probability of both targets", "两个目标合起来的概率", Kind.PROBABILITY, """
            whole = sum(p[i] for i in n if i == 0)*sum(p[i] for i in n if i == 1)
            """),
        ),
        {"n": 2, "N": 3},
    ),
    draw={"ex.power": Draw(1, 3), "ex.y": Draw(0, 2)},
    ask=("ex.p", "ex.whole"),
    text=words(
        "The first of three tokens is given. How probable are the two others, one by one and together? (The loss is half "
        "of minus the logarithm of the last number. Why half?)",
        "三个词元，第一个已给定。另外两个各有多大概率，合起来呢？（损失是最后这个数的负对数的一半。为什么是一半？）",
    ),
)  # fmt: skip

TIED_ROADS = Compute(
    id="tied-roads",
    title=words("One table, two gradients", "一张表，两份梯度"),
    program=small_program(
        group(
            "tied",
            quantity("t", "t", "token ids", "词元编号", Kind.INPUT, "t[i]"),
            quantity("back_X", r"\bar X", "gradient at each position", "各位置收到的梯度", Kind.INPUT, "back_X[i,r]"),
            quantity("hidden", "h", "hidden row that is scored", "计分的隐藏行", Kind.INPUT, "hidden[r]"),
            quantity("power", r"e^{\ell}", "powers of e of the scores", "分数的指数", Kind.INPUT, "power[w]"),
            quantity("target", "y", "id of the target", "目标编号", Kind.INPUT, "target"),
            quantity("looked_up", r"\bar E_{\mathrm{in}}", "by looking up", "来自查表", Kind.GRADIENT, """
            looked_up[w,r] = sum(back_X[i,r] for i in n if t[i] == w)
            """),
            quantity("scored", r"\bar E_{\mathrm{out}}", "by scoring", "来自打分", Kind.GRADIENT, """
            scored[w,r] = (power[w]/sum(power[v] for v in N) - (1 if w == target else 0))*hidden[r]
            """),
            quantity("back", r"\bar E", "gradient of the table", "这张表的梯度", Kind.GRADIENT, """
            back[w,r] = looked_up[w,r] + scored[w,r]
            """),
        ),
        {"n": 2, "N": 3, "d": 2},
    ),
    draw={
        "ex.t": Draw(0, 2), "ex.back_X": Draw(-3, 3), "ex.hidden": Draw(-2, 2), "ex.power": Draw(1, 3),
        "ex.target": Draw(0, 2),
    },
    ask=("ex.looked_up", "ex.scored", "ex.back"),
    text=words(
        "E looks tokens up and, transposed, scores candidates. What does it receive on each road, and in all? (Can a row "
        "that was not looked up have a gradient?)",
        "E 用来查词元，转置之后又给候选打分。两条路各送来什么，合起来是什么？（没有被查到的行，会有梯度吗？）",
    ),
)  # fmt: skip

RESIDUAL = Compute(
    id="two-roads",
    title=words("A gradient on two roads", "走两条路的梯度"),
    program=small_program(
        group(
            "roads",
            quantity("W", "W", "matrix of the part y = x + xW", "子层 y = x + xW 的矩阵", Kind.INPUT, "W[r,q]"),
            quantity("back_y", r"\bar y", "gradient of the output", "输出的梯度", Kind.INPUT, "back_y[q]"),
            quantity("through", r"\bar yW^\top", "through the part", "穿过子层的", Kind.GRADIENT, """
            through[r] = sum(back_y[q]*W[r,q] for q in d)
            """),
            quantity("back_x", r"\bar x", "gradient of the input", "输入的梯度", Kind.GRADIENT, """
            back_x[r] = back_y[r] + through[r]
            """),
        ),
        {"d": 2},
    ),
    draw={"ex.W": Draw(-3, 3), "ex.back_y": Draw(-3, 3)},
    ask=("ex.through", "ex.back_x"),
    text=words("The part is y = x + xW. What does x receive?", "子层是 y = x + xW。x 收到的梯度是什么？"),
)  # fmt: skip

ONE_HOT = Compute(
    id="minus-one-hot",
    title=words("Gradient of the logits", "logits 的梯度"),
    program=small_program(
        group(
            "onehot",
            quantity("power", r"e^{\ell}", "powers of e of the scores", "分数的指数", Kind.INPUT, "power[w]"),
            quantity("target", "y", "id of the target", "目标编号", Kind.INPUT, "target"),
            quantity("p", "p", "probabilities", "概率", Kind.PROBABILITY, "p[w] = power[w]/sum(power[v] for v in N)"),
            quantity("back", r"\bar\ell", "gradient of the logits", "logits 的梯度", Kind.GRADIENT, """
            back[w] = p[w] - (1 if w == target else 0)
            """),
        ),
        {"N": 4},
    ),
    draw={"ex.power": Draw(1, 5), "ex.target": Draw(0, 3)},
    ask=("ex.p", "ex.back"),
    text=words(
        "The powers of e of four scores are given. Find the probabilities, and the gradient of the scores.",
        "四个分数的指数已给出。求概率，以及分数的梯度。",
    ),
)  # fmt: skip

OUTER = Compute(
    id="outer",
    title=words("Gradient of a matrix", "矩阵的梯度"),
    program=small_program(
        group(
            "outer",
            quantity("X", "X", "rows that went in", "进去的各行", Kind.INPUT, "X[i,r]"),
            quantity("back_Y", r"\bar Y", "gradient of what came out", "出来的梯度", Kind.INPUT, "back_Y[i,e]"),
            quantity("W", "W", "matrix", "矩阵", Kind.INPUT, "W[r,e]"),
            quantity("back_W", r"\bar W", "gradient of the matrix", "矩阵的梯度", Kind.GRADIENT, """
            back_W[r,e] = sum(X[i,r]*back_Y[i,e] for i in n)
            """),
            quantity("back_X", r"\bar X", "gradient of the rows", "各行的梯度", Kind.GRADIENT, """
            back_X[i,r] = sum(back_Y[i,e]*W[r,e] for e in d_v)
            """),
        ),
        {"n": 2, "d": 2, "d_v": 2},
    ),
    draw={"ex.X": Draw(-3, 3), "ex.back_Y": Draw(-3, 3), "ex.W": Draw(-3, 3)},
    ask=("ex.back_W", "ex.back_X"),
    text=words("Y = XW. What do W and X receive?", "Y = XW。W 与 X 各收到什么梯度？"),
)  # fmt: skip

SCORES_BACK = Compute(
    id="scores-back",
    title=words("Through the softmax of one row", "穿过一行的 Softmax"),
    program=small_program(
        group(
            "scoresback",
            quantity("power", r"e^{s}", "powers of e of the scores", "分数的指数", Kind.INPUT, "power[j]"),
            quantity("back_A", r"\bar a", "gradient of the coefficients", "系数的梯度", Kind.INPUT, "back_A[j]"),
            quantity("A", "a", "coefficients", "系数", Kind.COEFFICIENT, "A[j] = power[j]/sum(power[m] for m in n_k)"),
            WEIGHTED_MEAN,
            SCORES_GRADIENT,
        ),
        {"n_k": 3},
    ),
    draw={"ex.power": Draw(1, 4), "ex.back_A": Draw(-3, 3)},
    ask=("ex.A", "ex.average", "ex.back_S"),
    text=words(
        "A row of attention: coefficients, the weighted mean of their gradients, the gradients of the scores.",
        "注意力的一行：系数、系数梯度的加权平均、分数的梯度。",
    ),
)  # fmt: skip

KEEP = Compute(
    id="keep-two",
    title=words("Top-k and what is left", "top-k 之后"),
    program=small_program(
        group(
            "keep",
            quantity("power", r"e^{\ell}", "powers of e of the scores", "分数的指数", Kind.INPUT, "power[w]"),
            quantity("kept", "m", "fewer than two are larger", "比它大的不到两个", Kind.INTERMEDIATE, """
            kept[w] = 1 if sum(1 if power[v] > power[w] else 0 for v in N) < 2 else 0
            """),
            quantity("final", "p'", "probabilities to draw from", "用来抽签的概率", Kind.PROBABILITY, """
            final[w] = kept[w]*power[w]/sum(kept[v]*power[v] for v in N)
            """),
        ),
        {"N": 4},
    ),
    draw={"ex.power": Draw(1, 9)},
    ask=("ex.kept", "ex.final"),
    text=words(
        "Top-k with k = 2: which candidates stay (1) or go (0), and with what probabilities? Of equal ones all stay.",
        "k = 2 的 top-k：哪些候选留下（1）或去掉（0），各有多少概率？并列的都留下。",
    ),
)  # fmt: skip

REUSE = Compute(
    id="reuse",
    title=words("What a cache saves", "缓存省下多少"),
    program=small_program(
        group(
            "reuse",
            quantity("held", "p", "positions in the cache", "缓存里的位置数", Kind.INPUT, "held"),
            quantity("fresh", "m", "new positions", "新的位置数", Kind.INPUT, "fresh"),
            quantity("without", "a", "scores without a cache", "不用缓存要算的分数", Kind.INTERMEDIATE, """
            without = (held + fresh)*(held + fresh + 1)/2
            """),
            quantity("using", "b", "scores with the cache", "用缓存要算的分数", Kind.INTERMEDIATE, """
            using = without - held*(held + 1)/2
            """),
        ),
        {},
    ),
    draw={"ex.held": Draw(2, 9), "ex.fresh": Draw(1, 3)},
    ask=("ex.without", "ex.using"),
    text=words(
        "One head, causal mask. How many scores are computed for all positions anew, and how many with the cache?",
        "一个头，因果掩码。全部重算要算多少个分数，用缓存呢？",
    ),
)  # fmt: skip

EXERCISES: tuple[Exercise, ...] = (
    NORMALISE, RESIDUAL, ORDER, PRE_AND_POST, WHOLE_TEXT, TIED_ROADS, ONE_HOT, OUTER, SCORES_BACK, KEEP, REUSE,
    NO_EXPLANATION, TWO_ROLES, FROM_A_AND_V, LOSS_AND_ACCURACY,
)  # fmt: skip
