"""Closed forms of position tables, where a table is within reach: among the parameters and buffers of a model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import torch
from torch import Tensor

from ..bench import Bench
from ..place import at_parameter
from ..verdict import Finding, NotApplicable

SLOPES = re.compile(r"(^|[._])(alibi_)?slopes?$", re.IGNORECASE)

TABLE_BOUND = 1e-3
"""Tables are kept in single precision, with angles of up to some thousand radians."""


def _tables(bench: Bench) -> Iterator[tuple[str, Tensor]]:
    """What the user's own module holds: that of the bench has been stirred."""
    module = bench.subject.module
    yield from module.named_buffers()
    yield from ((name, p.detach()) for name, p in module.named_parameters())


def sinusoid(bench: Bench) -> Finding:
    """A table whose first row is that of position 0, halves of zeros and ones, has rows whose products depend on i - j.

    That holds for every order of sines and cosines, every base and every scale of frequencies, as long as each frequency
    has both its sine and its cosine; neighbouring rows must differ.
    """
    for name, table in _tables(bench):
        P = table.squeeze()
        if P.ndim == 2 and P.shape[0] >= 4 and P.shape[1] % 2 == 0 and _begins(P[0]):
            P = P[:64].double()
            empty = (P.abs().amax(1) == 0).nonzero()
            P = P[int(empty.max()) + 1 if len(empty) else 0 :]  # some keep the row of the pad at zero
            G, size = P @ P.T / (P.shape[1] / 2), min(32, P.shape[0] - 1)
            apart = max(float((G.diagonal(k) - G.diagonal(k)[0]).abs().max()) for k in range(size))
            same = float((P[1:] - P[:-1]).abs().amax(1).min())
            witness = {"table": name, "rows": P.shape[0], "neighbours_differ_by": same}
            measured = apart if same > 1e-6 else math.inf
            return Finding(
                measured=measured, bound=TABLE_BOUND, unit="product of rows", witness=witness,
                place=at_parameter(bench, name),
            )  # fmt: skip
    raise NotApplicable("no table of sinusoids was found", "没有找到正弦位置表")


def _begins(row: Tensor) -> bool:
    zeros, ones = int((row == 0).sum()), int((row == 1).sum())
    return zeros == ones == row.numel() // 2


def closed_slopes(heads: int) -> Tensor:
    """``(heads,)`` float64: 2^(-8h/H) for h = 1 .. H where H is a power of two.

    For other H the slopes of the power below, and every second one of the power above: Press, Smith and Lewis, *Train
    Short, Test Long* (2022), in the code of its authors.
    """
    below = 2 ** int(math.log2(heads))
    first = 2.0 ** (-8.0 * torch.arange(1, below + 1, dtype=torch.float64) / below)
    if below == heads:
        return first
    return torch.cat([first, closed_slopes(2 * below)[::2][: heads - below]])


def slopes(bench: Bench) -> Finding:
    """A table named slopes, one number a head."""
    heads = bench.subject.facts.settings.get("heads")
    for name, table in _tables(bench):
        m = table.squeeze()
        if SLOPES.search(name) and m.ndim == 1 and heads in (None, m.numel()) and not table.requires_grad:
            wanted = closed_slopes(m.numel())
            # Some subtract the distance and some add it with slopes below zero.
            measured = float(((m.double().abs() - wanted) / wanted).abs().max())
            witness = {"table": name, "slopes": m.tolist()[:16], "closed_form": wanted.tolist()[:16]}
            return Finding(
                measured=measured, bound=TABLE_BOUND, unit="relative difference", witness=witness,
                place=at_parameter(bench, name),
            )  # fmt: skip
    raise NotApplicable("no table of slopes was found", "没有找到斜率表")
