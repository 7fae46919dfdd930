"""The magnitude bound: what a right program of lower precision keeps, and a wrong one does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.notation import REPLAY_FACTOR, UNIT_ROUNDOFF, evaluate, magnitude, parse_expression
from glassformer.notation.tree import Expr

from .cell_oracle import SIZES, CellOracle, operands, trees

I = (("i", "n"),)  # noqa: E741
IJ = (("i", "n"), ("j", "n_k"))


def bound(text: str, letters=(), **values) -> np.ndarray:
    return magnitude(parse_expression(text), letters, {k: np.asarray(v) for k, v in values.items()}, SIZES)


@given(trees(), st.integers(0, 5))
def test_a_program_in_float32_lands_within_the_bound_of_the_definition(tree: Expr, seed: int) -> None:
    values = operands(seed)
    # math.exp and its kin return float64; rounding each result makes of them what a float32 library gives at best.
    single = CellOracle(values, SIZES, np.float32).array(tree, I)
    defined = evaluate(tree, I, values, SIZES)
    allowed = REPLAY_FACTOR * UNIT_ROUNDOFF["float32"] * magnitude(tree, I, values, SIZES)
    finite = np.isfinite(defined)
    assert (np.abs(single[finite] - defined[finite]) <= allowed[finite]).all()


@given(trees(), st.integers(0, 5))
def test_a_magnitude_is_finite_and_no_less_than_the_value(tree: Expr, seed: int) -> None:
    values = operands(seed)
    mag = magnitude(tree, I, values, SIZES)
    defined = evaluate(tree, I, values, SIZES)
    finite = np.isfinite(defined)
    assert np.isfinite(mag).all()
    # A log-sum-exp of three equal zeros is ln 3; its magnitude counts 1 for the logarithm.
    assert (mag[finite] * np.log(3) >= np.abs(defined[finite]) * (1 - 1e-12)).all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x - y", 5.0),
        ("-x", 2.0),
        ("x - x", 4.0),
        ("x*y", 6.0),
        ("(x - x)*y", 12.0),
        ("y/x", 1.5),
        ("1/(x - x + y)", 7 / 9),  # the quotient's own size, times how much its divisor cancels
        ("y**-1", 1 / 3),
        ("(x - x + y)**-1", 7 / 9),
        ("y**2", 9.0),
        ("sqrt(x)", 2**0.5 + 0.5 / 2**0.5 * 2),
        ("exp(x - y)", np.exp(-1) * (1 + 5)),
        ("tanh(0*x)", 0.0),
        ("abs(x - y)", 1 + 5.0),
        ("max(x - y, x)", 5.0),
        ("x - y if x > 0 else 9", 5.0),
        ("x - y if x < 0 else -9", 9.0),
        ("sum(b[i] - x for i in n)", 12.0),
        ("mean(b[i] - x for i in n)", 4.0),
        ("sum(x - y for i in n)", 15.0),
        ("sum(b[i] for i in n if b[i] > 0)", 4.0),
        ("max(b[i] for i in n)", 3.0),
        ("max(b[i] for i in n if b[i] < 0)", 2.0),
        ("sum(1/b[i] for i in n if b[i] != 0)", 1 / 1 + 1 / 3 + 1 / 2),
        ("ln(sum(abs(b[i]) for i in n))", np.log(6) + 2),  # each |b| counts twice: its value and its slope
        ("ln(sum(exp(b[i]) for i in n))", 1 + 3.0),
    ],
)
def test_the_magnitude_adds_up_what_the_value_may_cancel(text: str, expected: float) -> None:
    assert bound(text, (), x=2.0, y=-3.0 if "y**" in text else 3.0, b=[1.0, 3.0, -2.0]) == pytest.approx(expected)


def test_a_masked_cell_has_no_tolerance() -> None:
    """Minus infinity in the scores and 0 in the coefficients must be met exactly."""
    mask = np.tril(np.ones((3, 3), dtype=bool))
    S = np.where(mask, 1.0, -np.inf)
    assert not bound("S[i,j] if mask[i,j] else -inf", IJ, S=S, mask=mask)[~mask].any()
    assert not bound("exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)", IJ, S=S)[~mask].any()
    assert (bound("exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)", IJ, S=S)[mask] > 0).all()


def test_a_softmax_far_below_its_largest_exponent_may_be_off_by_more() -> None:
    S = np.array([[0.0, -50.0, 0.0]] * 3)
    A = evaluate(parse_expression("exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)"), IJ, {"S": S}, SIZES)
    assert bound("exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)", IJ, S=S) / A == pytest.approx(1 + np.abs(S))


@pytest.mark.parametrize(
    ("dtype", "eps"), [("float64", np.finfo(np.float64).eps), ("float32", np.finfo(np.float32).eps)]
)
def test_the_unit_roundoff_is_half_of_the_distance_from_1_to_the_next_number(dtype: str, eps: float) -> None:
    assert UNIT_ROUNDOFF[dtype] == eps / 2


def test_bfloat16_keeps_eight_bits() -> None:
    import torch

    assert UNIT_ROUNDOFF["bfloat16"] == torch.finfo(torch.bfloat16).eps / 2


def test_a_softmax_that_may_be_computed_anew_carries_the_rounding_of_its_exponent():
    values = {"x": np.array([1.0, np.exp(-100.0), 0.0])}
    read = magnitude(parse_expression("x[i]"), I, values, {"n": 3})
    anew = magnitude(parse_expression("x[i]"), I, values, {"n": 3}, {"x"})
    np.testing.assert_allclose(anew, read * [1, 101, 1], rtol=1e-12)
