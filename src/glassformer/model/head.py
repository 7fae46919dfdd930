"""From the last hidden rows to a score and a probability for every token of the vocabulary.

| symbol | axes | |
|---|---|---|
| ``X`` | ``(b, i, r)`` | last hidden rows (``h`` in the notes) |
| ``U``, ``b_U`` | ``(r, w)``, ``(w)`` | one column, and one optional bias, per token |
| ``E`` | ``(w, r)`` | the embedding matrix, whose transpose ``U`` is in a tied head |
| ``logits`` | ``(b, i, w)`` | scores |
| ``p`` | ``(b, i, w)`` | probabilities of the next token |
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glassformer.notation import Instance, Kind, Place, Say, group, place, quantity, silent

from .config import DecoderConfig
from .shapes import Float

VOCABULARY_WEIGHT = quantity("U", "U", "vocabulary output matrix", "词表输出矩阵", Kind.PARAMETER, "U[r,w]")
VOCABULARY_BIAS = quantity("b_U", "b_U", "vocabulary output bias", "词表输出偏置", Kind.PARAMETER, "b_U[w]")
LOGITS = quantity("logits", r"\Lambda", "logits", "词表分数", Kind.INTERMEDIATE, """
logits[i,w] = sum(X[i,r]*U[r,w] for r in d) + b_U[w]
X.grad[i,r] += sum(logits.grad[i,w]*U[r,w] for w in N)
U.grad[r,w] += sum(X[i,r]*logits.grad[i,w] for i in n)
b_U.grad[w] += sum(logits.grad[i,w] for i in n)
""")  # fmt: skip
# The loss is computed from the logits, so no gradient comes back through p.
PROBABILITIES = quantity("p", "p", "probabilities", "概率", Kind.PROBABILITY, """
p[i,w] = exp(logits[i,w])/sum(exp(logits[i,v]) for v in N)
""")  # fmt: skip

# A second path back to E, beside that of the tokens which were looked up: both are shown, and add up.
TIED_WEIGHT = quantity("U", "U", "vocabulary output matrix (tied)", "词表输出矩阵（与输入嵌入共用）", Kind.INTERMEDIATE, """
U[r,w] = E[w,r]
E.grad[w,r] += U.grad[r,w]
""")  # fmt: skip

HEAD = group("head", VOCABULARY_WEIGHT, VOCABULARY_BIAS, LOGITS, PROBABILITIES)
TIED_HEAD = group("head", TIED_WEIGHT, VOCABULARY_BIAS, LOGITS, PROBABILITIES)


def head_definitions(config: DecoderConfig, path: str, X: str) -> Instance:
    """The placed head at ``path`` that reads the rows ``X``."""
    no_bias = {} if config.head.bias else {VOCABULARY_BIAS.name: None}
    if config.head.tied:
        return place(TIED_HEAD, path, X=X, E="embed.E", **no_bias)
    return place(HEAD, path, X=X, **no_bias)


class Head(nn.Module):
    """Scores every token of the vocabulary against each row."""

    def __init__(self, config: DecoderConfig, at: Place) -> None:
        super().__init__()
        self.at = at
        self.U = None if config.head.tied else nn.Parameter(torch.zeros(config.d, config.vocab_size))
        self.b_U = nn.Parameter(torch.zeros(config.vocab_size)) if config.head.bias else None

    def forward(self, X: Float[Tensor, "b i r"], E: Float[Tensor, "w r"], say: Say) -> Float[Tensor, "b i w"]:
        """``X (b, i, r)`` to ``logits (b, i, w)``; the probabilities are computed only when somebody looks.

        ``E (w, r)`` is the embedding matrix; a head that is not tied leaves it alone.
        """
        U = say(TIED_WEIGHT, E.T, self.at) if self.U is None else self.U
        logits = X @ U if self.b_U is None else X @ U + self.b_U
        logits = say(LOGITS, logits, self.at)
        if say is not silent:
            say(PROBABILITIES, torch.softmax(logits, -1), self.at)
        return logits
