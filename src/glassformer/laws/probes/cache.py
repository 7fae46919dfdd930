"""Cache = recompute: what is kept of earlier positions must be what they would be computed to now."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ...bilingual import words
from ..bench import Bench, causal_only
from ..law import Law, Probe
from ..runs import Claim, Inputs, Run, block, chunked
from ..subjects.base import Offer
from ..verdict import Finding, NotApplicable


def _agrees(bench: Bench, n: int, lengths: Sequence[int]) -> Claim:
    ids = bench.texts(2, n)
    at = block(range(2), range(n))
    return Claim(left=chunked(ids, lengths), right=bench.plain(ids), left_at=at, facts={"chunks": list(lengths)})


def _chunking(cut: Callable[[int], Sequence[int]]) -> Callable[[Bench], Finding]:
    def run(bench: Bench) -> Finding:
        causal_only(bench)
        bench.need(Offer.CACHE)
        n = _length(bench)
        return bench.test([_agrees(bench, n, cut(n))])

    return run


def _length(bench: Bench) -> int:
    """The usual length, or one that runs past the model's window; ``cache.long`` goes further."""
    window = bench.subject.facts.settings.get("window") or 0
    return max(n for n in bench.lengths() if n <= max(bench.length, window + 3))


def one_by_one(n: int) -> Sequence[int]:
    """Each token is a chunk."""
    return [1] * n


def prefill_then_steps(n: int) -> Sequence[int]:
    """Half of the text at once, the rest token by token."""
    return [n // 2, *[1] * (n - n // 2)]


def uneven(n: int) -> Sequence[int]:
    """Chunks of 2, 1, 3, 2, 1, 3, ... tokens."""
    sizes: list[int] = []
    while sum(sizes) < n:
        sizes.append(min((2, 1, 3)[len(sizes) % 3], n - sum(sizes)))
    return sizes


def long(bench: Bench) -> Finding:
    """Small chunks after pasts around powers of two, where kernels change their way."""
    causal_only(bench)
    bench.need(Offer.CACHE)
    room = min(bench.subject.facts.context or 136, 136)
    ends = [end for end in (15, 18, 32, 35, 64, 68, 128, 132) if end <= room]
    if not ends:
        raise NotApplicable("the context is shorter than 15 tokens", "上下文短于 15 个词元")
    sizes = [b - a for a, b in itertools.pairwise([0, *ends])]
    return bench.test([_agrees(bench, ends[-1], sizes)])


def _told(bench: Bench, tell: Callable[[int, int], Mapping[str, Any]], *needs: Offer) -> Finding:
    """Chunks with further arguments, made for the positions from ``start`` up to ``end``."""
    causal_only(bench)
    for offer in (Offer.CACHE, *needs):
        bench.need(offer)
    n = bench.length
    ids = bench.texts(2, n)
    calls, start = [], 0
    for size in uneven(n):
        calls.append(Inputs(ids=ids[:, start : start + size], **tell(start, start + size)))
        start += size
    left = Run(calls=tuple(calls), cached=True)
    claim = Claim(
        left=left, right=bench.plain(ids), left_at=block(range(2), range(n)), facts={"chunks": list(uneven(n))}
    )
    return bench.test([claim])


def with_positions(bench: Bench) -> Finding:
    """Positions given for each chunk."""
    return _told(bench, lambda a, b: {"positions": torch.arange(a, b).expand(2, -1)}, Offer.POSITIONS)


def with_mask(bench: Bench) -> Finding:
    """A mask of ones over everything read so far, given with each chunk."""
    return _told(bench, lambda _, b: {"mask": torch.ones(2, b, dtype=torch.int64)}, Offer.MASK)


CACHE = Law(
    id="cache",
    statement=words(
        "Logits computed with a cache, in any chunks, are those computed without one.",
        "无论怎样分块，经由缓存算出的 logits 与不用缓存时相同。",
    ),
    formula=r"\mathrm{logits}(x_{a:b} \mid \mathrm{cache}(x_{1:a})) = \mathrm{logits}(x_{1:b})_{a:b}",
    conditions=words("A causal model that can continue a cache.", "能接续缓存的因果模型。"),
    why=words(
        "Training never uses the cache: a fault in it spoils generation alone, and looks like a bad model.",
        "训练不用缓存：缓存出错只损坏生成，看上去就像模型不好。",
    ),
    chapter="12.4",
    probes=(
        Probe(id="cache.one-by-one", does=words("token by token", "逐个词元"), run=_chunking(one_by_one)),
        Probe(
            id="cache.prefill-then-steps", does=words("half at once, then steps", "先整块后逐步"),
            run=_chunking(prefill_then_steps), fast=True, repeated=True,
        ),
        Probe(id="cache.uneven", does=words("uneven chunks", "不等长分块"), run=_chunking(uneven)),
        Probe(id="cache.long", does=words("small chunks after long pasts", "长前文后的小块"), run=long),
        Probe(id="cache.positions", does=words("with positions given", "显式给出位置"), run=with_positions),
        Probe(id="cache.mask", does=words("with a mask of ones", "给出全一掩码"), run=with_mask),
    ),
)  # fmt: skip
