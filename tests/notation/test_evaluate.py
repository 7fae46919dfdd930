"""The float64 value of a definition: against a plain reader of cells, at the edges, and where it must refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from glassformer.notation import EvaluationError, Group, Kind, evaluate, parse_expression, run
from glassformer.notation.compose import build_program, place
from glassformer.notation.erf import erf
from glassformer.notation.quantity import group, quantity
from glassformer.notation.tree import Expr

from .cell_oracle import SIZES, CellOracle, operands, trees

I, IJ, IR = (("i", "n"),), (("i", "n"), ("j", "n_k")), (("i", "n"), ("r", "d"))  # noqa: E741
SOFTMAX = "exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)"
LOG_SUM_EXP = "ln(sum(exp(S[i,j]) for j in n_k))"


def value(text: str, letters=(), **values) -> np.ndarray:
    return evaluate(parse_expression(text), letters, {k: np.asarray(v) for k, v in values.items()}, SIZES)


@given(trees(), st.integers(0, 5))
def test_any_tree_has_the_value_that_reading_it_cell_by_cell_gives(tree: Expr, seed: int) -> None:
    values = operands(seed)
    oracle = CellOracle(values, SIZES)
    expected = oracle.array(tree, I)
    ours = evaluate(tree, I, values, SIZES)
    assert np.array_equal(np.isfinite(ours), np.isfinite(expected))
    finite = np.isfinite(expected)
    assert np.array_equal(ours[~finite], expected[~finite])
    assert np.abs(ours[finite] - expected[finite]).max(initial=0.0) <= 1e-12 * oracle.largest


@given(trees(("i", "r"), 2), st.integers(0, 5))
def test_the_axes_come_in_the_order_asked_for(tree: Expr, seed: int) -> None:
    values = operands(seed)
    straight = evaluate(tree, IR, values, SIZES)
    assert straight.shape == (3, 4)
    assert np.array_equal(evaluate(tree, IR[::-1], values, SIZES).T, straight, equal_nan=True)


def test_a_letter_that_the_expression_does_not_read_gets_an_axis_of_equal_cells() -> None:
    assert value("b[i]", IR, b=[1, 2, 3]).tolist() == [[1] * 4, [2] * 4, [3] * 4]
    assert value("pi", I).tolist() == [math.pi] * 3


def test_the_result_is_float64_and_nobody_elses_array() -> None:
    b = np.array([1.0, 2.0, 3.0])
    result = value("b[i]", I, b=b)
    result[:] = 0
    assert b.tolist() == [1, 2, 3]
    assert value("t[i]", I, t=[1, 2, 3]).dtype == np.float64
    assert value("1 if mask[i] else 0", I, mask=[True, False, True]).dtype == np.float64


def test_one_letter_twice_reads_the_diagonal() -> None:
    S = np.arange(9.0).reshape(3, 3)
    assert value("S[i,i]", I, S=S).tolist() == [0, 4, 8]
    assert value("sum(S[i,i] for i in n)", (), S=S) == 12


# --- lookups


def test_a_lookup_reads_through_integer_tables() -> None:
    E = np.arange(8.0).reshape(4, 2)
    assert value("E[t[i],c]", (*I, ("c", "d_k")), E=E, t=[3, 0, 3]).tolist() == [[6, 7], [0, 1], [6, 7]]
    logits = np.arange(12.0).reshape(3, 4)
    assert value("logits[i,y[i]]", I, logits=logits, y=[3, 0, 1]).tolist() == [3, 4, 9]


@pytest.mark.parametrize("missing", [-1, -100, 4])
def test_a_lookup_out_of_range_is_refused(missing: int) -> None:
    with pytest.raises(EvaluationError, match=rf"b: index {missing} of an axis of 4"):
        value("b[t[i]]", I, b=[0.0] * 4, t=[0, missing, 1])


def test_a_lookup_may_miss_where_its_branch_is_not_taken() -> None:
    found = value("b[t[i]] if mask[i] else 7", I, b=[1.0, 2.0], t=[1, -100, 0], mask=[True, False, True])
    assert found.tolist() == [2, 7, 1]


@pytest.mark.parametrize("op", ["sum", "max"])
def test_a_lookup_may_miss_where_the_filter_leaves_it_out(op: str) -> None:
    assert (
        value(f"{op}(b[t[i]] for i in n if mask[i])", (), b=[1.0, 2.0], t=[1, -100, 9], mask=[True, False, False]) == 2
    )


# --- refusals


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("b[i]", {}, "no value for b"),
        ("b.grad[i]", {"b": [1, 2, 3]}, "no value for b.grad"),
        ("b[i]", {"b": [[1, 2, 3]]}, "b has 2 axes, read with 1 indices"),
        ("b[i]", {"b": [1, 2]}, r"b has shape \(2,\), but i runs over 3"),
    ],
)
def test_operands_that_do_not_fit_are_refused(text: str, values: dict, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        value(text, I, **values)


# --- stable patterns


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_softmax_and_log_sum_exp_never_overflow(shift: float) -> None:
    S = np.array([[0.5, -1.0, 2.0], [3.0, 3.0, 3.0], [-700.0, 0.0, 700.0]]) + shift
    assert np.abs(value(SOFTMAX, IJ, S=S) - special.softmax(S, axis=1)).max() <= 1e-15
    assert np.abs(value(LOG_SUM_EXP, I, S=S) - special.logsumexp(S, axis=1)).max() <= 1e-15 * max(1, abs(shift))


def test_what_is_not_allowed_gets_exactly_nothing() -> None:
    S = np.array([[1e4, -np.inf, -np.inf], [-1e4, -1e4, -np.inf], [1.0, 2.0, 3.0]])
    A = value(SOFTMAX, IJ, S=S)
    assert A[0].tolist() == [1, 0, 0]
    assert A[1].tolist() == [0.5, 0.5, 0]
    assert value(LOG_SUM_EXP, I, S=S)[0] == 1e4


@pytest.mark.parametrize(("text", "letters"), [(SOFTMAX, IJ), (LOG_SUM_EXP, I)])
def test_a_row_in_which_nothing_is_allowed_is_refused(text: str, letters: tuple) -> None:
    S = np.zeros((3, 3))
    S[1] = -np.inf
    with pytest.raises(EvaluationError, match="nothing is allowed"):
        value(text, letters, S=S)


def test_a_softmax_is_recognised_in_a_sum_of_products_as_well() -> None:
    """The exponent may be a whole expression, and bound letters inside it do not matter."""
    X = np.array([[1e3, 0, 0, 1], [0, 1e3, 0, 2], [0, 0, 1e3, 3]])
    text = "exp(sum(X[i,r]*X[j,r] for r in d))/sum(exp(sum(X[i,r]*X[m,r] for r in d)) for m in n_k)"
    assert np.array_equal(value(text, IJ, X=X), np.eye(3))


# --- conditions, filters, means


def test_the_branch_not_taken_cannot_leak() -> None:
    b = np.array([-1e9, 0.0, 4.0])
    assert value("exp(-b[i]) if b[i] > 0 else 5", I, b=b).tolist() == [5, 5, math.exp(-4)]
    assert value("1/b[i] if b[i] != 0 else 0", I, b=b).tolist() == [-1e-9, 0, 0.25]
    assert value("sqrt(b[i]) if b[i] >= 0 else 0", I, b=b).tolist() == [0, 0, 2]


@pytest.mark.parametrize(
    ("text", "expected"), [("ln(b[i])", math.log(4)), ("1/b[i]", 0.25), ("2*ln(b[i])/b[i]", math.log(4) / 2)]
)
def test_what_a_filter_leaves_out_cannot_leak(text: str, expected: float) -> None:
    assert value(f"sum({text} for i in n if b[i] > 0)", (), b=[0.0, 4.0, -0.0]) == pytest.approx(expected, rel=1e-15)


def test_a_filter_asks_whether_a_cell_is_zero_not_how_large_it_is() -> None:
    assert value("sum(b[i] for i in n if t[i])", (), b=[1.0, 2.0, 4.0], t=[5, 0, -3]) == 5


def test_a_mean_divides_by_all_positions_and_nothing_has_sum_0_and_maximum_minus_infinity() -> None:
    assert value("mean(b[i] for i in n if b[i] > 1)", (), b=[1.0, 2.0, 4.0]) == 2
    assert value("sum(b[i] for i in n if b[i] > 9)", (), b=[1.0, 2.0, 4.0]) == 0
    assert value("max(b[i] for i in n if b[i] > 9)", (), b=[1.0, 2.0, 4.0]) == -math.inf


@pytest.mark.parametrize(("op", "expected"), [("sum", 24.0), ("mean", 2.0), ("max", 2.0)])
def test_a_reduction_of_what_does_not_depend_on_its_letters_counts_them(op: str, expected: float) -> None:
    assert value(f"{op}(x for i in n for r in d)", (), x=2.0) == expected


def test_the_error_function_is_scipys() -> None:
    x = np.linspace(-6, 6, 1001)
    assert np.abs(erf(x) - special.erf(x)).max() <= 2.3e-16


# --- run


def chained() -> Group:
    """``L = sum of D``, ``D = a*X + b*X``: X has one consumer whose two lines add up."""
    return group(
        "chained",
        quantity("X", "X", "in", "入", Kind.PARAMETER, "X[i]"),
        quantity("D", "D", "middle", "中", Kind.INTERMEDIATE, """
        D[i] = 3*X[i] + X[i]
        X.grad[i] += 3*D.grad[i]
        X.grad[i] += D.grad[i]
        """),
        quantity("L", "L", "out", "出", Kind.LOSS, """
        L = sum(D[i]**2 for i in n)
        D.grad[i] += 2*D[i]*L.grad
        """),
    )  # fmt: skip


def test_a_program_runs_in_order_and_contributions_add_up_from_zero() -> None:
    program = build_program([place(chained(), "p")], {"n": 3})
    # A gradient that is already there is not the start of the sum.
    start = {"p.X": np.array([1.0, 2.0, 3.0]), "p.L.grad": np.ones(()), "p.X.grad": np.full(3, 1e9)}
    before = {name: array.copy() for name, array in start.items()}
    known = run(program.statements, start, program.scalars)
    assert known["p.L"] == 16 * 14
    assert known["p.D.grad"].tolist() == [8, 16, 24]
    assert known["p.X.grad"].tolist() == [32, 64, 96]
    assert start.keys() == before.keys()
    assert all(np.array_equal(start[name], before[name]) for name in start)


def test_a_program_run_in_the_wrong_order_is_refused() -> None:
    program = build_program([place(chained(), "p")], {"n": 3})
    with pytest.raises(EvaluationError, match=r"no value for p\.D"):
        run(program.statements[::-1], {"p.X": np.ones(3), "p.L.grad": np.ones(())}, program.scalars)
