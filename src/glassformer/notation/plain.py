"""Expressions as plain Unicode text, for terminals: ``(Σ_c Q[0,1,c]·K[0,0,c]) / √d_k``.

Indices are counted from 0, as in Python. ``spec.md`` (section "Plain text") states every rule, because the page prints
the same text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .numerals import DIGITS, number_text
from .symbols import name_text
from .tree import (
    Add,
    Bool,
    Cmp,
    Cond,
    Const,
    Div,
    Expr,
    Fn,
    Idx,
    Mul,
    Neg,
    Num,
    Pow,
    Reduce,
    Ref,
    Scalar,
)

if TYPE_CHECKING:
    from .program import Statement

# How tightly a printed piece holds together; a weaker one gets parentheses where a stronger one is called for.
CHOICE, OR, AND, NOT, COMPARISON, SUM, SERIES, PRODUCT, POWER, ATOM = range(10)

COMPARISONS = {"<": "<", "<=": "≤", ">": ">", ">=": "≥", "==": "=", "!=": "≠"}
_RAISED = {2.0: "²", 3.0: "³"}


@dataclass(frozen=True, slots=True)
class Frame:
    """From where an expression is looked at.

    ``at`` gives letters their position (from 0); ``numbers`` gives nodes the number that stands in their place.
    """

    at: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[Expr, float] = field(default_factory=dict)
    digits: int = DIGITS


SYMBOLIC = Frame()


def is_iverson(e: Expr) -> bool:
    """Whether ``e`` is ``1 if test else 0``, printed as the bracket ``[test]``."""
    return isinstance(e, Cond) and e.then == Num(1.0) and e.other == Num(0.0)


def lifted(e: Expr, numbers: Mapping[Expr, float]) -> Expr:
    """``(-a)*b`` and ``(-a)/b`` as ``-(a*b)`` and ``-(a/b)``: the same number, and how one writes it."""
    if e in numbers:
        return e
    match e:
        case Mul((first, *rest)):
            inner = lifted(first, numbers)
            return Neg(Mul((inner.x, *rest))) if isinstance(inner, Neg) and first not in numbers else e
        case Div(over, under):
            inner = lifted(over, numbers)
            return Neg(Div(inner.x, under)) if isinstance(inner, Neg) and over not in numbers else e
        case _:
            return e


def plain(e: Expr, frame: Frame = SYMBOLIC, names: Mapping[str, str] | None = None, least: int = CHOICE) -> str:
    """``e`` as text. ``names`` shortens ids; the text is in parentheses where it holds less tightly than ``least``."""
    return PlainPrinter(frame, names or {}).show(e, least)


def added(terms: Sequence[tuple[Expr, Frame]], names: Mapping[str, str]) -> str:
    """``terms``, each seen from its own frame, as a written sum: ``a + b − c``."""
    first, frame = terms[0]
    text = plain(first, frame, names, SERIES if isinstance(first, Add) and first not in frame.numbers else SUM)
    for term, frame in terms[1:]:
        body = lifted(term, frame.numbers)
        if isinstance(body, Neg) and body not in frame.numbers:
            text += f" − {plain(body.x, frame, names, SERIES)}"
        else:
            text += f" + {plain(body, frame, names, SERIES)}"
    return text


class PlainPrinter:
    """Prints trees from one frame."""

    def __init__(self, frame: Frame, names: Mapping[str, str]) -> None:
        self.frame = frame
        self.names = names

    def show(self, e: Expr, least: int) -> str:
        """The text of ``e``, in parentheses where it holds less tightly than ``least``."""
        text, strength = self.piece(e)
        return text if strength >= least else f"({text})"

    def piece(self, e: Expr) -> tuple[str, int]:
        if e in self.frame.numbers:
            return self.number(self.frame.numbers[e], self.frame.digits)
        e = lifted(e, self.frame.numbers)
        match e:
            case Num(value):
                return self.number(value, None)
            case Const(name):
                return ("π" if name == "pi" else "∞"), ATOM
            case Scalar(name):
                return name_text(name), ATOM
            case Idx(letter):
                return (str(self.frame.at[letter]) if letter in self.frame.at else letter), ATOM
            case Ref(name, face, indices):
                inside = f"[{','.join(self.show(i, CHOICE) for i in indices)}]" if indices else ""
                return self.names.get(name, name) + (f".{face}" if face else "") + inside, ATOM
            case Neg(x):
                return f"−{self.show(x, SERIES)}", SUM
            case Add(terms):
                return added([(term, self.frame) for term in terms], self.names), SUM
            case Mul(factors):
                return "·".join(self.show(f, POWER) for f in factors), PRODUCT
            case Div(over, under):
                above = self.show(over, PRODUCT if isinstance(over, Mul) else POWER)
                return f"{above} / {self.show(under, POWER)}", PRODUCT
            case Pow(base, exponent):
                return self.power(base, exponent), POWER
            case Fn(name, args):
                return self.function(name, args)
            case Reduce():
                return self.reduction(e)
            case Cond(test, then, other):
                if is_iverson(e):
                    return f"[{self.show(test, CHOICE)}]", ATOM
                return f"{self.show(then, OR)} if {self.show(test, OR)} else {self.show(other, CHOICE)}", CHOICE
            case Cmp(op, a, b):
                return f"{self.show(a, SUM)} {COMPARISONS[op]} {self.show(b, SUM)}", COMPARISON
            case Bool("not", (x,)):
                return f"not {self.show(x, NOT)}", NOT
            case Bool(op, args):
                strength = AND if op == "and" else OR
                return f" {op} ".join(self.show(x, strength + 1) for x in args), strength

    def number(self, value: float, digits: int | None) -> tuple[str, int]:
        return number_text(value, digits), SUM if value < 0 else ATOM

    def power(self, base: Expr, exponent: Expr) -> str:
        raised = _RAISED.get(exponent.value) if isinstance(exponent, Num) else None
        return self.show(base, ATOM) + (raised or f"^{self.show(exponent, ATOM)}")

    def function(self, name: str, args: tuple[Expr, ...]) -> tuple[str, int]:
        if name == "sqrt":
            return f"√{self.show(args[0], ATOM)}", POWER
        return f"{name}({', '.join(self.show(a, CHOICE) for a in args)})", ATOM

    def reduction(self, e: Reduce) -> tuple[str, int]:
        letters = ",".join(letter for letter, _ in e.loops)
        under = f"_{letters}" if len(letters) == 1 else f"_{{{letters}}}"
        if e.where is not None:
            under = f"_{{{letters}: {self.show(e.where, CHOICE)}}}"
        if e.op == "sum":
            return f"Σ{under} {self.show(e.body, SERIES)}", SERIES
        return f"{e.op}{under}({self.show(e.body, CHOICE)})", ATOM


def index_text(statement: Statement, names: Mapping[str, str] | None = None, *, partly: bool = False) -> str:
    """The formula of a statement for every cell: ``Q[h,i,c] = Σ_r X[i,r]·W_Q[r,h,c]``; ``+=`` where it is a part only."""
    left = Ref(statement.target, statement.face, tuple(Idx(letter) for letter, _ in statement.letters))
    return f"{plain(left, SYMBOLIC, names)} {'+=' if partly else '='} {plain(statement.expr, SYMBOLIC, names)}"
