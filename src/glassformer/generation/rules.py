"""From the scores of the next token to the one that is taken: decoding rules as pure functions, all in float64.

The steps, always in this order (``w`` and ``v`` run over the vocabulary of ``N`` tokens):

    zT[w]     = logits[w]/T if w may be chosen else -inf
    pT[w]     = exp(zT[w])/sum(exp(zT[v]) for v in N)
    rank[w]   = how many tokens come before w, the largest logit first, of equal ones the smallest id first
    mass      = sum(pT[v] for v in N if rank[v] < top_k)
    before[w] = sum(pT[v] for v in N if rank[v] < rank[w])/mass
    kept[w]   = 1 if rank[w] < top_k and before[w] < top_p else 0
    p[w]      = kept[w]*pT[w]/sum(kept[v]*pT[v] for v in N)
    chosen    = the first w with sum(p[v] for v in N if v <= w) > u,      u uniform in [0, 1)

A text never goes on with BOS or PAD, whatever the model says: these may not be chosen, and the others share their
probability. Training never asks for them, so a trained model gives them next to nothing; the rule makes it nothing.

So top-p looks at the probabilities that temperature and top-k left, and the token that crosses ``top_p`` is kept: one
token always remains. Temperature 0 stands for the limit towards 0, the token of rank 0; then ``u`` is not needed. These
rules choose a token; the model and its parameters stay as they are (section 12.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..errors import UserError


@dataclass(frozen=True, slots=True)
class Rule:
    """``temperature`` T, at most ``top_k`` tokens (None: all), and the most probable ones that fill ``top_p``.

    Raises ``UserError`` for a number that is impossible.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise UserError(
                f"{self.temperature} is not a temperature.", "", "Use 0 (greedy) or a positive number such as 0.8."
            )
        if self.top_k is not None and self.top_k < 1:
            raise UserError(
                f"top-k cannot be {self.top_k}.",
                "It is how many tokens may be chosen.",
                "Use a whole number from 1 up.",
            )
        if not 0 < self.top_p <= 1:
            raise UserError(
                f"top-p cannot be {self.top_p}.",
                "It is the probability that the kept tokens must fill.",
                "Use a number above 0, up to 1 (which keeps all).",
            )


def ranks(scores: torch.Tensor) -> torch.Tensor:
    """``rank`` (N,) int64 of ``scores`` (N,): 0 for the largest, of equal ones the smallest id first."""
    order = torch.sort(scores, descending=True, stable=True).indices
    return torch.empty_like(order).scatter(0, order, torch.arange(len(order), device=order.device))


def next_probabilities(logits: torch.Tensor, rule: Rule, excluded: Sequence[int] = ()) -> torch.Tensor:
    """``p`` (N,) in float64 from ``logits`` (N,); exactly 0 for a token that the rule drops or that is ``excluded``.

    Raises ``UserError`` when the logits are no numbers (a damaged model), for then no probability is right, or when the
    ``excluded`` ids leave no token.
    """
    logits = logits.double()
    if logits.isnan().any() or not logits.max().isfinite():
        raise UserError(
            "The model's scores are not numbers.", "No token can be chosen from them.", "Train the model again."
        )
    if excluded:
        logits = logits.index_fill(0, torch.tensor(excluded, device=logits.device), -math.inf)
        if not logits.max().isfinite():
            raise UserError("No token may be chosen.", "All that the model can say are excluded.", "Exclude fewer.")
    rank = ranks(logits)
    if rule.temperature == 0:
        return (rank == 0).double()
    # Subtracting the largest first keeps the quotient finite for any positive temperature.
    p = torch.softmax((logits - logits.max()) / rule.temperature, dim=-1)
    ordered = torch.empty_like(p).scatter(0, rank, p)  # place k holds the token of rank k
    below_k = torch.where(torch.arange(len(p), device=p.device) < (rule.top_k or len(p)), ordered, 0.0)
    before = torch.cat([p.new_zeros(1), below_k.cumsum(0)[:-1]]) / below_k.sum()
    # At 1 nothing is cut: a sum that reached 1 by rounding must not exclude what is merely improbable.
    kept = below_k if rule.top_p == 1 else torch.where(before < rule.top_p, below_k, 0.0)
    return (kept / kept.sum())[rank]


def draw(p: torch.Tensor, u: float) -> int:
    """The first token whose cumulative probability exceeds ``u``; never one of probability 0.

    ``p`` (N,) sums to 1 and ``u`` lies in [0, 1). Where rounding leaves the whole sum at or below ``u``, it is the last
    token with any probability.
    """
    chosen = int((p.cumsum(0) <= u).sum())
    return min(chosen, int(p.nonzero()[-1]))


def uniform(rule: Rule, generator: torch.Generator) -> float:
    """The ``u`` of one draw, from ``generator``; at temperature 0 none is drawn."""
    return 0.0 if rule.temperature == 0 else float(torch.rand((), dtype=torch.float64, generator=generator))
