"""Chapters 5 to 7: matching, mixing, scale, mask."""

from __future__ import annotations

import numpy as np

from ...bilingual import words
from ...notation import Kind, group, quantity
from ..example import Example, Slider, small_program

SCORES = quantity("S", "s", "scores", "分数", Kind.INPUT, "S[j]")
VALUES = quantity("V", "V", "values", "内容向量", Kind.INPUT, "V[j,e]")
COEFFICIENTS = quantity("A", "a", "coefficients", "混合系数", Kind.COEFFICIENT, """
A[j] = exp(S[j])/sum(exp(S[m]) for m in n_k)
""")  # fmt: skip
MIXED = quantity("Z", "z", "what is read", "读到的内容", Kind.INTERMEDIATE, "Z[e] = sum(A[j]*V[j,e] for j in n_k)")

HULL = Example(
    id="hull",
    title=words("Scores (ln 2, 0, 0) read a point of the triangle", "分数 (ln 2, 0, 0) 读到三角形里的一点"),
    program=small_program(group("hull", SCORES, VALUES, COEFFICIENTS, MIXED), {"n_k": 3, "d_v": 2}),
    inputs={"ex.S": np.array([np.log(2), 0, 0]), "ex.V": np.array([[0, 0], [4, 0], [0, 4]])},
    show=("ex.S", "ex.A", "ex.V", "ex.Z"),
    sliders=tuple(Slider(("ex.S", (j,)), -4, 4, 0.1) for j in range(3)),
)

EXAMPLES = (HULL,)
