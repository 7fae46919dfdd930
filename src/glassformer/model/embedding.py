"""From token ids to the rows of ``X``.

| symbol | axes | |
|---|---|---|
| ``t`` | ``(b, i)`` | token ids, from 0 |
| ``pos`` | ``(i)`` | positions, from 0; the same in every row of the batch |
| ``E`` | ``(w, r)`` | one row per token of the vocabulary |
| ``P`` | ``(s, r)`` | one row per position, up to the context; optional |
| ``X`` | ``(b, i, r)`` | input of the first block |
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.notation import Kind, Place, Say, group, quantity

from .config import DecoderConfig
from .shapes import Float, Int

TOKENS = quantity("t", "t", "token ids", "Token 编号", Kind.INPUT, "t[i]")
POSITIONS = quantity("pos", r"\mathrm{pos}", "positions", "位置编号", Kind.INPUT, "pos[i]")
TOKEN_TABLE = quantity("E", "E", "input embedding matrix", "输入嵌入矩阵", Kind.PARAMETER, "E[w,r]")
POSITION_TABLE = quantity("P", "P", "position vectors", "位置向量", Kind.PARAMETER, "P[s,r]")
EMBEDDED = quantity("X", "X", "input matrix", "输入矩阵", Kind.INTERMEDIATE, """
X[i,r] = E[t[i],r] + P[pos[i],r]
E.grad[w,r] += sum(X.grad[i,r] for i in n if t[i] == w)
P.grad[s,r] += sum(X.grad[i,r] for i in n if pos[i] == s)
""")  # fmt: skip

EMBEDDING = group("embedding", TOKENS, POSITIONS, TOKEN_TABLE, POSITION_TABLE, EMBEDDED)


class Embedding(nn.Module):
    """Looks up each token's row of ``E`` and, with learned positions, adds the position's row of ``P``."""

    def __init__(self, config: DecoderConfig, at: Place) -> None:
        super().__init__()
        self.at = at
        self.E = nn.Parameter(torch.zeros(config.vocab_size, config.d))
        self.P = nn.Parameter(torch.zeros(config.context, config.d)) if config.positions == "learned" else None

    def forward(self, t: Int[Tensor, "b i"], say: Say, start: int = 0) -> Float[Tensor, "b i r"]:
        """``t (b, i)`` int64 to ``X (b, i, r)``; the first token stands at position ``start``."""
        t = say(TOKENS, t, self.at)
        X = F.embedding(t, self.E)
        if self.P is not None:
            pos = say(POSITIONS, torch.arange(start, start + t.shape[1], device=t.device), self.at)
            X = X + F.embedding(pos, self.P)
        return say(EMBEDDED, X, self.at)
