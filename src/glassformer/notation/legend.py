"""The legend: which dimension each letter runs over.

| letter | runs over | dimension |
|---|---|---|
| ``i`` | rows: query positions | ``n`` |
| ``j m`` | key positions | ``n_k`` |
| ``h`` | heads | ``H`` |
| ``k`` | key-value heads, each shared by a group of heads | ``G`` |
| ``r q`` | model dimension | ``d`` |
| ``c a`` | coordinates of queries and keys | ``d_k`` |
| ``e`` | coordinates of values | ``d_v`` |
| ``f`` | inside of the feed-forward network | ``d_ff`` |
| ``w v`` | vocabulary | ``N`` |
| ``s`` | rows of the position table | ``n_ctx`` |
"""

from __future__ import annotations

from types import MappingProxyType

LETTERS = MappingProxyType(
    {
        "i": "n",
        "j": "n_k",
        "m": "n_k",
        "h": "H",
        "k": "G",
        "r": "d",
        "q": "d",
        "c": "d_k",
        "a": "d_k",
        "e": "d_v",
        "f": "d_ff",
        "w": "N",
        "v": "N",
        "s": "n_ctx",
    }
)

HYPERPARAMETERS = frozenset(
    {"eps", "base", "window", "p_embed", "p_attn", "p_resid"}  # of the model
    | {"eta", "beta_1", "beta_2", "eps_step", "weight_decay", "step", "clip"}  # of the optimizer
    | {"eta_max", "share", "warmup", "floor", "decay"}  # of the schedule of the learning rate
)

DIMENSIONS = frozenset(LETTERS.values())
