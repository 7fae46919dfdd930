"""Speculative decoding: accepting or replacing drafted tokens leaves the distribution as it was."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ...bilingual import words
from ..law import Family, Law, Probe
from ..subjects.decoding import Generator
from ..verdict import Finding, NotSupported

N = 5
ERROR = 1e-5


def pairs() -> Iterator[tuple[Tensor, Tensor]]:
    """Target and draft ``(N,)``: unlike, alike, equal, filtered, sure of different tokens."""
    generator = torch.Generator().manual_seed(0)
    for spread in (0.3, 1.0, 3.0, 3.0):
        p, q = (torch.softmax(spread * torch.randn(N, dtype=torch.float64, generator=generator), -1) for _ in "pq")
        yield p, q
    yield p, p.clone()
    filtered = torch.tensor([0.5, 0.5, 0.0, 0.0, 0.0], dtype=torch.float64)
    yield filtered, torch.tensor([0.1, 0.2, 0.3, 0.2, 0.2], dtype=torch.float64)
    yield torch.tensor([0.1, 0.2, 0.3, 0.2, 0.2], dtype=torch.float64), filtered


def distribution(subject: Generator) -> Finding:
    """Every drafted token, accepted or replaced, by enumeration."""
    if subject.speculate is None:
        raise NotSupported("there is no speculative decoding", "没有投机解码")
    found = []
    for p, q in pairs():
        accept, instead = subject.speculate(p.clone(), q.clone())
        drafted = q > 0
        kept = torch.where(drafted, q * accept, 0.0)
        refused = torch.where(drafted, q - kept, 0.0)
        # Rows of tokens that are never refused may hold anything.
        needed = refused > 1e-12
        written = kept + (refused[needed, None] * torch.as_tensor(instead).expand(N, N)[needed]).sum(0)
        witness = {"target": p.tolist(), "draft": q.tolist(), "written": written.tolist()}
        unlike = float((written - p).abs().max())
        found.append(Finding(measured=unlike, bound=ERROR, unit="probability", witness=witness))
    return max(found, key=lambda finding: finding.severity)


SPECULATIVE = Law(
    id="speculative",
    statement=words(
        "Speculative decoding leaves the distribution of the text exactly unchanged.",
        "投机解码不改变文本的分布。",
    ),
    formula=r"q(x)\, a(x) + \sum_y q(y)\, (1 - a(y))\, r_y(x) = p(x)",
    conditions=words("A loop that drafts with another model.", "用另一模型起草的循环。"),
    why=words(
        "It is sold as free speed: a wrong replacement writes another model's text.",
        "它号称免费提速：替换出错就写成了另一个模型的文本。",
    ),
    chapter="12.4",
    probes=(
        Probe(
            id="speculative.distribution", does=words("enumeration over five tokens", "五词元枚举"),
            run=distribution, family=Family.GENERATOR, fast=True,
        ),
    ),
)  # fmt: skip
