"""Cross-attention: a decoder reads the whole source, and only what the mask of the source shows."""

from __future__ import annotations

import torch
from torch import Tensor

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..runs import Claim, Inputs, Run, block, once
from ..subjects.base import Kind, Offer
from ..verdict import Finding, NotApplicable


def _need(bench: Bench, *offers: Offer) -> None:
    if bench.subject.kind is not Kind.SEQUENCE_TO_SEQUENCE:
        raise NotApplicable("this model has no source", "该模型没有源文本")
    for offer in (Offer.SOURCE, *offers):
        bench.need(offer)


def _source(bench: Bench, m: int) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...]]:
    """Three sources with no, few and many pads behind them; the same with other pads; their mask; their lengths."""
    sizes = (m, m - max(1, m // 6), m - m // 2)
    ids, filler = bench.texts(3, m, 81), bench.texts(3, m, 82)
    mask = (torch.arange(m)[None] < torch.tensor(sizes)[:, None]).long()
    filler = torch.where(filler == ids, bench.other(filler), filler)
    return ids, torch.where(mask == 1, ids, filler), mask, sizes


def pads(bench: Bench) -> Finding:
    """Pads behind the source: as the source alone, whatever they hold."""
    _need(bench, Offer.SOURCE_MASK)
    target, n = bench.texts(3, seed=83), bench.length
    ids, other, mask, sizes = _source(bench, n)
    run = once(target, source=ids, source_mask=mask)
    filled = once(target, source=other, source_mask=mask)
    claims = [Claim(left=run, right=filled, left_at=block(range(3), range(n)), facts={"changed": "pads of the source"})]
    claims += [
        Claim(
            left=run,
            right=once(target[row : row + 1], source=ids[row : row + 1, :size]),
            left_at=block([row], range(n)),
            right_at=block([0], range(n)),
            facts={"source_length": size},
        )
        for row, size in enumerate(sizes)
    ]
    return bench.test(bench.singly(claims))


def lengths(bench: Bench) -> Finding:
    """A source shorter and longer than the target: the beginning of the target alone, and beside another row."""
    _need(bench)
    n = bench.length
    found = []
    for m, t in ((n, max(1, n // 2)), (max(1, n // 2), n)):
        target, source = bench.texts(2, t, 84), bench.texts(2, m, 85)
        whole, first = once(target, source=source), max(1, t - 2)
        beginning = once(target[:1, :first], source=source[:1])
        facts = {"source_length": m, "target_length": t}
        found.append(Claim(left=beginning, right=whole, left_at=block([0], range(first)), facts=facts))
    return bench.test(bench.singly(found))


def cached(bench: Bench) -> Finding:
    """The target in chunks through the cache, beside sources of other lengths than its own."""
    _need(bench, Offer.CACHE)
    n = bench.length
    m = max(2, n - 3)
    target = bench.texts(3, seed=86)
    ids, _, mask, _ = _source(bench, m)
    shown = mask if Offer.SOURCE_MASK in bench.subject.offers else None
    cuts = [max(1, n // 2), *[1] * min(2, n - max(1, n // 2))]
    cuts += [n - sum(cuts)] if sum(cuts) < n else []
    calls = tuple(Inputs(ids=part, source=ids, source_mask=shown) for part in target.split(cuts, 1))
    whole = once(target, source=ids, source_mask=shown)
    left = Run(calls=calls, cached=True)
    claim = Claim(left=left, right=whole, left_at=block(range(3), range(n)), facts={"chunks": cuts, "source_length": m})
    return bench.test(bench.singly([claim]))


def source(bench: Bench) -> Finding:
    """The dual: each token of the source moves the logits of a target of one token."""
    _need(bench)
    m = min(4, bench.length)
    ids, target = bench.texts(1, m, 87).expand(m, -1).clone(), bench.texts(1, 1, 88).expand(m, -1)
    changed, at = ids.clone(), torch.arange(m)
    changed[at, at] = bench.other(ids)[at, at]
    left, right = once(target, source=ids), once(target, source=changed)
    found = [
        bench.test([Claim(left=left, right=right, left_at=block([t], [0]), differ=True, facts={"changed": t})])
        for t in range(m)
    ]
    return max(found, key=lambda finding: finding.severity)


CROSS_ATTENTION = Law(
    id="cross-attention",
    statement=words(
        "Every token of the source is read, pads of the source are not, with a cache as without.",
        "源文本的每个词元都被读取，源填充不被读取，有无缓存皆然。",
    ),
    formula=r"\mathrm{logits}(y \mid x\,\mathrm{pad}^p) = \mathrm{logits}(y \mid x)",
    conditions=words("A model with an encoder and a decoder.", "有编码器与解码器的模型。"),
    why=words(
        "Two lengths and two masks meet here; a mask that is built and not handed on raises no error.",
        "这里有两种长度、两个掩码；掩码建好却没有传下去，不会报错。",
    ),
    chapter="8.7",
    probes=(
        Probe(id="cross-attention.pads", does=words("pads behind the source", "源文本右侧填充"), run=pads),
        Probe(id="cross-attention.lengths", does=words("unequal lengths", "长度不等"), run=lengths),
        Probe(id="cross-attention.cached", does=words("through the cache", "经由缓存"), run=cached),
        Probe(
            id="cross-attention.source", does=words("each source token has an effect", "每个源词元都有影响"), run=source
        ),
    ),
)
