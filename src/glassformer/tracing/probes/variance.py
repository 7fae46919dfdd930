"""Variance of ``q.k`` before and after scaling over real text, beside the four signs of the textbook's assumption."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...bilingual import words
from ...errors import UserError
from .places import key_heads, matched
from .reading import Array, Reading, watch
from .report import Note, Report, Table, cell

MOST_SIGNS = 20
"""Two to the power of this many sums are enumerated at most."""


@dataclass(frozen=True, slots=True)
class SignSums:
    """All ``2^m`` equally likely sums of ``m`` signs: ``counts`` of the sums ``-m, -m+2, ..., m`` and their moments."""

    m: int
    sums: tuple[int, ...]
    counts: tuple[int, ...]
    mean: float
    second_moment: float
    deviation: float


def sign_sums(m: int) -> SignSums:
    """Enumerate every combination of ``m`` independent signs; ``ValueError`` outside 1 to 20.

    >>> sign_sums(4).counts
    (1, 4, 6, 4, 1)
    """
    if not 1 <= m <= MOST_SIGNS:
        raise ValueError(f"{m} signs cannot be enumerated; 1 to {MOST_SIGNS} can")
    totals = [sum(signs) for signs in itertools.product((-1, 1), repeat=m)]
    sums = tuple(range(-m, m + 1, 2))
    mean = sum(totals) / len(totals)
    second = sum(t * t for t in totals) / len(totals)
    counts = tuple(totals.count(s) for s in sums)
    return SignSums(m, sums, counts, mean, second, math.sqrt(second - mean * mean))


@dataclass(frozen=True, slots=True)
class Moments:
    """``count``, ``mean`` and ``m2`` (the sum of squared differences from the mean) of numbers seen in parts."""

    count: int
    mean: Array
    m2: Array

    @property
    def variance(self) -> Array:
        return self.m2 / self.count

    def __add__(self, other: Moments) -> Moments:
        """The moments of both parts together (Chan, Golub and LeVeque 1979): no cancellation of large squares."""
        count, apart = self.count + other.count, other.mean - self.mean
        m2 = self.m2 + other.m2 + apart**2 * (self.count * other.count / count)
        return Moments(count, self.mean + apart * (other.count / count), m2)


def moments(values: Array) -> Moments:
    """Moments of ``values (..., m)`` along the last axis."""
    mean = values.mean(-1)
    return Moments(values.shape[-1], mean, ((values - mean[..., None]) ** 2).sum(-1))


@dataclass(frozen=True, slots=True, eq=False)
class ScoreVariance:
    """Of every layer ``l`` and head ``h``, over all pairs of rows and the positions they may read.

    ``before (l, h)`` is the variance of ``q.k``, ``after (l, h)`` that of ``q.k/sqrt(d_k)``, ``mean (l, h)`` the mean of
    ``q.k``, ``largest (l, h)`` its largest size. ``independent (l, h)`` is what the variance before scaling would be if
    all coordinates of q and k were independent with the means and variances they have. ``pairs`` were seen, in
    ``windows`` of the context's length.
    """

    reading: Reading
    d_k: int
    pairs: int
    windows: int
    mean: Array
    before: Array
    after: Array
    largest: Array
    independent: Array
    signs: SignSums

    def report(self) -> Report:
        """One row per head, then the four signs."""
        columns = (
            words("layer", "层"), words("head", "头"), words("mean of q·k", "q·k 的均值"),
            words("variance of q·k", "q·k 的方差"), words("if independent", "若各坐标独立"),
            words("if unit variance too (d_k)", "若又为单位方差（d_k）"), words("after scaling", "缩放后的方差"),
            words("largest |q·k|", "最大 |q·k|"),
        )  # fmt: skip
        rows = (
            (k, h, cell(self.mean[k, h]), cell(self.before[k, h]), cell(self.independent[k, h]), self.d_k,
             cell(self.after[k, h]), cell(self.largest[k, h]))
            for k, h in np.ndindex(*self.before.shape)
        )  # fmt: skip
        s, of = self.signs, 2**self.signs.m
        four = tuple((total, count, f"{count}/{of}") for total, count in zip(s.sums, s.counts, strict=True))
        spread = f"{s.mean:g}, {s.second_moment:g}, {s.deviation:g}"
        tables = (
            Table(words("Scores over the text", "文本上的分数"), columns, tuple(rows), self.reading.provenance, (0, 1)),
            Table(
                words(f"{s.m} independent signs: mean, second moment, deviation {spread}",
                      f"{s.m} 个独立的正负 1：均值、二阶矩、标准差 {spread}"),
                (words("sum", "总和"), words("count", "次数"), words("probability", "概率")), four, "computed",
            ),
        )  # fmt: skip
        values = {
            "mean": self.mean, "before": self.before, "after": self.after, "independent": self.independent,
            "largest": self.largest, "d_k": self.d_k, "signs": {"sums": s.sums, "counts": s.counts},
        }  # fmt: skip
        asked = {"pairs": self.pairs, "windows": self.windows, "tokens": self.reading.n}
        title = words("Variance of q·k before and after scaling", "缩放前后 q·k 的方差")
        return Report("variance", title, self.reading.provenance, tables, _NOTES, asked, values)


_NOTES = (
    Note("derivation", words(
        "Independent coordinates of mean 0 and variance 1 give q·k the variance d_k, and 1 after division by √d_k. Without "
        "independence covariances enter, without mean 0 the means do.",
        "若各坐标相互独立、均值 0、方差 1，则 q·k 的方差为 d_k，除以 √d_k 后为 1。不独立则有协方差，均值不为 0 则有均值项。",
    )),
    Note("intuition", words(
        "This is an idealisation that explains the scale, not a fact about a trained model: compare the columns.",
        "这是说明尺度的理想化假设，不是训练后 Q/K 的已证事实：请比较各列。",
    )),
)  # fmt: skip


def score_variance(reading: Reading, tokens: Sequence[int] | None = None) -> ScoreVariance:
    """Measure ``Var(q.k)`` and ``Var(q.k/sqrt(d_k))`` over ``tokens`` (those of ``reading`` when None), of any length.

    The tokens are read in windows of the model's context. Queries and keys are those that the scores read (rotated or
    normed, where the model does that); variances are of the population (divided by the number of pairs). With
    independent coordinates of their own means and variances it would be ``independent_variance``.
    """
    config = reading.model.config
    ids = reading.tokens if tokens is None else tuple(map(int, tokens))
    if not ids:
        raise UserError("The text is empty.", "There is nothing to measure.", "Give a text of at least one token.")
    ids_read = [matched(reading.program, layer) for layer in range(config.blocks)]
    layers: list[_Part] = []
    window = reading
    starts = range(0, len(ids), config.context)
    for start in starts:
        window = window.of(ids[start : start + config.context])
        seen = watch(window)
        parts = [_window(seen, ids_read[k], k, key_heads(config, k)) for k in range(config.blocks)]
        layers = [_added(a, b) for a, b in zip(layers, parts, strict=True)] if layers else parts
    d_k = config.layers[0].attention.d_k
    before, after = (
        np.stack([part.variance for part in parts]) for parts in zip(*(x[:2] for x in layers), strict=True)
    )
    independent = [independent_variance(q, k) for _, _, q, k, _ in layers]
    return ScoreVariance(
        reading=reading, d_k=d_k, pairs=layers[0][0].count, windows=len(starts),
        mean=np.stack([pairs.mean for pairs, *_ in layers]), before=before, after=after,
        largest=np.stack([largest for *_, largest in layers]), independent=np.stack(independent), signs=sign_sums(4),
    )  # fmt: skip


_Part = tuple[Moments, Moments, Moments, Moments, Array]


def independent_variance(q: Moments, k: Moments) -> Array:
    """``Var(q.k)`` of independent coordinates ``(..., c)`` with these means and variances.

    ``sum(Var(q_c) Var(k_c) + Var(q_c) E(k_c)^2 + E(q_c)^2 Var(k_c) for c in d_k)``
    """
    return (q.variance * k.variance + q.variance * k.mean**2 + q.mean**2 * k.variance).sum(-1)


def _window(seen: dict[str, Array], ids: tuple[str, str], layer: int, kv: Array) -> _Part:
    """Over the pairs that are read: moments of ``q.k (h)``, of the scores ``(h)``, of the coordinates of q and k
    ``(h, c)``, and the largest ``|q.k| (h)``.
    """
    Q, K, S = seen[ids[0]], seen[ids[1]][kv], seen[f"blocks.{layer}.attn.S"]
    i, j = np.nonzero(np.isfinite(S[0]))
    products = np.einsum("hpc,hpc->hp", Q[:, i], K[:, j])
    q, k = (moments(np.moveaxis(x, 1, 2)) for x in (Q[:, i], K[:, j]))
    return moments(products), moments(S[:, i, j]), q, k, np.abs(products).max(-1)


def _added(a: _Part, b: _Part) -> _Part:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], np.maximum(a[4], b[4])
