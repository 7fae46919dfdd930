"""Attention is not linear: with fixed parameters, what mixes the values still depends on what is mixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ...bilingual import words
from .places import key_heads, read_rows
from .reading import Array, Reading, check_layer, watch
from .report import Note, Report, Table, cell

FACTORS = (0.5, 2.0, 3.0)


@dataclass(frozen=True, slots=True, eq=False)
class Linearity:
    """How far the attention ``f`` of one layer departs from a linear map on rows ``x`` and ``y``, relative to its size.

    ``additivity``: of ``f(x+y)`` from ``f(x) + f(y)``; ``homogeneity``: for each of ``factors``, of ``f(c x)`` from
    ``c f(x)``. ``..._fixed``: the same with the coefficients held at ``A(x)``. ``moved``: the largest change of a
    coefficient between ``A(x)`` and ``A(x+y)``.
    """

    first: Reading
    second: Reading
    layer: int
    factors: tuple[float, ...]
    additivity: float
    homogeneity: Array
    additivity_fixed: float
    homogeneity_fixed: Array
    moved: float

    def report(self) -> Report:
        """One row per property."""
        columns = (
            words("property", "性质"), words("departure, A(x) of the model", "偏离（A 随输入）"),
            words("with A held fixed", "A 固定时"),
        )  # fmt: skip
        homogeneity = zip(self.factors, self.homogeneity, self.homogeneity_fixed, strict=True)
        rows = (
            ("f(x+y) = f(x) + f(y)", cell(self.additivity), cell(self.additivity_fixed)),
            *((f"f({c:g}x) = {c:g} f(x)", cell(moving), cell(fixed)) for c, moving, fixed in homogeneity),
        )
        table = Table(
            words("Departure, relative to the size of the right side", "偏离（与右端大小之比）"),
            columns, rows, self.first.provenance,
        )  # fmt: skip
        asked = {"layer": self.layer, "rows": self.first.n, "largest_change_of_A": self.moved}
        values = {
            "factors": self.factors, "additivity": self.additivity, "homogeneity": self.homogeneity,
            "additivity_fixed": self.additivity_fixed, "homogeneity_fixed": self.homogeneity_fixed, "moved": self.moved,
        }  # fmt: skip
        title = words("Additivity and homogeneity of attention", "注意力的可加性与齐次性")
        normed = self.first.model.config.layers[self.layer].attention.qk_norm
        notes = (*_NOTES, _WITH_QK_NORM) if normed else _NOTES
        return Report("linearity", title, self.first.provenance, (table,), notes, asked, values)


_NOTES = (
    Note("definition", words(
        "f takes the rows that attention reads to the sum over heads of A V W_O. Biases of values and output are left out: "
        "they alone would break both properties.",
        "f 把注意力所读的行映到各头 A V W_O 之和；不计 V 与输出的偏置，它们本身就会破坏这两条性质。",
    )),
    Note("derivation", words(
        "With A held fixed, f is a matrix product and linear, up to rounding. What is not linear is that A depends on x.",
        "A 固定时，f 是矩阵乘积，在舍入误差内线性。不线性的是 A 依赖 x。",
    )),
    Note("intuition", words(
        "This shows that the form is flexible, not that a model understands.",
        "这说明表达形式更灵活，没有证明模型理解语言。",
    )),
)  # fmt: skip

_WITH_QK_NORM = Note("derivation", words(
    "With QK-norm a factor c leaves the directions of queries and keys, hence A, as they are: homogeneity fails only by the "
    "eps inside the root, and by the biases of queries and keys.",
    "有 QK-norm 时，乘以 c 不改变 Q、K 的方向，也就不改变 A：齐次性只因根号内的 eps 和 Q、K 的偏置而偏离。",
))  # fmt: skip


def linearity(first: Reading, second: Reading, layer: int = -1) -> Linearity:
    """Try additivity and homogeneity on the rows ``x`` and ``y`` that ``layer`` reads in the two texts.

    ``f(X) = sum(A^(h)(X) X W_V^(h) W_O^(h) for h in H)`` with ``A`` as the model computes it when its attention is given
    the rows ``X``. Both texts are cut to the length of the shorter one. A departure is
    ``|left - right| / |right|`` in the Frobenius norm, NaN where the right side is zero. Raises ``UserError`` for an
    unknown layer.
    """
    layer, n = check_layer(first, layer), min(first.n, second.n)
    first, second = first.until(n - 1), second.until(n - 1)
    rows = read_rows(first.model.config, layer)
    x, y = (watch(reading)[rows] for reading in (first, second))
    A = {name: coefficients(first, layer, X) for name, X in (("x", x), ("y", y), ("x+y", x + y))}
    f = {name: mixed(first, layer, A[name], X) for name, X in (("x", x), ("y", y), ("x+y", x + y))}
    fixed = {name: mixed(first, layer, A["x"], X) for name, X in (("x", x), ("y", y), ("x+y", x + y))}
    scaled = [mixed(first, layer, coefficients(first, layer, c * x), c * x) for c in FACTORS]
    scaled_fixed = [mixed(first, layer, A["x"], c * x) for c in FACTORS]
    return Linearity(
        first=first, second=second, layer=layer, factors=FACTORS,
        additivity=_departure(f["x+y"], f["x"] + f["y"]),
        homogeneity=np.array([_departure(z, c * f["x"]) for c, z in zip(FACTORS, scaled, strict=True)]),
        additivity_fixed=_departure(fixed["x+y"], fixed["x"] + fixed["y"]),
        homogeneity_fixed=np.array([_departure(z, c * f["x"]) for c, z in zip(FACTORS, scaled_fixed, strict=True)]),
        moved=float(np.abs(A["x+y"] - A["x"]).max()),
    )  # fmt: skip


def coefficients(reading: Reading, layer: int, X: Array) -> Array:
    """``A (h, i, j)`` of ``layer`` when its attention reads the rows ``X (i, r)``, computed by the model itself."""
    rows = read_rows(reading.model.config, layer)
    given = torch.from_numpy(X)[None]
    return watch(reading, {rows: lambda _: given})[f"blocks.{layer}.attn.A"]


def mixed(reading: Reading, layer: int, A: Array, X: Array) -> Array:
    """``(i, r)``: the sum over heads of ``A X W_V W_O``, without biases."""
    parameters = dict(reading.model.named_parameters())
    W_V, W_O = (parameters[f"blocks.{layer}.attn.{name}"].detach().numpy() for name in ("W_V", "W_O"))
    V = np.einsum("jr,rhe->hje", X, W_V[:, key_heads(reading.model.config, layer)])
    return np.einsum("hie,her->ir", A @ V, W_O)


def _departure(left: Array, right: Array) -> float:
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.linalg.norm(left - right) / np.linalg.norm(right))
