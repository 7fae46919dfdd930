"""Padding: a row among pads is the row alone, whatever stands in the pads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...bilingual import words
from ..bench import Bench, causal_only
from ..law import Law, Probe
from ..runs import Cells, Claim, Inputs, Run, block, cells, once
from ..subjects.base import Offer
from ..verdict import Finding, NotSupported
from .documents import need_documents


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Padded:
    """Rows of one text each among pads: ``ids (b, n)``, the same with other ids in the pads, ``mask (b, n)``.

    ``positions (b, n)`` count what the mask shows; ``real`` are the places of the texts, ``spans`` their begin and end.
    """

    ids: Tensor
    other: Tensor
    mask: Tensor
    spans: tuple[tuple[int, int], ...]

    @property
    def positions(self) -> Tensor:
        return (self.mask.cumsum(1) - 1).clamp(min=0)

    @property
    def real(self) -> Cells:
        return cells([(row, at) for row, at in self.mask.nonzero().tolist()])

    def told(self, *, positions: bool, other: bool = False) -> Run:
        """One call with the mask, and with positions."""
        ids = self.other if other else self.ids
        return once(ids, mask=self.mask, positions=self.positions if positions else None)


def padded(bench: Bench, *, left: bool, n: int | None = None) -> Padded:
    """Three rows with no, few and many pads on one side."""
    n = bench.length if n is None else n
    pads = (0, max(1, n // 6), n // 2)
    spans = tuple((p, n) if left else (0, n - p) for p in pads)
    at = torch.arange(n)
    mask = torch.stack([(at >= begin) & (at < end) for begin, end in spans]).long()
    return filled(bench, mask, spans)


def from_first_slot() -> NotSupported:
    """What is said of a model whose pads have no effect but that of moving the text."""
    return NotSupported(
        "pads have no effect, but positions are counted from the first slot: give positions, or pad on the right",
        "填充本身没有影响，但位置从第一个槽位数起：请显式给出位置，或在右侧填充",
    )


def filled(bench: Bench, mask: Tensor, spans: tuple[tuple[int, int], ...] = (), texts: Tensor | None = None) -> Padded:
    """Texts, or the begin of ``texts (b, n)``, where ``mask (b, n)`` is 1, and two fillings of the rest.

    None of these is an id that models take for a pad.
    """
    b, n = mask.shape
    ids, first, second = (bench.texts(b, n, seed) for seed in (21, 22, 23))
    usual = bench.texts(1, 1, 24).expand(b, n)
    for table in bench.module.modules():
        if isinstance(table, nn.Embedding) and table.padding_idx is not None:
            first, second = (torch.where(x == table.padding_idx, usual, x) for x in (first, second))
    seen = mask == 1
    # The text of a row is the same wherever its pads are.
    ids = (ids if texts is None else texts).gather(1, (mask.cumsum(1) - 1).clamp(min=0))
    second = torch.where(first == second, bench.other(second), second)
    return Padded(ids=torch.where(seen, ids, first), other=torch.where(seen, ids, second), mask=mask, spans=spans)


def alone(bench: Bench, rows: Padded, run: Run, *, positions: bool) -> Iterator[Claim]:
    """That each row of ``run`` has the logits that its text has alone, called in the same way."""
    for row, (begin, end) in enumerate(rows.spans):
        text = rows.ids[row : row + 1, begin:end]
        yield Claim(
            left=run,
            right=once(text, positions=torch.arange(end - begin)[None]) if positions else bench.plain(text),
            left_at=block([row], range(begin, end)),
            right_at=block([0], range(end - begin)),
            facts={"pads": rows.ids.shape[1] - (end - begin), "text_begins": begin},
        )


def right(bench: Bench) -> Finding:
    """Pads behind the text, with a mask."""
    bench.need_mask()
    rows = padded(bench, left=False)
    run = rows.told(positions=False)
    return bench.test(bench.singly(alone(bench, rows, run, positions=False)))


def left(bench: Bench) -> Finding:
    """Pads before the text, with a mask alone. A model that counts positions from the first slot needs them told."""
    bench.need_mask()
    rows = padded(bench, left=True)
    run = rows.told(positions=False)
    # Positions may move by the number of pads, which shows in tables of single precision.
    found = bench.loosened(bench.test(bench.singly(alone(bench, rows, run, positions=False))))
    told = Offer.POSITIONS in bench.subject.offers
    if (
        not found.kept
        and bench.loosened(hidden(bench, rows, run)).kept
        and (not told or bench.loosened(left_with_positions(bench)).kept)
    ):
        raise from_first_slot()
    return found


def left_with_positions(bench: Bench) -> Finding:
    """Pads before the text, with a mask and with positions that begin at the text."""
    bench.need_mask()
    bench.need(Offer.POSITIONS)
    rows = padded(bench, left=True)
    run = rows.told(positions=True)
    return bench.test(bench.singly(alone(bench, rows, run, positions=True)))


def hidden(bench: Bench, rows: Padded, run: Run) -> Finding:
    """That ``run`` is the same with other ids in the pads."""
    other = rows.told(positions=False, other=True)
    return bench.test(bench.singly([Claim(left=run, right=other, left_at=rows.real, facts={"changed": "pads"})]))


def content(bench: Bench) -> Finding:
    """Other ids in the pads, on either side."""
    bench.need_mask()
    found = [
        hidden(bench, rows, rows.told(positions=False))
        for rows in (padded(bench, left=True), padded(bench, left=False))
    ]
    return max(found, key=lambda finding: finding.severity)


def pad_as_token(bench: Bench) -> Finding:
    """A token that the mask shows is read, even where its id is that of the pad: hiding it has an effect.

    Tried are the ids that the subject or its tables name, those that are pads in common vocabularies, and as a control
    an ordinary one.
    """
    bench.need_mask()
    facts = bench.subject.facts
    tables = [m for m in bench.module.modules() if isinstance(m, nn.Embedding)]
    named = {facts.pad, *facts.special, *(t.padding_idx for t in tables), 0, 1, 2, 3, facts.vocab_size - 1}
    ordinary = int(bench.texts(1, 1, 31))
    tried = [ordinary, *sorted(i for i in named if i is not None and 0 <= i < facts.vocab_size and i != ordinary)][:10]
    n = bench.length
    at = torch.arange(n) % 2 == 0
    at[-1] = False
    ids = torch.where(at[None], torch.tensor(tried)[:, None], bench.texts(1, n, 32).expand(len(tried), n))
    shown = once(ids, mask=torch.ones_like(ids))
    masked = once(ids, mask=(~at).long().expand(len(tried), n))
    claims = [
        Claim(
            left=shown, right=masked, left_at=block([row], (~at).nonzero()[:, 0].tolist()), differ=True, facts={"id": i}
        )
        for row, i in enumerate(tried)
    ]
    control, *found = (bench.test([claim]) for claim in claims)
    if not control.kept:
        raise NotSupported("hiding ordinary tokens has no effect", "隐藏普通词元没有影响")
    return max(found, key=lambda finding: finding.severity)


def _continued(bench: Bench, *, positions: bool) -> Finding:
    """Pads before the text, and again in the second chunk, through the cache: as without a cache, whatever they hold."""
    causal_only(bench)
    bench.need_mask()
    bench.need(Offer.CACHE)
    n = max(4, bench.length)
    first = n // 2
    at, few = torch.arange(n), max(1, n // 6)
    mask = torch.ones(3, n, dtype=torch.int64)
    mask[1, at < few] = 0
    mask[2, (at < 1) | ((at >= first) & (at < first + few))] = 0
    rows = filled(bench, mask)
    whole, told = rows.told(positions=positions), rows.positions if positions else None

    def cached(ids: Tensor) -> Run:
        ends = [(0, first), (first, n - 1), (n - 1, n)]
        return Run(
            calls=tuple(
                Inputs(ids=ids[:, a:b], mask=mask[:, :b], positions=None if told is None else told[:, a:b])
                for a, b in ends
            ),
            cached=True,
        )

    run, other = cached(rows.ids), cached(rows.other)
    unpadded = Claim(left=run, right=whole, left_at=block([0], range(n)))
    if not bench.loosened(bench.test(bench.singly([unpadded]))).kept:
        raise NotSupported(
            "the cache fails without pads too: see the law of the cache", "没有填充时缓存也不对：见缓存定律"
        )
    facts = {"chunks": [first, n - 1 - first, 1]}
    same = Claim(left=run, right=whole, left_at=rows.real, facts=facts)
    apart = Claim(left=run, right=other, left_at=rows.real, facts={**facts, "changed": "pads"})
    return bench.test(bench.singly([same, apart]))


def continued(bench: Bench) -> Finding:
    """Through the cache, with a mask alone."""
    return _continued(bench, positions=False)


def continued_with_positions(bench: Bench) -> Finding:
    """Through the cache, with positions."""
    bench.need(Offer.POSITIONS)
    return _continued(bench, positions=True)


def segments(bench: Bench) -> Finding:
    """Pads that are a document of their own, before and behind the text."""
    need_documents(bench)
    claims = []
    for side in (True, False):
        rows = padded(bench, left=side)
        numbers = rows.mask if side else 1 - rows.mask
        run, other = once(rows.ids, segments=numbers), once(rows.other, segments=numbers)
        claims += alone(bench, rows, run, positions=False)
        claims.append(Claim(left=run, right=other, left_at=rows.real, facts={"changed": "pads"}))
    return bench.test(bench.singly(claims))


PADDING = Law(
    id="padding",
    statement=words(
        "A text among masked pads has the logits that it has alone, whatever the pads hold.",
        "被掩码的填充中的文本与单独输入时 logits 相同，无论填充处是什么。",
    ),
    formula=r"\mathrm{logits}(\mathrm{pad}^p\,x)_{p+i} = \mathrm{logits}(x)_i",
    conditions=words("A model that takes a mask, or documents.", "接受掩码或文档编号的模型。"),
    why=words(
        "A batch holds texts of many lengths: what a text gets must not depend on its neighbours' length.",
        "一批文本长短不一：每条文本的结果不应取决于同批其他文本的长度。",
    ),
    chapter="7.4",
    probes=(
        Probe(id="padding.right", does=words("pads behind the text", "右侧填充"), run=right, fast=True),
        Probe(id="padding.left", does=words("pads before the text", "左侧填充"), run=left, fast=True),
        Probe(
            id="padding.left-with-positions", does=words("pads before the text, positions given", "左侧填充并给出位置"),
            run=left_with_positions, fast=True,
        ),
        Probe(id="padding.content", does=words("other ids in the pads", "改变填充处的词元"), run=content, fast=True),
        Probe(
            id="padding.pad-as-token", does=words("a shown token with the pad's id", "可见词元的编号等于填充编号"),
            run=pad_as_token,
        ),
        Probe(id="padding.continued", does=words("through the cache", "经由缓存"), run=continued),
        Probe(
            id="padding.continued-with-positions", does=words("through the cache, positions given", "经由缓存并给出位置"),
            run=continued_with_positions,
        ),
        Probe(id="padding.segments", does=words("pads as a document", "填充自成一段"), run=segments),
    ),
)  # fmt: skip
