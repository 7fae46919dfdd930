"""Rotary positions: queries and keys are turned by an angle that grows with their position.

| symbol | axes | |
|---|---|---|
| ``pos`` | ``(i)`` | positions, from 0; ``(b, i)`` where rows are packed |
| ``partner`` | ``(c)`` | the coordinate that ``c`` turns with: half of ``d_k`` further on, or back |
| ``sign`` | ``(c)`` | -1 in the first half, 1 in the second |
| ``pair`` | ``(c)`` | which pair of coordinates, from 0 |
| ``freq`` | ``(c)`` | angle per position, in radians |
| ``cos_``, ``sin_`` | ``(i, c)`` | of the angle at position ``i``; ``(b, i, c)`` where rows are packed |
| ``Q_R``, ``K_R`` | ``(b, h, i, c)``, ``(b, k, j, c)`` | the turned queries and keys |

The score of two turned vectors depends on their distance, not on where they stand. The tables are computed in float64
and then rounded to the model's numbers: an angle of single precision would be off by more the further on it stands.
Source: Su et al. 2021, RoFormer.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.notation import Kind, Place, Say, group, quantity

from .shapes import Float, Int

PARTNER = quantity("partner", r"\mathrm{partner}", "partner coordinate", "配对的坐标", Kind.CONSTANT, """
partner[c] = c + d_k/2 if c < d_k/2 else c - d_k/2
""")  # fmt: skip
SIGN = quantity("sign", r"\mathrm{sign}", "sign of the partner", "配对坐标的符号", Kind.CONSTANT, """
sign[c] = -1 if c < d_k/2 else 1
""")  # fmt: skip
PAIR = quantity("pair", r"\mathrm{pair}", "pair of coordinates, from 0", "坐标对编号（从 0 起）", Kind.CONSTANT, """
pair[c] = c if c < d_k/2 else c - d_k/2
""")  # fmt: skip
FREQUENCY = quantity("freq", r"\omega", "angle per position", "每个位置转过的角", Kind.CONSTANT, """
freq[c] = base**(-2*pair[c]/d_k)
""")  # fmt: skip
COSINE = quantity("cos_", r"\mathrm{cos}", "cosine of the angle", "角的余弦", Kind.CONSTANT, """
cos_[i,c] = cos(pos[i]*freq[c])
""")  # fmt: skip
SINE = quantity("sin_", r"\mathrm{sin}", "sine of the angle", "角的正弦", Kind.CONSTANT, """
sin_[i,c] = sin(pos[i]*freq[c])
""")  # fmt: skip

ROTATED_QUERIES = quantity("Q_R", "Q_R", "rotated queries", "旋转后的查询", Kind.INTERMEDIATE, """
Q_R[h,i,c] = Q[h,i,c]*cos_[i,c] + sign[c]*Q[h,i,partner[c]]*sin_[i,c]
Q.grad[h,i,c] += Q_R.grad[h,i,c]*cos_[i,c] - sign[c]*Q_R.grad[h,i,partner[c]]*sin_[i,c]
""")  # fmt: skip
ROTATED_KEYS = quantity("K_R", "K_R", "rotated keys", "旋转后的键", Kind.INTERMEDIATE, """
K_R[k,j,c] = K[k,j,c]*cos_[j,c] + sign[c]*K[k,j,partner[c]]*sin_[j,c]
K.grad[k,j,c] += K_R.grad[k,j,c]*cos_[j,c] - sign[c]*K_R.grad[k,j,partner[c]]*sin_[j,c]
""")  # fmt: skip

ROTARY_TABLES = group("rotary tables", PARTNER, SIGN, PAIR, FREQUENCY, COSINE, SINE)
ROTATION = group("rotation", ROTATED_QUERIES, ROTATED_KEYS)


class Rotation(NamedTuple):
    """The tables of one text, for every head and block: ``partner (c)``, ``sign (c)``, ``cos`` and ``sin (i, c)`` or
    ``(b, 1, i, c)``.
    """

    partner: Tensor
    sign: Tensor
    cos: Tensor
    sin: Tensor

    def __call__(self, X: Float[Tensor, "b h i c"]) -> Float[Tensor, "b h i c"]:
        """``X (b, h, i, c)`` with each pair of coordinates turned by the angle of its row."""
        return X * self.cos + self.sign * X.index_select(-1, self.partner) * self.sin


def rotary_tables(
    pos: Int[Tensor, "... i"], d_k: int, base: float, dtype: torch.dtype, say: Say, at: Place
) -> Rotation:
    """The tables for the positions ``pos``, ``(i)`` or ``(b, i)``; cosines and sines are rounded to ``dtype``."""
    c, half = torch.arange(d_k, device=pos.device), d_k // 2
    first = c < half
    partner = say(PARTNER, torch.where(first, c + half, c - half), at)
    sign = say(SIGN, torch.where(first, -1, 1), at)
    pair = say(PAIR, torch.where(first, c, c - half), at)
    freq = say(FREQUENCY, base ** (-2 * pair.double() / d_k), at)
    angle = pos[..., None] * freq
    cos, sin = (say(q, f(angle).to(dtype), at) for q, f in ((COSINE, torch.cos), (SINE, torch.sin)))
    # One axis for the heads, where there is one for the rows of the batch.
    return Rotation(partner, sign, *(x if x.ndim == 2 else x[:, None] for x in (cos, sin)))
