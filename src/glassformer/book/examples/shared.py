"""Quantities that several examples and exercises have: each is defined once, here."""

from __future__ import annotations

from ...notation import Kind, quantity

SHARES = quantity("A", "a", "mixing coefficients", "混合系数", Kind.COEFFICIENT, """
A[j] = exp(S[j])/sum(exp(S[m]) for m in n_k)
""")  # fmt: skip
CONTENT = quantity("V", "V", "values", "内容", Kind.INPUT, "V[j,e]")
READ = quantity("Z", "z", "what is read", "读到的内容", Kind.INTERMEDIATE, "Z[e] = sum(A[j]*V[j,e] for j in n_k)")

QUERIES = quantity("Q", "Q", "queries", "查询", Kind.INTERMEDIATE, "Q[i,c] = sum(X[i,r]*W_Q[r,c] for r in d)")
KEYS = quantity("K", "K", "keys", "键", Kind.INTERMEDIATE, "K[j,c] = sum(X[j,r]*W_K[r,c] for r in d)")
VALUES = quantity("V", "V", "values", "内容", Kind.INTERMEDIATE, "V[j,e] = sum(X[j,r]*W_V[r,e] for r in d)")
SCORES = quantity("S", "S", "scores", "分数", Kind.INTERMEDIATE, """
S[i,j] = sum(Q[i,c]*K[j,c] for c in d_k)/sqrt(d_k)
""")  # fmt: skip
COEFFICIENTS = quantity("A", "A", "mixing coefficients", "混合系数", Kind.COEFFICIENT, """
A[i,j] = exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)
""")  # fmt: skip
MIXED = quantity("Z", "Z", "what each row reads", "每一行读到的内容", Kind.INTERMEDIATE, """
Z[i,e] = sum(A[i,j]*V[j,e] for j in n_k)
""")  # fmt: skip

EMBEDDING_GRADIENT = quantity("back", r"\bar E", "gradient of the embedding", "嵌入矩阵的梯度", Kind.GRADIENT, """
back[w,r] = sum(X_back[i,r] for i in n if t[i] == w)
""")  # fmt: skip

WEIGHTED_MEAN = quantity("average", r"\mu", "weighted mean", "加权平均", Kind.INTERMEDIATE, """
average = sum(A[j]*back_A[j] for j in n_k)
""")  # fmt: skip
SCORES_GRADIENT = quantity("back_S", r"\bar s", "gradient of the scores", "分数的梯度", Kind.GRADIENT, """
back_S[j] = A[j]*(back_A[j] - average)
""")  # fmt: skip
