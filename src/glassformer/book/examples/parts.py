"""Chapter 8: activation, normalisation, rotation, cross-attention."""

from __future__ import annotations

import numpy as np

from ...bilingual import words
from ...notation import Kind, group, quantity
from ..example import Example, Slider, small_program
from .shared import COEFFICIENTS, MIXED, SCORES

MERGED = Example(
    id="merged",
    title=words("Two products are one, until an activation comes between", "两次乘法并成一次，直到中间隔着激活"),
    program=small_program(
        group(
            "merged",
            quantity("x", "x", "a row", "一行", Kind.INPUT, "x[r]"),
            quantity("W_1", "W_1", "first matrix", "第一个矩阵", Kind.INPUT, "W_1[r,f]"),
            quantity("W_2", "W_2", "second matrix", "第二个矩阵", Kind.INPUT, "W_2[f,e]"),
            quantity("product", "W_{12}", "their product", "两者之积", Kind.INTERMEDIATE, """
            product[r,e] = sum(W_1[r,f]*W_2[f,e] for f in d_ff)
            """),
            quantity("inside", "B", "before the activation", "激活之前", Kind.INTERMEDIATE, """
            inside[f] = sum(x[r]*W_1[r,f] for r in d)
            """),
            quantity("plain", "y", "without an activation", "没有激活", Kind.INTERMEDIATE, """
            plain[e] = sum(inside[f]*W_2[f,e] for f in d_ff)
            """),
            quantity("once", "y'", "by the product at once", "直接乘积矩阵", Kind.INTERMEDIATE, """
            once[e] = sum(x[r]*product[r,e] for r in d)
            """),
            quantity("relu", r"y_{\mathrm{ReLU}}", "with ReLU in between", "中间有 ReLU", Kind.INTERMEDIATE, """
            relu[e] = sum(max(inside[f], 0)*W_2[f,e] for f in d_ff)
            """),
        ),
        {"d": 2, "d_ff": 3, "d_v": 2},
    ),
    inputs={
        "ex.x": np.array([1, -1]),
        "ex.W_1": np.array([[1, 0, 2], [0, 1, 1]]),
        "ex.W_2": np.array([[1, 0], [0, 1], [1, 1]]),
    },
    show=("ex.x", "ex.W_1", "ex.W_2", "ex.product", "ex.inside", "ex.plain", "ex.once", "ex.relu"),
)  # fmt: skip

LAYERNORM = Example(
    id="layernorm",
    title=words("One row through LayerNorm", "一行数通过 LayerNorm"),
    program=small_program(
        group(
            "layernorm",
            quantity("x", "x", "a row", "一行", Kind.INPUT, "x[r]"),
            quantity("gamma", r"\gamma", "scale", "缩放", Kind.INPUT, "gamma[r]"),
            quantity("beta", r"\beta", "shift", "平移", Kind.INPUT, "beta[r]"),
            quantity("mu", r"\mu", "mean", "均值", Kind.INTERMEDIATE, "mu = mean(x[r] for r in d)"),
            quantity("var", "v", "population variance", "总体方差", Kind.INTERMEDIATE, """
            var = mean((x[r] - mu)**2 for r in d)
            """),
            quantity("xhat", r"\hat x", "normalised", "归一化", Kind.INTERMEDIATE, """
            xhat[r] = (x[r] - mu)/sqrt(var + eps)
            """),
            quantity("Y", "y", "output", "输出", Kind.INTERMEDIATE, "Y[r] = gamma[r]*xhat[r] + beta[r]"),
            quantity("average", r"\overline{\hat x}", "mean afterwards", "之后的均值", Kind.INTERMEDIATE, """
            average = mean(xhat[r] for r in d)
            """),
            quantity("square", r"\overline{\hat x^2}", "mean square afterwards", "之后的均方", Kind.INTERMEDIATE, """
            square = mean(xhat[r]**2 for r in d)
            """),
        ),
        {"d": 4, "eps": 1e-3},
    ),
    inputs={
        "ex.x": np.array([1, 3, 2, 6]),
        "ex.gamma": np.array([1, 1, 2, 1]),
        "ex.beta": np.array([0, 0, 0, 0.5]),
    },
    show=("ex.x", "ex.mu", "ex.var", "ex.xhat", "ex.average", "ex.square", "ex.gamma", "ex.beta", "ex.Y"),
)  # fmt: skip

ROTATION = Example(
    id="rotation",
    title=words("One pair of coordinates, turned by its position", "一对坐标，按位置旋转"),
    program=small_program(
        group(
            "rotation",
            quantity("Q", "q", "query", "查询", Kind.INPUT, "Q[c]"),
            quantity("K", "k", "key", "键", Kind.INPUT, "K[c]"),
            quantity("at_q", "i", "position of the query", "查询的位置", Kind.INPUT, "at_q"),
            quantity("at_k", "j", "position of the key", "键的位置", Kind.INPUT, "at_k"),
            quantity("angle", r"\omega", "angle per position", "每个位置的角度", Kind.INPUT, "angle"),
            quantity("turned_q", r"\tilde q", "query, turned", "旋转后的查询", Kind.INTERMEDIATE, """
            turned_q[c] = Q[c]*cos(at_q*angle) + (2*c - 1)*sum(Q[a] for a in d_k if a != c)*sin(at_q*angle)
            """),
            quantity("turned_k", r"\tilde k", "key, turned", "旋转后的键", Kind.INTERMEDIATE, """
            turned_k[c] = K[c]*cos(at_k*angle) + (2*c - 1)*sum(K[a] for a in d_k if a != c)*sin(at_k*angle)
            """),
            quantity("score", "s", "score", "分数", Kind.INTERMEDIATE, """
            score = sum(turned_q[c]*turned_k[c] for c in d_k)
            """),
        ),
        {"d_k": 2},
    ),
    inputs={
        "ex.Q": np.array([1, 0.5]), "ex.K": np.array([0.5, 1]),
        "ex.at_q": np.array(1), "ex.at_k": np.array(2), "ex.angle": np.array(0.5),
    },
    show=("ex.Q", "ex.K", "ex.at_q", "ex.at_k", "ex.angle", "ex.turned_q", "ex.turned_k", "ex.score"),
    sliders=(Slider(("ex.at_q", ()), 0, 8, 1), Slider(("ex.at_k", ()), 0, 8, 1)),
)  # fmt: skip

CROSS = Example(
    id="cross",
    title=words("Two rows read three rows of another text", "两行去读另一段文字的三行"),
    program=small_program(
        group(
            "cross",
            quantity("Q", "Q", "queries of the target", "目标一侧的查询", Kind.INPUT, "Q[i,c]"),
            quantity("K", "K", "keys of the source", "源一侧的键", Kind.INPUT, "K[j,c]"),
            quantity("V", "V", "values of the source", "源一侧的内容", Kind.INPUT, "V[j,e]"),
            SCORES,
            COEFFICIENTS,
            MIXED,
        ),
        {"n": 2, "n_k": 3, "d_k": 2, "d_v": 2},
    ),
    inputs={
        "ex.Q": np.array([[1, 0], [0, 2]]),
        "ex.K": np.array([[1, 1], [0, 1], [2, 0]]),
        "ex.V": np.array([[1, 0], [0, 1], [1, 1]]),
    },
    show=("ex.Q", "ex.K", "ex.S", "ex.A", "ex.V", "ex.Z"),
)  # fmt: skip

EXAMPLES = (MERGED, LAYERNORM, ROTATION, CROSS)
