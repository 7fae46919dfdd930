"""Rank and asymmetry of ``B = W_Q W_K^T``: what one head can ask for, and that asking is not answering."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...bilingual import same, words
from .places import key_heads
from .reading import Array, Reading
from .report import Note, Report, Table, cell


@dataclass(frozen=True, slots=True, eq=False)
class BilinearForms:
    """Of every layer ``l`` and head ``h``.

    ``singular_values (l, h, r)``, largest first; ``rank (l, h)``: how many are more than rounding;
    ``asymmetry (l, h)``; ``eigenvalues (l, h, 2)``: smallest and largest of the symmetric part.
    """

    reading: Reading
    d_k: int
    singular_values: Array
    rank: Array
    asymmetry: Array
    eigenvalues: Array

    def report(self) -> Report:
        """One row per head."""
        columns = (
            words("layer", "层"), words("head", "头"), words("rank", "秩"), same("d_k"), words("largest σ", "最大 σ"),
            words("d_k-th σ", "第 d_k 个 σ"), words("(d_k+1)-th σ", "第 d_k+1 个 σ"),
            words("asymmetry", "不对称度"), words("smallest eigenvalue", "最小特征值"), words("largest", "最大"),
        )  # fmt: skip
        layers, heads, d = self.singular_values.shape
        rows = []
        for k, h in np.ndindex(layers, heads):
            s = self.singular_values[k, h]
            last, beyond = (cell(s[c]) if c < d else None for c in (self.d_k - 1, self.d_k))
            ends = map(cell, self.eigenvalues[k, h])
            rows.append(
                (k, h, int(self.rank[k, h]), self.d_k, cell(s[0]), last, beyond, cell(self.asymmetry[k, h]), *ends)
            )
        values = {
            "singular_values": self.singular_values, "rank": self.rank, "asymmetry": self.asymmetry,
            "eigenvalues": self.eigenvalues, "d_k": self.d_k,
        }  # fmt: skip
        table = Table(same("B = W_Q W_Kᵀ"), columns, tuple(rows), self.reading.provenance, (0, 1))
        title = words("Rank and asymmetry of the matching form", "匹配双线性形式的秩与不对称")
        return Report("bilinear", title, self.reading.provenance, (table,), _NOTES, {}, values)


_NOTES = (
    Note("derivation", words(
        "The rank of B is at most d_k. With W_Q = W_K it would be symmetric and positive semidefinite: asymmetry 0, no "
        "negative eigenvalue of the symmetric part.",
        "B 的秩至多为 d_k。若 W_Q = W_K，则 B 对称半正定：不对称度为 0，对称部分没有负特征值。",
    )),
    Note("definition", words(
        "Asymmetry is |B − Bᵀ| / |B + Bᵀ| (Frobenius): 0 symmetric, 1 for a random form, without bound for an antisymmetric "
        "one. Biases add terms linear in one row; rotary positions stand between W_Q and W_K (this is B at distance 0); QK "
        "norm rescales rows.",
        "不对称度为 |B − Bᵀ| / |B + Bᵀ|（Frobenius）：对称为 0，随机形式约为 1，反对称时无界。偏置另加对单行线性的项；"
        "旋转位置位于 W_Q 与 W_K 之间（此处为距离 0 的 B）；QK 归一化再缩放各行。",
    )),
)  # fmt: skip


def bilinear_forms(reading: Reading) -> BilinearForms:
    """``B[r,s] = sum(W_Q[r,h,c] W_K[s,kv(h),c] for c in d_k)`` of every head, so that ``q_i k_j^T = x_i B x_j^T``.

    The rank counts singular values above ``d u sigma_1`` (the rounding of a d by d matrix, u = 2^-52). Asymmetry is
    ``|B - B^T| / |B + B^T|`` in the Frobenius norm, infinite for an antisymmetric B and NaN for B = 0. The text of
    ``reading`` plays no part.
    """
    config = reading.model.config
    forms = np.stack([_forms(reading, layer) for layer in range(config.blocks)])
    singular_values = np.linalg.svd(forms, compute_uv=False)
    smallest = config.d * np.finfo(np.float64).eps * singular_values[..., :1]
    transposed = forms.swapaxes(-1, -2)
    odd, even = (np.linalg.norm(x, axis=(-2, -1)) for x in (forms - transposed, forms + transposed))
    with np.errstate(divide="ignore", invalid="ignore"):
        asymmetry = odd / even
    eigenvalues = np.linalg.eigvalsh((forms + transposed) / 2)[..., [0, -1]]
    rank = (singular_values > smallest).sum(-1)
    return BilinearForms(reading, config.layers[0].attention.d_k, singular_values, rank, asymmetry, eigenvalues)


def _forms(reading: Reading, layer: int) -> Array:
    parameters = dict(reading.model.named_parameters())
    W_Q, W_K = (parameters[f"blocks.{layer}.attn.{name}"].detach().numpy() for name in ("W_Q", "W_K"))
    return np.einsum("rhc,shc->hrs", W_Q, W_K[:, key_heads(reading.model.config, layer)])
