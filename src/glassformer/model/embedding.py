"""From token ids to the rows of ``X``.

| symbol | axes | |
|---|---|---|
| ``t`` | ``(b, i)`` | token ids, from 0 |
| ``seg`` | ``(b, i)`` | which text of its row a token belongs to, where rows are packed (``segments.py``) |
| ``pos`` | ``(i)`` | positions, from 0, the same in every row of the batch; ``(b, i)`` where rows are packed |
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
from .segments import PACKED_POSITIONS, SEGMENTS, positions_in_segment
from .shapes import Bool, Float, Int

TOKENS = quantity("t", "t", "token ids", "词元编号", Kind.INPUT, "t[i]")
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

TEXT = group("text", TOKENS, POSITIONS)
PACKED_TEXT = group("packed text", TOKENS, SEGMENTS, PACKED_POSITIONS)
EMBEDDING = group("embedding", TOKEN_TABLE, POSITION_TABLE, EMBEDDED)
SINUSOIDAL_EMBEDDING = group("embedding", TOKEN_TABLE, PAIR, SINUSOIDS, EMBEDDED)


def embedding_definitions(config: DecoderConfig, path: str, packed: bool) -> tuple[list[Instance], str]:
    """The placed groups of the embedding at ``path``, with its dropout, and the id of the stream after it."""
    kind = config.position.kind
    t, pos = f"{path}.{TOKENS.name}", None if kind == "none" else f"{path}.{POSITIONS.name}"
    text = place(PACKED_TEXT if packed else TEXT, path, n_k="n", pos=pos)
    if kind == "sinusoidal":
        embedded = place(SINUSOIDAL_EMBEDDING, path, t=t, pos=pos)
    else:
        no_table = {} if kind == "learned" else {POSITION_TABLE.name: None}
        embedded = place(EMBEDDING, path, t=t, pos=pos, **no_table)
    dropped, stream = dropout_definitions(dropout.EMBEDDED, config.dropout.embedding, path, f"{path}.{EMBEDDED.name}")
    return [text, embedded, *dropped], stream


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
        self, t: Int[Tensor, "b i"], say: Say, start: int, same: Bool[Tensor, "b i j"] | None
    ) -> tuple[Float[Tensor, "b i r"], Int[Tensor, "... i"] | None]:
        """``t (b, i)`` int64 to ``X (b, i, r)``, and the positions unless the model has none.

        Positions are ``(i)`` and begin at ``start``; where rows are packed, ``same (b, i, j)`` says what is of one
        segment, and they are ``(b, i)``.
        """
        t = say(TOKENS, t, self.at)
        X = F.embedding(t, self.E)
        if self.positions == "none":
            return self.dropout(say(EMBEDDED, X, self.at), say), None
        if same is None:
            pos = say(POSITIONS, torch.arange(start, start + t.shape[1], device=t.device), self.at)
        else:
            pos = say(PACKED_POSITIONS, positions_in_segment(same), self.at)
        if self.P is not None:
            X = X + F.embedding(pos, self.P)
        elif self.positions == "sinusoidal":
            X = X + self._sinusoids(pos, say)
        return self.dropout(say(EMBEDDED, X, self.at), say), pos

    def _sinusoids(self, pos: Int[Tensor, "... i"], say: Say) -> Float[Tensor, "... i r"]:
        """The rows of ``P`` at ``pos``; the whole table is computed only when somebody looks."""
        r = torch.arange(self.E.shape[1], device=pos.device)
        pair = say(PAIR, r // 2, self.at)
        s = pos if say is silent else torch.arange(self.context, device=pos.device)
        # In float64 first: an angle of single precision would be off by more the further on it stands.
        angle = s[..., None] / self.base ** (2 * pair.double() / len(r))
        P = torch.where(r == 2 * pair, angle.sin(), angle.cos()).to(self.E.dtype)
        return P if say is silent else F.embedding(pos, say(SINUSOIDS, P, self.at))
