"""Cache algebra: copying, repeating, reordering and cropping a cache commute with computing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...bilingual import words
from ..bench import Bench, causal_only
from ..law import Law, Probe
from ..place import at_method, first_apart
from ..program import opening, run_lines
from ..runs import Inputs, Run
from ..subjects import caches
from ..subjects.base import Kind, Offer
from ..verdict import Finding, NotSupported, Place

ORIGINAL, COPY = "the original", "the copy"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """``on (b, k)`` read after a cache of ``first (b, n)`` that something was done with, against that after ``like``.

    What was done is ``method`` of the cache with ``argument``, an expression; empty for a copy. ``second (b, n)`` was
    read into a cache of its own called ``second`` before, ``taken_back (b, k)`` after ``first``.
    """

    name: str
    first: Tensor
    on: Tensor
    like: Tensor
    second: Tensor | None = None
    taken_back: Tensor | None = None
    method: str = ""
    argument: str = ""


def _program(bench: Bench, case: Case) -> str:
    def read(name: str, *texts: Tensor, cache: str = "") -> Iterator[str]:
        calls = tuple(Inputs(ids=ids) for ids in texts)
        return run_lines(name, Run(calls=calls, cached=True), bench, cache=cache)

    if case.method:
        change = [f"changed = cache.{case.method}({case.argument})", "cache = cache if changed is None else changed"]
    else:
        turned = ", mine" if case.name == COPY else ""
        change = ["import copy", "mine = cache", f"other{turned} = copy.deepcopy(cache){', cache' if turned else ''}"]
        change += [*read("elsewhere", bench.other(case.on), cache="other"), "cache = mine"]
    return "\n".join((
        *opening(bench),
        *(() if case.second is None else (*read("apart", case.second), "second = cache")),
        *read("before", case.first, *(() if case.taken_back is None else case.taken_back.split(1, 1))),
        *change,
        *read("left", *case.on.split(1, 1), cache="cache"),
        *read("right", case.like, *case.on.split(1, 1)),
        f"a, b = left, right[:, -{case.on.shape[1]}:]",
        'print("largest difference:", float((a - b).abs().max()), "; standard deviation of the logits:", float(right.std()))',
        "",
    ))  # fmt: skip


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

    def differ(self, pairs: Iterator[tuple[Case, Tensor, Tensor]]) -> Finding:
        """The worst of pairs of logits that must be equal."""
        found = []
        for case, got, wanted in pairs:
            apart = torch.where(got == wanted, 0.0, (got - wanted).abs()).amax(-1).nan_to_num(torch.inf)
            row, step = divmod(int(apart.argmax()), apart.shape[1])
            witness = {"case": case.name, "row": row, "step": step, "read_before": self.n, "seed": self.bench.seed}
            bound = self.bench.tolerance * self.bench.spread
            finding = Finding(measured=float((got - wanted).abs().max()), bound=bound, witness=witness)
            found.append((finding, case))
        worst, case = max(found, key=lambda pair: pair[0].severity)
        return worst if worst.kept else replace(worst, place=self.place(case), shown=partial(_program, case=case))

    def place(self, case: Case) -> Place | None:
        """The method of the cache that was at work; of a copy the module that read on otherwise."""
        cache = self.kept(case.first)
        if case.method:
            return at_method(cache, case.method, "(the cache)")
        copy = self.bench.subject.copied_cache(self.bench.module, cache)
        mine, other = (cache, copy) if case.name == ORIGINAL else (copy, cache)
        self.read(self.bench.other(case.on), other)
        fresh = self.kept(case.first)
        return first_apart(self.bench, case.on, lambda: self.after(mine, case.on), lambda: self.after(fresh, case.on))

    def texts(self, rows: int, tail: int = 1) -> tuple[Tensor, Tensor, Tensor]:
        """What is read first ``(b, n)``, and two ways to go on ``(b, tail)``."""
        ids = self.bench.texts(rows, self.n + tail, seed=9)
        return ids[:, : self.n], ids[:, self.n :], self.bench.other(ids[:, self.n :])


def copied(bench: Bench) -> Finding:
    """A copy goes one way, the original another, and neither notices."""
    reader = Reader(bench)
    first, one, other = reader.texts(1)

    def pairs(*, together: bool) -> Iterator[tuple[Case, Tensor, Tensor]]:
        cache = reader.kept(first)
        copy = bench.subject.copied_cache(bench.module, cache)
        left, right = reader.after(cache, one), reader.after(copy, other)
        if together:
            fresh = reader.after(reader.kept(first.repeat(2, 1)), torch.cat([one, other]))
        else:
            fresh = torch.cat([reader.after(reader.kept(first), on) for on in (one, other)])
        yield Case(name=ORIGINAL, first=first, on=one, like=first), left, fresh[:1]
        yield Case(name=COPY, first=first, on=other, like=first), right, fresh[1:]

    if bench.rows_apart:
        found = reader.differ(pairs(together=True))
        # Rows that read each other in steps alone are another law's business.
        if found.kept:
            return found
    return reader.differ(pairs(together=False))


def reordered(bench: Bench) -> Finding:
    """Two rows exchanged."""
    return _rows(bench, caches.REORDER, [1, 0], "reorder", torch.tensor([1, 0]))


def repeated(bench: Bench) -> Finding:
    """Each of two rows twice, one after another."""
    return _rows(bench, caches.REPEAT, [0, 0, 1, 1], "repeat", 2)


def _rows(bench: Bench, names: tuple[str, ...], rows: list[int], name: str, argument: Any) -> Finding:
    """What a method of the cache, one of ``names``, makes of two rows is the cache of ``rows`` of the text."""
    reader = Reader(bench)
    first, _, _ = reader.texts(2)
    on = bench.texts(len(rows), 1, seed=11)

    def pairs() -> Iterator[tuple[Case, Tensor, Tensor]]:
        cache = reader.kept(first)
        case = Case(
            name=name, first=first, on=on, like=first[rows], method=caches.need(cache, names),
            argument=f"torch.{argument}" if isinstance(argument, Tensor) else str(argument),
        )  # fmt: skip
        yield case, reader.after(caches.done(cache, names, argument), on), reader.after(reader.kept(first[rows]), on)

    return reader.differ(pairs())


def cropped(bench: Bench) -> Finding:
    """After going back, as if what was taken back had never been read."""
    reader = Reader(bench)
    first, one, other = reader.texts(1, tail=2)
    on = other[:, :1]

    def pairs() -> Iterator[tuple[Case, Tensor, Tensor]]:
        cache = reader.kept(first)
        caches.recording(cache)
        for at in range(one.shape[1]):
            cache = reader.read(one[:, at : at + 1], cache)[1]
        back = one.shape[1]
        case = Case(
            name="crop", first=first, on=on, like=first, taken_back=one, method=caches.need(cache, caches.CROP),
            argument=str(caches.crop_argument(cache, reader.n, back)),
        )  # fmt: skip
        yield case, reader.after(caches.cropped(cache, reader.n, back), on), reader.after(reader.kept(first), on)

    return reader.differ(pairs())


def joined(bench: Bench) -> Finding:
    """Two caches joined are the cache of the joined text, or the joining is refused."""
    reader = Reader(bench)
    first, second, other = reader.texts(1, tail=2)
    on, whole = other[:, :1], torch.cat([first, second], 1)

    def pairs() -> Iterator[tuple[Case, Tensor, Tensor]]:
        cache = reader.kept(first)
        method = caches.need(cache, caches.JOIN)
        cache = caches.done(cache, caches.JOIN, reader.kept(second))
        case = Case(name="join", first=first, on=on, like=whole, second=second, method=method, argument="second")
        yield case, reader.after(cache, on), reader.after(reader.kept(whole), on)

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
            run=reordered,
        ),
        Probe(
            id="cache-algebra.repeat", does=words("each row twice", "每行两次"),
            run=repeated,
        ),
        Probe(id="cache-algebra.crop", does=words("going back", "回退"), run=cropped),
        Probe(id="cache-algebra.join", does=words("two caches joined", "两份缓存相接"), run=joined),
    ),
)  # fmt: skip
