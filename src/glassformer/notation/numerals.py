"""Numbers as readers see them, digit for digit the same in Python and in the page.

``spec.md`` (section "Numbers") states the rule; nothing here depends on the locale or on the platform's ``printf``.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

MINUS = "−"
DIGITS = 6


def _significant(exact: Decimal, digits: int) -> tuple[str, int]:
    """``exact`` (not zero) rounded to ``digits`` significant ones, without trailing zeros, and the exponent of the first."""
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).plus(exact)
    return "".join(map(str, rounded.as_tuple().digits)).rstrip("0"), rounded.adjusted()


def _parts(x: float, digits: int | None) -> tuple[str, int | None]:
    """``|x|`` (finite) as a decimal numeral and, where it is written in powers of ten, the exponent.

    Rounded from the exact binary value with ties away from zero (as JavaScript's ``toFixed`` and ``toExponential``).
    """
    if x == 0:
        return "0", None
    if x == math.floor(x) and abs(x) < 1e15:
        return str(int(abs(x))), None
    exact = Decimal(repr(abs(x))) if digits is None else Decimal(abs(x))
    exponent = exact.adjusted()
    if not -4 <= exponent < (15 if digits is None else digits):
        ds, exponent = _significant(exact, 17 if digits is None else digits)
        return ds if len(ds) == 1 else f"{ds[0]}.{ds[1:]}", exponent
    if digits is not None:
        decimals = max(digits, digits - 1 - exponent)
        exact = exact.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, Context(prec=100))
    text = f"{exact:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text), None


def number_text(x: float, digits: int | None = DIGITS) -> str:
    """``x`` as plain text: ``−0.258632``, ``1.5e−8``, ``−∞``; whole numbers below 1e15 in full.

    Six digits by default: six decimals, and in numbers below 0.1 six significant digits. ``digits=None`` gives the
    shortest numeral that reads back as ``x``.
    """
    if math.isnan(x):
        return "NaN"
    sign = MINUS if x < 0 else ""
    if math.isinf(x):
        return f"{sign}∞"
    numeral, exponent = _parts(x, digits)
    if exponent is None:
        return sign + numeral
    return f"{sign}{numeral}e{MINUS if exponent < 0 else ''}{abs(exponent)}"


def number_latex(x: float, digits: int | None = DIGITS) -> str:
    r"""``x`` as LaTeX: ``-0.258632``, ``1.5\cdot 10^{-8}``, ``-\infty``."""
    if math.isnan(x):
        return r"\mathrm{NaN}"
    sign = "-" if x < 0 else ""
    if math.isinf(x):
        return rf"{sign}\infty"
    numeral, exponent = _parts(x, digits)
    return sign + numeral if exponent is None else rf"{sign}{numeral}\cdot 10^{{{exponent}}}"
