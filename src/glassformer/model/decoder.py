"""The decoder: embedding, blocks, head, loss, and the program of its definitions.

| symbol | axes | |
|---|---|---|
| ``tokens`` | ``(b, i)`` | token ids |
| ``segments`` | ``(b, i)`` | which text of its row a token belongs to, where rows are packed or padded |
| ``allowed`` | ``(i, j)`` | causal mask, one for all blocks with the same window; ``(b, i, j)`` where rows are packed |
| ``X`` | ``(b, i, r)`` | residual stream |
| ``logits`` | ``(b, i, w)`` | scores of the next token |
| ``L`` | ``()`` | mean loss of the scored positions |

Parameter names are the ids of their quantities: ``embed.E``, ``blocks.0.attn.W_Q``, ``final_norm.gamma``, ``head.U``.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from glassformer.errors import UserError
from glassformer.notation import Program, Say, build_program, place, silent

from .block import Block, block_definitions
from .cache import KeyValueCache
from .config import DecoderConfig, DropoutConfig
from .dropout import dropout_rates
from .embedding import Embedding, embedding_definitions
from .grouped import HEAD_TABLES, head_table
from .head import Head, head_definitions
from .initial import initialise
from .inputs import check_segments, check_targets, check_tokens
from .loss import LOSS, SCORED, TARGETS, explicit_cross_entropy, fused_cross_entropy
from .mask import causal_masks, mask_definitions
from .norm import build_norm, norm_definitions
from .rotary import ROTARY_TABLES, Rotation, rotary_tables
from .segments import SEGMENTS, same_segment
from .shapes import Bool, Float, Int
from .shared import Shared

_ROPE = ("rope",)
_HEADS = ("heads",)
_LOSS = ("loss",)


class Output(NamedTuple):
    """``logits (b, i, w)``, and the ``loss ()`` in nats when targets were given."""

    logits: Tensor
    loss: Tensor | None


class Decoder(nn.Module):
    """A causal Transformer decoder whose forward pass says every quantity it computes.

    ``Decoder(config)`` starts from the values of ``initial.py``, drawn from ``generator`` (torch's own when None).
    """

    def __init__(self, config: DecoderConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.embed = Embedding(config, ("embed",))
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.blocks))
        norm = config.norm
        self.final_norm = build_norm(config.d, norm, ("final_norm",)) if norm is not None and norm.final else None
        self.head = Head(config, ("head",))
        initialise(self, config.blocks, generator)

    def new_cache(self) -> KeyValueCache:
        """An empty cache for generating with this model."""
        return KeyValueCache(self, self.config.context)

    def forward(
        self,
        tokens: Tensor,
        targets: Tensor | None = None,
        scored: Tensor | None = None,
        say: Say = silent,
        cache: KeyValueCache | None = None,
        segments: Tensor | None = None,
    ) -> Output:
        """Scores of the next token at every position, and the loss when ``targets`` are given.

        ``tokens (b, n)`` and ``targets (b, n)`` are int64, ``scored (b, n)`` is bool and means every position when
        None. ``say`` hears each quantity under its place and may return another tensor in its stead; with the default
        the fused kernels run. With a ``cache`` the tokens continue those it holds, and are added to it. ``segments (b, n)``
        int64 numbers the texts of a row, each a run of tokens: a token reads its own segment only, in which positions
        begin at 0; padding is a segment of its own that is not scored. None: one text per row. Raises ``UserError``
        for inputs that do not fit.
        """
        check_tokens(tokens, self.config.vocab_size, self.config.context)
        if targets is not None:
            check_targets(tokens, targets, scored, self.config.vocab_size)
        elif scored is not None:
            raise UserError("Scored positions were given without targets.", "", "Give targets as well, or neither.")
        rows, n = tokens.shape
        start = 0 if cache is None else cache.start(self, rows, n, say, segments is not None)
        read = None
        if segments is not None:
            earlier = None if cache is None else cache.segments
            check_segments(tokens, segments, earlier)
            new = say(SEGMENTS, segments, self.embed.at)
            read = new if earlier is None else torch.cat([earlier, new], 1)
        same = None if read is None else same_segment(read, start)
        X, pos = self.embed(tokens, say, start, same)
        shared = Shared(
            *causal_masks(self.config, n, tokens.device, say, start, same),
            self._rotation(pos, X.dtype, say),
            self._head_table(tokens.device, say),
        )
        for layer, block in enumerate(self.blocks):
            X = block(X, shared, say, None if cache is None else cache.layer(layer))
        if cache is not None:
            cache.advance(rows, n, read)
        if self.final_norm is not None:
            X = self.final_norm(X, say)
        logits = self.head(X, self.embed.E, say)
        return Output(logits, None if targets is None else _loss(logits, targets, scored, say))

    def _rotation(self, pos: Int[Tensor, "... i"] | None, dtype: torch.dtype, say: Say) -> Rotation | None:
        if self.config.position.kind != "rope" or pos is None:
            return None
        return rotary_tables(pos, self.config.layers[0].attention.d_k, self.config.position.base, dtype, say, _ROPE)

    def _head_table(self, device: torch.device, say: Say) -> Int[Tensor, " h"] | None:
        attention = self.config.layers[0].attention
        if not attention.grouped or attention.kv_heads is None:
            return None
        return head_table(attention.heads, attention.kv_heads, device, say, _HEADS)


def _loss(
    logits: Float[Tensor, "b i w"], targets: Int[Tensor, "b i"], scored: Bool[Tensor, "b i"] | None, say: Say
) -> Float[Tensor, ""]:
    y = say(TARGETS, targets, _LOSS)
    I = say(SCORED, torch.ones_like(targets, dtype=torch.bool) if scored is None else scored, _LOSS)  # noqa: E741
    cross_entropy = fused_cross_entropy if say is silent else explicit_cross_entropy
    return cross_entropy(logits, y, I, say, _LOSS)


def definitions(config: DecoderConfig, n: int, *, packed: bool = False, dropout: bool = False) -> Program:
    """Every quantity of ``Decoder(config)`` on ``n`` tokens: definitions, gradient contributions, sizes.

    ``packed`` says that the row comes with segments. With ``dropout`` the program is that of training mode, whose masks
    are inputs; without, that of evaluation mode. Mirrors the wiring of ``Decoder`` and ``Block``; there is no batch axis.
    The alias ``h`` is the last hidden state. The learning rate ``eta`` is not the model's: add it with
    ``program.with_scalars(eta=...)``. Raises ``UserError`` for an ``n`` that the model cannot read.
    """
    if not 1 <= n <= config.context:
        raise UserError(f"This model reads 1 to {config.context} tokens, not {n}.")
    if not dropout:
        config = config.model_copy(update={"dropout": DropoutConfig()})
    parts, stream = embedding_definitions(config, "embed", packed)
    parts += mask_definitions(config, packed)
    if config.position.kind == "rope":
        parts.append(place(ROTARY_TABLES, "rope", pos="embed.pos"))
    if config.layers[0].attention.grouped:
        parts.append(place(HEAD_TABLES, "heads"))
    for layer in range(config.blocks):
        placed, stream = block_definitions(config, layer, stream)
        parts += placed
    if config.norm is not None and config.norm.final:
        parts.append(norm_definitions(config.norm, "final_norm", stream))
        stream = "final_norm.Y"
    parts.append(head_definitions(config, "head", stream))
    parts.append(place(LOSS, "loss", logits="head.logits", p="head.p"))
    return build_program(parts, scalars(config, n), aliases={"h": stream})


def scalars(config: DecoderConfig, n: int) -> dict[str, float]:
    """The sizes of all dimensions on ``n`` tokens, the epsilon of norms and the rates of dropout, by name."""
    attention = config.layers[0].attention
    sizes: dict[str, float] = {
        "n": n, "n_k": n, "d": config.d, "H": attention.heads, "d_k": attention.d_k, "d_v": attention.d_v,
        "N": config.vocab_size,
    }  # fmt: skip
    if attention.grouped and attention.kv_heads is not None:
        sizes["G"] = attention.kv_heads
    if config.window is not None:
        sizes["window"] = config.window
    if config.d_ff is not None:
        sizes["d_ff"] = config.d_ff
    if config.position.kind in ("learned", "sinusoidal"):
        sizes["n_ctx"] = config.context
    if config.position.kind in ("sinusoidal", "rope"):
        sizes["base"] = config.position.base
    if config.eps is not None:
        sizes["eps"] = config.eps
    return {**sizes, **dropout_rates(config.dropout)}
