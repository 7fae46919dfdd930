"""AdamW (Loshchilov and Hutter 2019, algorithm 2) as definitions, line by line.

The rules are written once for a parameter of any rank: ``theta`` stands for the parameter, ``z`` for all of its letters.
``moment1`` and ``moment2`` are the running means of its gradient and of the gradient's square, 0 before the first step;
``step`` counts from 1. A running mean that starts at 0 is too small by the factor ``1 - beta**step``, which the
corrections take out. Weight decay acts on the parameter itself and never enters the moments.

| symbol | | |
|---|---|---|
| ``eta`` | learning rate of this step | |
| ``beta_1``, ``beta_2`` | how much of the moments is kept | in [0, 1) |
| ``eps_step`` | keeps the denominator away from 0 | in units of the gradient |
| ``weight_decay`` | share of the parameter that goes, per unit of learning rate | 0 for all but matrices |

``optimizer.py`` computes the same; ``descent.py`` is the rule without moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from glassformer.notation import Kind, Placed, Program, Quantity, Statement, parse_expression, quantity

from .clipping import reads_clipped
from .descent import opened

MOMENT_1 = quantity("moment1", "m", "first moment", "一阶矩", Kind.OPTIMIZER_STATE, """
beta_1*moment1[z] + (1 - beta_1)*theta.grad[z]
""")  # fmt: skip
MOMENT_2 = quantity("moment2", "v", "second moment", "二阶矩", Kind.OPTIMIZER_STATE, """
beta_2*moment2[z] + (1 - beta_2)*theta.grad[z]**2
""")  # fmt: skip
CORRECTED_1 = quantity("moment1_hat", r"\hat{m}", "corrected first moment", "校正后的一阶矩", Kind.OPTIMIZER_STATE, """
moment1.new[z]/(1 - beta_1**step)
""")  # fmt: skip
CORRECTED_2 = quantity("moment2_hat", r"\hat{v}", "corrected second moment", "校正后的二阶矩", Kind.OPTIMIZER_STATE, """
moment2.new[z]/(1 - beta_2**step)
""")  # fmt: skip
DIRECTION = quantity("direction", "u", "direction of the step", "步进方向", Kind.OPTIMIZER_STATE, """
moment1_hat[z]/(sqrt(moment2_hat[z]) + eps_step)
""")  # fmt: skip
STEP = quantity("theta", r"\theta", "AdamW step", "AdamW 一步", Kind.PARAMETER, """
theta[z] - eta*direction[z]
""")  # fmt: skip
STEP_WITH_DECAY = quantity("theta", r"\theta", "AdamW step with decay", "带权重衰减的 AdamW 一步", Kind.PARAMETER, """
theta[z] - eta*weight_decay*theta[z] - eta*direction[z]
""")  # fmt: skip


def is_decayed(parameter: str) -> bool:
    """Whether weight decay acts on the parameter of this id: the matrices that multiply, not tables, gains or biases."""
    last = parameter.rpartition(".")[2]
    return last.startswith("W_") or last == "U"


def adamw_statements(program: Program, *, clipped: bool = False) -> tuple[Statement, ...]:
    """One step of AdamW for every parameter of ``program``: six lines each, in the order in which they are computed.

    Running them needs the scalars of the table above, every parameter's gradient (``ID.clipped`` where it is
    ``clipped``), and its moments, which stand under ``ID.moment1`` and ``ID.moment2``; their new values are those with
    the face ``new``.
    """
    return tuple(
        statement
        for placed in program.quantities.values()
        if placed.quantity.kind is Kind.PARAMETER
        for statement in _step_of(placed, clipped)
    )


def _step_of(placed: Placed, clipped: bool) -> Iterator[Statement]:
    step = STEP_WITH_DECAY if is_decayed(placed.id) else STEP
    for rule in (MOMENT_1, MOMENT_2, CORRECTED_1, CORRECTED_2, DIRECTION, step):
        line = _statement(rule, placed, "new" if rule in (MOMENT_1, MOMENT_2, step) else "")
        yield replace(line, expr=reads_clipped(line.expr, placed.id)) if clipped else line


def _statement(rule: Quantity, placed: Placed, face: str) -> Statement:
    kept = ("moment1", "moment2", "moment1_hat", "moment2_hat", "direction")
    names = {"theta": placed.id, **{name: f"{placed.id}.{name}" for name in kept}}
    return Statement(
        target=names[rule.name],
        face=face,
        letters=placed.axes,
        expr=opened(parse_expression(rule.text), names, tuple(letter for letter, _ in placed.axes)),
        adds=False,
        consumer=placed.id,
        quantity=rule,
        line=rule.line + 1,
    )
