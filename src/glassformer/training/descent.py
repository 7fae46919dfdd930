"""Plain gradient descent as definitions.

Every parameter steps against its gradient, all gradients taken at the old parameters: one joint update. The rule is
written once for a parameter of any rank; ``theta`` stands for the parameter and ``z`` for all of its letters.
"""

from __future__ import annotations

from collections.abc import Mapping

from glassformer.notation import Kind, Program, Statement, parse_expression, quantity
from glassformer.notation.tree import Expr, Idx, Ref, transform

STEP = quantity("theta", r"\theta", "gradient descent step", "梯度下降一步", Kind.PARAMETER, """
theta[z] - eta*theta.grad[z]
""")  # fmt: skip
STEP_CLIPPED = quantity("theta", r"\theta", "gradient descent step, clipped", "裁剪后的梯度下降一步", Kind.PARAMETER, """
theta[z] - eta*g[z]
""")  # fmt: skip


def update_statements(program: Program, *, clipped: bool = False) -> tuple[Statement, ...]:
    """``theta.new = theta - eta*theta.grad`` for every parameter of ``program``, in the program's order.

    Running them needs the scalar ``eta`` and every parameter's gradient (``ID.clipped`` where it is ``clipped``).
    """
    step = STEP_CLIPPED if clipped else STEP
    rule = parse_expression(step.text)
    return tuple(
        Statement(
            target=placed.id,
            face="new",
            letters=placed.axes,
            expr=opened(
                rule,
                {"theta": placed.id, "g": f"{placed.id}.clipped"},
                tuple(letter for letter, _ in placed.axes),
            ),
            adds=False,
            consumer=placed.id,
            quantity=step,
            line=step.line + 1,
        )
        for placed in program.quantities.values()
        if placed.quantity.kind is Kind.PARAMETER
    )


def opened(rule: Expr, names: Mapping[str, str], letters: tuple[str, ...]) -> Expr:
    """The rule for one parameter: each ``name[z]`` gets its id in ``names`` and the ``letters``; faces stay as written."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Ref) and node.name in names:
            return Ref(names[node.name], node.face, tuple(Idx(letter) for letter in letters))
        return node

    return transform(rule, change)
