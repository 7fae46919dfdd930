"""Causality: logits before t do not depend on token t."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ...bilingual import words
from ..bench import Bench, causal_only
from ..law import Law, Probe
from ..runs import Cells, Claim, Run, block, cells, chunked, once
from ..subjects.base import Offer
from ..verdict import Finding, NotApplicable, NotSupported

GAINS = (8.0, 64.0, 512.0)
"""Factors of the weights under which scores grow past the constants that stand in for minus infinity."""

GENTLE = (1.0, 1 / 8, 1 / 64)
"""Factors of the weights for a dual: under large weights attention chooses one position, and others have no effect."""


def perturbed(bench: Bench, n: int) -> tuple[Tensor, Tensor, Cells]:
    """A text repeated ``n - 1`` times; the same with token ``t`` changed in row ``t - 1``; all cells before it."""
    ids = bench.base(n).expand(n - 1, n).clone()
    changed, other = ids.clone(), bench.other(ids)
    at = torch.arange(1, n)
    changed[at - 1, at] = other[at - 1, at]
    return ids, changed, cells([(t - 1, i) for t in range(1, n) for i in range(t)])


def leaks(rows: Run, n: int) -> Claim:
    """That in ``rows``, a run of ``Bench.side_by_side``, none differs from the first one before its changed token."""
    pairs = [(t, i) for t in range(1, n) for i in range(t)]
    return Claim(left=rows, right=rows, left_at=cells(pairs), right_at=cells([(0, i) for _, i in pairs]))


def claims(bench: Bench, n: int, **run: object) -> Iterator[Claim]:
    """That changing any token of a text of ``n`` moves no logits before it."""
    ids = bench.base(n)
    rows = bench.side_by_side(ids)
    if bench.rows_apart and "training" not in run:
        yield leaks(with_(bench.plain(rows), **run) if run else bench.plain(rows), n)
        return
    if bench.rows_apart:  # each row drops cells of its own: two runs, row by row alike
        _, changed, before = perturbed(bench, n)
        yield Claim(left=with_(once(ids.repeat(n - 1, 1)), **run), right=with_(once(changed), **run), left_at=before)
        return
    alone = with_(bench.plain(ids), **run) if run else bench.plain(ids)
    for t in range(1, n, max(1, n // bench.length)):  # rows that read each other would look like a leak
        right = with_(once(rows[t : t + 1]), **run)
        yield Claim(left=alone, right=right, left_at=block([0], range(t)), facts={"changed": t})


def with_facts(claim: Claim, **facts: object) -> Claim:
    """``claim`` with more to say of it."""
    return replace(claim, facts={**claim.facts, **facts})


def with_(run: Run, **changes: object) -> Run:
    """``run`` with other settings."""
    return replace(run, **changes)


def forward(bench: Bench) -> Finding:
    """Every length, every token."""
    causal_only(bench)
    return bench.test(claim for n in bench.lengths() if n > 1 for claim in claims(bench, n))


def cached(bench: Bench, lengths: tuple[int, ...]) -> Finding:
    """Through a cache filled in chunks of the given parts of the text."""
    causal_only(bench)
    bench.need(Offer.CACHE)
    n = bench.length
    cuts = [n] if lengths == (1,) else _parts(n, lengths)
    if bench.rows_apart:
        claim = leaks(chunked(bench.side_by_side(bench.base(n)), cuts), n)
    else:
        ids, changed, before = perturbed(bench, n)
        claim = Claim(left=chunked(ids, cuts), right=chunked(changed, cuts), left_at=before)
    return bench.test([with_facts(claim, chunks=cuts)])


def _parts(n: int, shares: tuple[int, ...]) -> list[int]:
    whole = sum(shares)
    ends = [round(n * sum(shares[: k + 1]) / whole) for k in range(len(shares))]
    return [b - a for a, b in zip([0, *ends], ends, strict=False) if b > a]


def prefill(bench: Bench) -> Finding:
    """The whole text into an empty cache."""
    return cached(bench, (1,))


def chunks(bench: Bench) -> Finding:
    """Uneven chunks."""
    return cached(bench, (3, 1, 4, 2))


def training(bench: Bench) -> Finding:
    """In training mode: dropout drops the same cells in both runs, since both begin with the same random numbers."""
    causal_only(bench)
    return bench.test(claims(bench, bench.length, training=True))


def large_scores(bench: Bench) -> Finding:
    """With weights under which scores outgrow a constant in the place of minus infinity."""
    causal_only(bench)
    found = [bench.test(claims(bench, bench.length, gain=gain), gain=gain) for gain in GAINS]
    finite = [finding for finding in found if finding.measured == finding.measured]
    if not finite:
        raise NotSupported("the logits overflow under large weights", "权重放大后 logits 溢出")
    return max(finite, key=lambda finding: finding.severity)


def reach(bench: Bench) -> int:
    """How many of the last tokens, itself included, the last one reads through all layers together."""
    window = bench.subject.facts.settings.get("window")
    if window is None:
        return bench.length
    return min(bench.length, 1 + (window - 1) * max(1, len(bench.subject.blocks(bench.module))))


def past(bench: Bench) -> Finding:
    """The dual: each earlier token moves the last logits, as far back as windows let all layers together reach."""
    causal_only(bench)
    n = min(4, reach(bench))
    if n == 1:
        raise NotApplicable("each token reads itself alone", "每个词元只读自己")
    ids = bench.texts(1, n)
    changed = ids.expand(n - 1, n).clone()
    at = torch.arange(n - 1)
    changed[at, at] = bench.other(ids)[0, at]
    rows = torch.cat([changed, ids])
    found: dict[int, Finding] = {}
    for gain in GENTLE:  # smaller ones for those alone that have shown no effect yet
        run = with_(once(rows), gain=gain)
        for t in [t for t in range(n - 1) if t not in found or not found[t].kept]:
            claim = Claim(
                left=run, right=run, left_at=block([n - 1], [n - 1]), right_at=block([t], [n - 1]), differ=True
            )
            tried = min((bench.test([each], changed=t) for each in bench.singly([claim])), key=_severity)
            found[t] = min([tried, *([found[t]] if t in found else [])], key=_severity)
    return max(found.values(), key=_severity)


def _severity(finding: Finding) -> float:
    return finding.severity


CAUSALITY = Law(
    id="causality",
    statement=words("Logits before t do not depend on token t.", "t 之前的 logits 不依赖第 t 个词元。"),
    formula=r"\partial\,\mathrm{logits}_i / \partial\,\mathrm{token}_t = 0 \quad (i < t)",
    conditions=words("A model that predicts the next token.", "预测下一词元的模型。"),
    why=words(
        "A model that sees what it is to predict has a training loss near zero and writes nonsense.",
        "看得见答案的模型训练损失接近零，生成却是胡言乱语。",
    ),
    chapter="7.4",
    probes=(
        Probe(id="causality.forward", does=words("each token changed in turn", "逐个改变词元"), run=forward, fast=True,
              repeated=True),
        Probe(id="causality.cached-prefill", does=words("through an empty cache", "经由空缓存"), run=prefill),
        Probe(id="causality.chunks", does=words("through the cache in chunks", "分块经由缓存"), run=chunks),
        Probe(id="causality.dropout", does=words("in training mode", "训练模式下"), run=training),
        Probe(id="causality.large-scores", does=words("with very large scores", "分数极大时"), run=large_scores, fast=True),
        Probe(id="causality.past", does=words("earlier tokens have an effect", "之前的词元有影响"), run=past, fast=True),
    ),
)  # fmt: skip
