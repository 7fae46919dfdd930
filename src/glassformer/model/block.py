"""One block: attention, then the feed-forward network, each added to the residual stream.

| symbol | axes | |
|---|---|---|
| ``X`` | ``(b, i, r)`` | the stream before the block, and again after it |
| ``O``, ``F`` | ``(b, i, r)`` | what attention and the feed-forward network add |
| ``O_D``, ``F_D`` | ``(b, i, r)`` | these after dropout, in training |
| ``R`` | ``(b, i, r)`` | the stream between the two; after the block, when there is no feed-forward network |

With ``position="pre"`` the norm stands before each part, inside the branch: the stream itself is never normalised.
With ``"post"`` it stands after each addition: the part that follows, and the next addition, read the normed stream.
"""

from __future__ import annotations

from torch import Tensor, nn

from glassformer.notation import Instance, Kind, Say, group, place, quantity

from .attention import Attention, attention_definitions
from .cache import LayerCache
from .config import DecoderConfig
from .dropout import ATTENDED, TRANSFORMED, Dropout, Dropped, dropout_definitions
from .feedforward import FeedForward, feed_forward_definitions
from .norm import build_norm, norm_definitions
from .shapes import Float
from .shared import Shared

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

    def __init__(self, config: DecoderConfig, layer: int) -> None:
        super().__init__()
        at = self.at = ("blocks", layer)
        norm, d = config.norm, config.d
        ffn, rate = config.layers[layer].ffn, config.dropout.residual
        self.post = norm is not None and norm.position == "post"
        self.norm1 = None if norm is None else build_norm(d, norm, (*at, "norm1"))
        self.attn = Attention(config, layer, (*at, "attn"))
        self.dropout1 = Dropout(rate, ATTENDED, at)
        self.norm2 = None if norm is None or ffn is None else build_norm(d, norm, (*at, "norm2"))
        self.ffn = None if ffn is None else FeedForward(d, ffn, (*at, "ffn"))
        self.dropout2 = Dropout(rate, TRANSFORMED, at)

    def forward(
        self, X: Float[Tensor, "b i r"], shared: Shared, say: Say, past: LayerCache | None = None
    ) -> Float[Tensor, "b i r"]:
        """``X (b, i, r)`` to the stream after the block ``(b, i, r)``."""
        Y = X if self.norm1 is None or self.post else self.norm1(X, say)
        R = say(AFTER_ATTENTION, X + self.dropout1(self.attn(Y, Y, shared, say, past), say), self.at)
        if self.norm1 is not None and self.post:
            R = self.norm1(R, say)
        if self.ffn is None:
            return R
        Y = R if self.norm2 is None or self.post else self.norm2(R, say)
        X = say(AFTER_FEED_FORWARD, R + self.dropout2(self.ffn(Y, say), say), self.at)
        return self.norm2(X, say) if self.norm2 is not None and self.post else X


def block_definitions(config: DecoderConfig, layer: int, X: str) -> tuple[list[Instance], str]:
    """The placed groups of block ``layer`` that reads the stream ``X``, and the id of the stream after it."""
    path, norm, ffn = f"blocks.{layer}", config.norm, config.layers[layer].ffn
    parts: list[Instance] = []

    def normed(number: int, rows: str, position: str) -> str:
        """The id of ``rows`` after norm ``number``, which is placed if it stands at ``position``."""
        if norm is None or norm.position != position:
            return rows
        parts.append(norm_definitions(norm, f"{path}.norm{number}", rows, layer))
        return f"{path}.norm{number}.Y"

    def left_out(dropped: Dropped, rows: str) -> str:
        """The id of ``rows`` after dropout, which is placed if the model has it."""
        placed, result = dropout_definitions(dropped, config.dropout.residual, path, rows, layer)
        parts.extend(placed)
        return result

    Y = normed(1, X, "pre")
    parts += attention_definitions(config, f"{path}.attn", Y, layer)
    parts.append(place(ATTENTION_RESIDUAL, path, layer=layer, X=X, O=left_out(ATTENDED, f"{path}.attn.O")))
    R = normed(1, f"{path}.R", "post")
    if ffn is None:
        return parts, R
    Y = normed(2, R, "pre")
    parts += feed_forward_definitions(ffn, f"{path}.ffn", Y, layer)
    parts.append(place(FEED_FORWARD_RESIDUAL, path, layer=layer, R=R, F=left_out(TRANSFORMED, f"{path}.ffn.F")))
    return parts, normed(2, f"{path}.X", "post")
