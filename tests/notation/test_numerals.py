"""Numbers as readers see them: the same digits in a table and in an explanation, never fewer than they need."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.cli.console import number
from glassformer.notation.numerals import MINUS, number_text

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def read(text: str) -> Decimal:
    return Decimal(text.replace(MINUS, "-"))


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (1.0553872, "1.055387"),
        (-12.3456789, "−12.345679"),
        (0.0787145032, "0.0787145"),
        (0.000123456789, "0.000123457"),
        (999999.5, "999999.5"),
        (999999.9999999, "1000000"),
        (9.99999996, "10"),
        (1234567.5, "1.23457e6"),
        (9.9999996e-5, "1e−4"),
    ],
)
def test_numbers_have_six_decimals_and_small_ones_six_significant_digits(x: float, text: str) -> None:
    assert number_text(x) == text


@given(FINITE, st.integers(2, 12))
def test_what_is_printed_is_near_enough_to_the_number(x: float, digits: int) -> None:
    error, size = abs(read(number_text(x, digits)) - Decimal(x)), Decimal(abs(x))
    assert error <= size * Decimal(10) ** (1 - digits) / 2
    if 1e-4 <= abs(x) < 10**digits:
        assert error <= Decimal(10) ** -digits / 2


@given(FINITE)
def test_the_shortest_numeral_reads_back_as_the_number(x: float) -> None:
    assert float(read(number_text(x, None))) == x


@given(FINITE)
def test_a_table_prints_the_digits_of_the_explanation(x: float) -> None:
    assert read(number(x)) == read(number_text(x))


def test_what_is_no_finite_number_is_named() -> None:
    assert [number(x) for x in (math.nan, math.inf, -math.inf, -0.0)] == ["NaN", "∞", "−∞", "0"]
