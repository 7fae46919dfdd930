"""Faults of the forward pass, each a changed line of the small decoder or of the small encoder-decoder."""

from __future__ import annotations

from typing import Any

from .mutants import Mutant

DECODER, SEQ2SEQ = "small_decoder.py", "small_seq2seq.py"

MASK = "(mask[:, None, :] > 0)"
MASK_OR_ONES = "mask = torch.ones(b, total, dtype=torch.int64) if attention_mask is None else attention_mask"
POSITIONS = "positions = key_positions[:, past:] if position_ids is None else position_ids"


def _decoder(
    name: str, entry: int | None, source: str, old: str, new: str, law: str, place: str | None = None, **config: Any
) -> Mutant:
    return Mutant(name, entry, source, DECODER, old, new, law, place, config)


MUTANTS = [
    _decoder(
        "positions begin at 2 unless told", 10, "huggingface/sentence-transformers#3879",
        POSITIONS, POSITIONS.replace("past:]", "past:] + 2"), "positions.default", positions="learned",
    ),
    _decoder(
        "the mask of a step is that of its own column", 14, "rasbt/LLMs-from-scratch#697",
        MASK, "((mask if n > 1 else mask[:, -1:])[:, None, :] > 0)", "padding.continued",
    ),
    _decoder(
        "the window has one key more", 15, "huggingface/transformers#39408",
        "i - j < self.config.window", "i - j <= self.config.window", "window.forward", window=3,
    ),
    _decoder(
        "the window has one key more in the cache", 15, "ml-explore/mlx-lm#390",
        "i - j < self.config.window", "i - j < self.config.window + (past > 0)", "window.cached", window=3,
    ),
    _decoder(
        "the window has one key less behind pads", 15, "huggingface/transformers#39408",
        "(i - j < self.config.window)", "(i - j < self.config.window - int((mask == 0).any()))", "window.left-padded",
        window=3,
    ),
    _decoder(
        "chunks are counted from the first slot", 16, "huggingface/transformers#40324",
        "at[:, past:, None] // self.config.chunk == at[:, None, :] // self.config.chunk",
        "(i // self.config.chunk == j // self.config.chunk)[None]", "padding.left", chunk=5,
    ),
    _decoder(
        "rotations of a step begin at 0", 18, "time-series-foundation-models/lag-llama#81",
        POSITIONS, POSITIONS.replace("past:]", ":n]"), "cache.prefill-then-steps",
    ),
    _decoder(
        "the first key is not kept", 20, "TrenTorch/TrenTorch#192",
        "kept = (k, v)", "kept = (k * (torch.arange(k.shape[2]) > 0)[:, None], v)", "cache.prefill-then-steps", "Attention",
    ),
    _decoder(
        "the mask is dropped once there is a cache", 21, "huggingface/transformers#47086",
        MASK, "((mask[:, None, :] > 0) | (past > 0))", "padding.continued",
    ),
    _decoder(
        "a step stands at its slot", 22, "huggingface/transformers#22161",
        POSITIONS, POSITIONS.replace("past:]", "past:] if past == 0 else torch.arange(past, total).expand(b, -1)", 1)
        .replace("expand(b, -1) if position_ids is None", "expand(b, -1)").replace(" else position_ids", ""),
        "padding.continued",
    ),
    _decoder(
        "the mask silences queries in the place of keys", 23, "hyunwoongko/transformer#40",
        MASK, "(mask[:, past:, None] > 0)", "padding.left",
    ),
    _decoder(
        "pads are taken to stand before the text", None, "kind of huggingface/transformers#22161",
        "(mask.cumsum(1) - 1).clamp(min=0)", "(torch.arange(total) - (mask == 0).sum(1, keepdim=True)).clamp(min=0)",
        "padding.right", positions="learned",
    ),
    _decoder(
        "what pads hold is read", 23, "hyunwoongko/transformer#40",
        MASK, "(mask[:, past:, None] > 0)", "padding.content",
    ),
    _decoder(
        "tokens with the pad's id are hidden", 25, "microsoft/onnxruntime-genai#1694",
        MASK_OR_ONES, MASK_OR_ONES + " * (input_ids != self.config.pad)", "padding.pad-as-token",
    ),
    _decoder(
        "positions times the mask of pads, learned", 27, "speechbrain#2276",
        "(mask.cumsum(1) - 1).clamp(min=0)", "(mask.cumsum(1) - 1).clamp(min=0) * (1 - mask)", "positions.order",
        positions="learned",
    ),
    _decoder(
        "positions times the mask of pads, rotary", 27, "speechbrain#2276",
        "(mask.cumsum(1) - 1).clamp(min=0)", "(mask.cumsum(1) - 1).clamp(min=0) * (1 - mask)", "positions.order",
    ),
    _decoder(
        "attention reads another row", 28, "DaoyuanLi2816/Molecule-Generator#22",
        "y = (a @ v)", "y = (a @ v.flip(0))", "batch.companions", "Attention",
    ),
    _decoder(
        "heads merged without a transpose", 29, "reczoo/FuxiCTR#30",
        "(a @ v).transpose(1, 2).reshape(", "(a @ v).reshape(", "causality.forward", "Attention",
    ),
    _decoder(
        "every row has the mask of the first", 30, "vllm-project/vllm#27034",
        MASK, "(mask[:1, None, :] > 0)", "batch.lengths", positions="alibi",
    ),
    _decoder(
        "a mask of ones undoes packing", 32, "huggingface/transformers#46634",
        "position_ids is not None:\n            segments",
        "position_ids is not None and attention_mask is None:\n            segments",
        "packing.positions-with-ones-mask", packed=True,
    ),
    _decoder(
        "a cache undoes packing", 32, "huggingface/transformers#46634",
        "position_ids is not None:\n            segments", "position_ids is not None and not use_cache:\n            segments",
        "packing.cache", packed=True,
    ),
    _decoder(
        "a mask of ones undoes documents", 32, "huggingface/transformers#46634",
        "if segments is not None:\n            allowed",
        "if segments is not None and mask.sum() < mask.numel():\n            allowed",
        "packing.segments-with-ones-mask",
    ),
    _decoder(
        "documents begin anew and read each other", 33, "huggingface/trl#784",
        "(segments[:, past:, None] == segments[:, None, :])", "(segments[:, past:, None] >= segments[:, None, :])",
        "packing.segments",
    ),
    _decoder(
        "documents are apart and positions go on", 33, "MeetKai/functionary#265",
        "key_positions = restarted(segments)", "key_positions = key_positions + 0", "packing.segments", positions="learned",
    ),
    _decoder(
        "pads of their own document are read", 33, "torchtune#875",
        "(segments[:, past:, None] == segments[:, None, :])", "(segments[:, past:, None] >= segments[:, None, :])",
        "padding.segments",
    ),
    _decoder(
        "positions in low precision", 55, "huggingface/transformers#29285",
        "positions[:, None, :, None].double() * frequency", "positions[:, None, :, None].to(x.dtype) * frequency",
        "positions.low-precision",
    ),
    _decoder(
        "keys are not rotated", None, "the other half of huggingface/transformers#25681",
        "q, k = rotate(q, positions), rotate(k, positions)", "q = rotate(q, positions)", "positions.shift", "Attention",
    ),
    _decoder(
        "slopes counted from 0", 57, "ml-explore/mlx#343",
        "torch.arange(1, heads + 1)", "torch.arange(heads)", "positions.slopes", positions="alibi",
    ),
    _decoder(
        "dropout of coefficients has no switch", 60, "pytorch#124464",
        "F.dropout(scores.softmax(-1), self.config.dropout, self.training)",
        "F.dropout(scores.softmax(-1), self.config.dropout, True)", "determinism.twice", "Attention",
    ),
    _decoder(
        "a scale in training mode alone", 60, "torchtune#1791",
        "a = F.dropout(scores.softmax(-1), self.config.dropout, self.training)",
        "a = scores.softmax(-1) / (1 - (0.1 if self.training else 0))", "flags.training", "Attention",
    ),
    _decoder(
        "pads are zero without gradients alone", 61, "pytorch#128209",
        "logits = self.head(self.norm(x))",
        "logits = self.head(self.norm(x)) * (1 if torch.is_grad_enabled() else mask[:, past:, None])", "flags.grad-padded",
    ),
    _decoder(
        "another activation without gradients", 61, "pytorch#97111",
        "F.gelu(self.up(self.norm2(x)))",
        'F.gelu(self.up(self.norm2(x)), approximate="none" if torch.is_grad_enabled() else "tanh")', "flags.grad", "Block",
    ),
    _decoder(
        "a kernel that ignores strides", 62, "pytorch#181133",
        "self.embed(input_ids)", "self.embed(input_ids.as_strided(input_ids.shape, (input_ids.shape[1], 1)))",
        "flags.contiguity",
    ),
    _decoder(
        "a cache asked for rounds the logits", None, "kind of huggingface/transformers#46634",
        "SmallOutput(logits, loss", "SmallOutput(logits.round() if use_cache else logits, loss", "flags.use-cache",
    ),
    _decoder(
        "embeddings given miss a scale", None, "kind of huggingface/transformers#47087",
        "if inputs_embeds is None else inputs_embeds", "* 3 if inputs_embeds is None else inputs_embeds", "flags.embeds",
    ),
    _decoder(
        "minus infinity with no guard", 84, "pytorch#103749",
        "torch.finfo(x.dtype).min)", '-torch.inf)', "masked-rows.forward", "Attention",
    ),
    _decoder(
        "minus infinity with no guard, backward", 84, "pytorch#41508",
        "torch.finfo(x.dtype).min)", '-torch.inf)', "masked-rows.backward", "Attention",
    ),
    Mutant(
        "the mask of the source is built and not used", 85, "OpenNMT-py#272", SEQ2SEQ,
        "scores.masked_fill(~shown", "scores.masked_fill(~torch.ones_like(shown)", "cross-attention.pads", "CrossAttention",
    ),
    Mutant(
        "the mask of the source is dropped in steps", 85, "NVIDIA/FasterTransformer#270", SEQ2SEQ,
        "shown = source_mask > 0", "shown = (source_mask > 0) | (past > 0)", "cross-attention.cached",
    ),
    Mutant(
        "the source is not read", None, "the dual of OpenNMT-py#272", SEQ2SEQ,
        "x + self.crossed(self.norms[1](x), memory, shown)[0]", "x + 0 * self.crossed(self.norms[1](x), memory, shown)[0]",
        "cross-attention.source",
    ),
    Mutant(
        "the source is cut to the length of the target", 85, "fairseq#318", SEQ2SEQ,
        "memory, shown = memory, shown", "memory, shown = memory[:, :total], shown[:, :total]", "cross-attention.lengths",
    ),
    Mutant(
        "rows share the source of the first", 85, "NVIDIA/FasterTransformer#270", SEQ2SEQ,
        "memory, shown = memory, shown", "memory, shown = memory[:1].expand_as(memory), shown", "cross-attention.pads",
    ),
]  # fmt: skip

NOT_EXPRESSED = {
    17: "a state that is not carried needs a recurrent layer; the law of the cache compares its chunks",
    19: "joining two caches is a law on caches as values",
    24: "a mask that is dropped before generating is a law on generation",
    31: "the length penalty of beams is a law on decoding",
    34: "a wrong gradient beside a right forward pass is a law on gradients",
}
"""Entries of the list that no changed line of these two pieces makes, and why."""
