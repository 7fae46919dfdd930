"""Key-value heads shared by groups of heads: the definitions of attention where there are fewer of them than heads.

| symbol | axes | |
|---|---|---|
| ``kv`` | ``(h)`` | the key-value head that head ``h`` reads: each serves ``H/G`` heads, in order |
| ``W_K``, ``W_V`` | ``(r, k, c)``, ``(r, k, e)`` | projections; biases ``b_K (k, c)``, ``b_V (k, e)`` |
| ``K``, ``V`` | ``(b, k, j, c)``, ``(b, k, j, e)`` | keys, values |
| ``S``, ``Z`` | ``(b, h, i, j)``, ``(b, h, i, e)`` | scores and mixed values, of the keys and values of ``kv`` |

Where each head has keys and values of its own, ``attention.py`` says the same with ``h`` alone.
Source: Ainslie et al. 2023, GQA.
"""

from __future__ import annotations

import torch
from torch import Tensor

from glassformer.notation import Kind, Place, Say, group, quantity

from .shapes import Int

HEAD_TABLE = quantity("kv", r"\mathrm{kv}", "key-value head of a head", "头所读的键值头", Kind.CONSTANT, """
kv[h] = sum(1 if k*H <= h*G else 0 for k in G) - 1
""")  # fmt: skip

KEY_WEIGHT = quantity("W_K", "W_K", "key projection", "K 投影参数", Kind.PARAMETER, "W_K[r,k,c]")
VALUE_WEIGHT = quantity("W_V", "W_V", "value projection", "V 投影参数", Kind.PARAMETER, "W_V[r,k,e]")
KEY_BIAS = quantity("b_K", "b_K", "key bias", "K 偏置", Kind.PARAMETER, "b_K[k,c]")
VALUE_BIAS = quantity("b_V", "b_V", "value bias", "V 偏置", Kind.PARAMETER, "b_V[k,e]")

KEYS = quantity("K", "K", "keys (shared by heads)", "键（多头共享）", Kind.INTERMEDIATE, """
K[k,j,c] = sum(M[j,r]*W_K[r,k,c] for r in d) + b_K[k,c]
M.grad[j,r] += sum(K.grad[k,j,c]*W_K[r,k,c] for k in G for c in d_k)
W_K.grad[r,k,c] += sum(M[j,r]*K.grad[k,j,c] for j in n_k)
b_K.grad[k,c] += sum(K.grad[k,j,c] for j in n_k)
""")  # fmt: skip
VALUES = quantity("V", "V", "values (shared by heads)", "内容（多头共享）", Kind.INTERMEDIATE, """
V[k,j,e] = sum(M[j,r]*W_V[r,k,e] for r in d) + b_V[k,e]
M.grad[j,r] += sum(V.grad[k,j,e]*W_V[r,k,e] for k in G for e in d_v)
W_V.grad[r,k,e] += sum(M[j,r]*V.grad[k,j,e] for j in n_k)
b_V.grad[k,e] += sum(V.grad[k,j,e] for j in n_k)
""")  # fmt: skip
SCORES = quantity("S", "S", "matching scores (shared keys)", "匹配分数（共享的键）", Kind.INTERMEDIATE, """
S[h,i,j] = sum(Q[h,i,c]*K[kv[h],j,c] for c in d_k)/sqrt(d_k) if allowed[i,j] else -inf
Q.grad[h,i,c] += sum(S.grad[h,i,j]*K[kv[h],j,c] for j in n_k)/sqrt(d_k)
K.grad[k,j,c] += sum(S.grad[h,i,j]*Q[h,i,c] for h in H for i in n if kv[h] == k)/sqrt(d_k)
""")  # fmt: skip
MIXED = quantity("Z", "Z", "head output (shared values)", "单头输出（共享的内容）", Kind.INTERMEDIATE, """
Z[h,i,e] = sum(A[h,i,j]*V[kv[h],j,e] for j in n_k)
A.grad[h,i,j] += sum(Z.grad[h,i,e]*V[kv[h],j,e] for e in d_v)
V.grad[k,j,e] += sum(A[h,i,j]*Z.grad[h,i,e] for h in H for i in n if kv[h] == k)
""")  # fmt: skip

HEAD_TABLES = group("key-value heads", HEAD_TABLE)


def head_table(heads: int, kv_heads: int, device: torch.device, say: Say, at: Place) -> Int[Tensor, " h"]:
    """``kv (h)`` int64: which of ``kv_heads`` each of ``heads`` reads."""
    return say(HEAD_TABLE, torch.arange(heads, device=device) * kv_heads // heads, at)
