"""Symbols inside plain texts (``W_Q``, ``d_k``) as the page draws them, and numbers as cells of tables."""

from __future__ import annotations

import html
import math
import re

from ..notation.numerals import number_text
from ..notation.symbols import name_latex

_SYMBOL = re.compile(r"(?<![\w\\])[A-Za-z]_(?:[A-Za-z]{1,3}|\d)(?!\w|\.\w)")
_DECIMALS = 4


def tex_span(tex: str) -> str:
    """The place of a formula inside a line."""
    return f'<span class="tex" data-tex="{html.escape(tex)}"></span>'


def with_symbols(text: str) -> str:
    """``text`` as HTML, in which a letter with a subscript is a formula; all else is escaped."""
    out, end = [], 0
    for match in _SYMBOL.finditer(text):
        out += [html.escape(text[end : match.start()]), tex_span(name_latex(match[0]))]
        end = match.end()
    return "".join([*out, html.escape(text[end:])])


def decimal(x: float) -> str:
    """A measured number for a column: as many decimals as its neighbours, a power of ten where they would show none."""
    if not math.isfinite(x):
        return number_text(x)
    if x == int(x) and abs(x) < 1e6:
        return _minus(str(int(x)))
    if abs(x) < 0.5 * 10**-_DECIMALS or abs(x) >= 1e6:
        digits, _, exponent = f"{x:.1e}".partition("e")
        return f"{_minus(digits)}·10<sup>{_minus(str(int(exponent)))}</sup>"
    return _minus(f"{x:.{_DECIMALS}f}")


def _minus(numeral: str) -> str:
    return numeral.replace("-", "−")
