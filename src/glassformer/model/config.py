"""What a decoder is made of, as frozen values checked where they are built.

Symbols: ``N`` vocabulary, ``n_ctx`` context, ``d`` model dimension, ``H`` heads, ``d_k`` and ``d_v`` dimensions of one
head's queries and keys and of its values, ``d_ff`` inside of the feed-forward network, ``eps`` the norm's epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from glassformer.errors import UserError, did_you_mean

Size = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
NormKind = Literal["layernorm", "rmsnorm"]
NormPosition = Literal["pre", "post"]
Activation = Literal["gelu", "gelu_tanh", "silu", "relu", "relu2"]
Positions = Literal["learned", "sinusoidal", "rope", "none"]


class _Config(BaseModel):
    # strict: a size given as True, "8" or 8.0 is a mistake, not a size
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AttentionConfig(_Config):
    """``H`` heads with queries and keys of ``d_k`` and values of ``d_v`` coordinates.

    ``d_k``, ``d_v`` and ``d/H`` need not agree: the output projection leads back to ``d``. ``bias`` adds ``b_Q``,
    ``b_K``, ``b_V`` and ``b_O``. ``kv_heads`` (``G``) is how many heads have keys and values, each shared by ``H/G``
    heads; None means one for each head. ``window`` is how many positions a row may read, the last of them itself; None
    means all up to itself.
    """

    heads: Size
    d_k: Size
    d_v: Size
    bias: bool = False
    kv_heads: Size | None = None
    window: Size | None = None

    @model_validator(mode="after")
    def _heads_share_evenly(self) -> AttentionConfig:
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} heads cannot share {self.kv_heads} key-value heads evenly")
        return self

    @property
    def grouped(self) -> bool:
        """Whether heads share keys and values."""
        return self.kv_heads is not None and self.kv_heads < self.heads


class NormConfig(_Config):
    """A norm for each part of a block, and one after the last block.

    ``kind`` is ``layernorm`` or ``rmsnorm``; ``eps`` stands under the root, in squared units. ``position="pre"`` norms
    what a part reads and leaves the residual stream as it is; ``"post"`` norms the stream after each addition.
    ``final`` says whether the last hidden rows are normed once more before the head.
    """

    eps: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-5
    kind: NormKind = "layernorm"
    position: NormPosition = "pre"
    final: bool = True


class FeedForwardConfig(_Config):
    """Two projections with an activation between them; ``bias`` adds ``b_1`` and ``b_2`` (and ``b_G``).

    ``gelu`` is the exact one (with erf), ``gelu_tanh`` its approximation, ``relu2`` the square of ReLU. ``gated`` adds a
    third projection: the activation is taken of it, and multiplies the first cell by cell.
    """

    d_ff: Size
    activation: Activation = "gelu"
    bias: bool = True
    gated: bool = False


class DropoutConfig(_Config):
    """Chances of a number to be left out in training, each from 0 to below 1.

    ``embedding`` is of the embedded rows, ``attention`` of the mixing coefficients, ``residual`` of what attention and the
    feed-forward network add to the stream. At 0 nothing is drawn.
    """

    embedding: Rate = 0.0
    attention: Rate = 0.0
    residual: Rate = 0.0


class DecoderConfig(_Config):
    """A causal decoder: embedding, ``blocks`` blocks, head.

    Without ``norm`` the parts read the residual stream itself; without ``ffn`` a block ends after attention; with
    ``positions="none"`` order enters through the mask alone. ``sinusoidal`` adds a fixed table of sines and cosines in the
    place of a learned one; ``rope`` turns queries and keys instead. Both take frequencies between 1 and about
    ``1/position_base``, in radians per position. ``tied_head`` makes the output matrix the transpose of the embedding
    matrix: one parameter, read at both ends. ``context`` is the largest number of tokens in a row.
    """

    vocab_size: Size
    context: Size
    d: Size
    blocks: Size
    attention: AttentionConfig
    norm: NormConfig | None = Field(default_factory=NormConfig)
    ffn: FeedForwardConfig | None
    positions: Positions = "learned"
    head_bias: bool = False
    tied_head: bool = False
    position_base: Annotated[float, Field(gt=1, allow_inf_nan=False)] = 10000.0

    @model_validator(mode="after")
    def _norm_has_something_to_compare(self) -> DecoderConfig:
        if self.norm is not None and self.d == 1:
            name, left = {"layernorm": ("LayerNorm", "beta"), "rmsnorm": ("RMSNorm", "gamma up to its sign")}[
                self.norm.kind
            ]
            raise ValueError(
                f"{name} over d = 1 coordinate turns every input into {left}, so no token could reach the loss; "
                "take d of at least 2, or norm=None"
            )
        return self

    @model_validator(mode="after")
    def _coordinates_turn_in_pairs(self) -> DecoderConfig:
        if self.positions == "rope" and self.attention.d_k % 2:
            raise ValueError(f"rotary positions turn coordinates in pairs, so d_k = {self.attention.d_k} must be even")
        return self


def read_config(data: Mapping[str, Any]) -> DecoderConfig:
    """The ``DecoderConfig`` that plain data (a parsed JSON object) describes.

    Raises ``UserError`` naming every field that is missing, unknown or out of range.
    """
    try:
        return DecoderConfig.model_validate(data)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'config'}: {fault['msg']}" for fault in error.errors()
        )
        unknown = [fault["loc"] for fault in error.errors() if fault["type"] == "extra_forbidden"]
        hint = did_you_mean(str(unknown[0][-1]), _field_names(unknown[0][:-1])) if unknown else ""
        raise UserError("This is not the configuration of a decoder.", faults + ".", hint) from None


def _field_names(place: tuple[str | int, ...]) -> list[str]:
    part = {"attention": AttentionConfig, "norm": NormConfig, "ffn": FeedForwardConfig}.get(
        str(place[0]) if place else "", DecoderConfig
    )
    return list(part.model_fields)
