r"""Matrix formulas as LaTeX: ``\bar W_Q^{(h)} = X^\top \bar Q^{(h)}``.

Products with ones are written out (``\mu\mathbf 1^\top``), so that every formula is one of matrix algebra as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from .latex import expr_latex, in_parentheses
from .matrix_nodes import (
    Comparison,
    EntryPower,
    EntryQuotient,
    Entrywise,
    Hadamard,
    HeadSum,
    Indicator,
    Masked,
    Matrix,
    Negated,
    Node,
    Number,
    OneHot,
    Product,
    Quotient,
    Reduced,
    RowLogSumExp,
    RowSoftmax,
    Scaled,
    Selected,
    Spread,
    Total,
    Transposed,
)
from .symbols import Style
from .tree import Num

SUM, ENTRIES, PRODUCT, ATOM = range(4)
"""How tightly a printed piece holds together: terms, entrywise products, matrix products, a single thing."""

_ONES = r"\mathbf 1"
_COMPARISONS = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge", "==": "=", "!=": r"\ne"}
_FUNCTIONS = {name: "\\" + name for name in ("exp", "ln", "sin", "cos", "tanh")}


@dataclass(frozen=True, slots=True)
class MatrixPrinter:
    """Prints nodes in one style; ``heads`` are the letters of dimension ``H``, printed unless the style hides them."""

    style: Style
    heads: frozenset[str]

    def show(self, node: Node, least: int = SUM) -> str:
        """``node`` as LaTeX, in parentheses where it holds less tightly than ``least``."""
        text, strength = self.piece(node)
        return text if strength >= least else in_parentheses(text)

    def piece(self, node: Node) -> tuple[str, int]:
        match node:
            case Matrix(name, face, letters, _, _):
                return self.name(name, face, letters), ATOM
            case Number(value):
                return expr_latex(value, self.style), ATOM
            case Transposed(x):
                return transposed(self.show(x, ATOM)), ATOM
            case Product(factors):
                return " ".join(self.show(f, PRODUCT) for f in factors), PRODUCT
            case Hadamard(factors):
                return r" \odot ".join(self.show(f, PRODUCT) for f in factors), ENTRIES
            case EntryQuotient(x, by):
                return rf"{self.show(x, PRODUCT)} \oslash {self.show(by, PRODUCT)}", ENTRIES
            case Scaled(by, x):
                return rf"{self.show(by, PRODUCT)}\,{self.show(x, PRODUCT)}", PRODUCT
            case Quotient(x, by):
                return rf"\frac{{{self.show(x)}}}{{{self.show(by)}}}", ATOM
            case Negated(x):
                return f"-{self.show(x, ENTRIES)}", SUM
            case Total(terms):
                return self.total(terms), SUM
            case Masked(_, x):
                return f"{self.show(x)} + M", SUM
            case HeadSum(letter, dim, x):
                if dim in self.style.hidden:
                    return self.piece(x)
                return rf"\sum_{{{letter}=1}}^{{{dim}}} {self.show(x, ENTRIES)}", SUM
            case EntryPower(x, exponent, plain):
                base, strength = self.piece(x)
                base = in_parentheses(base) if strength < ATOM or "^" in base else base
                return base + (r"^{" if plain else r"^{\odot ") + self.show(exponent) + "}", ATOM
            case _:
                return self.called(node)

    def called(self, node: Node) -> tuple[str, int]:
        """Pieces that look like a function of a matrix, or like a named matrix."""
        match node:
            case Entrywise("sqrt", x):
                return rf"\sqrt{{{self.show(x)}}}", ATOM
            case Entrywise(function, x):
                name = _FUNCTIONS.get(function, rf"\operatorname{{{function}}}")
                return name + in_parentheses(self.show(x)), ATOM
            case RowSoftmax(x):
                return r"\operatorname{softmax}_{\text{row}}" + in_parentheses(self.show(x)), ATOM
            case RowLogSumExp(x):
                return r"\operatorname{logsumexp}_{\text{row}}" + in_parentheses(self.show(x)), ATOM
            case Reduced("sum", "column", x):
                return rf"{_ONES}^\top {self.show(x, PRODUCT)}", PRODUCT
            case Reduced(op, along, x):
                name = "row" if along == "row" else "col"
                return rf"\operatorname{{{name}{op}}}" + in_parentheses(self.show(x)), ATOM
            case Spread(x, rows, cols, is_row):
                return self.spread(x, rows, cols, is_row), PRODUCT
            case OneHot(table, _, _):
                return rf"\operatorname{{onehot}}({self.style.name(table.name, table.face)})", ATOM
            case Comparison(op, a, b):
                return rf"\left[{self.show(a)} {_COMPARISONS[op]} {self.show(b)}\right]", ATOM
            case Indicator(x):
                return rf"{_ONES}_{{{self.show(x)}}}", ATOM
            case Selected(test, x, True):
                return rf"\operatorname{{diag}}({self.show(test)})\,{self.show(x, PRODUCT)}", PRODUCT
            case Selected(test, x, _):
                return rf"{self.show(test, PRODUCT)} \odot {self.show(x, ENTRIES)}", ENTRIES
            case _:
                raise TypeError(f"not a node of a matrix formula: {node!r}")

    def name(self, id: str, face: str, letters: tuple[str, ...]) -> str:
        """A symbol with the head it belongs to."""
        head = next((a for a in letters if a in self.heads), "")
        return self.style.name(id, face, "" if "H" in self.style.hidden else head)

    def total(self, terms: tuple[Node, ...]) -> str:
        first, *rest = terms
        text = self.show(first)
        for term in rest:
            text += f" - {self.show(term.x, ENTRIES)}" if isinstance(term, Negated) else f" + {self.show(term)}"
        return text

    def spread(self, x: Node, rows: str | None, cols: str | None, is_row: bool) -> str:
        down, across = (_ONES if rows else ""), (rf"{_ONES}^\top" if cols else "")
        if x == Number(Num(1.0)):
            return f"{down} {across}".strip()
        inner = self.show(x, PRODUCT)
        # A number stands before the ones, a row after them.
        parts = (down, inner, across) if is_row else (inner, down, across)
        return " ".join(part for part in parts if part)


def transposed(symbol: str) -> str:
    r"""``X^\top``; a superscript that is there already is kept: ``K^{(h)\top}``."""
    start = symbol.rfind("^{")
    # The last "^{" belongs to the symbol's own superscript only where it stands outside all braces and ends the text.
    if start >= 0 and symbol.endswith("}") and symbol[:start].count("{") == symbol[:start].count("}"):
        return symbol[:-1] + r"\top}"
    return rf"{symbol}^\top"
