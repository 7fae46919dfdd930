"""Accumulation: micro-batches, or shards of ranks, give the gradient of one big batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...bilingual import words
from ..law import Family, Law, Probe
from ..losses import IGNORED, apart
from ..subjects.training import Pair, Trainer, part
from ..verdict import Finding, NotSupported

ROUNDING = 1e-4
"""What gradients in float32 may be off, in units of the largest; a wrong weight is larger by orders of magnitude."""


def batches(trainer: Trainer, counts: Sequence[Sequence[int]], seed: int = 0) -> list[Pair]:
    """One micro-batch for each of ``counts``, with one row for each number: how many of its last tokens are scored."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for rows in counts:
        ids = torch.randint(trainer.vocab_size, (len(rows), trainer.length), generator=generator)
        first = trainer.length - torch.tensor(rows)[:, None]
        made.append((ids, torch.where(torch.arange(trainer.length)[None] < first, IGNORED, ids)))
    return made


def joined(pairs: Sequence[Pair]) -> list[Pair]:
    """All rows as one batch."""
    return [(torch.cat([ids for ids, _ in pairs]), torch.cat([labels for _, labels in pairs]))]


def numbers(given: object) -> dict[str, Tensor]:
    """Tensors by name, in float64 copies. Raises ``NotSupported`` for anything else."""
    if not isinstance(given, dict) or not given or not all(isinstance(x, Tensor) for x in given.values()):
        raise NotSupported("the trainer gives no tensors by name", "训练器没有按名字给出张量")
    return {name: x.detach().double().clone() for name, x in given.items()}


def _equals(trainer: Trainer, counts: Sequence[Sequence[int]]) -> Finding:
    gradients = part(trainer.gradients, "gradients")
    pairs = batches(trainer, counts)
    expected = numbers(gradients(joined(pairs)))
    if not any(bool(g.any()) for g in expected.values()):
        raise NotSupported("the gradients are zero", "梯度为零")
    measured, name = apart(numbers(gradients(pairs)), expected)
    facts = {"scored": [list(rows) for rows in counts], "parameter": name}
    return Finding(measured=measured, bound=ROUNDING, unit="share of the largest gradient", witness=facts)


def unequal(trainer: Trainer) -> Finding:
    """Micro-batches with unequal numbers of scored tokens."""
    longest = trainer.length - 1
    return _equals(trainer, [[longest, longest], [1, 2], [longest, 2], [3, 1]])


def incomplete(trainer: Trainer) -> Finding:
    """Fewer micro-batches than usual, as at the end of an epoch; the worst of one, two and three."""
    longest = trainer.length - 1
    found = [_equals(trainer, counts) for counts in ([[longest, 2]], [[longest], [2]], [[longest], [2], [4]])]
    # One alone is the same call twice: what it ought to be follows from the same rows cut in two.
    gradients = part(trainer.gradients, "gradients")
    pairs = batches(trainer, [[longest], [2]])
    one, two = numbers(gradients(joined(pairs))), numbers(gradients([*pairs, *pairs]))
    measured, name = apart(two, one)  # the same rows twice have the same mean
    found.append(
        Finding(measured=measured, bound=ROUNDING, unit=found[0].unit, witness={"parameter": name, "repeated": True})
    )
    return max(found, key=lambda finding: finding.severity)


def idle(trainer: Trainer) -> Finding:
    """A micro-batch, or a rank, without any target among others."""
    longest = trainer.length - 1
    return _equals(trainer, [[longest, 3], [0, 0], [2, longest]])


ACCUMULATION = Law(
    id="accumulation",
    statement=words(
        "The gradient of several micro-batches, or shards, is that of all their rows as one batch.",
        "多个微批或分片的梯度等于所有行合为一批时的梯度。",
    ),
    formula=r"g = \frac{\sum_k \nabla \sum_{T_k} \ell}{\sum_k \lvert T_k \rvert}",
    conditions=words(
        "A trainer whose loss is the mean over all scored tokens of a step.", "损失为一步中所有计分词元之均值的训练器。"
    ),
    why=words(
        "A mean of means favours short texts: the same data train another model when memory is short.",
        "均值的均值偏向短文本：显存不足时，同样的数据会训练出另一个模型。",
    ),
    chapter="10.1",
    probes=(
        Probe(
            id="accumulation.unequal", does=words("unequal counts", "计数不等"), run=unequal, family=Family.TRAINER
        ),
        Probe(
            id="accumulation.incomplete", does=words("an incomplete window", "不完整的一窗"), run=incomplete,
            family=Family.TRAINER,
        ),
        Probe(
            id="accumulation.idle", does=words("a part without targets", "没有目标的部分"), run=idle,
            family=Family.TRAINER,
        ),
    ),
)  # fmt: skip
