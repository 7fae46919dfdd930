"""Where the quantities of attention and of the residual stream stand in a model, read off its definitions."""

from __future__ import annotations

import numpy as np

from ...model import DecoderConfig
from ...notation import Program
from ...notation.tree import refs
from .reading import Array


def matched(program: Program, layer: int) -> tuple[str, str]:
    """The ids of the queries and keys that the scores of ``layer`` read: rotated or normed, where the model does that."""
    definition = program.definition(f"blocks.{layer}.attn.S")
    assert definition is not None
    vectors = [ref.name for ref in refs(definition.expr) if len(ref.indices) == 3]
    query, key = dict.fromkeys(vectors)
    return query, key


def read_rows(config: DecoderConfig, layer: int) -> str:
    """The id of the rows that the attention of ``layer`` reads."""
    if config.norm is not None and config.norm.position == "pre":
        return f"blocks.{layer}.norm1.Y"
    return streams(config)[layer]


def streams(config: DecoderConfig) -> tuple[str, ...]:
    """The ids of the residual stream before the first block and after each: blocks + 1 of them."""
    post = config.norm is not None and config.norm.position == "post"

    def after(layer: int) -> str:
        ffn = config.layers[layer].ffn is not None
        if post:
            return f"blocks.{layer}.norm{2 if ffn else 1}.Y"
        return f"blocks.{layer}.{'X' if ffn else 'R'}"

    return ("embed.X", *(after(layer) for layer in range(config.blocks)))


def key_heads(config: DecoderConfig, layer: int) -> Array:
    """``(h)`` int: the key-value head that each head reads; its own where heads do not share."""
    attention = config.layers[layer].attention
    groups = attention.kv_heads or attention.heads
    return np.arange(attention.heads) * groups // attention.heads
