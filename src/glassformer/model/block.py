"""One block: attention, then the feed-forward network, each added to the residual stream.

| symbol | axes | |
|---|---|---|
| ``X`` | ``(b, i, r)`` | the stream before the block, and again after it |
| ``O``, ``F`` | ``(b, i, r)`` | what attention and the feed-forward network add |
| ``R`` | ``(b, i, r)`` | the stream between the two; after the block, when there is no feed-forward network |

The norm stands before each part (pre-LN), inside the branch: the stream itself is never normalised.
"""

from __future__ import annotations

from torch import Tensor, nn

from glassformer.notation import Instance, Kind, Place, Say, group, place, quantity

from .attention import ATTENTION, ATTENTION_BIASES, Attention
from .cache import LayerCache
from .config import DecoderConfig
from .feedforward import FEED_FORWARD, FEED_FORWARD_BIASES, FeedForward
from .norm import NORM, LayerNorm
from .shapes import Bool, Float

AFTER_ATTENTION = quantity("R", "R", "stream after attention", "注意力残差之和", Kind.INTERMEDIATE, """
R[i,r] = X[i,r] + O[i,r]
X.grad[i,r] += R.grad[i,r]
O.grad[i,r] += R.grad[i,r]
""")  # fmt: skip
AFTER_FEED_FORWARD = quantity("X", "X", "block output", "层输出", Kind.INTERMEDIATE, """
X[i,r] = R[i,r] + F[i,r]
R.grad[i,r] += X.grad[i,r]
F.grad[i,r] += X.grad[i,r]
""")  # fmt: skip

ATTENTION_RESIDUAL = group("attention residual", AFTER_ATTENTION)
FEED_FORWARD_RESIDUAL = group("feed-forward residual", AFTER_FEED_FORWARD)


class Block(nn.Module):
    """Attention mixes positions, the feed-forward network transforms each; ``definitions`` below mirrors the wiring."""

    def __init__(self, config: DecoderConfig, at: Place) -> None:
        super().__init__()
        self.at = at
        norm, d = config.norm, config.d
        self.norm1 = None if norm is None else LayerNorm(d, norm.eps, (*at, "norm1"))
        self.attn = Attention(d, config.attention, (*at, "attn"))
        self.norm2 = None if norm is None or config.ffn is None else LayerNorm(d, norm.eps, (*at, "norm2"))
        self.ffn = None if config.ffn is None else FeedForward(d, config.ffn, (*at, "ffn"))

    def forward(
        self, X: Float[Tensor, "b i r"], allowed: Bool[Tensor, "i j"], say: Say, past: LayerCache | None = None
    ) -> Float[Tensor, "b i r"]:
        """``X (b, i, r)`` and ``allowed (i, j)`` to the stream after the block ``(b, i, r)``."""
        Y = X if self.norm1 is None else self.norm1(X, say)
        R = say(AFTER_ATTENTION, X + self.attn(Y, Y, allowed, say, past), self.at)
        if self.ffn is None:
            return R
        Y = R if self.norm2 is None else self.norm2(R, say)
        return say(AFTER_FEED_FORWARD, R + self.ffn(Y, say), self.at)


def block_definitions(config: DecoderConfig, layer: int, X: str) -> tuple[list[Instance], str]:
    """The placed groups of block ``layer`` that reads the stream ``X``, and the id of the stream after it."""
    path = f"blocks.{layer}"
    parts: list[Instance] = []
    Y = X
    if config.norm is not None:
        parts.append(place(NORM, f"{path}.norm1", layer=layer, X=X))
        Y = f"{path}.norm1.Y"
    absent = {} if config.attention.bias else dict.fromkeys(ATTENTION_BIASES)
    parts.append(place(ATTENTION, f"{path}.attn", layer=layer, X=Y, M=Y, allowed="mask.allowed", n_k="n", **absent))
    parts.append(place(ATTENTION_RESIDUAL, path, layer=layer, X=X, O=f"{path}.attn.O"))
    R = Y = f"{path}.R"
    if config.ffn is None:
        return parts, R
    if config.norm is not None:
        parts.append(place(NORM, f"{path}.norm2", layer=layer, X=R))
        Y = f"{path}.norm2.Y"
    absent = {} if config.ffn.bias else dict.fromkeys(FEED_FORWARD_BIASES)
    parts.append(place(FEED_FORWARD[config.ffn.activation], f"{path}.ffn", layer=layer, X=Y, **absent))
    parts.append(place(FEED_FORWARD_RESIDUAL, path, layer=layer, R=R, F=f"{path}.ffn.F"))
    return parts, f"{path}.X"
