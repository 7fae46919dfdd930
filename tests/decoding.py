"""The decoding rules a second time, and how often chance may deviate from them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
from scipy.stats import chisquare

from glassformer.generation import Rule

RULES = MappingProxyType(
    {
        "greedy": Rule(temperature=0.0),
        "plain": Rule(),
        "cold": Rule(temperature=0.5),
        "hot": Rule(temperature=2.0),
        "top-k": Rule(top_k=3),
        "top-k, cold": Rule(temperature=0.7, top_k=2),
        "top-p": Rule(top_p=0.75),
        "top-p, hot": Rule(temperature=1.6, top_p=0.6),
        "top-k and top-p": Rule(top_k=4, top_p=0.9),
        "all of them": Rule(temperature=1.7, top_k=4, top_p=0.8),
    }
)

ALPHA = 1e-8
"""Right code fails one such test with this probability, so fewer than 100 of them fail together below 1e-6."""
_FEWEST = 20  # expected in a cell; rarer tokens are counted together


def oracle(logits: Sequence[float], rule: Rule, excluded: Sequence[int] = ()) -> np.ndarray:
    """The definition in the docstring of ``rules.py``, by sorting and looping, without any of its functions."""
    z = np.array(logits, dtype=np.float64)
    z[list(excluded)] = -np.inf
    order = sorted(range(len(z)), key=lambda w: (-z[w], w))
    if rule.temperature == 0:
        return np.eye(len(z))[order[0]]
    weights = np.exp((z - z.max()) / rule.temperature)
    candidates = order[: rule.top_k]
    mass, before, kept = math.fsum(weights[w] for w in candidates), 0.0, []
    for w in candidates:
        if rule.top_p < 1 and before / mass >= rule.top_p:
            break
        kept.append(w)
        before += weights[w]
    p = np.zeros(len(z))
    p[kept] = weights[kept] / math.fsum(weights[kept])
    return p


def require_frequencies(drawn: Counter[int], p: np.ndarray) -> None:
    """``drawn`` are independent draws from ``p`` (N,): nothing impossible, and the rest passes a chi-square test."""
    assert all(p[w] > 0 for w in drawn)
    count = drawn.total()
    cells = sorted((p[w] * count, drawn[w]) for w in range(len(p)) if p[w] > 0)
    while len(cells) > 1 and cells[0][0] < _FEWEST:
        (rare, seen), (next_rare, next_seen) = cells[:2]
        cells = sorted([(rare + next_rare, seen + next_seen), *cells[2:]])
    if len(cells) > 1:
        expected, seen = zip(*cells, strict=True)
        assert chisquare(seen, expected).pvalue > ALPHA
