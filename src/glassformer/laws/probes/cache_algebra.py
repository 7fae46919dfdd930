"""Cache algebra: copying, repeating, reordering and cropping a cache commute with computing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from ...bilingual import words
from ..bench import Bench, causal_only
from ..law import Law, Probe
from ..runs import Inputs, Run
from ..subjects import caches
from ..subjects.base import Kind, Offer
from ..verdict import Finding, NotSupported


class Reader:
    """Reads on with caches, one token at a time after the first chunk, and counts the passes."""

    def __init__(self, bench: Bench) -> None:
        causal_only(bench)
        bench.need(Offer.CACHE)
        if bench.subject.kind is Kind.SEQUENCE_TO_SEQUENCE:
            raise NotSupported("an encoder's part of the cache is not taken apart", "不拆分缓存中编码器的部分")
        self.bench = bench
        self.n = max(1, bench.length // 2)
        if bench.length - self.n < 2:
            raise NotSupported("the context is too short to go on", "上下文太短，无法接续")

    def read(self, ids: Tensor, cache: Any = None) -> tuple[Tensor, Any]:
        """``(b, V)`` after ``ids (b, n)`` and what is kept."""
        bench, call = self.bench, Inputs(ids=ids)
        with bench.mode(Run(calls=(call,), cached=True)):
            outputs = bench.subject.call(bench.module, bench.fitted(call), keep=True, cache=cache)
        bench.spent.forwards += 1
        if outputs.cache is None:
            raise NotSupported("no cache came back", "没有返回缓存")
        return outputs.logits[:, -1].detach().double(), outputs.cache

    def kept(self, ids: Tensor) -> Any:
        """The cache after ``ids (b, n)``."""
        return self.read(ids)[1]

    def after(self, cache: Any, ids: Tensor) -> Tensor:
        """``(b, k, V)`` of ``ids (b, k)`` read one by one from ``cache`` on."""
        found = []
        for at in range(ids.shape[1]):
            logits, cache = self.read(ids[:, at : at + 1], cache)
            found.append(logits)
        return torch.stack(found, 1)

    def differ(self, pairs: Iterator[tuple[str, Tensor, Tensor]]) -> Finding:
        """The worst of pairs of logits that must be equal."""
        found = []
        for name, got, wanted in pairs:
            apart = torch.where(got == wanted, 0.0, (got - wanted).abs()).amax(-1).nan_to_num(torch.inf)
            row, step = divmod(int(apart.argmax()), apart.shape[1])
            witness = {"case": name, "row": row, "step": step, "read_before": self.n, "seed": self.bench.seed}
            bound = self.bench.tolerance * self.bench.spread
            found.append(Finding(measured=float((got - wanted).abs().max()), bound=bound, witness=witness))
        return max(found, key=lambda finding: finding.severity)

    def texts(self, rows: int, tail: int = 1) -> tuple[Tensor, Tensor, Tensor]:
        """What is read first ``(b, n)``, and two ways to go on ``(b, tail)``."""
        ids = self.bench.texts(rows, self.n + tail, seed=9)
        return ids[:, : self.n], ids[:, self.n :], self.bench.other(ids[:, self.n :])


def copied(bench: Bench) -> Finding:
    """A copy goes one way, the original another, and neither notices."""
    reader = Reader(bench)
    first, one, other = reader.texts(1)

    def pairs() -> Iterator[tuple[str, Tensor, Tensor]]:
        cache = reader.kept(first)
        copy = bench.subject.copied_cache(bench.module, cache)
        left, right = reader.after(cache, one), reader.after(copy, other)
        if bench.rows_apart:
            fresh = reader.after(reader.kept(first.repeat(2, 1)), torch.cat([one, other]))
        else:
            fresh = torch.cat([reader.after(reader.kept(first), on) for on in (one, other)])
        yield "the original", left, fresh[:1]
        yield "the copy", right, fresh[1:]

    return reader.differ(pairs())


def _rows(change: Callable[[Any], Any], rows: list[int], name: str) -> Callable[[Bench], Finding]:
    def run(bench: Bench) -> Finding:
        reader = Reader(bench)
        first, _, _ = reader.texts(2)
        on = bench.texts(len(rows), 1, seed=11)

        def pairs() -> Iterator[tuple[str, Tensor, Tensor]]:
            changed = change(reader.kept(first))
            yield name, reader.after(changed, on), reader.after(reader.kept(first[rows]), on)

        return reader.differ(pairs())

    return run


def cropped(bench: Bench) -> Finding:
    """After going back, as if what was taken back had never been read."""
    reader = Reader(bench)
    first, one, other = reader.texts(1, tail=2)

    def pairs() -> Iterator[tuple[str, Tensor, Tensor]]:
        cache = reader.kept(first)
        caches.recording(cache)
        for at in range(one.shape[1]):
            cache = reader.read(one[:, at : at + 1], cache)[1]
        cache = caches.cropped(cache, reader.n, one.shape[1])
        yield "crop", reader.after(cache, other[:, :1]), reader.after(reader.kept(first), other[:, :1])

    return reader.differ(pairs())


def joined(bench: Bench) -> Finding:
    """Two caches joined are the cache of the joined text, or the joining is refused."""
    reader = Reader(bench)
    first, second, on = reader.texts(1, tail=2)

    def pairs() -> Iterator[tuple[str, Tensor, Tensor]]:
        cache = reader.kept(first)
        caches.need(cache, caches.JOIN)
        cache = caches.joined(cache, reader.kept(second))
        wanted = reader.kept(torch.cat([first, second], 1))
        yield "join", reader.after(cache, on[:, :1]), reader.after(wanted, on[:, :1])

    return reader.differ(pairs())


CACHE_ALGEBRA = Law(
    id="cache-algebra",
    statement=words(
        "Copying, repeating, reordering and cropping a cache commute with computing.",
        "对缓存的复制、重复、换序、裁剪与计算可交换。",
    ),
    formula=r"\pi(\mathrm{cache}(x)) = \mathrm{cache}(\pi(x)), \quad \mathrm{crop}_m(\mathrm{cache}(x_{1:n})) = "
    r"\mathrm{cache}(x_{1:m})",
    conditions=words("A causal model whose cache offers the operation.", "因果模型，且其缓存提供相应操作。"),
    why=words(
        "Beam search reorders, speculation rolls back, prefix sharing copies: none of it shows in training.",
        "束搜索要换序，投机解码要回滚，前缀共享要复制：训练中都看不到。",
    ),
    chapter="12.4",
    probes=(
        Probe(id="cache-algebra.copy", does=words("two ways on from one cache", "由一份缓存走两条路"), run=copied),
        Probe(
            id="cache-algebra.reorder", does=words("rows in another order", "各行换序"),
            run=_rows(lambda cache: caches.reordered(cache, [1, 0]), [1, 0], "reorder"),
        ),
        Probe(
            id="cache-algebra.repeat", does=words("each row twice", "每行两次"),
            run=_rows(lambda cache: caches.repeated(cache, 2), [0, 0, 1, 1], "repeat"),
        ),
        Probe(id="cache-algebra.crop", does=words("going back", "回退"), run=cropped),
        Probe(id="cache-algebra.join", does=words("two caches joined", "两份缓存相接"), run=joined),
    ),
)  # fmt: skip
