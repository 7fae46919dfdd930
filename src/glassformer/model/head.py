"""From the last hidden rows to a score and a probability for every token of the vocabulary.

| symbol | axes | |
|---|---|---|
| ``X`` | ``(b, i, r)`` | last hidden rows (``h`` in the notes) |
| ``U``, ``b_U`` | ``(r, w)``, ``(w)`` | one column, and one optional bias, per token |
| ``logits`` | ``(b, i, w)`` | scores |
| ``p`` | ``(b, i, w)`` | probabilities of the next token |
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glassformer.notation import Kind, Place, Say, group, quantity, silent

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

HEAD = group("head", VOCABULARY_WEIGHT, VOCABULARY_BIAS, LOGITS, PROBABILITIES)


class Head(nn.Module):
    """Scores every token of the vocabulary against each row."""

    def __init__(self, config: DecoderConfig, at: Place) -> None:
        super().__init__()
        self.at = at
        self.U = nn.Parameter(torch.zeros(config.d, config.vocab_size))
        self.b_U = nn.Parameter(torch.zeros(config.vocab_size)) if config.head_bias else None

    def forward(self, X: Float[Tensor, "b i r"], say: Say) -> Float[Tensor, "b i w"]:
        """``X (b, i, r)`` to ``logits (b, i, w)``; the probabilities are computed only when somebody looks."""
        logits = X @ self.U if self.b_U is None else X @ self.U + self.b_U
        logits = say(LOGITS, logits, self.at)
        if say is not silent:
            say(PROBABILITIES, torch.softmax(logits, -1), self.at)
        return logits
