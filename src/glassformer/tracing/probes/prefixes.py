"""The same token under two prefixes: what it may read differs, so its row differs, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...bilingual import same, words
from ...errors import UserError
from .places import streams
from .reading import Array, Reading, watch
from .report import Note, Report, Table, cell


@dataclass(frozen=True, slots=True, eq=False)
class SameToken:
    """The row of one token in two texts, each ended after it; ``l`` runs over layers, ``s`` over streams (layers + 1).

    ``coefficients``: per text ``(l, h, j)``, its own row of A. ``z``: per text ``(l, h, e)``. ``hidden``: per text
    ``(s, r)``, the residual stream before the first block and after each. ``z_distance (l, h)`` and
    ``hidden_distance (s)`` are Euclidean; ``relative (s)`` divides by the mean length, ``cosine (s)`` is of the angle.
    ``probability_distance``: total variation of the two next-token distributions, half the sum of the differences.
    """

    readings: tuple[Reading, Reading]
    coefficients: tuple[Array, Array]
    z: tuple[Array, Array]
    hidden: tuple[Array, Array]
    z_distance: Array
    hidden_distance: Array
    relative: Array
    cosine: Array
    probability_distance: float

    @property
    def rows(self) -> tuple[int, int]:
        """The position of the token in each text."""
        return self.readings[0].n - 1, self.readings[1].n - 1

    def report(self) -> Report:
        """Distances by layer, and the coefficients in each text."""
        first = self.readings[0]
        asked = {"token": first.text(-1), "id": first.tokens[-1], "rows": self.rows}
        notes = (_MEANING, *(() if self.rows[0] == self.rows[1] else (_POSITIONS,)))
        values = {
            "A": self.coefficients, "z": self.z, "hidden": self.hidden, "z_distance": self.z_distance,
            "hidden_distance": self.hidden_distance, "relative": self.relative, "cosine": self.cosine,
            "probability_distance": self.probability_distance, "streams": streams(first.model.config),
        }  # fmt: skip
        title = words("The same token under two prefixes", "同一词元在两种前文之下")
        tables = (self._distances(), *(self._coefficients(which) for which in (0, 1)))
        return Report("prefixes", title, first.provenance, tables, notes, asked, values)

    def _distances(self) -> Table:
        columns = (
            words("stream", "残差流"), words("distance", "距离"), words("relative", "相对距离"),
            words("cosine", "余弦"), words("distance of z, each head", "各头 z 的距离"),
        )  # fmt: skip
        rows, ids = [], streams(self.readings[0].model.config)
        for s in range(len(self.hidden_distance)):
            heads = "" if s == 0 else "  ".join(f"{x:.4g}" for x in self.z_distance[s - 1])
            measures = (cell(x[s]) for x in (self.hidden_distance, self.relative, self.cosine))
            rows.append((ids[s], *measures, heads))
        rows.append(("head.p", cell(self.probability_distance), None, None, ""))
        title = words("Rows of the token, first text against second", "该词元的行：第一段文字与第二段")
        return Table(title, columns, tuple(rows), self.readings[0].provenance)

    def _coefficients(self, which: int) -> Table:
        reading, A = self.readings[which], self.coefficients[which]
        columns = (same("j"), words("token", "词元"), *(
            same(f"A^({h}) l={layer}") for layer in range(len(A)) for h in range(A.shape[1])
        ))  # fmt: skip
        rows = ((j, reading.text(j), *map(cell, A[:, :, j].ravel())) for j in range(reading.n))
        title = words(f"What the token reads in text {which + 1}", f"该词元在第 {which + 1} 段文字中所读")
        return Table(title, columns, tuple(rows), reading.provenance, (0,))


_MEANING = Note("example", words(
    "Only what stands before the token can make a difference: nothing after it reaches its row.",
    "只有此前的文字能造成差别；其后的文字到不了这一行。",
))  # fmt: skip
_POSITIONS = Note("example", words(
    "The token stands at different positions in the two texts, so position is part of the difference.",
    "该词元在两段文字中的位置不同，差别中也含位置的作用。",
))  # fmt: skip


def same_token(first: Reading, second: Reading) -> SameToken:
    """Compare the last token of ``first`` that ``second`` holds too, at its last place in each.

    Distance of two rows ``a, b``: ``|a - b|``; relative: ``|a - b| / ((|a| + |b|)/2)``; cosine ``a.b/(|a||b|)``.
    Both readings must be of one model. Raises ``UserError`` for texts without a common token.
    """
    i, k = last_common(first.tokens, second.tokens)
    readings = first.until(i), second.until(k)
    seen = [watch(reading) for reading in readings]
    config = first.model.config

    def rows(names: Sequence[str], which: int) -> Array:
        return np.stack([np.take(seen[which][name], -1, axis=-2) for name in names])

    blocks = [f"blocks.{layer}.attn" for layer in range(config.blocks)]
    A = tuple(rows([f"{at}.A" for at in blocks], which) for which in (0, 1))
    z = tuple(rows([f"{at}.Z" for at in blocks], which) for which in (0, 1))
    hidden = tuple(rows(streams(config), which) for which in (0, 1))
    p = [x["head.p"][-1] for x in seen]
    lengths = [np.linalg.norm(x, axis=-1) for x in hidden]
    distance = np.linalg.norm(hidden[0] - hidden[1], axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = distance / ((lengths[0] + lengths[1]) / 2)
        cosine = (hidden[0] * hidden[1]).sum(-1) / (lengths[0] * lengths[1])
    return SameToken(
        readings=readings, coefficients=(A[0], A[1]), z=(z[0], z[1]), hidden=(hidden[0], hidden[1]),
        z_distance=np.linalg.norm(z[0] - z[1], axis=-1), hidden_distance=distance, relative=relative, cosine=cosine,
        probability_distance=math.fsum(np.abs(p[0] - p[1])) / 2,
    )  # fmt: skip


def last_common(first: Sequence[int], second: Sequence[int]) -> tuple[int, int]:
    """The last place in ``first`` of a token that ``second`` holds, and its last place there."""
    for i in reversed(range(len(first))):
        for k in reversed(range(len(second))):
            if first[i] == second[k]:
                return i, k
    raise UserError(
        "The two texts have no token in common.", "The same token is compared after two prefixes.",
        "Give two texts that end alike, such as 我吃了苹果 and 我投资了苹果.",
    )  # fmt: skip
