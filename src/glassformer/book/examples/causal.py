"""Chapter 7, second half: the mask on the fixed sentence, a zero that is not the mask's, dependence through layers."""

from __future__ import annotations

import numpy as np

from ...bilingual import words
from ...model.mask import ALLOWED
from ...notation import Kind, Quantity, group, quantity
from ..example import Example, small_program
from .sentence import TOKENS
from .shared import COEFFICIENTS, SHARES

_LENGTH = len(TOKENS)

MASK = Example(
    id="mask",
    title=words("The mask on the fixed sentence", "固定例句上的掩码"),
    program=small_program(
        group(
            "mask",
            quantity("S_0", "S_0", "scores before the mask", "掩码之前的分数", Kind.INPUT, "S_0[i,j]"),
            ALLOWED,
            quantity("S", "S", "scores after the mask", "掩码之后的分数", Kind.INTERMEDIATE, """
            S[i,j] = S_0[i,j] if allowed[i,j] else -inf
            """),
            COEFFICIENTS,
        ),
        {"n": _LENGTH},
        n_k="n",
    ),
    inputs={
        "ex.S_0": np.array(
            [
                [0, 2, 1, 0, 1, 3, 0], [1, 0, 2, 0, 1, 1, 0], [0, 1, 0, 2, 0, 2, 1], [1, 0, 1, 0, 2, 0, 1],
                [0, 0, 1, 0, 0, 3, 1], [1, 0, 2, 0, 1, 0, 2], [0, 1, 0, 1, 0, 1, 0],
            ]
        )
    },
    show=("ex.S_0", "ex.allowed", "ex.S", "ex.A"),
    labels={"n": TOKENS},
    notes={"ex.S_0": words("Constructed, not computed by a trained model.", "人为给定，并非训练好的模型算出。")},
)  # fmt: skip

UNDERFLOW = Example(
    id="underflow",
    title=words("A zero that no mask has made", "不是掩码造成的零"),
    program=small_program(
        group(
            "underflow",
            quantity("S", "s", "scores, all allowed", "分数，全部允许读取", Kind.INPUT, "S[j]"),
            SHARES,
        ),
        {"n_k": 3},
    ),
    inputs={"ex.S": np.array([0, -8, -800])},
    show=("ex.S", "ex.A"),
)  # fmt: skip


def _layer(name: str, before: str, number: int) -> Quantity:
    return quantity(
        name,
        rf"\delta^{{({number})}}",
        f"whether a row depends on a token, after {number} layer{'s' if number > 1 else ''}",
        f"{number} 层之后，一行是否依赖某个词元",
        Kind.INTERMEDIATE,
        f"{name}[i,m] = 1 if {before}[i,m] + sum(reads[i,j]*{before}[j,m] for j in n_k) > 0 else 0",
    )


SPREAD = Example(
    id="spread",
    title=words("Who can depend on whom, layer by layer", "逐层看：谁可能依赖谁"),
    program=small_program(
        group(
            "spread",
            quantity("reads", "J", "whether a row reads a position", "一行是否读取某个位置", Kind.INPUT, "reads[i,j]"),
            quantity("dep_0", r"\delta^{(0)}", "whether a row depends on a token, at the start", "起初，一行是否依赖某个词元",
                     Kind.INTERMEDIATE, "dep_0[i,m] = 1 if i == m else 0"),
            _layer("dep_1", "dep_0", 1),
            _layer("dep_2", "dep_1", 2),
            _layer("dep_3", "dep_2", 3),
            quantity("leaks", r"\Sigma", "rows that depend on a later token", "依赖了后文的格数", Kind.INTERMEDIATE, """
            leaks = sum(dep_3[i,m] for i in n for m in n_k if m > i)
            """),
        ),
        {"n": _LENGTH},
        n_k="n",
    ),
    inputs={"ex.reads": np.eye(_LENGTH) + np.eye(_LENGTH, k=-1)},
    show=("ex.reads", "ex.dep_0", "ex.dep_1", "ex.dep_2", "ex.dep_3", "ex.leaks"),
    labels={"n": TOKENS},
    notes={"ex.reads": words("1 allows, 0 forbids; edit it.", "1 表示允许，0 表示禁止，可以修改。")},
)  # fmt: skip

EXAMPLES = (MASK, UNDERFLOW, SPREAD)
