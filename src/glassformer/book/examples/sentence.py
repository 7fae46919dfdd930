"""Chapters 1 to 4: a distribution over the vocabulary, rows of the input matrix, targets, the four steps of one head."""

from __future__ import annotations

import numpy as np

from ...bilingual import words
from ...model.mask import ALLOWED
from ...notation import Kind, group, quantity
from ...text.clinic import SENTENCE
from ..example import Curve, Example, Slider, small_program
from .shared import COEFFICIENTS, EMBEDDING_GRADIENT, KEYS, MIXED, QUERIES, VALUES

TOKENS = tuple(SENTENCE)
"""The fixed sentence, cut into seven by hand: data, hence the same in both languages."""

ROWS = np.array([[1, 0], [0, 1], [1, 1], [-1, 0], [0, -1], [2, 1], [1, -1]])
"""A constructed embedding of the seven tokens; its coordinates stand for nothing."""

_IDS = quantity("t", "t", "token ids", "词元编号", Kind.INPUT, "t[i]")
_TABLE = quantity("E", "E", "input embedding matrix", "输入嵌入矩阵", Kind.PARAMETER, "E[w,r]")

DISTRIBUTION = Example(
    id="distribution",
    title=words("Scores for every token, then probabilities of every token", "先给每个词元打分，再给每个词元概率"),
    program=small_program(
        group(
            "distribution",
            quantity("logits", r"\ell", "scores of the vocabulary", "词表分数", Kind.INPUT, "logits[w]"),
            quantity("p", "p", "probabilities", "概率", Kind.PROBABILITY, """
            p[w] = exp(logits[w])/sum(exp(logits[v]) for v in N)
            """),
            quantity("total", r"\Sigma", "sum of all probabilities", "全部概率之和", Kind.INTERMEDIATE, """
            total = sum(p[w] for w in N)
            """),
        ),
        {"N": 7},
    ),
    inputs={"ex.logits": np.array([-1, 0, 0.5, -2, -1.5, 2, 1])},
    show=("ex.logits", "ex.p", "ex.total"),
    labels={"N": TOKENS},
    notes={"ex.logits": words("Constructed, not computed by a trained model.", "人为给定，并非训练好的模型算出。")},
)  # fmt: skip

LOOKUP = Example(
    id="lookup",
    title=words("Copying rows, and multiplying by one-hot rows", "照抄各行，与乘 one-hot 行"),
    program=small_program(
        group(
            "lookup", _IDS, _TABLE,
            quantity("copied", "X", "rows looked up", "查表得到的行", Kind.INTERMEDIATE, "copied[i,r] = E[t[i],r]"),
            quantity("onehot", "u", "one-hot rows", "one-hot 行", Kind.INTERMEDIATE, """
            onehot[i,w] = 1 if t[i] == w else 0
            """),
            quantity("product", r"X_{\text{mul}}", "one-hot times E", "one-hot 乘 E", Kind.INTERMEDIATE, """
            product[i,r] = sum(onehot[i,w]*E[w,r] for w in N)
            """),
        ),
        {"n": 3, "N": 7, "d": 2},
    ),
    inputs={"ex.t": np.array([0, 1, 2]), "ex.E": ROWS},
    show=("ex.t", "ex.E", "ex.copied", "ex.onehot", "ex.product"),
    labels={"N": TOKENS},
)  # fmt: skip

PLACES = Example(
    id="places",
    title=words("One token at two positions", "同一个词元，两个位置"),
    program=small_program(
        group(
            "places", _IDS, _TABLE,
            quantity("P", "P", "position vectors", "位置向量", Kind.PARAMETER, "P[i,r]"),
            quantity("X", "X", "input matrix", "输入矩阵", Kind.INTERMEDIATE, "X[i,r] = E[t[i],r] + P[i,r]"),
        ),
        {"n": 3, "N": 7, "d": 2},
    ),
    inputs={"ex.t": np.array([0, 1, 0]), "ex.E": ROWS, "ex.P": np.array([[0, 0], [0.5, 0], [0, 0.5]])},
    show=("ex.t", "ex.E", "ex.P", "ex.X"),
    labels={"N": TOKENS},
)  # fmt: skip

SCATTER = Example(
    id="scatter",
    title=words("A token that occurs twice adds its gradients", "出现两次的词元，两份梯度相加"),
    program=small_program(
        group(
            "scatter", _IDS,
            quantity("X_back", r"\bar X", "gradient at each position", "各位置收到的梯度", Kind.INPUT, "X_back[i,r]"),
            EMBEDDING_GRADIENT,
        ),
        {"n": 3, "N": 7, "d": 2},
    ),
    inputs={"ex.t": np.array([0, 1, 0]), "ex.X_back": np.array([[1, 2], [3, -1], [0.5, 4]])},
    show=("ex.t", "ex.X_back", "ex.back"),
    labels={"N": TOKENS},
)  # fmt: skip

FACTOR = Example(
    id="factor",
    title=words("What the number of positions sets, and what d_k sets", "位置数决定什么，d_k 决定什么"),
    program=small_program(
        group(
            "factor",
            quantity("rows", "n", "positions", "位置数", Kind.INPUT, "rows"),
            quantity("width", "d_k", "coordinates of a query", "查询的坐标数", Kind.INPUT, "width"),
            quantity("scores", "C", "cells of the score matrix", "分数矩阵的格数", Kind.INTERMEDIATE, """
            scores = rows*rows
            """),
            quantity("terms", "T", "products in one score", "一个分数里的乘积个数", Kind.INTERMEDIATE, """
            terms = width
            """),
            quantity("root", "f", "divisor of the scores", "分数的除数", Kind.INTERMEDIATE, """
            root = sqrt(width)
            """),
        ),
        {},
    ),
    inputs={"ex.rows": np.array(20), "ex.width": np.array(64)},
    show=("ex.rows", "ex.width", "ex.scores", "ex.terms", "ex.root"),
    sliders=(Slider(("ex.rows", ()), 1, 40, 1), Slider(("ex.width", ()), 1, 128, 1)),
    curves=(Curve(words("divisor against d_k", "除数随 d_k 的变化"), 1, (("ex.root", ()),)),),
)  # fmt: skip

ONE_HEAD = Example(
    id="onehead",
    title=words("The four steps of one head, every number in sight", "单头的四步，每个数都摊开"),
    program=small_program(
        group(
            "onehead",
            quantity("X", "X", "input matrix", "输入矩阵", Kind.INPUT, "X[i,r]"),
            quantity("W_Q", "W_Q", "query projection", "Q 投影参数", Kind.PARAMETER, "W_Q[r,c]"),
            quantity("W_K", "W_K", "key projection", "K 投影参数", Kind.PARAMETER, "W_K[r,c]"),
            quantity("W_V", "W_V", "value projection", "V 投影参数", Kind.PARAMETER, "W_V[r,e]"),
            QUERIES,
            KEYS,
            VALUES,
            ALLOWED,
            quantity("S", "S", "matching scores", "匹配分数", Kind.INTERMEDIATE, """
            S[i,j] = sum(Q[i,c]*K[j,c] for c in d_k)/sqrt(d_k) if allowed[i,j] else -inf
            """),
            COEFFICIENTS,
            MIXED,
        ),
        {"n": 3, "d": 2, "d_k": 4, "d_v": 2},
        n_k="n",
    ),
    inputs={
        "ex.X": np.array([[1, 0], [0, 1], [1, 1]]),
        "ex.W_Q": np.array([[1, 0, 1, 0], [0, 1, 1, 1]]),
        "ex.W_K": np.array([[1, 1, 0, 0], [0, 1, 0, 1]]),
        "ex.W_V": np.array([[2, 0], [0, 1]]),
    },
    show=("ex.X", "ex.W_Q", "ex.W_K", "ex.W_V", "ex.Q", "ex.K", "ex.V", "ex.allowed", "ex.S", "ex.A", "ex.Z"),
)  # fmt: skip

TARGETS = Example(
    id="targets",
    title=words("The targets are the inputs, one place to the left", "目标就是输入整体左移一位"),
    program=small_program(
        group(
            "targets",
            quantity("t", "t", "token ids of the text", "整段文本的词元编号", Kind.INPUT, "t[j]"),
            quantity("following", r"\mathrm{next}", "the next position", "下一个位置", Kind.CONSTANT, """
            following[i] = i + 1
            """),
            quantity("y", "y", "target of each position", "各位置的目标", Kind.INTERMEDIATE, """
            y[i] = t[following[i]]
            """),
        ),
        {"n": 6, "n_k": 7},
    ),
    inputs={"ex.t": np.arange(7)},
    show=("ex.t", "ex.y"),
    labels={"n": TOKENS[:-1], "n_k": TOKENS},
    places=("ex.t", "ex.y"),
)  # fmt: skip

EXAMPLES = (DISTRIBUTION, LOOKUP, PLACES, SCATTER, FACTOR, ONE_HEAD, TARGETS)
