"""From token ids to the rows of ``X``.

| symbol | axes | |
|---|---|---|
| ``t`` | ``(b, i)`` | token ids, from 0 |
| ``pos`` | ``(i)`` | positions, from 0; the same in every row of the batch |
| ``E`` | ``(w, r)`` | one row per token of the vocabulary |
| ``P`` | ``(s, r)`` | one row per position, up to the context: learned, or sines and cosines, or absent |
| ``pair`` | ``(r)`` | which pair of sine and cosine a coordinate belongs to, from 0 |
| ``X`` | ``(b, i, r)`` | input of the first block |
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.notation import Instance, Kind, Place, Say, group, place, quantity, silent

from . import dropout
from .config import DecoderConfig
from .dropout import Dropout, dropout_definitions
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

PAIR = quantity("pair", r"\mathrm{pair}", "pair of coordinates, from 0", "坐标对编号（从 0 起）", Kind.CONSTANT, """
pair[r] = sum(1 if 2*q + 2 <= r else 0 for q in d)
""")  # fmt: skip
# Vaswani et al. 2017, Attention Is All You Need, section 3.5: sine at even coordinates (from 0), cosine at odd ones.
SINUSOIDS = quantity("P", "P", "position vectors (sines and cosines)", "位置向量（正弦与余弦）", Kind.CONSTANT, """
P[s,r] = sin(s/base**(2*pair[r]/d)) if r == 2*pair[r] else cos(s/base**(2*pair[r]/d))
""")  # fmt: skip

EMBEDDING = group("embedding", TOKENS, POSITIONS, TOKEN_TABLE, POSITION_TABLE, EMBEDDED)
SINUSOIDAL_EMBEDDING = group("embedding", TOKENS, POSITIONS, TOKEN_TABLE, PAIR, SINUSOIDS, EMBEDDED)


def embedding_definitions(config: DecoderConfig, path: str) -> tuple[list[Instance], str]:
    """The placed embedding at ``path``, with its dropout, and the id of the stream after it."""
    if config.position.kind == "sinusoidal":
        embedded = place(SINUSOIDAL_EMBEDDING, path)
    else:
        absent = {"learned": (), "rope": (POSITION_TABLE,), "none": (POSITION_TABLE, POSITIONS)}[config.position.kind]
        embedded = place(EMBEDDING, path, **{q.name: None for q in absent})
    dropped, stream = dropout_definitions(dropout.EMBEDDED, config.dropout.embedding, path, f"{path}.{EMBEDDED.name}")
    return [embedded, *dropped], stream


class Embedding(nn.Module):
    """Looks up each token's row of ``E`` and adds the position's row of ``P``, where there is such a table."""

    def __init__(self, config: DecoderConfig, at: Place) -> None:
        super().__init__()
        self.at = at
        self.positions, self.base, self.context = config.position.kind, config.position.base, config.context
        self.E = nn.Parameter(torch.zeros(config.vocab_size, config.d))
        self.P = nn.Parameter(torch.zeros(config.context, config.d)) if self.positions == "learned" else None
        self.dropout = Dropout(config.dropout.embedding, dropout.EMBEDDED, at)

    def forward(
        self, t: Int[Tensor, "b i"], say: Say, start: int = 0
    ) -> tuple[Float[Tensor, "b i r"], Int[Tensor, " i"] | None]:
        """``t (b, i)`` int64 to ``X (b, i, r)``, and the positions ``(i)`` unless the model has none.

        The first token stands at position ``start``.
        """
        t = say(TOKENS, t, self.at)
        X = F.embedding(t, self.E)
        if self.positions == "none":
            return self.dropout(say(EMBEDDED, X, self.at), say), None
        pos = say(POSITIONS, torch.arange(start, start + t.shape[1], device=t.device), self.at)
        if self.P is not None:
            X = X + F.embedding(pos, self.P)
        elif self.positions == "sinusoidal":
            X = X + self._sinusoids(pos, say)
        return self.dropout(say(EMBEDDED, X, self.at), say), pos

    def _sinusoids(self, pos: Int[Tensor, " i"], say: Say) -> Float[Tensor, "i r"]:
        """The rows of ``P`` at ``pos``; the whole table is computed only when somebody looks."""
        r = torch.arange(self.E.shape[1], device=pos.device)
        pair = say(PAIR, r // 2, self.at)
        s = pos if say is silent else torch.arange(self.context, device=pos.device)
        # In float64 first: an angle of single precision would be off by more the further on it stands.
        angle = s[:, None] / self.base ** (2 * pair.double() / len(r))
        P = torch.where(r == 2 * pair, angle.sin(), angle.cos()).to(self.E.dtype)
        return P if say is silent else F.embedding(pos, say(SINUSOIDS, P, self.at))
