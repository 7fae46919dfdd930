"""Clipping by the norm of the whole gradient, as definitions and as code.

The gradient of all parameters together is shortened to the norm ``clip`` where it is longer; its direction stays. All
parameters share the one factor ``kept``, so a large gradient of one shortens the steps of all. ``squares`` is summed over
all cells of its parameter (the letters ``z``), and under the root stands the sum over all parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.notation import Kind, Placed, Program, Quantity, Statement, parse_expression, quantity
from glassformer.notation.tree import Add, Expr, Reduce, Ref, transform

from .descent import opened

NORM_ID, KEPT_ID = "optimizer.norm", "optimizer.kept"

SQUARES = quantity("squares", "s", "squared norm of its gradient", "其梯度的范数平方", Kind.OPTIMIZER_STATE, """
theta.grad[z]**2
""")  # fmt: skip
NORM = quantity("norm", r"\lvert g \rvert", "norm of the whole gradient", "整个梯度的范数", Kind.OPTIMIZER_STATE, """
sqrt(squares)
""")  # fmt: skip
KEPT = quantity("kept", r"\rho", "share of the gradient that is kept", "保留的梯度比例", Kind.OPTIMIZER_STATE, """
min(1, clip/(norm + 1e-6))
""")  # fmt: skip
CLIPPED = quantity("clipped", r"g", "clipped gradient", "裁剪后的梯度", Kind.OPTIMIZER_STATE, """
kept*theta.grad[z]
""")  # fmt: skip


class Clipped(NamedTuple):
    """The squared norm of each gradient, the norm of all together, the factor, and the gradients times it."""

    squares: dict[str, Tensor]
    norm: Tensor
    kept: Tensor
    gradients: dict[str, Tensor]


@torch.no_grad()
def clipped(gradients: Mapping[str, Tensor], clip: float) -> Clipped:
    """The gradients, by id and of any shapes, shortened together to the norm ``clip``: what ``clip_grad_norm_`` does."""
    squares = {id: g.square().sum() for id, g in gradients.items()}
    norm = torch.stack(list(squares.values())).sum().sqrt()
    kept = (clip / (norm + 1e-6)).clamp(max=1.0)
    return Clipped(squares, norm, kept, {id: kept * g for id, g in gradients.items()})


def clipping_statements(program: Program) -> tuple[Statement, ...]:
    """The squared norms, their sum, the factor, and ``ID.clipped`` for every parameter; they need the scalar ``clip``."""
    parameters = [placed for placed in program.quantities.values() if placed.quantity.kind is Kind.PARAMETER]
    squares = tuple(_statement(SQUARES, p, f"{p.id}.squares", _squares(p), ()) for p in parameters)
    first, *others = (Ref(s.target, "", ()) for s in squares)
    norm = _with(parse_expression(NORM.text), "squares", Add((first, *others)) if others else first)
    kept = opened(parse_expression(KEPT.text), {"norm": NORM_ID}, ())
    shared = (_statement(NORM, None, NORM_ID, norm, ()), _statement(KEPT, None, KEPT_ID, kept, ()))
    return (*squares, *shared, *(_shortened(p) for p in parameters))


def reads_clipped(e: Expr, parameter: str) -> Expr:
    """``e`` with the clipped gradient of ``parameter`` in the place of its gradient."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Ref) and node.name == parameter and node.face == "grad":
            return Ref(f"{parameter}.clipped", "", node.indices)
        return node

    return transform(e, change)


def _with(rule: Expr, name: str, put: Expr) -> Expr:
    return transform(rule, lambda node: put if isinstance(node, Ref) and node.name == name else node)


def _squares(placed: Placed) -> Expr:
    squared = opened(parse_expression(SQUARES.text), {"theta": placed.id}, tuple(letter for letter, _ in placed.axes))
    return Reduce("sum", squared, placed.axes) if placed.axes else squared


def _shortened(placed: Placed) -> Statement:
    letters = tuple(letter for letter, _ in placed.axes)
    rule = opened(parse_expression(CLIPPED.text), {"theta": placed.id}, letters)
    return _statement(CLIPPED, placed, f"{placed.id}.clipped", opened(rule, {"kept": KEPT_ID}, ()), placed.axes)


def _statement(
    rule: Quantity, placed: Placed | None, target: str, expr: Expr, letters: tuple[tuple[str, str], ...]
) -> Statement:
    consumer = target if placed is None else placed.id
    return Statement(target, "", letters, expr, False, consumer, rule, rule.line + 1)
