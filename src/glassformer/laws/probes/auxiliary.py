"""Auxiliary losses: padding has no part in the loss that balances experts."""

from __future__ import annotations

import torch

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..losses import IGNORED, evaluate, loss_bound
from ..runs import Inputs
from ..subjects.base import Offer, Outputs
from ..verdict import Finding, NotSupported

COLUMNS = 4
SWITCHES = ("output_router_logits", "output_router_probs", "return_aux_loss")
"""Arguments by which public code is asked for the loss of its router."""


def padding(bench: Bench) -> Finding:
    """Masked columns on the right move neither the auxiliary loss nor the loss."""
    bench.need_mask()
    n = bench.length - COLUMNS
    if n < 3:
        raise NotSupported("the context is too short", "上下文太短")
    options = {name: True for name in SWITCHES if name in bench.subject.options}
    ids = bench.texts(2)
    mask = (torch.arange(n + COLUMNS) < n).long().expand(2, -1)
    labels = None
    if Offer.LABELS in bench.subject.offers:
        labels = torch.where(mask > 0, ids, IGNORED)
    short = None if labels is None else labels[:, :n]
    alone = evaluate(bench, Inputs(ids=ids[:, :n], mask=mask[:, :n], labels=short, options=options))
    aux = _auxiliary(alone)
    padded = evaluate(bench, Inputs(ids=ids, mask=mask, labels=labels, options=options))
    moved = float((padded.logits[:, :n] - alone.logits).detach().abs().max())
    if moved > bench.tolerance * bench.spread:
        raise NotSupported("the logits themselves depend on the padding", "logits 本身依赖填充")
    measured = abs(_auxiliary(padded) - aux) / max(abs(aux), 1e-300)
    facts = {"auxiliary": aux, "auxiliary_padded": _auxiliary(padded), "columns": COLUMNS, "seed": bench.seed}
    if alone.loss is not None and padded.loss is not None:
        off = abs(float(alone.loss) - float(padded.loss))
        facts |= {"loss": float(alone.loss), "loss_padded": float(padded.loss)}
        if off > loss_bound(alone.logits, moved):
            measured = max(measured, off)
    return Finding(measured=measured, bound=max(1e-4, bench.tolerance), unit="relative", witness=facts)


def _auxiliary(outputs: Outputs) -> float:
    if not isinstance(outputs.auxiliary, torch.Tensor) or outputs.auxiliary.numel() != 1:
        raise NotSupported("the model gives no auxiliary loss", "该模型没有给出辅助损失")
    return float(outputs.auxiliary)


AUXILIARY = Law(
    id="auxiliary",
    statement=words(
        "Adding padding changes neither the loss nor the auxiliary loss.", "增加填充既不改变损失也不改变辅助损失。"
    ),
    formula=r"L_{\text{aux}}(x, \text{padding}) = L_{\text{aux}}(x)",
    conditions=words("A model that takes a mask and gives an auxiliary loss.", "接受掩码并给出辅助损失的模型。"),
    why=words(
        "Padding goes where the router sends it: experts are balanced for tokens that nobody reads.",
        "填充也会被路由：专家因此为无人阅读的词元保持均衡。",
    ),
    chapter="8.2",
    probes=(Probe(id="auxiliary.padding", does=words("padding added", "增加填充"), run=padding),),
)
