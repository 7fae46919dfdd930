"""Derivations of attention: softmax and its saturation, mixing, scores, projections, residual."""

from __future__ import annotations

from glassformer.notation.chain import Chain, Step

from ..attention import COEFFICIENTS, KEYS, MIXED, PROJECTED, QUERIES, SCORES, VALUES
from ..block import AFTER_ATTENTION, AFTER_FEED_FORWARD
from .steps import ADDED, NO_SCORE, ONE_COORDINATE, SCALE_OUT, bias

SOFTMAX_JACOBIAN = Chain(
    "softmax-jacobian", "softmax: one coefficient by one score", "Softmax：一个系数对一个分数的导数", "7.3",
    (COEFFICIENTS,), "S",
    (
        Step(
            "A[h,i,j]*(1 if j == m else 0) - A[h,i,j]*A[h,i,m]",
            "each quotient of an exponential and the row's sum is a coefficient: A is the softmax of S",
            "每个“指数除以行和”都是一个系数：A 是 S 的 Softmax",
            ("A",),
        ),
        Step("A[h,i,j]*((1 if j == m else 0) - A[h,i,m])", "take out the common factor", "提出公因子"),
    ),
    partial="m",
)  # fmt: skip

_JACOBIAN_IN = Step(
    "sum(A.grad[h,i,m]*A[h,i,m]*((1 if m == j else 0) - A[h,i,j]) for m in n_k)",
    "a score acts on its own head and row alone; there the derivative is that of softmax: A is the softmax of S",
    "一个分数只影响本头本行；那里的导数就是 Softmax 的导数：A 是 S 的 Softmax",
    ("A",),
)
_MASKED = Step(
    "",
    "where reading is not allowed the coefficient is 0, so the product is 0 already",
    "不允许读取的位置系数为 0，乘积本来就是 0",
    ("S", "A"),
)

ATTENTION_SOFTMAX = Chain(
    "attention-softmax", "gradient of the scores through softmax", "分数的梯度：穿过注意力 Softmax", "10.6",
    (COEFFICIENTS,), "S",
    (
        _JACOBIAN_IN,
        Step(
            "A.grad[h,i,j]*A[h,i,j] - A[h,i,j]*sum(A[h,i,m]*A.grad[h,i,m] for m in n_k)",
            "the first term keeps m = j alone; in the second, the factor at j leaves the sum",
            "第一项只留下 m = j；第二项中 j 处的因子与求和无关，提到和号外",
        ),
        Step(
            "A[h,i,j]*(A.grad[h,i,j] - sum(A[h,i,m]*A.grad[h,i,m] for m in n_k))",
            "take out the common factor",
            "提出公因子",
        ),
        _MASKED,
    ),
)  # fmt: skip

SOFTMAX_PAIRS = Chain(
    "softmax-pairs", "the same gradient as a contest within the row", "同一梯度：一行之内两两竞争", "10.6",
    (COEFFICIENTS,), "S",
    (
        _JACOBIAN_IN,
        Step(
            "sum(A[h,i,j]*A[h,i,m]*(A.grad[h,i,j] - A.grad[h,i,m]) for m in n_k)",
            "the coefficients of a row sum to 1, so the gradient at j is its own weighted mean over the row: "
            "each candidate m is weighed against j",
            "一行系数之和为 1，j 处的梯度等于它自己在该行上的加权平均：每个候选 m 都与 j 相比",
            ("A",),
        ),
        Step(
            "A[h,i,j]*(sum(A[h,i,m] for m in n_k)*A.grad[h,i,j] - sum(A[h,i,m]*A.grad[h,i,m] for m in n_k))",
            "what does not depend on m leaves the sum",
            "与 m 无关的因子提到和号外",
        ),
        Step(
            "",
            "the coefficients of a row sum to 1, and are 0 where reading is not allowed",
            "一行系数之和为 1，不允许读取处为 0",
            ("S", "A"),
        ),
    ),
)  # fmt: skip

SATURATION = Chain(
    "softmax-saturation", "a saturated row passes little gradient on", "饱和的一行几乎不传梯度", "7.3",
    (COEFFICIENTS,), "S",
    (
        _JACOBIAN_IN,
        Step(
            "A[h,i,j]*sum(A[h,i,m]*(A.grad[h,i,j] - A.grad[h,i,m]) for m in n_k)",
            "the coefficients of a row sum to 1, so the gradient at j is its own weighted mean over the row",
            "一行系数之和为 1，j 处的梯度等于它自己在该行上的加权平均",
            ("A",),
        ),
        Step(
            "A[h,i,j]*sum(A[h,i,m]*(A.grad[h,i,j] - A.grad[h,i,m]) for m in n_k if m != j)",
            "j does not compete with itself; the coefficients that are left sum to 1 - A, so no entry is larger than "
            "A(1 - A) times the widest difference of two gradients: it goes to 0 as A goes to 0 or to 1",
            "j 不与自己竞争；剩下的系数之和是 1 − A，所以每个元素不超过 A(1 − A) 乘两个梯度的最大差距："
            "A 趋近 0 或 1 时它趋近 0",
        ),
        Step(
            "",
            "the coefficients of a row sum to 1, and are 0 where reading is not allowed",
            "一行系数之和为 1，不允许读取处为 0",
            ("S", "A"),
        ),
    ),
)  # fmt: skip

MIXING = (
    Chain(
        "mixing-coefficients", "gradient of the coefficients", "混合系数的梯度", "10.5", (MIXED,), "A",
        (
            Step(
                "sum(Z.grad[h,i,e]*sum((1 if m == j else 0)*V[h,m,e] for m in n_k) for e in d_v)",
                "a coefficient of head h and row i enters that row of that head alone",
                "头 h 第 i 行的系数只进入这个头的这一行",
            ),
            Step("", "of the sum over m only m = j is left", "对 m 的求和只剩 m = j"),
        ),
    ),
    Chain(
        "mixing-values", "gradient of the values", "内容的梯度", "10.5", (MIXED,), "V",
        (
            Step(
                "sum(Z.grad[h,i,e]*sum(A[h,i,m]*(1 if m == j else 0) for m in n_k) for i in n)",
                "every row i of head h may read the value of j; coordinate e goes to coordinate e",
                "头 h 的每一行 i 都可能读取 j 的内容；坐标 e 只进入坐标 e",
            ),
            Step("", "of the sum over m only m = j is left", "对 m 的求和只剩 m = j"),
        ),
    ),
)  # fmt: skip

PROJECTION_OUT = (
    Chain(
        "output-projection", "gradient of the output projection", "输出投影参数的梯度", "10.5", (PROJECTED,), "W_O",
        (
            Step(
                "",
                "this weight multiplies coordinate e of head h, in every row i, and adds to coordinate r of O alone",
                "这个参数在每一行 i 乘头 h 的坐标 e，只加到 O 的坐标 r",
            ),
        ),
    ),
    Chain(
        "mixed-values", "gradient of the head outputs", "单头输出的梯度", "10.5", (PROJECTED,), "Z",
        (
            Step(
                "",
                "coordinate e of head h stays in row i, and goes to every coordinate r of O with weight W_O",
                "头 h 的坐标 e 留在第 i 行，以权重 W_O 进入 O 的每个坐标 r",
            ),
        ),
    ),
    bias("output-projection-bias", PROJECTED, "b_O", "gradient of the output bias", "输出投影偏置的梯度", "10.5"),
)  # fmt: skip

RESIDUAL = (
    Chain(
        "ffn-residual", "the second residual branch passes the gradient on", "第二条残差直连原样传回梯度", "10.8",
        (AFTER_FEED_FORWARD,), "R", (Step("", *ADDED),),
    ),
    Chain(
        "ffn-residual-branch", "the feed-forward branch receives the same gradient", "前馈分支收到同一份梯度", "10.8",
        (AFTER_FEED_FORWARD,), "F", (Step("", *ADDED),),
    ),
    Chain(
        "residual", "the residual branch passes the gradient on", "残差直连原样传回梯度", "10.5",
        (AFTER_ATTENTION,), "X", (Step("", *ADDED),),
    ),
    Chain(
        "residual-branch", "the attention branch receives the same gradient", "注意力分支收到同一份梯度", "10.5",
        (AFTER_ATTENTION,), "O", (Step("", *ADDED),),
    ),
)  # fmt: skip

SCORE_OPERANDS = (
    Chain(
        "queries", "gradient of the queries", "查询的梯度", "10.7", (SCORES,), "Q",
        (
            Step(
                "sum(S.grad[h,i,j]*(K[h,j,c]/sqrt(d_k) if allowed[i,j] else 0) for j in n_k)",
                "a query of head h and row i meets every key j of its head; coordinate c meets coordinate c",
                "头 h 第 i 行的查询遇到本头的每个键 j；坐标 c 只与坐标 c 相乘",
            ),
            Step("sum(S.grad[h,i,j]*K[h,j,c]/sqrt(d_k) for j in n_k)", *NO_SCORE, ("S.grad",)),
            Step("", *SCALE_OUT),
        ),
    ),
    Chain(
        "keys", "gradient of the keys", "键的梯度", "10.7", (SCORES,), "K",
        (
            Step(
                "sum(S.grad[h,i,j]*(Q[h,i,c]/sqrt(d_k) if allowed[i,j] else 0) for i in n)",
                "a key of head h at j meets every query i of its head; coordinate c meets coordinate c",
                "头 h 在 j 处的键遇到本头的每个查询 i；坐标 c 只与坐标 c 相乘",
            ),
            Step("sum(S.grad[h,i,j]*Q[h,i,c]/sqrt(d_k) for i in n)", *NO_SCORE, ("S.grad",)),
            Step("", *SCALE_OUT),
        ),
    ),
)  # fmt: skip

PROJECTIONS_IN = (
    Chain(
        "query-projection", "gradient of the query projection", "Q 投影参数的梯度", "10.7", (QUERIES,), "W_Q",
        (
            Step(
                "sum(Q.grad[h,i,c]*sum(X[i,q]*(1 if q == r else 0) for q in d) for i in n)",
                "every row uses this weight, and only for coordinate c of head h",
                "每一行都用到这个参数，且只用于头 h 的坐标 c",
            ),
            Step("", *ONE_COORDINATE),
        ),
    ),
    Chain(
        "key-projection", "gradient of the key projection", "K 投影参数的梯度", "10.7", (KEYS,), "W_K",
        (
            Step(
                "sum(K.grad[h,j,c]*sum(M[j,q]*(1 if q == r else 0) for q in d) for j in n_k)",
                "every row uses this weight, and only for coordinate c of head h",
                "每一行都用到这个参数，且只用于头 h 的坐标 c",
            ),
            Step("", *ONE_COORDINATE),
        ),
    ),
    Chain(
        "value-projection", "gradient of the value projection", "V 投影参数的梯度", "10.7", (VALUES,), "W_V",
        (
            Step(
                "sum(V.grad[h,j,e]*sum(M[j,q]*(1 if q == r else 0) for q in d) for j in n_k)",
                "every row uses this weight, and only for coordinate e of head h",
                "每一行都用到这个参数，且只用于头 h 的坐标 e",
            ),
            Step("", *ONE_COORDINATE),
        ),
    ),
    Chain(
        "attention-input", "what attention sends back to the rows it reads", "注意力传回所读各行的梯度", "10.7",
        (QUERIES, KEYS, VALUES), "X",
        (
            Step(
                "sum(Q.grad[h,i,c]*sum((1 if q == r else 0)*W_Q[q,h,c] for q in d) for h in H for c in d_k)"
                " + sum(K.grad[h,i,c]*sum((1 if q == r else 0)*W_K[q,h,c] for q in d) for h in H for c in d_k)"
                " + sum(V.grad[h,i,e]*sum((1 if q == r else 0)*W_V[q,h,e] for q in d) for h in H for e in d_v)",
                "row i of the input becomes row i of Q, of K and of V in every head; the three branches add up",
                "输入的第 i 行在每个头里投影成 Q、K、V 的第 i 行；三条分支相加",
            ),
            Step("", *ONE_COORDINATE),
        ),
    ),
    bias("query-bias", QUERIES, "b_Q", "gradient of the query bias", "Q 偏置的梯度", "10.7"),
    bias("key-bias", KEYS, "b_K", "gradient of the key bias", "K 偏置的梯度", "10.7"),
    bias("value-bias", VALUES, "b_V", "gradient of the value bias", "V 偏置的梯度", "10.7"),
)  # fmt: skip

ATTENTION_CHAINS: tuple[Chain, ...] = (
    SOFTMAX_JACOBIAN,
    SATURATION,
    *RESIDUAL,
    *PROJECTION_OUT,
    *MIXING,
    ATTENTION_SOFTMAX,
    SOFTMAX_PAIRS,
    *SCORE_OPERANDS,
    *PROJECTIONS_IN,
)
