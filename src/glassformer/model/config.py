"""What a decoder is made of, as frozen values checked where they are built.

Symbols: ``N`` vocabulary, ``n_ctx`` context, ``d`` model dimension, ``H`` heads, ``d_k`` and ``d_v`` dimensions of one
head's queries and keys and of its values, ``d_ff`` inside of the feed-forward network, ``eps`` the epsilon of all norms.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from glassformer.errors import UserError, did_you_mean

Size = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
NormKind = Literal["layernorm", "rmsnorm"]
NormPosition = Literal["pre", "post"]
Activation = Literal["gelu", "gelu_tanh", "silu", "relu", "relu2"]
PositionKind = Literal["learned", "sinusoidal", "rope", "none"]

BASE = 10000.0
"""The base of the frequencies unless another is asked for: that of both sources of a table of angles."""

QK_NORM_EPS = 1e-6
"""The epsilon of QK-norm in a model without other norms: that of Qwen3 and Gemma 3."""


class _Config(BaseModel):
    # strict: a size given as True, "8" or 8.0 is a mistake, not a size
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AttentionConfig(_Config):
    """``H`` heads with queries and keys of ``d_k`` and values of ``d_v`` coordinates.

    ``d_k``, ``d_v`` and ``d/H`` need not agree: the output projection leads back to ``d``. ``bias`` adds ``b_Q``,
    ``b_K``, ``b_V`` and ``b_O``. ``kv_heads`` (``G``) is how many heads have keys and values, each shared by ``H/G``
    heads; None means one for each head. ``window`` is how many positions a row may read, the last of them itself; None
    means all up to itself. ``qk_norm`` divides each query and key by its root mean square and scales it by learned gains.
    """

    heads: Size
    d_k: Size
    d_v: Size
    bias: bool = False
    kv_heads: Size | None = None
    window: Size | None = None
    qk_norm: bool = False

    @model_validator(mode="after")
    def _heads_share_evenly(self) -> AttentionConfig:
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} heads cannot share {self.kv_heads} key-value heads evenly")
        return self

    @model_validator(mode="after")
    def _qk_norm_has_something_to_compare(self) -> AttentionConfig:
        if self.qk_norm and self.d_k == 1:
            raise ValueError(
                "QK-norm over d_k = 1 coordinate turns every query and key into its gain up to its sign; "
                "take d_k of at least 2, or qk_norm=False"
            )
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


class PositionConfig(_Config):
    """How order enters beside the mask.

    ``learned`` adds a row of a learned table to each token, ``sinusoidal`` one of a fixed table of sines and cosines,
    ``rope`` turns queries and keys by their position, ``none`` leaves order to the mask alone. The two that compute
    angles take frequencies between 1 and about ``1/base``, in radians per position; the others have no base.
    """

    kind: PositionKind = "learned"
    base: Annotated[float, Field(gt=1, allow_inf_nan=False)] = BASE

    @model_validator(mode="after")
    def _base_is_read(self) -> PositionConfig:
        if self.kind in ("learned", "none") and self.base != BASE:
            raise ValueError(f"kind={self.kind!r} computes no angles, so it has no base")
        return self


class HeadConfig(_Config):
    """From hidden rows to scores: ``bias`` adds ``b_U``; ``tied`` makes the output matrix the transpose of the embedding
    matrix, one parameter that is read at both ends.
    """

    bias: bool = False
    tied: bool = False


class LayerConfig(_Config):
    """One block: attention, then a feed-forward network unless ``ffn`` is None."""

    attention: AttentionConfig
    ffn: FeedForwardConfig | None


class DecoderConfig(_Config):
    """A causal decoder: embedding, one block for each of ``layers``, head.

    Without ``norm`` the parts read the residual stream itself. ``context`` is the largest number of tokens in a row.
    Sizes (``heads``, ``kv_heads``, ``d_k``, ``d_v``, ``d_ff``) and the ``window`` are of the whole model: a layer may do
    without a window or a feed-forward network, and choose everything else for itself.
    """

    vocab_size: Size
    context: Size
    d: Size
    # A parsed JSON array is a list.
    layers: Annotated[tuple[LayerConfig, ...], Field(strict=False)]
    norm: NormConfig | None = Field(default_factory=NormConfig)
    position: PositionConfig = Field(default_factory=PositionConfig)
    head: HeadConfig = Field(default_factory=HeadConfig)
    dropout: DropoutConfig = Field(default_factory=DropoutConfig)

    @classmethod
    def alike(
        cls, blocks: int, *, attention: AttentionConfig, ffn: FeedForwardConfig | None, **rest: Any
    ) -> DecoderConfig:
        """A decoder of ``blocks`` equal layers; ``rest`` are the other fields.

        Raises ``ValidationError`` like the class itself.
        """
        return cls(layers=(LayerConfig(attention=attention, ffn=ffn),) * blocks, **rest)

    @property
    def blocks(self) -> int:
        """How many layers there are."""
        return len(self.layers)

    @property
    def window(self) -> int | None:
        """The window of those layers that have one; None where no layer has."""
        return next((x.attention.window for x in self.layers if x.attention.window is not None), None)

    @property
    def d_ff(self) -> int | None:
        """The inside of the feed-forward networks; None where no layer has one."""
        return next((x.ffn.d_ff for x in self.layers if x.ffn is not None), None)

    @property
    def eps(self) -> float | None:
        """What all norms, QK-norm among them, add under the root: ``norm.eps``, or 1e-6 where QK-norm stands alone.

        None where nothing is normalised.
        """
        if self.norm is not None:
            return self.norm.eps
        return QK_NORM_EPS if any(x.attention.qk_norm for x in self.layers) else None

    @field_validator("layers")
    @classmethod
    def _there_is_a_layer(cls, layers: tuple[LayerConfig, ...]) -> tuple[LayerConfig, ...]:
        if not layers:
            raise ValueError("a decoder has at least one layer")
        return layers

    @model_validator(mode="after")
    def _one_name_has_one_size(self) -> DecoderConfig:
        first: dict[str, tuple[int, int]] = {}
        for number, layer in enumerate(self.layers):
            for name, size in _sizes(layer).items():
                other, known = first.setdefault(name, (number, size))
                if size != known:
                    raise ValueError(
                        f"layers {other} and {number} have {name} = {known} and {size}; the layers of a model share it"
                    )
        return self

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
        d_k = self.layers[0].attention.d_k
        if self.position.kind == "rope" and d_k % 2:
            raise ValueError(f"rotary positions turn coordinates in pairs, so d_k = {d_k} must be even")
        return self


_PARTS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "layers": LayerConfig,
        "attention": AttentionConfig,
        "ffn": FeedForwardConfig,
        "norm": NormConfig,
        "position": PositionConfig,
        "head": HeadConfig,
        "dropout": DropoutConfig,
    }
)
"""What stands under each name of a configuration."""

_FAULTS = 4
"""How many faults a message lists: equal layers all have the same one."""


def read_config(data: Mapping[str, Any]) -> DecoderConfig:
    """The ``DecoderConfig`` that plain data (a parsed JSON object) describes.

    Raises ``UserError`` naming the fields that are missing, unknown or out of range.
    """
    try:
        return DecoderConfig.model_validate(data)
    except ValidationError as error:
        found = error.errors()
        faults = [f"{'.'.join(map(str, fault['loc'])) or 'config'}: {fault['msg']}" for fault in found]
        more = [f"and {len(faults) - _FAULTS} more"] if len(faults) > _FAULTS else []
        unknown = [fault["loc"] for fault in found if fault["type"] == "extra_forbidden"]
        hint = did_you_mean(str(unknown[0][-1]), _field_names(unknown[0][:-1])) if unknown else ""
        fact = "This is not the configuration of a decoder."
        raise UserError(fact, "; ".join([*faults[:_FAULTS], *more]) + ".", hint) from None


def _field_names(place: tuple[str | int, ...]) -> list[str]:
    """The fields of the innermost part that ``place`` leads to."""
    named = [_PARTS[name] for name in place if isinstance(name, str) and name in _PARTS]
    return list((named or [DecoderConfig])[-1].model_fields)


def _sizes(layer: LayerConfig) -> dict[str, int]:
    """What one layer says about the sizes that all share, and about their window."""
    attention = layer.attention
    sizes = {
        "heads": attention.heads,
        "kv_heads": attention.kv_heads or attention.heads,
        "d_k": attention.d_k,
        "d_v": attention.d_v,
    }
    if attention.window is not None:
        sizes["window"] = attention.window
    if layer.ffn is not None:
        sizes["d_ff"] = layer.ffn.d_ff
    return sizes
