"""Every option of the decoder, and few decoders in which every value of one meets every value of every other."""

from __future__ import annotations

from typing import Any

from glassformer.model import AttentionConfig, DecoderConfig, FeedForwardConfig, NormConfig
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
    "blocks": (1, 2),
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
    return DecoderConfig(
        vocab_size=7,
        context=9,
        d=10,
        blocks=case["blocks"],
        attention=AttentionConfig(heads=H, d_k=4, d_v=5, bias=case["biases"], kv_heads=kv_heads, window=case["window"]),
        norm=norm,
        ffn=ffn,
        positions=case["positions"],
        head_bias=case["head bias"],
        tied_head=case["tied head"],
        position_base=50.0,
    )


CASES = covering_array(OPTIONS)
OPTION_CONFIGS = {"-".join(map(str, case.values())): config_of(case) for case in CASES}
