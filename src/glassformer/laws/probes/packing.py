"""Packing: a document beside others in one row is the document alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from ...bilingual import words
from ..bench import Bench, causal_only
from ..law import Law, Probe
from ..runs import Cells, Claim, Inputs, Run, block, once
from ..subjects.base import Offer
from ..verdict import Finding, NotSupported
from .documents import need_documents


def cut(bench: Bench) -> list[int]:
    """The lengths of three documents in a row of the usual length, or of two in a short one."""
    n = bench.length
    return [n // 3, n // 4, n - n // 3 - n // 4] if n >= 4 else [1, n - 1]


def restarted(lengths: list[int]) -> Tensor:
    """``(1, n)``: positions that begin at 0 in each document."""
    return torch.cat([torch.arange(length) for length in lengths])[None]


def numbered(lengths: list[int]) -> Tensor:
    """``(1, n)``: the number of each token's document."""
    return torch.cat([torch.full((length,), number) for number, length in enumerate(lengths)])[None]


def documents_alone(
    bench: Bench, ids: Tensor, lengths: list[int], run: Run, options: Mapping[str, Any]
) -> Iterator[Claim]:
    """That each document of ``run`` has the logits that it has alone."""
    ends = [sum(lengths[: k + 1]) for k in range(len(lengths))]
    for length, end in zip(lengths, ends, strict=True):
        yield Claim(
            left=run,
            right=bench.plain(ids[:, end - length : end], **options),
            left_at=block([0], range(end - length, end)),
            right_at=block([0], range(length)),
            facts={"documents": lengths, "begins": end - length},
        )


def no_cache(bench: Bench) -> dict[str, Any]:
    """The option that keeps a model from making a cache of its own, where it has one."""
    return {"use_cache": False} if "use_cache" in bench.subject.options else {}


def isolating(bench: Bench) -> None:
    """Raise ``NotSupported`` unless restarted positions keep documents apart in one way of calling.

    Positions say where a token stands. Some models take a restart as the begin of another document, others never claimed
    to: there the first document moves the logits of the next whatever else is given, and packing needs something else.
    """
    bench.need(Offer.POSITIONS)
    if not bench.known("documents in a row read each other", lambda: _read_each_other(bench)):
        raise NotSupported(
            "a document does not move the next one in a plain call either: there is nothing to keep apart",
            "普通调用中前一文档也不影响后一文档：没有什么需要隔开",
        )
    if not bench.known("restarts keep documents apart", lambda: _apart_in_one_way(bench)):
        raise NotSupported(
            "restarted positions do not keep documents apart, and nothing says that they should",
            "重新开始的位置不会隔开各文档，也没有说明它应当如此",
        )


def _first_changed(bench: Bench) -> tuple[Tensor, Tensor, Cells]:
    """Documents in a row ``(1, n)``, the same with another first document, and the places behind it."""
    lengths = cut(bench)
    ids = bench.texts(1, seed=51)
    changed = ids.clone()
    changed[:, : lengths[0]] = bench.other(ids)[:, : lengths[0]]
    return ids, changed, block([0], range(lengths[0], sum(lengths)))


def _read_each_other(bench: Bench) -> bool:
    ids, changed, behind = _first_changed(bench)
    return bench.test([Claim(left=once(ids), right=once(changed), left_at=behind, differ=True)]).kept


def _apart_in_one_way(bench: Bench) -> bool:
    lengths = cut(bench)
    ids, changed, behind = _first_changed(bench)

    def apart(**told: Any) -> bool:
        left, right = (once(x, positions=restarted(lengths), **told) for x in (ids, changed))
        return bench.loosened(bench.test([Claim(left=left, right=right, left_at=behind)])).kept

    ones = torch.ones_like(ids)
    ways: list[dict[str, Any]] = [{"options": no_cache(bench)}]
    if Offer.MASK in bench.subject.offers:
        ways.append({"mask": ones, "options": no_cache(bench)})
    return any(apart(**way) for way in ways)


def _by_positions(bench: Bench, *, mask: bool = False, cached: bool = False) -> Finding:
    isolating(bench)
    if mask:
        bench.need(Offer.MASK)
    options = {} if cached else no_cache(bench)
    lengths = cut(bench)
    ids = bench.texts(1, seed=51)
    given = Inputs(ids=ids, positions=restarted(lengths), mask=torch.ones_like(ids) if mask else None, options=options)
    run = Run(calls=(given,), cached=cached)
    return bench.test(documents_alone(bench, ids, lengths, run, no_cache(bench)))


def positions(bench: Bench) -> Finding:
    """Positions that begin anew in each document, without a mask and without a cache."""
    return _by_positions(bench)


def positions_with_ones_mask(bench: Bench) -> Finding:
    """The same with a mask of ones, as tokenizers and collators hand out."""
    return _by_positions(bench, mask=True)


def cache(bench: Bench) -> Finding:
    """The same into an empty cache, as many models make one unasked."""
    causal_only(bench)
    bench.need(Offer.CACHE)
    return _by_positions(bench, cached=True)


def segments(bench: Bench) -> Finding:
    """The number of each token's document."""
    need_documents(bench)
    lengths = cut(bench)
    ids = bench.texts(1, seed=51)
    run = once(ids, segments=numbered(lengths))
    return bench.test(documents_alone(bench, ids, lengths, run, {}))


def segments_with_ones_mask(bench: Bench) -> Finding:
    """The same with a mask of ones."""
    need_documents(bench)
    bench.need_mask()
    lengths = cut(bench)
    ids = bench.texts(1, seed=51)
    run = once(ids, segments=numbered(lengths), mask=torch.ones_like(ids))
    return bench.test(documents_alone(bench, ids, lengths, run, {}))


PACKING = Law(
    id="packing",
    statement=words(
        "A document packed with others has the logits that it has alone.",
        "与其他文档拼在一行的文档，logits 与单独输入时相同。",
    ),
    formula=r"\mathrm{logits}(x \,\Vert\, y)_{|x|+i} = \mathrm{logits}(y)_i",
    conditions=words(
        "A model that takes documents, or takes restarted positions as such.",
        "接受文档编号，或把重新开始的位置视为新文档的模型。",
    ),
    why=words(
        "Packed training without isolation predicts a text from unrelated ones; the loss looks better than it is.",
        "不隔离的拼接训练会用无关文本预测本文；损失看上去比实际好。",
    ),
    chapter="7.4",
    probes=(
        Probe(id="packing.positions", does=words("restarted positions alone", "仅重新开始的位置"), run=positions),
        Probe(
            id="packing.positions-with-ones-mask", does=words("restarted positions, a mask of ones", "另给全一掩码"),
            run=positions_with_ones_mask,
        ),
        Probe(id="packing.cache", does=words("restarted positions, an empty cache", "另给空缓存"), run=cache),
        Probe(id="packing.segments", does=words("the number of each document", "文档编号"), run=segments),
        Probe(
            id="packing.segments-with-ones-mask", does=words("numbers and a mask of ones", "文档编号与全一掩码"),
            run=segments_with_ones_mask,
        ),
    ),
)  # fmt: skip
