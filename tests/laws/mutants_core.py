"""Faults of causality, prefixes and caches."""

from __future__ import annotations

from mutants import Mutant

FILE = "small_decoder.py"
TRIANGLE = "allowed = j <= i\n"
KEPT = "kept = (k, v)\n        k = k.repeat"
ALLOWED = "allowed = self.allowed(mask, past, n, segments, key_positions)"
FILL = "scores = scores.masked_fill(~allowed[:, None], torch.finfo(x.dtype).min)"

MUTANTS = [
    Mutant(
        "bidirectional mask in a decoder", 1, "huggingface/transformers#48745", FILE,
        TRIANGLE, "allowed = (j <= i) | (j > i)\n", "causality.forward", "Attention",
    ),
    Mutant(
        "additive mask combined by a product", 2, "huggingface/transformers#31673", FILE, FILL,
        "hidden = torch.zeros_like(scores).masked_fill(~allowed[:, None], torch.finfo(x.dtype).min)\n"
        "        scores = scores + hidden * torch.ones_like(hidden).tril()",
        "causality.forward", "Attention",
    ),
    Mutant(
        "mask constant -1e4", 3, "karpathy/minGPT#75", FILE,
        "torch.finfo(x.dtype).min)", "-1e4)", "causality.large-scores", "Attention",
    ),
    Mutant(
        "mask constant -1e5", 4, "TransformerLensOrg/TransformerLens#385", FILE,
        "torch.finfo(x.dtype).min)", "-1e5)", "causality.large-scores", "Attention",
    ),
    Mutant(
        "no mask where there is a cache", 5, "Mikyx-1/TinyLLM#17", FILE,
        ALLOWED, f"{ALLOWED} if not use_cache else torch.ones(b, n, total, dtype=torch.bool)",
        "causality.cached-prefill", "Attention",
    ),
    Mutant(
        "no triangle inside a chunk after 64 tokens", 6, "tenstorrent/tt-metal#48899", FILE,
        TRIANGLE, "allowed = (j <= i) | ((j >= past) & (past >= 64))\n", "cache.long", "Attention", {"context": 160},
    ),
    Mutant(
        "keys less their mean over a block", 7, "karpathy/nanochat#844", FILE,
        KEPT, f"k = k - torch.stack([k[:, :, t - t % 16 :][:, :, :16].mean(2) for t in range(n)], 2)\n        {KEPT}",
        "causality.forward", "Attention",
    ),
    Mutant(
        "keys and values projected along the sequence", 8, "tatp22/linformer-pytorch#25", FILE,
        KEPT, f"k, v = k.flip(2).cumsum(2).flip(2), v.flip(2).cumsum(2).flip(2)\n        {KEPT}",
        "causality.forward", "Attention",
    ),
    Mutant(
        "rotary base from the length of the call", 9, "huggingface/transformers#25104", FILE,
        "frequency = 10000.0 **", "frequency = (10000.0 * max(1, x.shape[2] / 4)) **", "prefix.lengths", "Attention",
    ),
    Mutant(
        "triangle aligned top left", 12, "pytorch/pytorch#103082", FILE,
        "torch.arange(past, total)[:, None]", "torch.arange(n)[:, None]", "cache.one-by-one", "Attention",
    ),
    Mutant(
        "history hidden from a continuation of several tokens", 13, "pytorch/executorch#21749", FILE,
        TRIANGLE, "allowed = j <= i - past if n > 1 else j <= i\n", "cache.uneven", "Attention",
    ),
    Mutant(
        "rotary offset before the past is joined", 18, "time-series-foundation-models/lag-llama#81", FILE,
        "positions = key_positions[:, past:] if", "positions = key_positions[:, :n] if", "cache.one-by-one", "SmallDecoder",
    ),
    Mutant(
        "first token never written to the cache", 20, "TrenTorch/TrenTorch#192", FILE,
        KEPT, KEPT.replace("(k, v)", "(k, v) if past is not None else (k * (torch.arange(n) > 0)[:, None], v)"),
        "cache.prefill-then-steps",
    ),
]  # fmt: skip

NOT_EXPRESSED = {
    11: "the faults of entries 5 and 10 as their users saw them",
    17: "no recurrence in the small decoder; found in the models of transformers that have one",
}
