"""Mechanical differentiation against central differences, and every gradient line of the model against it."""

from __future__ import annotations

import numpy as np
import pytest

from decoders import CONFIGS, err
from glassformer.model import definitions
from glassformer.notation import Kind, Program, Statement, build_program, evaluate, group, place, quantity
from glassformer.notation.differentiate import (
    ZERO,
    NotDifferentiable,
    derivative,
    derivative_contribution,
    inline,
    inline_folded,
    separate,
)
from glassformer.notation.operands import complete, draw
from glassformer.notation.parse import parse_expression
from glassformer.notation.tree import Idx, bound_letters, free_letters, refs, rename_names

SIZES = {"n": 3, "n_k": 3, "d": 4, "N": 5, "H": 2, "d_k": 2, "eps": 0.1}

# Each reads X[i,r]; W, t and g are other operands. Together they use every rule.
FORMULAS = {
    "sum and difference": "2*X[i,r] - X[i,r] + W[i,r] - 3",
    "product with repeated factor": "X[i,r]*W[i,r]*X[i,r]",
    "quotient": "(X[i,r] + W[i,r])/(3 + X[i,r]**2)",
    "number over": "1/(3 + X[i,r])",
    "power": "X[i,r]**3",
    "power of a sum": "(1 + X[i,r]**2)**(1/3)",
    "exponent": "(2 + W[i,r]**2)**X[i,r]",
    "exp ln sqrt": "exp(X[i,r]/4)*ln(3 + X[i,r]**2) + sqrt(2 + X[i,r]**2)",
    "sin cos": "sin(X[i,r])*cos(2*X[i,r])",
    "tanh erf abs": "tanh(X[i,r]) + erf(X[i,r]) + abs(X[i,r])",
    "condition": "X[i,r]**2 if X[i,r] > 0 else -X[i,r]",
    "condition with infinity": "X[i,r] if W[i,r] > 0 else -inf",
    "sum over its own letter": "sum(X[i,q]*W[i,q] for q in d) + X[i,r]",
    "mean": "mean(X[i,q]**2 for q in d)*X[i,r]",
    "filtered sum": "sum(X[i,q] for q in d if W[i,q] > 0)*W[i,r]",
    "lookup": "X[t[i],r]*W[i,r]",
    "softmax": "exp(X[i,r])/sum(exp(X[i,q]) for q in d)",
    "log of a sum": "ln(sum(exp(X[i,q]) for q in d)) - X[i,r]",
}


def program_of(formula: str) -> Program:
    part = group(
        "part",
        quantity("X", "X", "", "", Kind.PARAMETER, "X[i,r]"),
        quantity("W", "W", "", "", Kind.PARAMETER, "W[i,r]"),
        quantity("t", "t", "", "", Kind.INPUT, "t[i]"),
        quantity("Y", "Y", "", "", Kind.INTERMEDIATE, "Y[i,r] = W[i,r]"),
    )
    program = build_program([place(part, "p")], SIZES)
    names = {name: f"p.{name}" for name in ("X", "W", "t")}
    statement = program.definition("p.Y")
    assert statement is not None
    changed = Statement(
        "p.Y",
        "",
        statement.letters,
        rename_names(parse_expression(formula), names),
        False,
        "p.Y",
        statement.quantity,
        0,
    )
    return Program(program.quantities, (changed,), (), program.scalars)


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
def test_the_derivative_of_every_kind_of_node_equals_central_differences(formula: str) -> None:
    program = program_of(formula)
    statement, letters = program.forward[0], (("i", "n"), ("r", "d"))
    values = draw([statement.expr], program, np.random.default_rng(3))
    values["p.t"] = np.array([2, 0, 2])
    seed = np.random.default_rng(4).standard_normal((3, 4))
    found = evaluate(derivative_contribution(statement, "p.X", letters), letters, {**values, "p.Y.grad": seed}, SIZES)

    def loss(X: np.ndarray) -> float:
        Y = evaluate(statement.expr, letters, {**values, "p.X": X}, SIZES)
        return float((Y * seed)[np.isfinite(Y)].sum())

    X, h = values["p.X"], 1e-6
    for cell in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[cell] = h
        measured = (loss(X + step) - loss(X - step)) / (2 * h)
        assert found[cell] == pytest.approx(measured, abs=2e-8, rel=2e-8)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_gradient_line_of_the_model_equals_the_mechanical_derivative(name: str) -> None:
    program = definitions(CONFIGS[name], 4)
    rng = np.random.default_rng(5)
    values = draw((s.expr for s in program.statements), program, rng)
    # Small parameters: the rules write softmax out as a quotient of bare exponentials.
    small = {id for id, placed in program.quantities.items() if placed.quantity.kind is Kind.PARAMETER}
    values = {id: 0.3 * value if id in small else value for id, value in values.items()}
    values = complete(values, (s.target for s in program.forward), program, rng)
    # Q and K read scores that are used only where allowed; there alone the gradient of S is other than 0.
    scores = [f"{s.target}.grad" for s in program.backward if s.target.endswith(".S")]
    values = complete(values, scores, program, rng)
    checked = 0
    for line in program.backward:
        forward = program.definition(line.consumer)
        assert forward is not None
        asked = {letter for letter, _ in line.letters}
        expr, own = separate(forward.expr, forward.letters, asked)
        opened = inline_folded(expr, program, asked | {letter for letter, _ in own})
        whole = Statement(forward.target, "", own, opened, False, forward.consumer, forward.quantity, 0)
        found = derivative_contribution(whole, line.target, line.letters)
        written = evaluate(line.expr, line.letters, values, program.scalars)
        assert err(written, evaluate(found, line.letters, values, program.scalars)) <= 1e-12, line
        checked += 1
    assert checked == len(program.backward) > 10


def test_a_gradient_line_with_gamma_outside_the_means_is_not_the_mechanical_derivative() -> None:
    """The well-known wrong LayerNorm gradient, right only for gamma = 1, with xhat opened as well."""
    program = definitions(CONFIGS["everything"], 4)
    rng = np.random.default_rng(6)
    norm = "blocks.0.norm1"
    Y, xhat = program.definition(f"{norm}.Y"), program.definition(f"{norm}.xhat")
    assert Y is not None
    assert xhat is not None
    letters = (("i", "n"), ("r", "d"))
    asked = {"i", "r"}
    expr, own = separate(Y.expr, Y.letters, asked)
    opened = inline_folded(inline(expr, {xhat.target: xhat}, asked | {"q"}), program, asked | {"q"})
    whole = Statement(Y.target, "", own, opened, False, Y.consumer, Y.quantity, 0)
    found = derivative_contribution(whole, "embed.X", letters)
    names = {n: f"{norm}.{n}" for n in ("Y", "xhat", "gamma", "sd")}

    def line(text: str) -> np.ndarray:
        return evaluate(rename_names(parse_expression(text), names), letters, values, program.scalars)

    scaled, plain = "Y.grad[i,{0}]*gamma[{0}]", "Y.grad[i,{0}]"
    form = "({r} - mean({q} for q in d) - xhat[i,r]*mean({q}*xhat[i,q] for q in d))/sd[i]"
    right = form.format(r=scaled.format("r"), q=scaled.format("q"))
    wrong = "gamma[r]*" + form.format(r=plain.format("r"), q=plain.format("q"))
    values = draw([found, rename_names(parse_expression(right), names)], program, rng)
    values = complete(values, [f"{norm}.{n}" for n in ("mu", "var", "sd", "xhat")], program, rng)
    truth = evaluate(found, letters, values, program.scalars)
    assert err(line(right), truth) <= 1e-12
    assert err(line(wrong), truth) > 1e-3


def test_what_does_not_depend_on_the_operand_has_the_derivative_zero() -> None:
    program = program_of("W[i,r]*t[i] + 3")
    assert derivative_contribution(program.forward[0], "p.X", (("i", "n"), ("r", "d"))) == ZERO


@pytest.mark.parametrize("text", ["max(X[i,r], W[i,r])", "min(X[i,r], 1)", "max(X[i,q] for q in d)"])
def test_a_kink_between_equals_is_refused(text: str) -> None:
    with pytest.raises(NotDifferentiable):
        derivative(parse_expression(text), "X", (Idx("i"), Idx("w")))


def test_a_read_of_another_rank_is_refused() -> None:
    with pytest.raises(NotDifferentiable):
        derivative(parse_expression("X[i]"), "X", (Idx("i"), Idx("r")))


def test_folded_quantities_are_gone_after_inlining_and_no_letter_is_bound_twice() -> None:
    program = definitions(CONFIGS["everything"], 4)
    statement = program.definition("blocks.0.norm1.xhat")
    assert statement is not None
    opened = inline_folded(statement.expr, program, ["i", "r"])
    assert {ref.name for ref in refs(opened)} == {"embed.X"}
    assert set(free_letters(opened)) == {"i", "r"}
    assert not bound_letters(opened) & {"i", "r"}
