"""Resume is exact: stopped and gone on with is never having stopped."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...bilingual import words
from ..law import Family, Law, Probe
from ..subjects.data import Loader, Resumable
from ..verdict import Finding, NotSupported


def order(subject: Loader) -> Finding:
    """The rest of an epoch after a stop anywhere, and the whole next epoch."""
    if subject.resumed is None:
        raise NotSupported("no way to go on after a stop was told", "未给出中断后接续的方法")
    wrong, tried = [], 0
    for ranks in sorted({1, max(subject.ranks)}):
        for rank in sorted({0, ranks - 1}):
            for epoch in (0, 1):
                this, following = subject.read(epoch, rank, ranks), subject.read(epoch + 1, rank, ranks)
                for after in sorted({0, 1, len(this) // 2, max(0, len(this) - 1), len(this)}):
                    got = list(subject.resumed(epoch, rank, ranks, after))
                    wanted = [*this[after:], *following]
                    tried += 1
                    if got != wanted:
                        at = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), -1)
                        wrong.append(
                            {"epoch": epoch, "rank": rank, "ranks": ranks, "after": after, "first_difference": at,
                             "rest_of_epoch": len(this) - after, "read": len(got), "to_read": len(wanted)}
                        )  # fmt: skip
    return Finding(measured=len(wrong), bound=0, unit="stop", witness={"stops": tried, **(wrong[0] if wrong else {})})


def run(subject: Resumable) -> Finding:
    """The end of a run that was stopped and gone on with, against that of one that was not."""
    whole = subject.whole()
    if not whole:
        raise NotSupported("the run tells nothing of its end", "运行没有给出结束状态")
    found = []
    for stops in subject.stops:
        again = subject.interrupted(stops)
        names = sorted(whole.keys() | again.keys())
        unlike = [name for name in names if not _same(whole.get(name), again.get(name))]
        witness = {"stopped_after": list(stops), "compared": len(names), "unlike": unlike[:8]}
        found.append(Finding(measured=len(unlike), bound=0, unit="value", witness=witness))
    return max(found, key=lambda finding: finding.measured)


def again(subject: Resumable) -> Finding:
    """The control: the run without a stop, made twice, ends alike."""
    first, second = subject.whole(), subject.whole()
    unlike = [name for name in sorted(first.keys() | second.keys()) if not _same(first.get(name), second.get(name))]
    return Finding(measured=len(unlike), bound=0, unit="value", witness={"compared": len(first), "unlike": unlike[:8]})


def _same(a: Any, b: Any) -> bool:
    """Bit for bit: NaN is like NaN, and minus zero unlike zero."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        a, b = a.detach().cpu().contiguous(), b.detach().cpu().contiguous()
        return torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))
    return type(a) is type(b) and bool(a == b)


RESUME = Law(
    id="resume",
    statement=words(
        "A run that was killed and resumed is the uninterrupted one: sample order, losses, weights, bit for bit.",
        "中断后恢复的运行与未中断的逐位相同：样本次序、损失、权重。",
    ),
    formula=r"\theta_{\mathrm{resumed}} = \theta_{\mathrm{whole}}",
    conditions=words("A loader or a run that can go on after a stop.", "可在中断后接续的加载器或运行。"),
    why=words(
        "After a resume that is not exact some samples are seen twice and others never, and nobody can tell which.",
        "不精确的恢复会让一些样本出现两次、另一些从不出现，而且无从查知。",
    ),
    chapter="11.4",
    probes=(
        Probe(
            id="resume.order", does=words("samples after a stop", "中断后的样本"), run=order,
            family=Family.LOADER, fast=True,
        ),
        Probe(
            id="resume.again", does=words("the same run twice", "同一运行两次"), run=again, family=Family.RUN,
        ),
        Probe(
            id="resume.run", does=words("a run with stops", "带中断的运行"), run=run, family=Family.RUN, fast=True,
        ),
    ),
)  # fmt: skip
