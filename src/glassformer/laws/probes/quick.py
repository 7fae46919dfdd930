"""What ``--fast`` asks first: one sheet of rows and a few readings of it, of which the claims of several probes are made.

A claim that holds here holds what several laws say at once (the text alone is a prefix, a row without companions and a
second call under other random numbers). Where it does not, the probe itself tells which of them it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from ..bench import Bench, causal_only
from ..runs import Claim, Inputs, Run, block, cells, chunked, once
from ..subjects.base import Offer
from ..verdict import Finding
from . import prefix as prefixes
from .causality import GAINS, GENTLE, leaks, reach, with_
from .padding import filled, from_first_slot

SHORTEST = 6
"""Texts shorter than this are left to the probes themselves."""


def _held(bench: Bench, *claims: Claim) -> Finding | None:
    """The worst of ``claims`` where all of them hold."""
    if bench.length < SHORTEST:
        return None
    finding = bench.test(claims)
    return finding if finding.kept else None


def _sheet(bench: Bench) -> Run:
    return bench.plain(bench.usual_ids)


def _part(bench: Bench) -> int:
    """The length of the prefix that is read alone."""
    return 2 * bench.length // 3


def _alone(bench: Bench) -> Run:
    """A prefix of the first row, by itself and under other random numbers."""
    ids = bench.usual_ids[:1, : _part(bench)]
    return bench.known("prefix alone", lambda: Run(calls=(Inputs(ids=ids),), seed=1))


def causality(bench: Bench) -> Finding | None:
    """Every token of one text changed in turn."""
    causal_only(bench)
    return _held(bench, leaks(_sheet(bench), bench.length))


def large_scores(bench: Bench) -> Finding | None:
    """The same under the largest weights alone."""
    causal_only(bench)
    return _held(bench, leaks(with_(_sheet(bench), gain=GAINS[-1]), bench.length))


def past(bench: Bench) -> Finding | None:
    """All tokens but the last changed at once, then each of the last few."""
    causal_only(bench)
    n, back = bench.length, min(4, reach(bench))
    if back == 1:
        return None
    found: dict[int, Finding] = {}
    for gain in GENTLE:
        run = _sheet(bench) if gain == 1 else with_(_sheet(bench), gain=gain)
        for row in [row for row in (n, *range(n - back, n - 1)) if row not in found or not found[row].kept]:
            right_at = block([row], [n - 1])
            found[row] = bench.test(
                [Claim(left=run, right=run, left_at=block([0], [n - 1]), right_at=right_at, differ=True)]
            )
    return max(found.values(), key=lambda finding: finding.severity)


def prefix(bench: Bench) -> Finding | None:
    """Two thirds of the text against the whole."""
    causal_only(bench)
    at = block([0], range(_part(bench)))
    claim = Claim(left=_alone(bench), right=_sheet(bench), left_at=at, facts={"prefix_of": bench.length})
    if bench.length < SHORTEST:
        return None
    finding = bench.test([claim])
    if finding.kept:
        return finding
    alone = prefixes.lengths(bench)
    # A prefix that is itself alone and not among other rows has been read by one of them, or reads it.
    return finding if alone.kept else alone


def cache(bench: Bench) -> Finding | None:
    """Two rows through the cache: a first part, then two tokens. Where the past is read, so is the cache."""
    causal_only(bench)
    bench.subject.require(Offer.CACHE)
    n, cuts = bench.length, [bench.length // 2, 1, 1]
    if n < SHORTEST:
        return None
    run, rows = chunked(bench.usual_ids[[0, 2], : sum(cuts)], cuts), _sheet(bench)
    later = [(t, i) for t in range(1, n) for i in range(t + 1, n)]
    read = Claim(left=rows, right=rows, left_at=cells(later), right_at=cells([(0, i) for _, i in later]), differ=True)
    right_at = block([0, 2], range(sum(cuts)))
    same = Claim(
        left=run, right=rows, left_at=block([0, 1], range(sum(cuts))), right_at=right_at, facts={"chunks": cuts}
    )
    idle = reach(bench) > 1 and _held(bench, read) is None
    return None if idle else _held(bench, same)


def _padded(bench: Bench, *, positions: bool) -> Mapping[str, Finding]:
    """One call with pads on either side, two fillings of them, a mask of ones and one that hides every second token."""
    n, m = bench.length, _part(bench)
    ids, at = bench.usual_ids[:1], torch.arange(bench.length)
    rows = filled(bench, torch.stack([at < m, at >= n - m]).long(), texts=ids.repeat(2, 1))
    ones, some = torch.ones_like(ids), (((n - 1 - at) % 2 == 0) | (at == 0)).long()[None]
    mask = torch.cat([rows.mask, rows.mask, ones, some])
    told = (mask.cumsum(1) - 1).clamp(min=0) if positions else None
    if told is not None:
        told[-1] = at
    run = once(torch.cat([rows.ids, rows.other, ids, ids]), mask=mask, positions=told)
    text, left = block([0], range(m)), block([1], range(n - m, n))
    # Positions that begin at 0 are not everybody's default: where they are told, they are told to both.
    alone, ones_at = (run, block([4], range(n))) if positions else (_alone(bench), block([0], range(n)))
    facts = {"changed": "pads"}
    return {
        name: bench.test([claim])
        for name, claim in {
            "right": Claim(left=run, right=alone, left_at=text, facts={"pads": n - m, "text_begins": 0}),
            "left": Claim(left=run, right=alone, left_at=left, right_at=text,
                          facts={"pads": n - m, "text_begins": n - m}),
            "right content": Claim(left=run, right=run, left_at=text, right_at=block([2], range(m)), facts=facts),
            "left content": Claim(left=run, right=run, left_at=left, right_at=block([3], range(n - m, n)), facts=facts),
            "ones": Claim(left=run, right=run if positions else _sheet(bench), left_at=block([4], range(n)),
                          right_at=ones_at),
            "effect": Claim(left=run, right=run, left_at=block([5], [n - 1]), right_at=block([4], [n - 1]), differ=True),
        }.items()
    }  # fmt: skip


def _of_padded(bench: Bench, names: tuple[str, ...], *, positions: bool = False) -> Finding | None:
    for offer in (Offer.MASK, *([Offer.POSITIONS] if positions else [])):
        bench.subject.require(offer)
    if bench.length < SHORTEST:
        return None
    found = bench.known(f"padded, positions {positions}", lambda: _padded(bench, positions=positions))
    if not all(found[name].kept for name in (*names, "ones", "effect")):
        return None
    return max((found[name] for name in names), key=lambda finding: finding.severity)


def right(bench: Bench) -> Finding | None:
    """Pads behind the text."""
    return _of_padded(bench, ("right",))


def content(bench: Bench) -> Finding | None:
    """Other ids in the pads."""
    return _of_padded(bench, ("right content", "left content"))


def left_with_positions(bench: Bench) -> Finding | None:
    """Pads before the text, positions given."""
    return _of_padded(bench, ("left", "left content"), positions=True)


def left(bench: Bench) -> Finding | None:
    """Pads before the text. Raises ``NotSupported`` where positions are counted from the first slot, as ``run`` does."""
    found = _of_padded(bench, ("left", "left content"))
    told = Offer.POSITIONS in bench.subject.offers
    hidden = found is None and bench.length >= SHORTEST and content(bench) is not None
    if hidden and (not told or left_with_positions(bench) is not None):
        raise from_first_slot()
    return found


QUICK: Mapping[str, Callable[[Bench], Finding | None]] = {
    "causality.forward": causality,
    "causality.large-scores": large_scores,
    "causality.past": past,
    "prefix.lengths": prefix,
    "padding.right": right,
    "padding.left": left,
    "padding.left-with-positions": left_with_positions,
    "padding.content": content,
    "cache.prefill-then-steps": cache,
}
"""By probe: what runs that several probes share say of it; None where the probe is to decide."""
