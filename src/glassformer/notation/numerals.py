"""Numbers as readers see them, digit for digit the same in Python and in the page.

``spec.md`` (section "Numbers") states the rule; nothing here depends on the locale or on the platform's ``printf``.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

MINUS = "−"
DIGITS = 6


def significant(x: float, digits: int | None) -> tuple[str, int]:
    """The significant digits of ``|x|`` (finite, not zero) without trailing zeros, and the exponent of the first.

    ``digits`` of them, rounded from the exact binary value with ties away from zero (as JavaScript's
    ``toExponential``); None gives the shortest digits that read back as ``x``.
    """
    if digits is None:
        exact = Decimal(repr(abs(x)))
    else:
        exact = Context(prec=digits, rounding=ROUND_HALF_UP).plus(Decimal(abs(x)))
    return "".join(map(str, exact.as_tuple().digits)).rstrip("0"), exact.adjusted()


def _parts(x: float, digits: int | None) -> tuple[str, int | None]:
    """``|x|`` (finite) as a decimal numeral and, where it is written in powers of ten, the exponent."""
    if x == 0:
        return "0", None
    if x == math.floor(x) and abs(x) < 1e15:
        return str(int(abs(x))), None
    ds, exponent = significant(x, digits)
    if not -4 <= exponent < (15 if digits is None else digits):
        return ds if len(ds) == 1 else f"{ds[0]}.{ds[1:]}", exponent
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + ds, None
    whole = ds[: exponent + 1].ljust(exponent + 1, "0")
    return (f"{whole}.{ds[exponent + 1 :]}" if len(ds) > exponent + 1 else whole), None


def number_text(x: float, digits: int | None = DIGITS) -> str:
    """``x`` as plain text: ``−0.258632``, ``1.5e−8``, ``−∞``; whole numbers below 1e15 in full.

    Six significant digits by default; ``digits=None`` gives the shortest numeral that reads back as ``x``.
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
