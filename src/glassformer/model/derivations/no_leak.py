"""Why nothing leaks round through many layers: an induction over layers, with its condition.

``dep[i,m]`` says whether row ``i`` of a layer depends on the token at position ``m``. Of the next layer's row ``i`` two
things are read: row ``i`` itself (residual, query, norms and feed-forward network work on one position at a time) and
the rows that the mask allows. So dependence follows a recursion, and the induction is about it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glassformer.notation import Kind, Program, build_program, group, place, quantity
from glassformer.notation.lemma import Lemma, Operands, Premise
from glassformer.notation.operands import Array
from glassformer.notation.steps import Step

from ..mask import ALLOWED

READABLE = quantity(ALLOWED.name, ALLOWED.symbol, ALLOWED.en, ALLOWED.zh, Kind.INPUT, "allowed[i,j]")
DEPENDS = quantity(
    "dep", r"\delta^{(\ell)}", "whether a row depends on a token", "一行是否依赖某个词元", Kind.INPUT, "dep[i,m]"
)
NEXT = quantity(
    "dep_next", r"\delta^{(\ell+1)}", "the same one layer on", "下一层的同一问题", Kind.INTERMEDIATE,
    "dep_next[i,m] = 1 if dep[i,m] + sum(allowed[i,j]*dep[j,m] for j in n_k) > 0 else 0",
)  # fmt: skip

DEPENDENCE = group("dependence", READABLE, DEPENDS, NEXT)


def program(n: int = 6) -> Program:
    """``n`` positions; the mask and what depends on what are operands."""
    return build_program([place(DEPENDENCE, "leak", n_k="n")], {"n": n, "H": 1})


def _lower(name: str) -> Premise:
    def impose(values: Mapping[str, Array], rng: np.random.Generator) -> Operands:
        return {name: np.tril(values[name])}

    said = {
        "allowed": (
            "mask",
            "no row may read a later one: every operation across positions respects the mask",
            "任何一行都不得读取其后的行：所有跨位置操作都遵守掩码",
        ),
        "dep": (
            "hypothesis",
            "in this layer no row depends on a later token",
            "在这一层，没有任何一行依赖其后的词元",
        ),
    }[name]
    return Premise(*said, impose)


MASK = _lower("allowed")
HYPOTHESIS = _lower("dep")

BASE = Lemma(
    "no-leak-base", "no leak: the first layer", "不会偷看未来：第一层", "7.5", program, "i m",
    (
        Step(
            "(1 if i == m else 0) if m > i else 0",
            "row i of the input is made of the token at i and of its position; asked for later tokens m > i only",
            "输入的第 i 行只由位置 i 的词元及其位置决定；这里只问其后的 m > i",
        ),
        Step("0", "a later position is another position", "其后的位置不是同一个位置"),
    ),
)  # fmt: skip

INDUCTION = Lemma(
    "no-leak-step", "no leak: from one layer to the next", "不会偷看未来：从一层到下一层", "7.5", program, "i m",
    (
        Step(
            "dep_next[i,m] if m > i else 0",
            "whether row i of the next layer depends on a later token m > i",
            "下一层的第 i 行是否依赖其后的词元 m > i",
        ),
        Step(
            "(1 if dep[i,m] + sum(allowed[i,j]*dep[j,m] for j in n_k) > 0 else 0) if m > i else 0",
            "it is made of row i itself and of the rows j that it may read",
            "它由第 i 行自身以及允许读取的各行 j 构成",
            ("dep_next",),
        ),
        Step(
            "(1 if dep[i,m] + sum(allowed[i,j]*dep[j,m] for j in n_k if j <= i) > 0 else 0) if m > i else 0",
            "the mask allows j ≤ i only",
            "掩码只允许 j ≤ i",
            ("mask",),
        ),
        Step(
            "0",
            "row i and every j ≤ i depend, by hypothesis, on tokens up to i only, and m is later: nothing is left. "
            "With the first layer this holds for every layer",
            "由归纳假设，第 i 行与每个 j ≤ i 只依赖到 i 为止的词元，而 m 更靠后：什么也不剩。连同第一层，对每一层都成立",
            ("hypothesis",),
        ),
    ),
    (MASK, HYPOTHESIS),
)  # fmt: skip

NO_LEAK_LEMMAS: tuple[Lemma, ...] = (BASE, INDUCTION)
