"""Chapter 12: from scores to a token, and what a cache saves."""

from __future__ import annotations

import numpy as np

from ...bilingual import words
from ...notation import Kind, group, quantity
from ..example import Example, Slider, small_program

DECODE = Example(
    id="decode",
    title=words("From scores to a token: temperature, top-k, top-p, the draw", "从分数到词元：温度、top-k、top-p 与抽签"),
    program=small_program(
        group(
            "decode",
            quantity("logits", r"\ell", "scores", "词表分数", Kind.INPUT, "logits[w]"),
            quantity("T", "T", "temperature", "温度", Kind.INPUT, "T"),
            quantity("top_k", "k", "how many candidates at most", "最多几个候选", Kind.INPUT, "top_k"),
            quantity("top_p", r"p_{\mathrm{top}}", "how much probability suffices", "概率够多少为止", Kind.INPUT, "top_p"),
            quantity("u", "u", "the draw, evenly between 0 and 1", "抽签，在 0 与 1 之间均匀", Kind.INPUT, "u"),
            quantity("warm", r"\ell/T", "scores over temperature", "除以温度的分数", Kind.INTERMEDIATE, """
            warm[w] = logits[w]/T
            """),
            quantity("p", "p", "probabilities", "概率", Kind.PROBABILITY, """
            p[w] = exp(warm[w])/sum(exp(warm[v]) for v in N)
            """),
            quantity("rank", "r", "how many are more probable", "有几个更可能", Kind.INTERMEDIATE, """
            rank[w] = sum(1 if p[v] > p[w] else 0 for v in N)
            """),
            quantity("before", "c", "probability of those", "它们的概率之和", Kind.INTERMEDIATE, """
            before[w] = sum(p[v] for v in N if p[v] > p[w])
            """),
            quantity("kept", "m", "kept", "留下", Kind.INTERMEDIATE, """
            kept[w] = 1 if rank[w] < top_k and before[w] < top_p else 0
            """),
            quantity("final", "p'", "probabilities to draw from", "用来抽签的概率", Kind.PROBABILITY, """
            final[w] = kept[w]*p[w]/sum(kept[v]*p[v] for v in N)
            """),
            quantity("up_to", "F", "added up", "累加", Kind.INTERMEDIATE, """
            up_to[w] = sum(final[v] for v in N if v <= w)
            """),
            quantity("drawn", "d", "drawn", "抽中", Kind.INTERMEDIATE, """
            drawn[w] = 1 if u < up_to[w] and up_to[w] - final[w] <= u else 0
            """),
        ),
        {"N": 5},
    ),
    inputs={
        "ex.logits": np.array([2, 1, 0.5, 0, -1]), "ex.T": np.array(1), "ex.top_k": np.array(4),
        "ex.top_p": np.array(0.9), "ex.u": np.array(0.7),
    },
    show=("ex.logits", "ex.T", "ex.p", "ex.top_k", "ex.top_p", "ex.kept", "ex.final", "ex.up_to", "ex.u", "ex.drawn"),
    sliders=(
        Slider(("ex.T", ()), 0.1, 3, 0.1), Slider(("ex.top_k", ()), 1, 5, 1), Slider(("ex.top_p", ()), 0.05, 1, 0.05),
        Slider(("ex.u", ()), 0, 0.99, 0.01),
    ),
    labels={"N": ("黑便", "出血", "皮疹", "头痛", "。")},
)  # fmt: skip

CACHED = Example(
    id="cached",
    title=words("A fifth row arrives: what has to be computed", "第五行来了：哪些要算"),
    program=small_program(
        group(
            "cached",
            quantity("held", "p", "positions held in the cache", "缓存里已有的位置数", Kind.INPUT, "held"),
            quantity("reads", r"\mathrm{reads}", "cells of the scores that exist", "存在的分数格", Kind.INTERMEDIATE, """
            reads[i,j] = 1 if j <= i else 0
            """),
            quantity("fresh", r"\mathrm{new}", "cells computed now", "这次要算的格", Kind.INTERMEDIATE, """
            fresh[i,j] = 1 if j <= i and i >= held else 0
            """),
            quantity("all_cells", "a", "cells without a cache", "不用缓存要算的格数", Kind.INTERMEDIATE, """
            all_cells = sum(reads[i,j] for i in n for j in n_k)
            """),
            quantity("new_cells", "b", "cells with one", "用缓存要算的格数", Kind.INTERMEDIATE, """
            new_cells = sum(fresh[i,j] for i in n for j in n_k)
            """),
        ),
        {"n": 5, "n_k": 5},
    ),
    inputs={"ex.held": np.array(4)},
    show=("ex.held", "ex.fresh", "ex.all_cells", "ex.new_cells"),
    sliders=(Slider(("ex.held", ()), 0, 4, 1),),
    labels={"n": ("患者", "服用", "华法林", "后", "出现"), "n_k": ("患者", "服用", "华法林", "后", "出现")},
)  # fmt: skip

EXAMPLES = (DECODE, CACHED)
