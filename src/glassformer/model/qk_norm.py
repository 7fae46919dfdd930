r"""QK-norm: queries and keys of one length, so that a score depends on their direction and on learned gains.

| symbol | axes | |
|---|---|---|
| ``Q``, ``K`` | ``(b, h, i, c)``, ``(b, k, j, c)`` | what comes in; ``k`` is ``h`` where every head has keys of its own |
| ``rms_Q``, ``rms_K`` | ``(b, h, i)``, ``(b, k, j)`` | root of the mean square of a row's ``d_k`` coordinates plus ``eps`` |
| ``Qhat``, ``Khat`` | as ``Q``, ``K`` | each row divided by it |
| ``gamma_Q``, ``gamma_K`` | ``(c)`` | learned gains, one for all heads |
| ``Q_N``, ``K_N`` | as ``Q``, ``K`` | what goes out, to be rotated where the model has rotary positions |

Each head's rows are normalised by themselves, before rotation (which keeps lengths), and the scores are still divided by
``sqrt(d_k)``. Without gains no score could exceed ``sqrt(d_k)``. ``eps`` is the model's one epsilon: that of its norms.
Source: Henry et al. 2020, Query-Key Normalization for Transformers (by length); with RMSNorm per head before rotation as
in Qwen3 (Yang et al. 2025, Qwen3 Technical Report, section 2) and Gemma 3 (Gemma Team 2025, Gemma 3 Technical Report,
section 2).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glassformer.notation import Instance, Kind, Place, Say, group, place, quantity

from .shapes import Float

QUERY_GAIN = quantity("gamma_Q", r"\gamma_Q", "gain of the queries", "查询增益", Kind.PARAMETER, "gamma_Q[c]")
KEY_GAIN = quantity("gamma_K", r"\gamma_K", "gain of the keys", "键增益", Kind.PARAMETER, "gamma_K[c]")

# The gradient through the root mean square is part of what the normalised rows send back, hence folded.
QUERY_LENGTH = quantity("rms_Q", r"\mathrm{rms}_Q", "root mean square of a query", "查询的均方根", Kind.INTERMEDIATE, """
rms_Q[h,i] = sqrt(mean(Q[h,i,c]**2 for c in d_k) + eps)
""", folded=True)  # fmt: skip
KEY_LENGTH = quantity("rms_K", r"\mathrm{rms}_K", "root mean square of a key", "键的均方根", Kind.INTERMEDIATE, """
rms_K[k,j] = sqrt(mean(K[k,j,c]**2 for c in d_k) + eps)
""", folded=True)  # fmt: skip

RESCALED_QUERIES = quantity("Qhat", r"\hat Q", "queries over their root mean square", "除以均方根的查询", Kind.INTERMEDIATE, """
Qhat[h,i,c] = Q[h,i,c]/rms_Q[h,i]
Q.grad[h,i,c] += (Qhat.grad[h,i,c] - Qhat[h,i,c]*mean(Qhat.grad[h,i,a]*Qhat[h,i,a] for a in d_k))/rms_Q[h,i]
""")  # fmt: skip
RESCALED_KEYS = quantity("Khat", r"\hat K", "keys over their root mean square", "除以均方根的键", Kind.INTERMEDIATE, """
Khat[k,j,c] = K[k,j,c]/rms_K[k,j]
K.grad[k,j,c] += (Khat.grad[k,j,c] - Khat[k,j,c]*mean(Khat.grad[k,j,a]*Khat[k,j,a] for a in d_k))/rms_K[k,j]
""")  # fmt: skip

NORMALISED_QUERIES = quantity("Q_N", "Q_N", "normalised queries", "归一化后的查询", Kind.INTERMEDIATE, """
Q_N[h,i,c] = Qhat[h,i,c]*gamma_Q[c]
Qhat.grad[h,i,c] += Q_N.grad[h,i,c]*gamma_Q[c]
gamma_Q.grad[c] += sum(Q_N.grad[h,i,c]*Qhat[h,i,c] for h in H for i in n)
""")  # fmt: skip
NORMALISED_KEYS = quantity("K_N", "K_N", "normalised keys", "归一化后的键", Kind.INTERMEDIATE, """
K_N[k,j,c] = Khat[k,j,c]*gamma_K[c]
Khat.grad[k,j,c] += K_N.grad[k,j,c]*gamma_K[c]
gamma_K.grad[c] += sum(K_N.grad[k,j,c]*Khat[k,j,c] for k in G for j in n_k)
""")  # fmt: skip

QK_NORM = group(
    "QK-norm",
    QUERY_GAIN, KEY_GAIN, QUERY_LENGTH, KEY_LENGTH, RESCALED_QUERIES, RESCALED_KEYS, NORMALISED_QUERIES, NORMALISED_KEYS,
)  # fmt: skip


def qk_norm_definitions(path: str, Q: str, K: str, layer: int, key_heads: str) -> tuple[Instance, str, str]:
    """The placed QK-norm at ``path`` that reads ``Q`` and ``K``, and the ids of the queries and keys after it.

    ``key_heads`` is the dimension of the keys' heads: ``G`` where heads share keys, else ``H``.
    """
    placed = place(QK_NORM, path, layer=layer, Q=Q, K=K, n_k="n", G=key_heads)
    return placed, f"{path}.{NORMALISED_QUERIES.name}", f"{path}.{NORMALISED_KEYS.name}"


class QueryKeyNorm(nn.Module):
    """Divides each row of queries and of keys by its root mean square, then scales each coordinate."""

    def __init__(self, d_k: int, eps: float, at: Place) -> None:
        super().__init__()
        self.at = at
        self.eps = eps
        self.gamma_Q = nn.Parameter(torch.ones(d_k))
        self.gamma_K = nn.Parameter(torch.ones(d_k))

    def forward(
        self, Q: Float[Tensor, "b h i c"], K: Float[Tensor, "b k j c"], say: Say
    ) -> tuple[Float[Tensor, "b h i c"], Float[Tensor, "b k j c"]]:
        """``Q (b, h, i, c)`` and ``K (b, k, j, c)`` to ``Q_N`` and ``K_N`` of the same shapes."""
        rms_Q = say(QUERY_LENGTH, torch.sqrt((Q**2).mean(-1) + self.eps), self.at)
        rms_K = say(KEY_LENGTH, torch.sqrt((K**2).mean(-1) + self.eps), self.at)
        Qhat = say(RESCALED_QUERIES, Q / rms_Q[..., None], self.at)
        Khat = say(RESCALED_KEYS, K / rms_K[..., None], self.at)
        return say(NORMALISED_QUERIES, Qhat * self.gamma_Q, self.at), say(NORMALISED_KEYS, Khat * self.gamma_K, self.at)
