"""Chapters 5 and 6: reading elsewhere, matching, mixing, softmax, the convex hull."""

from __future__ import annotations

import numpy as np

from ...bilingual import same, words
from ...notation import Kind, Quantity, group, quantity
from ..example import Example, Slider, small_program
from .shared import CONTENT, KEYS, MIXED, QUERIES, READ, SHARES, VALUES

_SCORES = quantity("S", "s", "scores", "分数", Kind.INPUT, "S[j]")

ALONE = Example(
    id="alone",
    title=words("A function of one row, and a mixture of rows", "只看本行的函数，与各行的混合"),
    program=small_program(
        group(
            "alone",
            quantity("X", "X", "rows", "各行", Kind.INPUT, "X[i,r]"),
            quantity("A", "A", "mixing coefficients", "混合系数", Kind.INPUT, "A[i,j]"),
            quantity("F", "F", "each row squared", "逐行平方", Kind.INTERMEDIATE, "F[i,r] = X[i,r]**2"),
            quantity("Z", "Z", "mixture of rows", "各行的混合", Kind.INTERMEDIATE, """
            Z[i,r] = sum(A[i,j]*X[j,r] for j in n_k)
            """),
        ),
        {"n": 2, "d": 2},
        n_k="n",
    ),
    inputs={"ex.X": np.array([[4, 0], [1, 2]]), "ex.A": np.array([[1, 0], [0.5, 0.5]])},
    show=("ex.X", "ex.F", "ex.A", "ex.Z"),
)  # fmt: skip

ASYMMETRIC = Example(
    id="asymmetric",
    title=words("a matches b, b does not match a", "a 匹配 b，b 却不匹配 a"),
    program=small_program(
        group(
            "asymmetric",
            quantity("X", "X", "rows a and b", "a、b 两行", Kind.INPUT, "X[i,r]"),
            quantity("W_Q", "W_Q", "query projection", "Q 投影参数", Kind.PARAMETER, "W_Q[r,c]"),
            quantity("W_K", "W_K", "key projection", "K 投影参数", Kind.PARAMETER, "W_K[r,c]"),
            quantity("direct", "D", "rows against rows", "行与行直接相乘", Kind.INTERMEDIATE, """
            direct[i,j] = sum(X[i,r]*X[j,r] for r in d)
            """),
            QUERIES,
            KEYS,
            quantity("S", "S", "queries against keys", "查询与键相乘", Kind.INTERMEDIATE, """
            S[i,j] = sum(Q[i,c]*K[j,c] for c in d_k)
            """),
            quantity("B", "B", "bilinear form", "双线性形式", Kind.INTERMEDIATE, """
            B[r,q] = sum(W_Q[r,c]*W_K[q,c] for c in d_k)
            """),
            quantity("through", "S_B", "rows against rows through B", "行与行经由 B 相乘", Kind.INTERMEDIATE, """
            through[i,j] = sum(X[i,r]*B[r,q]*X[j,q] for r in d for q in d)
            """),
        ),
        {"n": 2, "d": 2, "d_k": 1},
        n_k="n",
    ),
    inputs={"ex.X": np.eye(2), "ex.W_Q": np.array([[1], [0]]), "ex.W_K": np.array([[0], [1]])},
    show=("ex.X", "ex.W_Q", "ex.W_K", "ex.direct", "ex.Q", "ex.K", "ex.S", "ex.B", "ex.through"),
    labels={"n": ("a", "b")},
)  # fmt: skip

SYMMETRIC = Example(
    id="symmetric",
    title=words("One matrix for both sides", "两侧共用一个矩阵"),
    program=small_program(
        group(
            "symmetric",
            quantity("X", "x", "a row", "一行", Kind.INPUT, "X[r]"),
            quantity("W", "W", "the shared projection", "共用的投影参数", Kind.PARAMETER, "W[r,c]"),
            quantity("B", "B", "bilinear form", "双线性形式", Kind.INTERMEDIATE, """
            B[r,q] = sum(W[r,c]*W[q,c] for c in d_k)
            """),
            quantity("form", r"xBx^{\top}", "a row against itself", "一行与它自己的分数", Kind.INTERMEDIATE, """
            form = sum(X[r]*B[r,q]*X[q] for r in d for q in d)
            """),
            quantity("Q", "q", "its projection", "它的投影", Kind.INTERMEDIATE, "Q[c] = sum(X[r]*W[r,c] for r in d)"),
            quantity("square", r"\|q\|^2", "squared length of it", "投影长度的平方", Kind.INTERMEDIATE, """
            square = sum(Q[c]**2 for c in d_k)
            """),
        ),
        {"d": 2, "d_k": 1},
    ),
    inputs={"ex.X": np.array([1, -2]), "ex.W": np.array([[1], [2]])},
    show=("ex.X", "ex.W", "ex.B", "ex.form", "ex.Q", "ex.square"),
    sliders=tuple(Slider(("ex.X", (r,)), -3, 3, 0.5) for r in range(2)),
)  # fmt: skip

DOUBLED = Example(
    id="doubled",
    title=words("W_V times a factor: the shares stay, what is read grows", "W_V 乘一个倍数：份额不动，读到的内容变大"),
    program=small_program(
        group(
            "doubled", _SCORES,
            quantity("X", "X", "the two candidates", "两个候选位置", Kind.INPUT, "X[j,r]"),
            quantity("W_V", "W_V", "value projection", "V 投影参数", Kind.PARAMETER, "W_V[r,e]"),
            quantity("times", r"\lambda", "factor on W_V", "W_V 的倍数", Kind.INPUT, "times"),
            SHARES,
            VALUES,
            READ,
            quantity("V_new", r"V_{\lambda}", "values from the larger W_V", "放大 W_V 后的内容", Kind.INTERMEDIATE, """
            V_new[j,e] = sum(X[j,r]*(times*W_V[r,e]) for r in d)
            """),
            quantity("Z_new", r"z_{\lambda}", "what is then read", "此时读到的内容", Kind.INTERMEDIATE, """
            Z_new[e] = sum(A[j]*V_new[j,e] for j in n_k)
            """),
        ),
        {"n_k": 2, "d": 2, "d_v": 2},
    ),
    inputs={
        "ex.S": np.array([np.log(4), 0]), "ex.X": np.eye(2), "ex.W_V": np.eye(2), "ex.times": np.array(2),
    },
    show=("ex.S", "ex.A", "ex.X", "ex.W_V", "ex.V", "ex.Z", "ex.times", "ex.V_new", "ex.Z_new"),
    sliders=(Slider(("ex.times", ()), 0, 4, 0.5), Slider(("ex.S", (0,)), -3, 3, 0.1)),
)  # fmt: skip

DOT = Example(
    id="dot",
    title=words("A dot product, term by term", "点积，逐项写开"),
    program=small_program(
        group(
            "dot",
            quantity("Q", "q", "a query", "一个查询", Kind.INPUT, "Q[c]"),
            quantity("K", "k", "a key", "一个键", Kind.INPUT, "K[c]"),
            quantity("Y", "Y", "products", "各坐标的乘积", Kind.INTERMEDIATE, "Y[c] = Q[c]*K[c]"),
            quantity("D", r"qk^{\top}", "their sum", "乘积之和", Kind.INTERMEDIATE, "D = sum(Y[c] for c in d_k)"),
            quantity("lengths", r"\|q\|\,\|k\|", "length times length", "两个长度之积", Kind.INTERMEDIATE, """
            lengths = sqrt(sum(Q[c]**2 for c in d_k))*sqrt(sum(K[c]**2 for c in d_k))
            """),
        ),
        {"d_k": 3},
    ),
    inputs={"ex.Q": np.array([2, -1, 3]), "ex.K": np.array([1, 4, -1])},
    show=("ex.Q", "ex.K", "ex.Y", "ex.D", "ex.lengths"),
)  # fmt: skip

SHIFT = Example(
    id="shift",
    title=words("Scores shifted, scores multiplied", "分数平移，分数放大"),
    program=small_program(
        group(
            "shift", _SCORES, SHARES,
            quantity("ratio", "R", "share over share", "份额之比", Kind.INTERMEDIATE, "ratio[j,m] = A[j]/A[m]"),
            quantity("plus", "c", "added to all scores", "所有分数同加", Kind.INPUT, "plus"),
            quantity("A_plus", "a_{+}", "shares after the addition", "相加之后的份额", Kind.COEFFICIENT, """
            A_plus[j] = exp(S[j] + plus)/sum(exp(S[m] + plus) for m in n_k)
            """),
            quantity("times", r"\lambda", "multiplies all scores", "所有分数同乘", Kind.INPUT, "times"),
            quantity("A_times", r"a_{\times}", "shares after that", "相乘之后的份额", Kind.COEFFICIENT, """
            A_times[j] = exp(times*S[j])/sum(exp(times*S[m]) for m in n_k)
            """),
        ),
        {"n_k": 3},
    ),
    inputs={"ex.S": np.array([2, 1, 0]), "ex.plus": np.array(100), "ex.times": np.array(100)},
    show=("ex.S", "ex.A", "ex.ratio", "ex.plus", "ex.A_plus", "ex.times", "ex.A_times"),
    sliders=(Slider(("ex.plus", ()), -100, 100, 10), Slider(("ex.times", ()), 0, 100, 1)),
)  # fmt: skip

HULL = Example(
    id="hull",
    title=words("Scores (ln 2, 0, 0) read a point of the triangle", "分数 (ln 2, 0, 0) 读到三角形里的一点"),
    program=small_program(group("hull", _SCORES, CONTENT, SHARES, READ), {"n_k": 3, "d_v": 2}),
    inputs={"ex.S": np.array([np.log(2), 0, 0]), "ex.V": np.array([[0, 0], [4, 0], [0, 4]])},
    planes=(("ex.V", "ex.Z"),),
    show=("ex.S", "ex.A", "ex.V", "ex.Z"),
    sliders=tuple(Slider(("ex.S", (j,)), -4, 4, 0.1) for j in range(3)),
)

ENTRYWISE = Example(
    id="entrywise",
    title=words("AV entry by entry, and one row as a sum over positions", "逐元素的 AV，与按位置相加的一行"),
    program=small_program(
        group(
            "entrywise",
            quantity("A", "A", "mixing coefficients", "混合系数", Kind.INPUT, "A[i,j]"),
            CONTENT,
            MIXED,
            quantity("chosen", "i", "the row followed", "跟踪的行", Kind.INPUT, "chosen"),
            quantity("parts", "P", "what each position gives", "每个位置给出的部分", Kind.INTERMEDIATE, """
            parts[j,e] = A[chosen,j]*V[j,e]
            """),
            quantity("total", "z", "their sum", "各部分之和", Kind.INTERMEDIATE, """
            total[e] = sum(parts[j,e] for j in n_k)
            """),
        ),
        {"n": 3, "n_k": 3, "d_v": 2},
    ),
    inputs={
        "ex.A": np.array([[1, 0, 0], [0.75, 0.25, 0], [0.5, 0.25, 0.25]]),
        "ex.V": np.array([[0, 0], [4, 0], [0, 4]]), "ex.chosen": np.array(2),
    },
    show=("ex.A", "ex.V", "ex.Z", "ex.chosen", "ex.parts", "ex.total"),
    sliders=(Slider(("ex.chosen", ()), 0, 2, 1),),
)  # fmt: skip


def _prefix(name: str, mark: str, en: str, zh: str) -> tuple[Quantity, ...]:
    """The last token reads the prefix ``t_NAME``; queries, keys and values are the embeddings themselves."""
    return (
        quantity(f"t_{name}", f"t{mark}", f"tokens of {en}", f"{zh}的词元", Kind.INPUT, f"t_{name}[j]"),
        quantity(f"S_{name}", f"s{mark}", f"scores in {en}", f"{zh}中的分数", Kind.INTERMEDIATE, f"""
        S_{name}[j] = sum(E[word,r]*E[t_{name}[j],r] for r in d)
        """),
        quantity(f"A_{name}", f"a{mark}", f"shares in {en}", f"{zh}中的份额", Kind.COEFFICIENT, f"""
        A_{name}[j] = exp(S_{name}[j])/sum(exp(S_{name}[m]) for m in n_k)
        """),
        quantity(f"Z_{name}", f"z{mark}", f"what is read in {en}", f"{zh}中读到的内容", Kind.INTERMEDIATE, f"""
        Z_{name}[r] = sum(A_{name}[j]*E[t_{name}[j],r] for j in n_k)
        """),
    )  # fmt: skip


PREFIXES = Example(
    id="prefixes",
    title=words("苹果 after two prefixes", "两种前文之后的“苹果”"),
    program=small_program(
        group(
            "prefixes",
            quantity("E", "E", "embedding", "嵌入矩阵", Kind.PARAMETER, "E[w,r]"),
            quantity("word", "w", "id of the last token", "末位词元的编号", Kind.INPUT, "word"),
            *_prefix("ate", "", "the first sentence", "第一句"),
            *_prefix("bought", "'", "the second sentence", "第二句"),
        ),
        {"n_k": 4, "N": 5, "d": 2},
    ),
    inputs={
        "ex.E": np.array([[0.5, 0.5], [2, 0], [0, 2], [0, 0], [1, 1]]), "ex.word": np.array(4),
        "ex.t_ate": np.array([0, 1, 3, 4]), "ex.t_bought": np.array([0, 2, 3, 4]),
    },
    show=(
        "ex.E", "ex.t_ate", "ex.S_ate", "ex.A_ate", "ex.Z_ate", "ex.t_bought", "ex.S_bought", "ex.A_bought", "ex.Z_bought",
    ),
    labels={"N": ("我", "吃", "投资", "了", "苹果")},
    notes={"ex.t_ate": same("我 吃 了 苹果"), "ex.t_bought": same("我 投资 了 苹果")},
)  # fmt: skip

EXAMPLES = (ALONE, ASYMMETRIC, SYMMETRIC, DOUBLED, DOT, SHIFT, HULL, ENTRYWISE, PREFIXES)
