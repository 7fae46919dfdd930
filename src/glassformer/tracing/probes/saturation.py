"""Saturation: a softmax that is nearly certain passes no gradient back, a cross-entropy that is certainly wrong does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...bilingual import words
from ...errors import UserError
from .reading import Aim, Array, Reading, check_layer, watch
from .report import Note, Report, Table, cell

SCALES = tuple(2.0**power for power in range(-4, 8))
"""One sixteenth to 128."""


@dataclass(frozen=True, slots=True, eq=False)
class Saturation:
    """Curves over ``scales (k)``; the scores of a row and the logits of a row are this model's, times the scale.

    ``slope (h, k)``: ``a (1 - a)`` of the head's largest coefficient; ``jacobian (h, k)``: the Frobenius norm of all
    ``a_j (delta_jk - a_k)``. ``two (k)``: ``a (1 - a)`` of two scores that differ by the scale. ``right``, ``wrong`` and
    ``target`` ``(k)``: ``p_y - 1``, the gradient at the logit of y, for the model's most probable and its least probable
    token and for the aim's. ``unscaled``: the scale at which the scores are ``q.k`` without division by ``sqrt(d_k)``.
    """

    reading: Reading
    aim: Aim
    layer: int
    scales: Array
    unscaled: float
    slope: Array
    jacobian: Array
    two: Array
    right: Array
    wrong: Array
    target: Array
    likely: int
    unlikely: int

    def report(self) -> Report:
        """One row per scale."""
        texts = self.reading.vocabulary
        columns = (
            words("scale", "尺度"), words("a(1−a), two scores", "a(1−a)，两个分数"),
            words("a(1−a), mean of heads", "a(1−a)，各头均值"), words("‖J‖, mean of heads", "‖J‖，各头均值"),
            words("p−1, right", "p−1，正确"), words("p−1, wrong", "p−1，错误"), words("p−1, target", "p−1，目标"),
        )  # fmt: skip
        curves = (self.two, self.slope.mean(0), self.jacobian.mean(0), self.right, self.wrong, self.target)
        rows = tuple((float(c), *(cell(x[k]) for x in curves)) for k, c in enumerate(self.scales))
        table = Table(
            words("Scores and logits of the row, multiplied by the scale", "把该行的分数与 logits 乘以尺度"),
            columns, rows, "computed",
        )  # fmt: skip
        asked = {
            "row": self.aim.row, "token": self.reading.text(self.aim.row), "layer": self.layer,
            "right": texts[self.likely], "wrong": texts[self.unlikely], "target_token": texts[self.aim.target],
            "unscaled": self.unscaled,
        }  # fmt: skip
        values = {
            "scales": self.scales, "two": self.two, "slope": self.slope, "jacobian": self.jacobian, "right": self.right,
            "wrong": self.wrong, "target": self.target, "unscaled": self.unscaled,
        }  # fmt: skip
        title = words("Saturation of attention and of the loss", "注意力与损失的饱和")
        return Report("saturation", title, self.reading.provenance, (table,), _NOTES, asked, values)


_NOTES = (
    Note("derivation", words(
        "∂a_j/∂s_k = a_j(δ_jk − a_k): when one coefficient approaches 1, every one of these approaches 0.",
        "∂a_j/∂s_k = a_j(δ_jk − a_k)：某项趋近 1 时，所有这些导数都趋近 0。",
    )),
    Note("derivation", words(
        "With cross-entropy the gradient at the target's logit is p − 1: near −1 when the model is confidently wrong, so a "
        "saturated output still learns.",
        "与交叉熵合并后，目标分数处的梯度是 p − 1：自信而错误时接近 −1，所以输出饱和不等于学不动。",
    )),
)  # fmt: skip


def saturation(reading: Reading, aim: Aim, layer: int = -1, scales: Sequence[float] = SCALES) -> Saturation:
    """Multiply the scores that row ``i`` of ``aim`` gives in ``layer``, and its logits, by each of ``scales``.

    Attention: with ``a = softmax(c s)``, ``a (1 - a)`` of the largest and ``sqrt(sum((a_j (delta_jk - a_k))^2))``.
    Cross-entropy: with ``p = softmax(c z)``, ``dL/dz_y = p_y - 1`` at a logit ``z`` that stands for itself. Two scores:
    ``1/(4 cosh(c/2)^2)``. Raises ``UserError`` for an unknown layer or a scale that is not positive.
    """
    c = np.asarray(scales, dtype=np.float64)
    if c.ndim != 1 or not c.size or not (np.isfinite(c) & (c > 0)).all():
        raise UserError("Scales are positive numbers.", f"They are {list(scales)}.", "Give for example 0.5, 1 and 2.")
    layer, whole = check_layer(reading, layer), reading.until(aim.row)
    seen = watch(whole)
    S = seen[f"blocks.{layer}.attn.S"][:, aim.row]
    scores = S[:, np.isfinite(S[0])]
    a = softmax(c[:, None] * scores[:, None, :])
    derivatives = jacobian(a)
    logits = seen["head.logits"][aim.row]
    p = softmax(c[:, None] * logits)
    likely, unlikely = int(logits.argmax()), int(logits.argmin())
    two = np.exp(-c) / (1 + np.exp(-c)) ** 2
    certain = a.argmax(-1)[..., None]
    slope = np.take_along_axis(derivatives.diagonal(axis1=-2, axis2=-1), certain, -1)[..., 0]
    return Saturation(
        reading=whole, aim=aim, layer=layer, scales=c, unscaled=math.sqrt(whole.model.config.layers[0].attention.d_k),
        slope=slope, jacobian=np.linalg.norm(derivatives, axis=(-2, -1)), two=two, right=-_missing(p, likely),
        wrong=-_missing(p, unlikely), target=-_missing(p, aim.target), likely=likely, unlikely=unlikely,
    )  # fmt: skip


def softmax(x: Array) -> Array:
    """Along the last axis; no power overflows."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def jacobian(a: Array) -> Array:
    """``a_j (delta_jk - a_k)`` ``(..., j, k)`` of coefficients ``a (..., j)``.

    ``1 - a_j`` is taken as the sum of the others: near certainty the difference would have no digit left.
    """
    unlike = 1 - np.eye(a.shape[-1])
    return a[..., :, None] * ((a @ unlike)[..., None] * np.eye(a.shape[-1]) - a[..., None, :] * unlike)


def _missing(p: Array, y: int) -> Array:
    """``1 - p[..., y]`` as the sum of the others."""
    return np.delete(p, y, axis=-1).sum(-1)
