r"""The index face of a formula as LaTeX: ``\bar S_{ij} = a_{ij}(\bar A_{ij} - \sum ...)`` from the expression tree.

Readers count from 1: letters print as they are, numbers that stand for positions are raised by one, sums start at 1. The
text holds no word of any language and nothing that a user or a model wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .numerals import number_latex
from .plain import (
    AND,
    ATOM,
    CHOICE,
    COMPARISON,
    OR,
    POWER,
    PRODUCT,
    SERIES,
    SUM,
    SYMBOLIC,
    Frame,
    is_iverson,
    lifted,
)
from .program import Program, Statement
from .symbols import Style, name_latex, style_of
from .symbols import symbol_latex as symbol_latex
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
    substitute_letters,
)

_COMPARISONS = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge", "==": "=", "!=": r"\ne"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_TALL = (r"\frac", r"\sum", r"\begin", r"\max_", r"\operatorname*")


def expr_latex(expr: Expr, style: Style, frame: Frame = SYMBOLIC, least: int = CHOICE) -> str:
    """``expr`` as LaTeX; in parentheses where it holds less tightly than ``least``."""
    return _Printer(style, frame).show(expr, least)


def added_latex(terms: Sequence[tuple[Expr, Frame]], style: Style) -> str:
    """``terms``, each seen from its own frame, as a written sum."""
    first, frame = terms[0]
    least = SERIES if isinstance(first, Add) and first not in frame.numbers else SUM
    text = expr_latex(first, style, frame, least)
    for term, frame in terms[1:]:
        body = lifted(term, frame.numbers)
        if isinstance(body, Neg) and body not in frame.numbers:
            text += f" - {expr_latex(body.x, style, frame, SERIES)}"
        else:
            text += f" + {expr_latex(body, style, frame, SERIES)}"
    return text


def condition_latex(test: Expr, style: Style, frame: Frame = SYMBOLIC, holds: bool = True) -> str:
    r"""A condition, or its opposite: ``j \in J_i``, ``j \notin J_i``, ``B_{if} \le 0``."""
    printer = _Printer(style, frame)
    return (printer.truth if holds else printer.opposite)(test, CHOICE)


def target_latex(statement: Statement, style: Style, frame: Frame = SYMBOLIC) -> str:
    r"""The left side: ``\bar S_{ij}``."""
    letters = tuple(Idx(letter) for letter, _ in statement.letters)
    return expr_latex(Ref(statement.target, statement.face, letters), style, frame)


def index_latex(statement: Statement, program: Program, style: Style | None = None) -> str:
    r"""``left = right`` of one statement; one of several contributions to a gradient is ``left \mathrel{+}= right``.

    ``style`` (of ``style_of``) spares the work of finding the symbols again for every formula.
    """
    style = style or style_of(program)
    partly = statement.adds and len(program.contributions(statement.target)) > 1
    equals = r"\mathrel{+}=" if partly else "="
    return f"{target_latex(statement, style)} {equals} {expr_latex(statement.expr, style)}"


def gradient_latex(contributions: Sequence[Statement], program: Program, style: Style | None = None) -> str:
    r"""A gradient whole: what each consumer sends back, with the consumer's symbol under the brace.

    ``\bar X_{ir} = \underbrace{\sum ...}_{Q} + \underbrace{\bar R_{ir}}_{R}``; a single contribution needs no brace.
    ``contributions`` are all of one gradient, in any letters. Raises ``ValueError`` when there are none.
    """
    if not contributions:
        raise ValueError("a gradient without contributions has no formula")
    style = style or style_of(program)
    left = target_latex(contributions[0], style)
    if len(contributions) == 1:
        return f"{left} = {expr_latex(contributions[0].expr, style)}"
    letters = [letter for letter, _ in contributions[0].letters]
    parts = []
    for c in contributions:
        names = dict(zip([letter for letter, _ in c.letters], letters, strict=True))
        parts.append(braced_path(expr_latex(_with_letters(c.expr, names), style), c.consumer, style))
    return f"{left} = {' + '.join(parts)}"


def braced_path(formula: str, consumer: str, style: Style) -> str:
    """``formula`` over a brace that names the consumer it comes through."""
    return rf"\underbrace{{{formula}}}_{{{style.name(consumer)}}}"


def _with_letters(e: Expr, names: dict[str, str]) -> Expr:
    changed = {a: Idx(b) for a, b in names.items() if a != b}
    return substitute_letters(e, changed) if changed else e


def in_parentheses(text: str) -> str:
    """``text`` in parentheses that are tall enough."""
    return rf"\left({text}\right)" if any(sign in text for sign in _TALL) else f"({text})"


class _Printer:
    """Prints trees in one style from one frame."""

    def __init__(self, style: Style, frame: Frame) -> None:
        self.style = style
        self.frame = frame

    def show(self, e: Expr, least: int) -> str:
        text, strength = self.piece(e)
        return text if strength >= least else in_parentheses(text)

    def piece(self, e: Expr) -> tuple[str, int]:
        if e in self.frame.numbers:
            return _number(number_latex(self.frame.numbers[e], self.frame.digits))
        e = lifted(e, self.frame.numbers)
        match e:
            case Num(value):
                return _number(number_latex(value, None))
            case Const(name):
                return (r"\pi" if name == "pi" else r"\infty"), ATOM
            case Scalar(name):
                return _scalar(name), ATOM
            case Idx(letter):
                # A letter as a number counts from 0, whatever the reader's indices do.
                at = self.frame.at.get(letter)
                return (f"({name_latex(letter)} - 1)" if at is None else str(at)), ATOM
            case Ref(name, face, indices):
                text, open_to_power = self.style.cell(name, face, [self.index(i) for i in indices])
                return text, ATOM if open_to_power else POWER
            case Neg(x):
                return f"-{self.show(x, SERIES)}", SUM
            case Add(terms):
                return added_latex([(term, self.frame) for term in terms], self.style), SUM
            case Mul(factors):
                return self.product(factors), PRODUCT
            case Div(over, under):
                return rf"\frac{{{self.show(over, CHOICE)}}}{{{self.show(under, CHOICE)}}}", POWER
            case Pow(base, exponent):
                return f"{self.show(base, ATOM)}^{{{self.show(exponent, CHOICE)}}}", POWER
            case Fn(name, args):
                return self.function(name, args)
            case Reduce():
                return self.reduction(e)
            case Cond():
                return (f"[{self.truth(e.test, CHOICE)}]", ATOM) if is_iverson(e) else (self.cases(e), CHOICE)
            case Cmp(op, a, b):
                return self.comparison(op, a, b), COMPARISON
            case Bool():
                return self.truth(e, CHOICE), CHOICE

    def index(self, e: Expr) -> str:
        """What stands in a subscript: a position, counted from 1."""
        match e:
            case Idx(letter):
                at = self.frame.at.get(letter)
                return name_latex(letter) if at is None else str(at + 1)
            case Num(value):
                return str(int(value) + 1)
            case Ref() if e in self.frame.numbers:
                return str(int(self.frame.numbers[e]) + 1)
            case Ref():
                return self.piece(e)[0]
            case _:
                return f"{self.show(e, SUM)} + 1"

    def product(self, factors: tuple[Expr, ...]) -> str:
        """Factors side by side; a dot where two numbers would run together. A sum sign may end the product."""
        text = ""
        for k, factor in enumerate(factors):
            last = k == len(factors) - 1
            piece, strength = self.piece(factor)
            if strength < (SERIES if last and isinstance(factor, Reduce) else POWER):
                piece = in_parentheses(piece)
            dotted = bool(self.frame.numbers) or piece[0].isdigit()
            text += ((r" \cdot " if dotted else " ") if text else "") + piece
        return text

    def function(self, name: str, args: tuple[Expr, ...]) -> tuple[str, int]:
        match name:
            case "exp":
                return f"e^{{{self.show(args[0], CHOICE)}}}", POWER
            case "sqrt":
                return rf"\sqrt{{{self.show(args[0], CHOICE)}}}", ATOM
            case "abs":
                return rf"\left|{self.show(args[0], CHOICE)}\right|", ATOM
            case "ln" if isinstance(args[0], Reduce) and args[0] not in self.frame.numbers:
                return rf"\ln {self.piece(args[0])[0]}", SERIES
            case _:
                command = rf"\operatorname{{{name}}}" if name == "erf" else rf"\{name}"
                return command + in_parentheses(", ".join(self.show(a, CHOICE) for a in args)), POWER

    def reduction(self, e: Reduce) -> tuple[str, int]:
        loops = [loop for loop in e.loops if loop[1] not in self.style.hidden]
        if not loops and e.where is None:
            return self.piece(e.body)
        body = self.show(e.body, SERIES)
        letters = ",".join(name_latex(letter) for letter, _ in e.loops)
        if e.where is not None:
            letters = rf"{letters}:\,{self.truth(e.where, CHOICE)}"
        if e.op == "max":
            return rf"\max_{{{letters}}} {body}", SERIES
        if e.where is not None:
            ends = rf"\sum_{{{letters}}} "
        else:
            ends = "".join(rf"\sum_{{{name_latex(letter)}=1}}^{{{_scalar(dim)}}} " for letter, dim in loops)
        if e.op == "mean":
            # A filter leaves terms out of a mean's sum, never out of its count.
            count = r"\,".join(_scalar(dim) for _, dim in (loops if e.where is None else e.loops))
            ends = rf"\frac{{1}}{{{count}}} {ends}"
        return ends + body, SERIES

    def cases(self, e: Cond) -> str:
        rows: list[tuple[Expr, Expr]] = []
        rest: Expr = e
        while isinstance(rest, Cond) and not (rest is not e and is_iverson(rest)):
            rows.append((rest.then, rest.test))
            rest = rest.other
        lines = [f"{_roomy(self.show(then, OR))}, & {self.truth(test, CHOICE)}" for then, test in rows]
        # Of two rows each says when it holds; of more, the first that holds counts.
        last = self.opposite(rows[0][1], CHOICE) if len(rows) == 1 else r"\text{otherwise}"
        lines.append(f"{_roomy(self.show(rest, OR))}, & {last}")
        return r"\begin{cases} " + r" \\ ".join(lines) + r" \end{cases}"

    def truth(self, test: Expr, least: int) -> str:
        r"""A condition. A table of truth values reads as a set: ``allowed[i,j]`` is ``j \in J_i``."""
        match test:
            case Ref(name, face, (*given, member)):
                return rf"{self.index(member)} \in {self.set_of(name, face, given)}"
            case Bool("not", (x,)):
                return self.opposite(x, least)
            case Bool(op, args):
                strength = AND if op == "and" else OR
                text = (r" \land " if op == "and" else r" \lor ").join(self.truth(x, strength + 1) for x in args)
                return text if strength >= least else f"({text})"
            case Cmp(op, a, b):
                return self.comparison(op, a, b)
            case _:
                return f"{self.show(test, SUM)} \\ne 0"

    def opposite(self, test: Expr, least: int) -> str:
        match test:
            case Ref(name, face, (*given, member)):
                return rf"{self.index(member)} \notin {self.set_of(name, face, given)}"
            case Bool("not", (x,)):
                return self.truth(x, least)
            case Bool(op, args):
                strength = OR if op == "and" else AND
                text = (r" \lor " if op == "and" else r" \land ").join(self.opposite(x, strength + 1) for x in args)
                return text if strength >= least else f"({text})"
            case Cmp(op, a, b):
                return self.comparison(_OPPOSITE[op], a, b)
            case _:
                return f"{self.show(test, SUM)} = 0"

    def set_of(self, name: str, face: str, given: Iterable[Expr]) -> str:
        """The set that a table of truth values is, given all indices but the last."""
        return self.style.rows(name, face, [self.index(i) for i in given])

    def comparison(self, op: str, a: Expr, b: Expr) -> str:
        # Where one side is a letter, both are positions, and the reader counts those from 1.
        positions = any(isinstance(side, Idx) for side in (a, b))
        left, right = (self.index(side) if positions else self.show(side, SUM) for side in (a, b))
        return f"{left} {_COMPARISONS[op]} {right}"


def _roomy(text: str) -> str:
    """Fractions and sums of a case at full size."""
    return rf"\displaystyle {text}" if any(sign in text for sign in _TALL) else text


def _number(text: str) -> tuple[str, int]:
    return text, SUM if text.startswith("-") else PRODUCT if "cdot" in text else ATOM


def _scalar(name: str) -> str:
    if name.startswith("max"):  # the largest term, named by the arithmetic of a cell
        return r"\max" + (f"_{{{name[3:]}}}" if name[3:] else "")
    return name_latex(name)


__all__ = [
    "added_latex",
    "braced_path",
    "condition_latex",
    "expr_latex",
    "gradient_latex",
    "index_latex",
    "symbol_latex",
    "target_latex",
]
