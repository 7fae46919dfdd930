"""Flag neutrality: what a call is asked to give besides, or the mode it runs in, does not change the logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..runs import Claim, Run, block, once
from ..subjects.base import Offer
from ..subjects.layers import asked, token_table
from ..verdict import Finding, NotApplicable, NotSupported
from .causality import with_
from .padding import padded


def _same(bench: Bench, left: Run, right: Run, **facts: Any) -> Finding:
    at = block(range(left.rows), range(left.length))
    return bench.test([Claim(left=left, right=right, left_at=at, facts=facts)])


def _option(name: str) -> Callable[[Bench], Finding]:
    def run(bench: Bench) -> Finding:
        if name not in bench.subject.options:
            raise NotSupported(f"forward takes no {name}", f"forward 不接受 {name}")
        ids = bench.texts(2, seed=111)
        off, on = ({name: value} for value in (False, True))
        return _same(bench, once(ids, options=on), once(ids, options=off), option=name)

    return run


def grad(bench: Bench) -> Finding:
    """With and without recording for automatic differentiation."""
    ids = bench.texts(2)
    return _same(bench, with_(once(ids), grad=True), bench.plain(ids), grad=[True, False])


def grad_padded(bench: Bench) -> Finding:
    """The same among pads, and of the pads too: kernels that only run without a gradient treat them on their own."""
    bench.need_mask()
    rows = padded(bench, left=False)
    run, other = rows.told(positions=False), rows.told(positions=False)
    return _same(bench, with_(run, grad=True), other, grad=[True, False])


MORE_SEEDS = range(2, 8)
"""Seeds that are tried beyond two where training mode differs."""


def training(bench: Bench) -> Finding:
    """In training mode with every rate of dropout at zero: as in evaluation mode."""
    if any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in bench.module.modules()):
        raise NotApplicable("the model has norms over the batch", "模型含有批归一化")
    ids = bench.texts(2)
    plain = bench.plain(ids)
    first = _trained(ids, 0)
    if not _same(bench, first, _trained(ids, 1)).kept:
        raise _stays_random()
    found = _same(bench, first, plain, training=[True, False])
    # Two seeds may agree by chance, as where experts are drawn: a violation is told only where more of them do.
    if not found.kept and not all(_same(bench, first, _trained(ids, seed)).kept for seed in MORE_SEEDS):
        raise _stays_random()
    return found


def _trained(ids: Tensor, seed: int) -> Run:
    return with_(once(ids), training=True, dropout=False, seed=seed)


def _stays_random() -> NotSupported:
    return NotSupported(
        "something in training mode stays random with dropout at zero", "dropout 置零后训练模式仍有随机性"
    )


def _table(bench: Bench) -> nn.Module | None:
    """The table that is read for ids."""

    def found() -> nn.Module | None:
        ids = bench.texts(2)
        with asked(bench.module, ids) as tables:
            bench.logits(once(ids))
        return token_table(bench.module, bench.subject.facts.vocab_size, tables)

    return bench.known("table", found)


def embeds(bench: Bench) -> Finding:
    """The rows of the table of embeddings in the place of ids; where a model scales them first, so scaled."""
    bench.subject.require(Offer.EMBEDS)
    ids = bench.texts(2)
    table = _table(bench)
    if table is None:
        raise NotSupported("no table of token embeddings was found", "没有找到词元嵌入表")
    with torch.no_grad():
        rows = table(ids)
    plain = bench.plain(ids)
    found = _same(bench, once(ids, embeds=rows), plain)
    scale = rows.shape[-1] ** 0.5
    scaled = found if found.kept else _same(bench, once(ids, embeds=rows * scale), plain, embeddings_times=scale)
    return scaled if scaled.kept else found


def contiguity(bench: Bench) -> Finding:
    """Ids, and embeddings where they are taken, that lie in memory in another order."""
    ids = bench.texts(2)
    turned = ids.T.contiguous().T
    found = [_same(bench, once(turned), bench.plain(ids), contiguous=[False, True])]
    table = _table(bench)
    if Offer.EMBEDS in bench.subject.offers and table is not None:
        with torch.no_grad():
            rows = table(ids)
        other = rows.permute(2, 1, 0).contiguous().permute(2, 1, 0)
        found.append(_same(bench, once(ids, embeds=other), once(ids, embeds=rows), contiguous=[False, True]))
    return max(found, key=lambda finding: finding.severity)


def checkpointing(bench: Bench) -> Finding:
    """With the model's own switch for the checkpointing of activations, in training mode under the same random numbers."""
    enable, disable = (getattr(bench.module, f"gradient_checkpointing_{word}", None) for word in ("enable", "disable"))
    if not callable(enable) or not callable(disable):
        raise NotSupported("the model has no gradient_checkpointing_enable", "模型没有 gradient_checkpointing_enable")
    ids = bench.texts(2, seed=116)
    usual, other = (with_(once(ids), training=True, grad=True) for _ in range(2))
    bench.logits(usual)
    enable()
    try:
        bench.logits(other)
    finally:
        disable()
    return _same(bench, other, usual, checkpointing=[True, False])


FLAGS = Law(
    id="flags",
    statement=words(
        "Flags that ask for more outputs or less memory, and modes without randomness, do not change the logits.",
        "要求更多输出或更省内存的选项，以及没有随机性的模式，都不改变 logits。",
    ),
    formula=r"f(x;\ \mathrm{flag}) = f(x)",
    conditions=words("Each flag that the signature has.", "签名中已有的每个选项。"),
    why=words(
        "A flag that changes values makes a model measured in one way and used in another two models.",
        "改变数值的选项，会使以一种方式测量、以另一种方式使用的模型变成两个模型。",
    ),
    chapter="1.2",
    probes=(
        Probe(id="flags.use-cache", does=words("use_cache", "use_cache"), run=_option("use_cache")),
        Probe(
            id="flags.attentions", does=words("attention returned", "返回注意力"), run=_option("output_attentions")
        ),
        Probe(
            id="flags.hidden-states", does=words("hidden states returned", "返回隐藏状态"),
            run=_option("output_hidden_states"),
        ),
        Probe(id="flags.grad", does=words("with gradients", "记录梯度"), run=grad),
        Probe(id="flags.grad-padded", does=words("with gradients, among pads", "有填充时记录梯度"), run=grad_padded),
        Probe(id="flags.training", does=words("training mode without dropout", "无 dropout 的训练模式"), run=training),
        Probe(id="flags.embeds", does=words("embeddings for ids", "以嵌入代替编号"), run=embeds),
        Probe(id="flags.contiguity", does=words("another order in memory", "内存排列不同"), run=contiguity),
        Probe(id="flags.checkpointing", does=words("checkpointing of activations", "激活检查点"), run=checkpointing),
    ),
)  # fmt: skip
