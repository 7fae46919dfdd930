"""Batch: what a row gets does not depend on the rows beside it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ...bilingual import words
from ..bench import Bench, causal_only
from ..law import Law, Probe
from ..runs import Claim, Run, block, chunked, once
from ..subjects.base import Kind, Offer
from ..verdict import Finding

ROWS = 3


def each_alone(ids: Tensor, run: Run) -> Iterator[Claim]:
    """That each row of ``ids (b, n)``, of which ``run`` is one call, has the logits that it has alone."""
    n = ids.shape[1]
    for row in range(ids.shape[0]):
        at, own = block([row], range(n)), block([0], range(n))
        yield Claim(left=run, right=once(ids[row : row + 1]), left_at=at, right_at=own, facts={"rows": ids.shape[0]})


def companions(bench: Bench) -> Finding:
    """Each row alone, and one row beside others."""
    ids = bench.texts(ROWS, seed=41)
    changed = torch.cat([ids[:1], bench.other(ids[1:])])
    run = once(ids)
    beside = Claim(left=run, right=once(changed), left_at=block([0], range(ids.shape[1])), facts={"changed": "rows"})
    return bench.test([*each_alone(ids, run), beside])


def permutation(bench: Bench) -> Finding:
    """Rows in another order."""
    ids = bench.texts(ROWS, seed=42)
    order = [(row + 1) % ROWS for row in range(ROWS)]
    at, moved = block(order, range(ids.shape[1])), block(range(ROWS), range(ids.shape[1]))
    return bench.test(
        [Claim(left=once(ids), right=once(ids[order]), left_at=at, right_at=moved, facts={"order": order})]
    )


def lengths(bench: Bench) -> Finding:
    """Rows of different lengths, the longest neither first nor last; behind a text stand ids that a mask hides.

    A causal model is tried without a mask where it takes none: what stands behind a text is not read.
    """
    if bench.subject.kind is not Kind.CAUSAL or Offer.MASK in bench.subject.offers:
        bench.need_mask()
    ids = bench.texts(ROWS, seed=43)
    n = ids.shape[1]
    sizes = (max(1, n // 3), n, max(1, n - 2))
    mask = (torch.arange(n)[None] < torch.tensor(sizes)[:, None]).long()
    run = once(ids, mask=mask if Offer.MASK in bench.subject.offers else None)
    return bench.test(
        Claim(
            left=run,
            right=once(ids[row : row + 1, :size]),
            left_at=block([row], range(size)),
            right_at=block([0], range(size)),
            facts={"lengths": list(sizes)},
        )
        for row, size in enumerate(sizes)
    )


def cached(bench: Bench) -> Finding:
    """Rows that continue a cache together, against the middle one alone."""
    causal_only(bench)
    bench.need(Offer.CACHE)
    ids = bench.texts(ROWS, seed=44)
    n = ids.shape[1]
    chunks = [max(1, n - 2), *[1] * (n - max(1, n - 2))]
    at, own = block([1], range(n)), block([0], range(n))
    left, right = chunked(ids, chunks), chunked(ids[1:2], chunks)
    return bench.test([Claim(left=left, right=right, left_at=at, right_at=own, facts={"chunks": chunks})])


BATCH = Law(
    id="batch",
    statement=words("A row has the same logits whatever rows are beside it.", "无论与哪些行同批，一行的 logits 不变。"),
    formula=r"\mathrm{logits}([x; y])_1 = \mathrm{logits}([x])_1",
    conditions=words("Any model in evaluation mode.", "评估模式下的任何模型。"),
    why=words(
        "Rows that read each other leak between users when serving, and between examples when training.",
        "行与行相互读取，服务时会在用户之间泄漏，训练时会在样本之间泄漏。",
    ),
    chapter="3.2",
    probes=(
        Probe(id="batch.companions", does=words("other rows", "换掉其他行"), run=companions),
        Probe(id="batch.permutation", does=words("another order", "改变行序"), run=permutation),
        Probe(id="batch.lengths", does=words("rows of different lengths", "各行长度不同"), run=lengths),
        Probe(id="batch.cached", does=words("through the cache", "经由缓存"), run=cached),
    ),
)
