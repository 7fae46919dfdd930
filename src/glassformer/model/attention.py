"""Multi-head attention: match, mix, project.

| symbol | axes | |
|---|---|---|
| ``X`` | ``(b, i, r)`` | rows that ask |
| ``M`` | ``(b, j, r)`` | rows that are read; the same as ``X`` in self-attention |
| ``W_Q``, ``W_K`` | ``(r, h, c)`` | query and key projections; biases ``b_Q``, ``b_K`` ``(h, c)`` |
| ``W_V`` | ``(r, h, e)`` | value projection; bias ``b_V`` ``(h, e)`` |
| ``Q``, ``K`` | ``(b, h, i, c)``, ``(b, h, j, c)`` | queries, keys |
| ``V`` | ``(b, h, j, e)`` | values |
| ``Q_N``, ``K_N`` | as ``Q``, ``K`` | normalised, where the layer has QK-norm |
| ``Q_R``, ``K_R`` | as ``Q``, ``K`` | turned by position, where the model has rotary positions; the scores read them |
| ``allowed`` | ``(i, j)`` | whether row ``i`` may read position ``j``; ``(b, 1, i, j)`` where rows are packed |
| ``S``, ``A`` | ``(b, h, i, j)`` | scores (minus infinity where not allowed), mixing coefficients |
| ``A_D`` | ``(b, h, i, j)`` | these after dropout, in training; the values are mixed by them |
| ``Z`` | ``(b, h, i, e)`` | mixed values, one matrix per head |
| ``W_O`` | ``(h, e, r)`` | output projection; bias ``b_O`` ``(r)`` |
| ``O`` | ``(b, i, r)`` | what goes out |
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.notation import Instance, Kind, Place, Say, group, place, quantity, silent

from . import grouped
from .cache import LayerCache
from .config import DecoderConfig
from .dropout import COEFFICIENTS as DROPPED
from .dropout import Dropout, dropout_definitions, leave_out
from .mask import mask_id
from .qk_norm import QueryKeyNorm, qk_norm_definitions
from .rotary import ROTATED_KEYS, ROTATED_QUERIES, ROTATION
from .shapes import Bool, Float, Int
from .shared import Shared

QUERY_WEIGHT = quantity("W_Q", "W_Q", "query projection", "Q 投影参数", Kind.PARAMETER, "W_Q[r,h,c]")
KEY_WEIGHT = quantity("W_K", "W_K", "key projection", "K 投影参数", Kind.PARAMETER, "W_K[r,h,c]")
VALUE_WEIGHT = quantity("W_V", "W_V", "value projection", "V 投影参数", Kind.PARAMETER, "W_V[r,h,e]")
QUERY_BIAS = quantity("b_Q", "b_Q", "query bias", "Q 偏置", Kind.PARAMETER, "b_Q[h,c]")
KEY_BIAS = quantity("b_K", "b_K", "key bias", "K 偏置", Kind.PARAMETER, "b_K[h,c]")
VALUE_BIAS = quantity("b_V", "b_V", "value bias", "V 偏置", Kind.PARAMETER, "b_V[h,e]")
OUTPUT_WEIGHT = quantity("W_O", "W_O", "output projection", "输出投影参数", Kind.PARAMETER, "W_O[h,e,r]")
OUTPUT_BIAS = quantity("b_O", "b_O", "output projection bias", "输出投影偏置", Kind.PARAMETER, "b_O[r]")

QUERIES = quantity("Q", "Q", "queries", "查询", Kind.INTERMEDIATE, """
Q[h,i,c] = sum(X[i,r]*W_Q[r,h,c] for r in d) + b_Q[h,c]
X.grad[i,r] += sum(Q.grad[h,i,c]*W_Q[r,h,c] for h in H for c in d_k)
W_Q.grad[r,h,c] += sum(X[i,r]*Q.grad[h,i,c] for i in n)
b_Q.grad[h,c] += sum(Q.grad[h,i,c] for i in n)
""")  # fmt: skip
KEYS = quantity("K", "K", "keys", "键", Kind.INTERMEDIATE, """
K[h,j,c] = sum(M[j,r]*W_K[r,h,c] for r in d) + b_K[h,c]
M.grad[j,r] += sum(K.grad[h,j,c]*W_K[r,h,c] for h in H for c in d_k)
W_K.grad[r,h,c] += sum(M[j,r]*K.grad[h,j,c] for j in n_k)
b_K.grad[h,c] += sum(K.grad[h,j,c] for j in n_k)
""")  # fmt: skip
VALUES = quantity("V", "V", "values", "内容", Kind.INTERMEDIATE, """
V[h,j,e] = sum(M[j,r]*W_V[r,h,e] for r in d) + b_V[h,e]
M.grad[j,r] += sum(V.grad[h,j,e]*W_V[r,h,e] for h in H for e in d_v)
W_V.grad[r,h,e] += sum(M[j,r]*V.grad[h,j,e] for j in n_k)
b_V.grad[h,e] += sum(V.grad[h,j,e] for j in n_k)
""")  # fmt: skip
SCORES = quantity("S", "S", "matching scores", "匹配分数", Kind.INTERMEDIATE, """
S[h,i,j] = sum(Q[h,i,c]*K[h,j,c] for c in d_k)/sqrt(d_k) if allowed[i,j] else -inf
Q.grad[h,i,c] += sum(S.grad[h,i,j]*K[h,j,c] for j in n_k)/sqrt(d_k)
K.grad[h,j,c] += sum(S.grad[h,i,j]*Q[h,i,c] for i in n)/sqrt(d_k)
""")  # fmt: skip
COEFFICIENTS = quantity("A", "A", "mixing coefficients", "混合系数", Kind.COEFFICIENT, """
A[h,i,j] = exp(S[h,i,j])/sum(exp(S[h,i,m]) for m in n_k)
S.grad[h,i,j] += A[h,i,j]*(A.grad[h,i,j] - sum(A[h,i,m]*A.grad[h,i,m] for m in n_k)) if allowed[i,j] else 0
""")  # fmt: skip
MIXED = quantity("Z", "Z", "head output", "单头输出", Kind.INTERMEDIATE, """
Z[h,i,e] = sum(A[h,i,j]*V[h,j,e] for j in n_k)
A.grad[h,i,j] += sum(Z.grad[h,i,e]*V[h,j,e] for e in d_v)
V.grad[h,j,e] += sum(A[h,i,j]*Z.grad[h,i,e] for i in n)
""")  # fmt: skip
PROJECTED = quantity("O", "O", "attention output", "注意力输出", Kind.INTERMEDIATE, """
O[i,r] = sum(Z[h,i,e]*W_O[h,e,r] for h in H for e in d_v) + b_O[r]
Z.grad[h,i,e] += sum(O.grad[i,r]*W_O[h,e,r] for r in d)
W_O.grad[h,e,r] += sum(Z[h,i,e]*O.grad[i,r] for i in n)
b_O.grad[r] += sum(O.grad[i,r] for i in n)
""")  # fmt: skip

PROJECTIONS = group(
    "projections",
    QUERY_WEIGHT, KEY_WEIGHT, VALUE_WEIGHT, QUERY_BIAS, KEY_BIAS, VALUE_BIAS, QUERIES, KEYS, VALUES,
)  # fmt: skip
GROUPED_PROJECTIONS = group(
    "projections",
    QUERY_WEIGHT, grouped.KEY_WEIGHT, grouped.VALUE_WEIGHT, QUERY_BIAS, grouped.KEY_BIAS, grouped.VALUE_BIAS,
    QUERIES, grouped.KEYS, grouped.VALUES,
)  # fmt: skip
# Between the two stands dropout, where there is some: the values are mixed by what it leaves of the coefficients.
MATCHING = group("matching", SCORES, COEFFICIENTS)
GROUPED_MATCHING = group("matching", grouped.SCORES, COEFFICIENTS)
MIXING = group("mixing", MIXED)
GROUPED_MIXING = group("mixing", grouped.MIXED)
OUTPUT = group("output projection", OUTPUT_WEIGHT, OUTPUT_BIAS, PROJECTED)


def attention_definitions(config: DecoderConfig, path: str, X: str, layer: int) -> list[Instance]:
    """The placed groups of attention at ``path`` that reads the rows ``X``; its output is ``path.O``."""
    attention = config.layers[layer].attention
    shares = attention.grouped
    absent = () if attention.bias else (QUERY_BIAS, KEY_BIAS, VALUE_BIAS)
    projections = GROUPED_PROJECTIONS if shares else PROJECTIONS
    parts = [place(projections, path, layer=layer, X=X, M=X, n_k="n", **{q.name: None for q in absent})]
    Q, K, V = (f"{path}.{name}" for name in "QKV")
    key_heads = "G" if shares else "H"
    if attention.qk_norm:
        normed, Q, K = qk_norm_definitions(f"{path}.qk_norm", Q, K, layer, key_heads)
        parts.append(normed)
    if config.position.kind == "rope":
        tables = {name: f"rope.{name}" for name in ("partner", "sign", "cos_", "sin_")}
        parts.append(place(ROTATION, path, layer=layer, Q=Q, K=K, n_k="n", G=key_heads, **tables))
        Q, K = f"{path}.{ROTATED_QUERIES.name}", f"{path}.{ROTATED_KEYS.name}"
    matching, mixing, heads = (MATCHING, MIXING, {})
    if shares:
        matching, mixing, heads = (GROUPED_MATCHING, GROUPED_MIXING, {"kv": "heads.kv"})
    parts.append(place(matching, path, layer=layer, Q=Q, K=K, allowed=mask_id(config, layer), n_k="n", **heads))
    dropped, A = dropout_definitions(DROPPED, config.dropout.attention, path, f"{path}.{COEFFICIENTS.name}", layer)
    parts += [*dropped, place(mixing, path, layer=layer, A=A, V=V, n_k="n", **heads)]
    no_bias = {} if attention.bias else {OUTPUT_BIAS.name: None}
    parts.append(place(OUTPUT, path, layer=layer, Z=f"{path}.Z", **no_bias))
    return parts


def explicit_attention(
    Q: Float[Tensor, "b h i c"],
    K: Float[Tensor, "b k j c"],
    V: Float[Tensor, "b k j e"],
    allowed: Bool[Tensor, "... i j"],
    say: Say,
    at: Place,
    kv: Int[Tensor, " h"] | None = None,
    rate: float = 0.0,
) -> Float[Tensor, "b h i e"]:
    """``Z (b, h, i, e)`` from ``Q (b, h, i, c)``, ``K (b, k, j, c)``, ``V (b, k, j, e)``, saying ``S`` and ``A``.

    ``allowed``, ``(i, j)`` or ``(b, 1, i, j)``, is bool; every row must allow at least one position. ``kv (h)`` names
    the keys and values that a head reads; without it there are as many of them as heads. ``rate`` is the chance of a
    coefficient to be left out; above 0 the mask and what is left are said as well.
    """
    scores, mixed = (SCORES, MIXED) if kv is None else (grouped.SCORES, grouped.MIXED)
    if kv is not None:
        K, V = K.index_select(1, kv), V.index_select(1, kv)
    S = Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])
    S = say(scores, S.masked_fill(~allowed, -math.inf), at)
    A = say(COEFFICIENTS, torch.softmax(S, -1), at)
    return say(mixed, leave_out(A, DROPPED, rate, say, at) @ V, at)


def fused_attention(
    Q: Float[Tensor, "b h i c"],
    K: Float[Tensor, "b k j c"],
    V: Float[Tensor, "b k j e"],
    allowed: Bool[Tensor, "... i j"],
    say: Say,
    at: Place,
    kv: Int[Tensor, " h"] | None = None,
    rate: float = 0.0,
) -> Float[Tensor, "b h i e"]:
    """The same ``Z`` from torch's fused kernel, which never shows ``S`` and ``A``; ``say`` hears ``Z`` only.

    With a ``rate`` above 0 the kernel draws a mask of its own: the same law, not the same numbers.
    """
    if kv is None:
        return say(MIXED, F.scaled_dot_product_attention(Q, K, V, attn_mask=allowed, dropout_p=rate), at)
    # The kernel shares keys and values in the order of kv.
    Z = F.scaled_dot_product_attention(Q, K, V, attn_mask=allowed, dropout_p=rate, enable_gqa=True)
    return say(grouped.MIXED, Z, at)


class Attention(nn.Module):
    """Each head matches the rows of ``X`` with those of ``M`` and mixes the values; heads are added up by ``W_O``.

    Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.
    """

    def __init__(self, config: DecoderConfig, layer: int, at: Place) -> None:
        super().__init__()
        self.at = at
        d, own = config.d, config.layers[layer].attention
        self.windowed = own.window is not None
        H, G, d_k, d_v = own.heads, own.kv_heads or own.heads, own.d_k, own.d_v
        self.W_Q = nn.Parameter(torch.zeros(d, H, d_k))
        self.W_K = nn.Parameter(torch.zeros(d, G, d_k))
        self.W_V = nn.Parameter(torch.zeros(d, G, d_v))
        self.b_Q = nn.Parameter(torch.zeros(H, d_k)) if own.bias else None
        self.b_K = nn.Parameter(torch.zeros(G, d_k)) if own.bias else None
        self.b_V = nn.Parameter(torch.zeros(G, d_v)) if own.bias else None
        self.W_O = nn.Parameter(torch.zeros(H, d_v, d))
        self.b_O = nn.Parameter(torch.zeros(d)) if own.bias else None
        eps = config.eps if own.qk_norm else None
        self.qk_norm = None if eps is None else QueryKeyNorm(d_k, eps, (*at, "qk_norm"))
        self.dropout = Dropout(config.dropout.attention, DROPPED, at)

    def forward(
        self,
        X: Float[Tensor, "b i r"],
        M: Float[Tensor, "b m r"],
        shared: Shared,
        say: Say,
        past: LayerCache | None = None,
    ) -> Float[Tensor, "b i r"]:
        """``X (b, i, r)``, ``M (b, m, r)`` to ``O (b, i, r)``.

        Position ``j`` runs over the rows of ``M``, after those that ``past`` holds where it is given.
        """
        Q = say(QUERIES, _project(X, self.W_Q, self.b_Q), self.at)
        keys, values = (KEYS, VALUES) if shared.kv is None else (grouped.KEYS, grouped.VALUES)
        K = say(keys, _project(M, self.W_K, self.b_K), self.at)
        V = say(values, _project(M, self.W_V, self.b_V), self.at)
        if self.qk_norm is not None:
            Q, K = self.qk_norm(Q, K, say)
        if shared.rotation is not None:
            Q = say(ROTATED_QUERIES, shared.rotation(Q), self.at)
            K = say(ROTATED_KEYS, shared.rotation(K), self.at)
        if past is not None:
            # Keys are kept as they were normalised and rotated: a position does not change when others follow.
            K, V = past.extended(K, V)
        attention = fused_attention if say is silent else explicit_attention
        Z = attention(Q, K, V, shared.mask(self.windowed), say, self.at, shared.kv, self.dropout.rate)
        O = torch.einsum("bhie,her->bir", Z, self.W_O)  # noqa: E741
        return say(PROJECTED, O if self.b_O is None else O + self.b_O, self.at)


def _project(
    X: Float[Tensor, "b i r"], W: Float[Tensor, "r h c"], bias: Float[Tensor, "h c"] | None
) -> Float[Tensor, "b h i c"]:
    """``X (b, i, r)`` through ``W (r, h, c)`` to ``(b, h, i, c)``, plus ``bias (h, c)``."""
    projected = torch.einsum("bir,rhc->bhic", X, W)
    return projected if bias is None else projected + bias[:, None, :]
