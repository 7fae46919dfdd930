"""Positions: order matters, positions told are positions counted, and what is relative depends on differences alone."""

from __future__ import annotations

import copy
from dataclasses import replace

import torch
from torch import Tensor, nn

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..runs import Claim, Inputs, block, once
from ..subjects.base import Kind, Offer
from ..subjects.layers import changed, heard
from ..verdict import Finding, NotApplicable, NotSupported
from .position_tables import sinusoid, slopes

FAR = 1025
"""A position that bfloat16, with its eight bits, cannot tell from its neighbour."""

OFFSETS = range(1, 5)
"""Where the default numbering of known models begins, if not at 0: behind the row of the pad."""

POSITIONAL = frozenset({"learned", "sinusoidal", "rope", "rotary", "alibi", "relative", "absolute"})
RELATIVE = frozenset({"rope", "rotary", "alibi", "relative"})


def _said(bench: Bench) -> str | None:
    said = bench.subject.facts.settings.get("positions")
    return said if isinstance(said, str) else None


def table_of(bench: Bench) -> str | None:
    """The name of a table with a row for each position of the context, and perhaps a few more."""
    facts = bench.subject.facts
    if facts.context is None:
        return None
    for name, part in bench.module.named_modules():
        rows = part.num_embeddings if isinstance(part, nn.Embedding) else 0
        if facts.context <= rows <= facts.context + max(OFFSETS) and rows != facts.vocab_size:
            return name
    return None


def rotary(bench: Bench) -> bool:
    """Whether the module holds inverse frequencies."""
    return any("inv_freq" in name for name, _ in bench.module.named_buffers())


def relative(bench: Bench) -> None:
    """Raise ``NotApplicable`` unless the model is known to depend on differences of positions alone."""
    said = _said(bench)
    if bench.subject.facts.settings.get("chunk") is not None:
        raise NotApplicable("chunks are counted from position 0", "分块从位置 0 数起")
    if said not in RELATIVE and not (said is None and rotary(bench) and table_of(bench) is None):
        raise NotApplicable(
            "the model is not known to read differences of positions alone", "未知该模型是否只依赖位置之差"
        )


def order(bench: Bench) -> Finding:
    """Earlier tokens turned around, seen in one layer, where a causal mask alone cannot tell it.

    Of the first layer the last output is compared, of further ones with their own inputs turned around. Where none tells
    the order the model breaks the law if it has something that should; a model without positions reads order through its
    mask. Without positions outputs agree to rounding, so that more than rounding is an effect.
    """
    n = bench.length
    window = bench.subject.facts.settings.get("window") or n
    first = max(0, n - window)
    if n - 1 - first < 2:
        raise NotApplicable("there are no two earlier tokens to exchange", "没有两个可交换的先前词元")
    ids = bench.texts(1, seed=101)
    at = torch.arange(n)
    at[first : n - 1] = at[first : n - 1].flip(0)
    layers = [layer for _, layer in bench.subject.blocks(bench.module)]
    moved = _moved(bench, ids, ids[:, at], layers[:1])
    for layer in layers[1:4] if moved <= bench.tolerance else ():
        moved = max(moved, _moved_inside(bench, ids, layer, at))
    if moved <= bench.tolerance and not (_said(bench) in POSITIONAL or table_of(bench) or rotary(bench)):
        raise NotApplicable(
            "the model is not known to have positions: its mask alone tells order",
            "未知该模型有位置信息：次序仅来自掩码",
        )
    if moved <= bench.tolerance and bench.subject.kind is Kind.SEQUENCE_TO_SEQUENCE:
        raise NotSupported("the layers of a decoder were not found", "没有找到解码器的层")
    witness = {"seed": bench.seed, "length": n, "turned_around": [first, n - 1], "layers_tried": len(layers[:4])}
    return Finding(measured=moved, bound=bench.tolerance, unit="standard deviation", at_least=True, witness=witness)


def _moved(bench: Bench, ids: Tensor, other: Tensor, layers: list[nn.Module]) -> float:
    """How far the last output of the first of ``layers``, or the last logits where there is none, moves."""
    outputs = []
    for text in (ids, other):
        with heard(layers) as said:
            logits = bench.logits(once(text))
        outputs.append(logits if not said or said[0] is None else said[0])
    left, right = outputs
    return float((left[0, -1] - right[0, -1]).abs().max() / left.std())


def _moved_inside(bench: Bench, ids: Tensor, layer: nn.Module, at: Tensor) -> float:
    """How far the last output of ``layer`` moves when what it is given lies in the order ``at``."""
    with heard([layer]) as said:
        bench.logits(once(ids))
    with heard([layer]) as turned, changed(layer, lambda stream: stream[:, at]):
        bench.logits(once(ids))
    usual, other = said[0], turned[0]
    if usual is None or other is None:
        return 0.0
    return float((usual[0, -1] - other[0, -1]).abs().max() / usual.std())


def default(bench: Bench) -> Finding:
    """Positions 0, 1, ... told: as when none are. Every loop that generates or packs counts from 0."""
    bench.need(Offer.POSITIONS)
    ids = bench.texts(2, seed=102)
    n = ids.shape[1]
    plain, at = once(ids), block(range(2), range(n))

    def counted(start: int) -> Claim:
        told = torch.arange(start, start + n).expand(2, -1)
        return Claim(left=once(ids, positions=told), right=plain, left_at=at, facts={"positions_from": start})

    found = bench.test([counted(0)])
    if found.kept:
        return found
    begins = next((start for start in OFFSETS if _fits(bench, n + start) and bench.test([counted(start)]).kept), None)
    if begins is not None and bench.subject.kind is Kind.MASKED:
        raise NotSupported(f"this encoder counts positions from {begins}", f"该编码器的位置从 {begins} 数起")
    return replace(found, witness={**found.witness, "default_counts_from": begins})


def _fits(bench: Bench, n: int) -> bool:
    context = bench.subject.facts.context
    return context is None or n <= context


def shift(bench: Bench) -> Finding:
    """All positions moved by the same number, in a model that reads differences alone."""
    relative(bench)
    bench.need(Offer.POSITIONS)
    ids = bench.texts(2, seed=103)
    n, by = ids.shape[1], 3
    if not _fits(bench, n + by):
        raise NotSupported("the context leaves no room to move positions", "上下文没有移动位置的余地")
    told = torch.arange(n).expand(2, -1)
    left, right = once(ids, positions=told), once(ids, positions=told + by)
    claim = Claim(left=left, right=right, left_at=block(range(2), range(n)), facts={"moved_by": by})
    return bench.loosened(bench.test([claim]))


def low_precision(bench: Bench) -> Finding:
    """In bfloat16 the last token at a far position against the next: the same logits to the last bit are one position.

    A control near position 0, where bfloat16 tells integers apart, shows that one step of the last token has an effect.
    """
    bench.need(Offer.POSITIONS)
    context, n = bench.subject.facts.context, min(6, bench.length)
    bounded = table_of(bench) is not None or _said(bench) in ("learned", "sinusoidal")
    if bounded and context is not None and context < FAR + 8:
        raise NotSupported("positions beyond the context cannot be told", "无法给出超出上下文的位置")
    module = copy.deepcopy(bench.module).to(torch.bfloat16)
    ids, far = bench.texts(1, n, 104), [FAR, FAR + 1, FAR + 2, FAR + 5]
    # The two calls differ in the position of each row's last token alone; in place and shape they are alike to the bit.
    before = torch.stack([torch.arange(last - n - 1, last - 2) for last in (n + 1, *far)])
    last = torch.tensor([n + 1, *far])[:, None]
    with torch.no_grad():
        bench.spent.forwards += 2
        told = (torch.cat([before, last + step], 1) for step in (-1, 0))
        calls = (Inputs(ids=ids.expand(len(before), -1), positions=positions) for positions in told)
        left, right = (bench.subject.call(module, bench.fitted(call)).logits[:, -1] for call in calls)
    distinct = (left != right).any(-1).tolist()
    if not distinct[0]:
        raise NotSupported(
            "in bfloat16 a step near position 0 has no effect either", "在 bfloat16 下位置 0 附近的一步也没有影响"
        )
    witness = {"seed": bench.seed, "length": n, "far_positions": far, "distinct": distinct[1:]}
    return Finding(measured=sum(distinct[1:]), bound=1, unit="distinct pair", at_least=True, witness=witness)


POSITIONS = Law(
    id="positions",
    statement=words(
        "Order has an effect; positions told are positions counted; relative positions depend on differences alone.",
        "次序有影响；给出的位置等于默认的位置；相对位置只依赖位置之差。",
    ),
    formula=r"\langle R_i q, R_j k \rangle = \langle R_{i+m} q, R_{j+m} k \rangle",
    conditions=words(
        "A model with positions; for the shift one that is known to be relative.",
        "有位置信息的模型；平移一项须已知为相对位置。",
    ),
    why=words(
        "A position that is lost or counted differently elsewhere costs quality without an error.",
        "位置丢失，或在别处以另一种方式计数，只会损失质量而不报错。",
    ),
    chapter="8.6",
    probes=(
        Probe(id="positions.order", does=words("earlier tokens exchanged", "交换先前词元"), run=order),
        Probe(id="positions.default", does=words("positions 0, 1, ... told", "给出位置 0、1、……"), run=default),
        Probe(id="positions.shift", does=words("all positions moved", "平移所有位置"), run=shift),
        Probe(
            id="positions.low-precision", does=words("neighbours far out, in bfloat16", "bfloat16 下的远处相邻位置"),
            run=low_precision,
        ),
        Probe(id="positions.sinusoid", does=words("a table of sinusoids", "正弦位置表"), run=sinusoid),
        Probe(id="positions.slopes", does=words("a table of ALiBi slopes", "ALiBi 斜率表"), run=slopes),
    ),
)  # fmt: skip
