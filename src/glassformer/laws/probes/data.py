"""Data files and loaders: every token arrives as it was, every sample once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations

import numpy as np

from ...bilingual import words
from ..law import Family, Law, Probe
from ..subjects.data import Loader
from ..verdict import Finding, NotApplicable, NotSupported

VOCABULARIES = (200, 256, 257, 32_000, 32_769, 65_536, 65_537, 70_000, 131_073)
"""On both sides of what bytes and halves can hold, with sign and without; 70,000 is a multilingual vocabulary."""

TEXTS = ((25, 8), (30, 8), (10, 8), (64, 8), (17, 16))
"""Tokens of a text and positions of a window: exact, with a rest, barely more than one."""

EPOCHS = 3


def ids(subject: Loader) -> Finding:
    """Ids from 0 to N - 1 come back as they went in; a file that refuses a vocabulary aloud is no fault."""
    if subject.kept is None:
        raise NotSupported("no data file was told", "未给出数据文件")
    changed, witness, kept = 0, {}, []
    generator = np.random.default_rng(0)
    for N in VOCABULARIES:
        edges = [
            0,
            1,
            N // 2,
            N - 2,
            N - 1,
            *(k for k in (127, 128, 255, 256, 32_767, 32_768, 65_535, 65_536) if k < N),
        ]
        given = np.array([*edges, *generator.integers(0, N, 50)], dtype=np.int64)
        try:
            back = np.asarray(subject.kept(given.copy(), N)).astype(np.int64)
        except Exception:  # noqa: BLE001, S112 - refused aloud
            continue
        kept.append(N)
        wrong = len(given) if back.shape != given.shape else int((back != given).sum())
        if wrong and not changed:
            at = 0 if back.shape != given.shape else int((back != given).argmax())
            witness = {"vocab_size": N, "id": int(given[at]), "came_back": int(back.reshape(-1)[at])}
        changed += wrong
    if not kept:
        raise NotSupported("the data file takes no ids that were tried", "数据文件不接受所试的编号")
    return Finding(measured=changed, bound=0, unit="id", witness={"vocabularies": kept, **witness})


def tokens(subject: Loader) -> Finding:
    """Each token of a text but the first is predicted once in a pass."""
    if subject.scored is None:
        raise NotSupported("no places of predicted tokens were told", "未给出被预测词元的位置")
    wrong = []
    for m, n in TEXTS:
        places = Counter(int(place) for place in subject.scored(m, n))
        missing = [place for place in range(1, m) if not places[place]]
        doubled = [place for place, count in places.items() if count > 1 or not 0 <= place < m]
        if missing or doubled:
            wrong.append(
                (len(missing) + len(doubled), {"tokens": m, "window": n, "missing": missing, "doubled": doubled})
            )
    measured, witness = max(wrong, key=lambda pair: pair[0], default=(0, {"texts": [list(pair) for pair in TEXTS]}))
    return Finding(measured=measured, bound=0, unit="token", witness=witness)


def once(subject: Loader) -> Finding:
    """The ranks together read each sample once in an epoch; a rest that does not divide may be repeated or left out."""
    known = set(subject.read(0)) if subject.size is None else None
    size = len(known) if known is not None else subject.size or 0
    found = []
    for ranks in sorted({1, *subject.ranks}):
        seen = Counter(sample for rank in range(ranks) for sample in subject.read(1, rank, ranks))
        doubled = sum(count - 1 for count in seen.values())
        missing = max(0, size - len(seen)) if known is None else len(known - set(seen))
        slack = 0 if size % ranks == 0 else ranks - 1
        witness = {"ranks": ranks, "samples": size, "read_again": doubled, "never_read": missing}
        found.append(Finding(measured=doubled + missing, bound=slack, unit="sample", witness=witness))
    return max(found, key=lambda finding: finding.measured - finding.bound)


def epochs(subject: Loader) -> Finding:
    """The dual: epochs differ in order."""
    if not subject.shuffled:
        raise NotApplicable("this loader is meant to keep the order", "该加载器本应保持次序")
    orders = [subject.read(epoch) for epoch in range(EPOCHS)]
    if len(set(orders[0])) < 5:
        raise NotSupported("there are too few samples to tell orders apart", "样本太少，无法区分次序")
    pairs = {(a, b): _apart(orders[a], orders[b]) for a, b in combinations(range(EPOCHS), 2)}
    alike = min(pairs, key=lambda pair: pairs[pair])
    return Finding(measured=pairs[alike], bound=1, unit="sample", at_least=True, witness={"epochs": list(alike)})


def _apart(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """In how many places two orders differ."""
    return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))


def ranks(subject: Loader) -> Finding:
    """What the ranks read, taken in turns of some fixed size, is what one rank reads."""
    found = []
    for count in subject.several():
        for epoch in range(2):
            order = subject.read(epoch)
            parts = [subject.read(epoch, rank, count) for rank in range(count)]
            turns = range(1, max(map(len, parts), default=0) + 1)
            best = min((_apart_so_far(_in_turns(parts, turn), order), turn) for turn in turns)
            witness = {"ranks": count, "epoch": epoch, "samples_in_a_turn": best[1], "one_rank": _shown(order)}
            witness["ranks_read"] = [_shown(part) for part in parts]
            found.append(Finding(measured=best[0], bound=0, unit="sample", witness=witness))
    return max(found, key=lambda finding: finding.measured)


def _apart_so_far(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """In how many of the common places two orders differ: a rest may have been repeated or left out."""
    return sum(x != y for x, y in zip(a, b, strict=False))


def _in_turns(parts: Sequence[Sequence[Hashable]], turn: int) -> list[Hashable]:
    longest = max(map(len, parts))
    return [sample for at in range(0, longest, turn) for part in parts for sample in part[at : at + turn]]


def _shown(order: Sequence[Hashable]) -> list[str]:
    return [str(sample) for sample in order[:8]]


def _probe(name: str, en: str, zh: str, run: Callable[[Loader], Finding]) -> Probe:
    return Probe(id=f"data.{name}", does=words(en, zh), run=run, family=Family.LOADER, fast=True)


DATA = Law(
    id="data",
    statement=words(
        "Ids survive the data file, every token is seen, and each sample once an epoch over all ranks.",
        "编号经数据文件不变，每个词元都被看到，每个样本每轮在所有进程中恰好一次。",
    ),
    formula=r"\bigcup_r S_r = S, \quad S_r \cap S_{r'} = \varnothing \quad (r \ne r')",
    conditions=words(
        "A data file or loader; a rest that does not divide among the ranks may be repeated or left out.",
        "数据文件或加载器；不能整除的余数可以重复或舍去。",
    ),
    why=words(
        "An id that wraps around is another word, and ranks that read the same are one rank.",
        "溢出回绕的编号成了别的词；读同样数据的多个进程等于一个。",
    ),
    chapter="4.1",
    probes=(
        _probe("ids", "vocabularies up to 131073", "词表大小至 131073", ids),
        _probe("tokens", "windows over a text", "文本上的窗口", tokens),
        _probe("once", "each sample in an epoch", "每轮中的每个样本", once),
        _probe("epochs", "orders of epochs", "各轮次序", epochs),
        _probe("ranks", "orders for several ranks", "多进程的次序", ranks),
    ),
)
