"""Derivations of attention whose heads share keys and values: sums over the heads of a group."""

from __future__ import annotations

from glassformer.notation import Quantity
from glassformer.notation.chain import Chain, Step

from ..attention import QUERIES
from ..grouped import KEYS, MIXED, SCORES, VALUES
from .steps import NO_SCORE, ONE_COORDINATE, SCALE_OUT, bias

_GROUP = "if kv[h] == k"

SHARED_SCORES = (
    Chain(
        "queries-shared", "gradient of the queries (shared keys)", "查询的梯度（键共享）", "10.7", (SCORES,), "Q",
        (
            Step(
                "sum(S.grad[h,i,j]*(K[kv[h],j,c]/sqrt(d_k) if allowed[i,j] else 0) for j in n_k)",
                "a query of head h and row i meets the keys that this head reads; coordinate c meets coordinate c",
                "头 h 第 i 行的查询遇到这个头所读的键；坐标 c 只与坐标 c 相乘",
            ),
            Step("sum(S.grad[h,i,j]*K[kv[h],j,c]/sqrt(d_k) for j in n_k)", *NO_SCORE, ("S.grad",)),
            Step("", *SCALE_OUT),
        ),
    ),
    Chain(
        "keys-shared", "gradient of shared keys", "共享的键的梯度", "10.7", (SCORES,), "K",
        (
            Step(
                f"sum(S.grad[h,i,j]*(Q[h,i,c]/sqrt(d_k) if allowed[i,j] else 0) for h in H for i in n {_GROUP})",
                "a key at j is met by every row of every head of its group, and the gradients of these heads add up",
                "j 处的键被本组每个头的每一行遇到，这些头的梯度相加",
            ),
            Step(f"sum(S.grad[h,i,j]*Q[h,i,c]/sqrt(d_k) for h in H for i in n {_GROUP})", *NO_SCORE, ("S.grad",)),
            Step("", *SCALE_OUT),
        ),
    ),
)  # fmt: skip

SHARED_MIXING = (
    Chain(
        "mixing-coefficients-shared", "gradient of the coefficients (shared values)", "混合系数的梯度（内容共享）", "10.5",
        (MIXED,), "A",
        (
            Step(
                "sum(Z.grad[h,i,e]*sum((1 if m == j else 0)*V[kv[h],m,e] for m in n_k) for e in d_v)",
                "a coefficient of head h and row i enters that row of that head alone",
                "头 h 第 i 行的系数只进入这个头的这一行",
            ),
            Step("", "of the sum over m only m = j is left", "对 m 的求和只剩 m = j"),
        ),
    ),
    Chain(
        "mixing-values-shared", "gradient of shared values", "共享的内容的梯度", "10.5", (MIXED,), "V",
        (
            Step(
                f"sum(Z.grad[h,i,e]*sum(A[h,i,m]*(1 if m == j else 0) for m in n_k) for h in H for i in n {_GROUP})",
                "every row of every head of the group may read the value of j, and the gradients of these heads add up",
                "本组每个头的每一行都可能读取 j 的内容，这些头的梯度相加",
            ),
            Step("", "of the sum over m only m = j is left", "对 m 的求和只剩 m = j"),
        ),
    ),
)  # fmt: skip


def _weights(id: str, home: Quantity, rows: str, weight: str, letter: str, en: str, zh: str) -> Chain:
    return Chain(
        id, en, zh, "10.7", (home,), weight,
        (
            Step(
                f"sum({rows}.grad[k,j,{letter}]*sum(M[j,q]*(1 if q == r else 0) for q in d) for j in n_k)",
                f"every row uses this weight, and only for coordinate {letter} of key-value head k",
                f"每一行都用到这个参数，且只用于键值头 k 的坐标 {letter}",
            ),
            Step("", *ONE_COORDINATE),
        ),
    )  # fmt: skip


SHARED_PROJECTIONS = (
    _weights("key-projection-shared", KEYS, "K", "W_K", "c", "gradient of the shared key projection", "共享 K 投影参数的梯度"),
    _weights(
        "value-projection-shared", VALUES, "V", "W_V", "e", "gradient of the shared value projection", "共享 V 投影参数的梯度"
    ),
    Chain(
        "attention-input-shared", "what attention with shared keys sends back to its rows", "共享键值的注意力传回各行的梯度",
        "10.7", (QUERIES, KEYS, VALUES), "X",
        (
            Step(
                "sum(Q.grad[h,i,c]*sum((1 if q == r else 0)*W_Q[q,h,c] for q in d) for h in H for c in d_k)"
                " + sum(K.grad[k,i,c]*sum((1 if q == r else 0)*W_K[q,k,c] for q in d) for k in G for c in d_k)"
                " + sum(V.grad[k,i,e]*sum((1 if q == r else 0)*W_V[q,k,e] for q in d) for k in G for e in d_v)",
                "row i of the input becomes row i of Q in every head, of K and V in every key-value head; the three "
                "branches add up",
                "输入的第 i 行在每个头里投影成 Q 的第 i 行，在每个键值头里投影成 K、V 的第 i 行；三条分支相加",
            ),
            Step("", *ONE_COORDINATE),
        ),
    ),
    bias("key-bias-shared", KEYS, "b_K", "gradient of the shared key bias", "共享 K 偏置的梯度", "10.7"),
    bias("value-bias-shared", VALUES, "b_V", "gradient of the shared value bias", "共享 V 偏置的梯度", "10.7"),
)  # fmt: skip

GROUPED_CHAINS: tuple[Chain, ...] = (*SHARED_MIXING, *SHARED_SCORES, *SHARED_PROJECTIONS)
