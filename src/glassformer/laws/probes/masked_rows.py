"""Masked rows: a query that may read nothing gives finite numbers, and spoils nothing else."""

from __future__ import annotations

import torch
from torch import Tensor

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..place import at_parameter, first_lost, in_order
from ..runs import Claim, Inputs, Run, block, once
from ..verdict import LOST, Finding, NotSupported
from ..weights import parameters


def _rows(bench: Bench) -> tuple[Tensor, Tensor, int]:
    """Three rows: a text, a text behind pads, no text at all; their mask, and how many pads."""
    ids = bench.texts(3, seed=71)
    n = ids.shape[1]
    pads = max(1, n // 3)
    mask = torch.ones_like(ids)
    mask[1, :pads] = 0
    mask[2] = 0
    return ids, mask, pads


def _lost(tensor: Tensor) -> int:
    return int((~tensor.isfinite()).sum())


def forward(bench: Bench) -> Finding:
    """Every logit is a number: of pads before a text, whose queries see no key, and of a row that is masked as a whole."""
    bench.need_mask()
    ids, mask, pads = _rows(bench)
    run = once(ids, mask=mask)
    logits = bench.logits(run)
    if _lost(bench.logits(once(ids))):
        raise NotSupported("the logits are not finite without a mask either", "没有掩码时 logits 也不是有限数")
    lost = (~logits.isfinite()).any(-1).nonzero().tolist()
    witness = {"seed": bench.seed, "length": ids.shape[1], "pads": pads, "places": lost[:12]}
    at = block(range(3), range(ids.shape[1]))
    claim = Claim(left=run, right=once(ids), left_at=at)
    return Finding(measured=_lost(logits), bound=0, unit=LOST, witness=witness, claim=claim if lost else None)


def others(bench: Bench) -> Finding:
    """The text beside them is the text alone."""
    bench.need_mask()
    ids, mask, _ = _rows(bench)
    n = ids.shape[1]
    return bench.test([Claim(left=once(ids, mask=mask), right=once(ids[:1]), left_at=block([0], range(n)))])


def backward(bench: Bench) -> Finding:
    """Every gradient is a number when what the text rows give is scored; none is lost to a masked row beside them."""
    bench.need_mask()
    ids, mask, pads = _rows(bench)
    lost = _lost_gradients(bench, Inputs(ids=ids, mask=mask), mask)
    if lost and _lost_gradients(bench, Inputs(ids=ids), mask):
        raise NotSupported("gradients are not finite without a mask either", "没有掩码时梯度也不是有限数")
    witness = {"seed": bench.seed, "length": ids.shape[1], "pads": pads}
    place = None
    if lost:
        # Gradients flow backward: where the forward pass is finite the fault lies in the part nearest to the loss.
        last = in_order(bench, Inputs(ids=ids, mask=mask), lost)[-1]
        place = first_lost(bench, once(ids, mask=mask)) or at_parameter(bench, last)
    return Finding(measured=sum(lost.values()), bound=0, unit=LOST, witness=witness, place=place)


def _lost_gradients(bench: Bench, inputs: Inputs, scored: Tensor) -> dict[str, int]:
    """How many numbers of each parameter's gradient are none, of those where any is."""
    module = bench.module
    with bench.mode(Run(calls=(inputs,), grad=True)):
        bench.spent.forwards += 2  # a backward pass counts as one
        logits = bench.subject.call(module, bench.fitted(inputs)).logits
        score = logits[scored == 1].log_softmax(-1)[:, 0].sum()
        named = {name: p for name, p in parameters(module) if p.requires_grad}
        if not named:
            raise NotSupported("no parameter takes a gradient", "没有可求梯度的参数")
        gradients = torch.autograd.grad(score, list(named.values()), allow_unused=True)
    found = {name: 0 if each is None else _lost(each) for name, each in zip(named, gradients, strict=True)}
    return {name: count for name, count in found.items() if count}


MASKED_ROWS = Law(
    id="masked-rows",
    statement=words(
        "A query with no visible key gives finite numbers and leaves all others as they are.",
        "没有可见键的查询给出有限的数，且不影响其他查询。",
    ),
    formula=r"J_i = \varnothing \;\Rightarrow\; \mathrm{logits}_i \in \mathbb{R}^N",
    conditions=words("A model that takes a mask.", "接受掩码的模型。"),
    why=words(
        "A softmax over nothing is 0/0; times a zero weight NaN stays NaN, and one pad spoils the batch and its gradient.",
        "对空集做 softmax 得 0/0；NaN 乘以零仍是 NaN，一个填充就毁掉整批及其梯度。",
    ),
    chapter="7.4",
    probes=(
        Probe(id="masked-rows.forward", does=words("all logits are finite", "logits 均有限"), run=forward),
        Probe(id="masked-rows.others", does=words("other rows are as alone", "其他行不受影响"), run=others),
        Probe(id="masked-rows.backward", does=words("all gradients are finite", "梯度均有限"), run=backward),
    ),
)
