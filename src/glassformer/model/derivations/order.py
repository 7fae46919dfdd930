"""What attention knows of order: nothing without mask and positions; with rotary positions, the distance.

Both speak of the definitions that the model runs: attention is placed twice over the same parameters, once on a text and
once on the text with its positions permuted.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from glassformer.notation import Kind, Program, build_program, group, place, quantity
from glassformer.notation.lemma import Lemma, Operands, Premise
from glassformer.notation.operands import Array
from glassformer.notation.steps import Step

from ..attention import KEY_WEIGHT, KEYS, MATCHING, MIXING, QUERIES, QUERY_WEIGHT, VALUE_WEIGHT, VALUES
from ..rotary import ROTARY_TABLES, ROTATION

CONTENT = quantity("T", "T", "rows without positions", "不含位置的各行", Kind.INTERMEDIATE, "T[i,r]")
PLACES = quantity("P", "P", "what is added for the position", "为位置所加的向量", Kind.INTERMEDIATE, "P[i,r]")
PERMUTATION = quantity("perm", r"\pi", "which row comes where", "哪一行排到哪里", Kind.INPUT, "perm[i]")
READABLE = quantity("allowed", "J", "positions allowed to be read", "允许集合", Kind.INPUT, "allowed[i,j]")
ROWS = quantity("X", "X", "rows", "各行", Kind.INTERMEDIATE, "X[i,r] = T[i,r] + P[i,r]")
MOVED = quantity("X", "X'", "permuted rows", "置换后的各行", Kind.INTERMEDIATE, "X[i,r] = T[perm[i],r] + P[i,r]")
PLACE = quantity("pos", r"\mathrm{pos}", "positions", "位置编号", Kind.INPUT, "pos[i]")

QUERY = quantity("Q", "Q", "queries before the rotation", "旋转前的查询", Kind.INTERMEDIATE, "Q[h,i,c]")
KEY = quantity("K", "K", "keys before the rotation", "旋转前的键", Kind.INTERMEDIATE, "K[h,i,c]")

TEXT = group("text", CONTENT, PLACES, PERMUTATION, READABLE, QUERY_WEIGHT, KEY_WEIGHT, VALUE_WEIGHT, ROWS)
HEADS = group("heads", PLACE, QUERY, KEY)
MOVED_ROWS = group("moved rows", MOVED)
PROJECTED_ROWS = group("projected rows", QUERIES, KEYS, VALUES)

_SECOND = MappingProxyType({f"{name}_2": f"moved.{name}" for name in ("X", "Q", "K", "V", "S", "A", "Z")})


def permuted_program() -> Program:
    """Attention without biases on a text and on its permutation, parameters shared; there is no mask of the model's."""
    shared: dict[str, Any] = {q.name: f"text.{q.name}" for q in (QUERY_WEIGHT, KEY_WEIGHT, VALUE_WEIGHT)}
    shared |= {"n_k": "n", "b_Q": None, "b_K": None, "b_V": None}
    parts = [
        place(TEXT, "text", n_k="n"),
        place(MOVED_ROWS, "moved", T="text.T", P="text.P", perm="text.perm"),
    ]
    for path, rows in (("text", "text.X"), ("moved", "moved.X")):
        parts.append(place(PROJECTED_ROWS, path, X=rows, M=rows, **shared))
        Q, K, V, A = (f"{path}.{name}" for name in "QKVA")
        parts.append(place(MATCHING, path, Q=Q, K=K, allowed="text.allowed", n_k="n"))
        parts.append(place(MIXING, path, A=A, V=V, n_k="n"))
    return build_program(parts, {"n": 5, "d": 4, "d_k": 3, "d_v": 2, "H": 2})


def rotary_program() -> Program:
    """The model's rotation of queries and keys, with positions that are any whole numbers."""
    tables: dict[str, Any] = {name: f"rope.{name}" for name in ("partner", "sign", "cos_", "sin_")}
    parts = [
        place(HEADS, "attn"),
        place(ROTARY_TABLES, "rope", pos="attn.pos"),
        place(ROTATION, "attn", Q="attn.Q", K="attn.K", n_k="n", G="H", **tables),
    ]
    return build_program(parts, {"n": 6, "d_k": 4, "H": 2, "base": 50.0})


def _permuted(values: Mapping[str, Array], rng: np.random.Generator) -> Operands:
    return {"perm": rng.permutation(len(values["perm"]))}


def _followed(name: str, axes: int) -> Premise:
    """That the quantity of the permuted text is the permuted quantity, along its first ``axes`` axes after the head."""

    def impose(values: Mapping[str, Array], rng: np.random.Generator) -> Operands:
        perm = values["perm"]
        moved = values[name][:, perm]
        return {f"{name}_2": moved[:, :, perm] if axes == 2 else moved}

    return Premise(
        f"{name} follows",
        f"{name} of the permuted text is {name} of the text, permuted (shown before)",
        f"置换后文本的 {name} 就是原文本 {name} 的置换（前面已证）",
        impose,
    )


IS_PERMUTATION = Premise(
    "permutation",
    "every row comes exactly once",
    "每一行恰好出现一次",
    _permuted,
)
NO_MASK = Premise(
    "no mask",
    "every row may read every row",
    "每一行都可以读取所有行",
    lambda values, rng: {"allowed": np.ones_like(values["allowed"])},
)
NO_POSITIONS = Premise(
    "no positions",
    "nothing is added for the position",
    "不加任何位置信息",
    lambda values, rng: {"P": np.zeros_like(values["P"])},
)
ONE_AFTER_ANOTHER = Premise(
    "one after another",
    "positions count the rows",
    "位置编号依次为各行的序号",
    lambda values, rng: {"pos": np.arange(len(values["pos"])) + int(rng.integers(0, 9))},
)

_BY_SOFTMAX = ("softmax of the row, by definition", "按定义，是该行的 Softmax")

SCORES_FOLLOW = Lemma(
    "permuted-scores", "permuted rows have permuted scores", "置换各行，分数随之置换", "8.6", permuted_program, "h i j",
    (
        Step(
            "sum(Q_2[h,i,c]*K_2[h,j,c] for c in d_k)/sqrt(d_k) if allowed[i,j] else -inf",
            "a score of the permuted text",
            "置换后文本的一个分数",
        ),
        Step(
            "sum(Q_2[h,i,c]*K_2[h,j,c] for c in d_k)/sqrt(d_k)",
            "without a mask every row reads every row (a causal mask alone breaks this)",
            "没有掩码时每一行读取所有行（仅有因果掩码就已破坏这一步）",
            ("no mask",),
        ),
        Step(
            "sum(Q[h,perm[i],c]*K[h,perm[j],c] for c in d_k)/sqrt(d_k)",
            "a query or key is made of its own row alone, and without positions the row at i is row π(i) of the text",
            "查询与键只由本行产生；没有位置信息时第 i 行就是原文本的第 π(i) 行",
            ("no positions", "X", "X_2", "Q", "K", "Q_2", "K_2"),
        ),
        Step(
            "S[h,perm[i],perm[j]]",
            "a score of the text, which has no mask either",
            "原文本的一个分数，同样没有掩码",
            ("no mask", "S"),
        ),
    ),
    (IS_PERMUTATION, NO_MASK, NO_POSITIONS),
    _SECOND,
)  # fmt: skip

COEFFICIENTS_FOLLOW = Lemma(
    "permuted-coefficients", "and permuted coefficients", "混合系数随之置换", "8.6", permuted_program, "h i j",
    (
        Step("exp(S_2[h,i,j])/sum(exp(S_2[h,i,m]) for m in n_k)", *_BY_SOFTMAX),
        Step(
            "exp(S[h,perm[i],perm[j]])/sum(exp(S[h,perm[i],perm[m]]) for m in n_k)",
            "the scores are permuted scores",
            "分数是置换后的分数",
            ("S follows",),
        ),
        Step(
            "exp(S[h,perm[i],perm[j]])/sum(exp(S[h,perm[i],m]) for m in n_k)",
            "the sum runs over every row once, in another order",
            "求和恰好遍历每一行一次，只是次序不同",
            ("permutation",),
        ),
        Step("A[h,perm[i],perm[j]]", *_BY_SOFTMAX, ("A",)),
    ),
    (IS_PERMUTATION, _followed("S", 2)),
    _SECOND,
)  # fmt: skip

OUTPUT_FOLLOWS = Lemma(
    "permutation-equivariance", "and a permuted output: attention alone knows no order", "输出随之置换：注意力本身不知道次序",
    "8.6", permuted_program, "h i e",
    (
        Step("sum(A_2[h,i,j]*V_2[h,j,e] for j in n_k)", "mixed values of the permuted text", "置换后文本的混合结果"),
        Step(
            "sum(A[h,perm[i],perm[j]]*V[h,perm[j],e] for j in n_k)",
            "coefficients and values are permuted ones",
            "系数与内容都是置换后的",
            ("A follows", "V follows"),
        ),
        Step(
            "sum(A[h,perm[i],m]*V[h,m,e] for m in n_k)",
            "the sum runs over every row once, in another order",
            "求和恰好遍历每一行一次，只是次序不同",
            ("permutation",),
        ),
        Step("Z[h,perm[i],e]", "row π(i) of the output", "输出的第 π(i) 行", ("Z",)),
    ),
    (IS_PERMUTATION, _followed("A", 2), _followed("V", 1)),
    _SECOND,
)  # fmt: skip

_TURNED_SUM = (
    "sum(Q[h,i,c]*K[h,j,c]*(cos_[i,c]*cos_[j,c] + sin_[i,c]*sin_[j,c])"
    " + sign[c]*Q[h,i,partner[c]]*K[h,j,c]*(sin_[i,c]*cos_[j,c] - cos_[i,c]*sin_[j,c]) for c in d_k)"
)


def _by_angle(angle: str) -> str:
    return (
        f"sum(Q[h,i,c]*K[h,j,c]*cos({angle}*freq[c])"
        f" - sign[c]*Q[h,i,partner[c]]*K[h,j,c]*sin({angle}*freq[c]) for c in d_k)"
    )


RELATIVE = Lemma(
    "rotary-distance", "scores of rotated queries and keys depend on their distance", "旋转后的分数只依赖相对距离", "8.6",
    rotary_program, "h i j",
    (
        Step("sum(Q_R[h,i,c]*K_R[h,j,c] for c in d_k)", "a score, before the division", "相除之前的一个分数"),
        Step(
            "sum((Q[h,i,c]*cos_[i,c] + sign[c]*Q[h,i,partner[c]]*sin_[i,c])"
            "*(K[h,j,c]*cos_[j,c] + sign[c]*K[h,j,partner[c]]*sin_[j,c]) for c in d_k)",
            "the rotations, by definition",
            "代入旋转的定义",
            ("Q_R", "K_R"),
        ),
        Step(
            _TURNED_SUM,
            "multiply out, and rename c to its partner in the terms that read the key's partner: partners are mutual, "
            "have opposite signs and turn by the same angle",
            "展开，并在读取键的配对坐标的各项中把 c 换成它的配对：配对是相互的，符号相反，转角相同",
            ("partner", "sign", "cos_", "sin_"),
        ),
        Step(
            _by_angle("(pos[j] - pos[i])"),
            "cosine and sine of a difference of angles: both positions have gone, their distance is left",
            "角度差的余弦与正弦公式：两个位置本身消失，只剩距离",
            ("cos_", "sin_"),
        ),
        Step(
            _by_angle("(j - i)"),
            "in a text positions follow one another; where the count begins does not matter",
            "文本中的位置依次相接；从几开始数无关紧要",
            ("one after another",),
        ),
    ),
    (ONE_AFTER_ANOTHER,),
)  # fmt: skip

ORDER_LEMMAS: tuple[Lemma, ...] = (SCORES_FOLLOW, COEFFICIENTS_FOLLOW, OUTPUT_FOLLOWS, RELATIVE)
