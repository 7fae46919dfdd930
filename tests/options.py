"""Every option of the decoder, and few decoders in which every value of one meets every value of every other."""

from __future__ import annotations

from typing import Any

from glassformer.model import (
    AttentionConfig,
    DecoderConfig,
    DropoutConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerConfig,
    NormConfig,
    PositionConfig,
)
from pairwise import covering_array

OPTIONS: dict[str, tuple[Any, ...]] = {
    "norm": ("layernorm", "rmsnorm", None),
    "norm position": ("pre", "post"),
    "final norm": (True, False),
    "activation": ("gelu", "gelu_tanh", "silu", "relu", "relu2", None),
    "gated": (True, False),
    "positions": ("learned", "sinusoidal", "rope", "none"),
    "heads": (1, 3, 4),
    "key-value heads": ("each", "half", "one"),
    "biases": (True, False),
    "head bias": (True, False),
    "tied head": (True, False),
    "window": (None, 1, 3),
    "layers": ("one", "two", "mixed"),
    "QK-norm": (False, True),
    "dropout": (None, "all", "attention"),
}


# Rates that differ, so that none can pass for another.
DROPOUT = {
    None: DropoutConfig(),
    "all": DropoutConfig(embedding=0.1, attention=0.3, residual=0.2),
    "attention": DropoutConfig(attention=0.4),
}


def config_of(case: dict[str, Any]) -> DecoderConfig:
    """The decoder that ``case`` describes; sizes differ, so that no swapped axis passes by luck."""
    norm = case["norm"] and NormConfig(
        kind=case["norm"], eps=1e-2, position=case["norm position"], final=case["final norm"]
    )
    ffn = case["activation"] and FeedForwardConfig(
        d_ff=11, activation=case["activation"], bias=case["biases"], gated=case["gated"]
    )
    # An odd number of heads has no half: one key-value head each, said in so many words.
    H = case["heads"]
    kv_heads = {"each": None, "half": H if H % 2 else H // 2, "one": 1}[case["key-value heads"]]
    attention = AttentionConfig(
        heads=H, d_k=4, d_v=5, bias=case["biases"], kv_heads=kv_heads, window=case["window"], qk_norm=case["QK-norm"]
    )
    return DecoderConfig(
        vocab_size=7,
        context=9,
        d=10,
        layers=layers_of(case["layers"], LayerConfig(attention=attention, ffn=ffn)),
        norm=norm,
        position=position_of(case["positions"]),
        head=HeadConfig(bias=case["head bias"], tied=case["tied head"]),
        dropout=DROPOUT[case["dropout"]],
    )


def layers_of(kind: str, layer: LayerConfig) -> tuple[LayerConfig, ...]:
    """One layer, two alike, or three of which the second differs in all that a layer may choose for itself."""
    if kind != "mixed":
        return (layer,) * {"one": 1, "two": 2}[kind]
    attention = layer.attention.model_copy(
        update={"window": None, "bias": not layer.attention.bias, "qk_norm": not layer.attention.qk_norm}
    )
    other = FeedForwardConfig(d_ff=11, activation="relu", gated=True)
    return (layer, LayerConfig(attention=attention, ffn=other if layer.ffn is None else None), layer)


def position_of(kind: Any) -> PositionConfig:
    """A base far from the usual one for the kinds that have a base."""
    return PositionConfig(kind=kind, base=50.0) if kind in ("sinusoidal", "rope") else PositionConfig(kind=kind)


CASES = covering_array(OPTIONS)
OPTION_CONFIGS = {"-".join(map(str, case.values())): config_of(case) for case in CASES}
