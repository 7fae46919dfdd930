"""Differentiation by the rules alone: what a definition sends back to the gradient of one of its operands.

Nothing here looks at how a gradient was written by hand. From ``Y[T] = expr`` and an operand ``X`` it forms

    X.grad[L] += sum(Y.grad[T] * d expr / d X[L] for T)

where reading a cell ``X[a, b]`` has the derivative one if ``a`` and ``b`` are the cell asked for and zero otherwise
(``1 if a == r and b == c else 0``). The result is long, sums over every cell of ``Y``, and is right for every operand:
the first line of a derivation, and the judge of every gradient that somebody wrote shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from .legend import LETTERS
from .program import Program, Statement
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
    bound_letters,
    free_letters,
    fresh_letter,
    refs,
    rename_letters,
    substitute_letters,
    transform,
)

Letters: TypeAlias = Sequence[tuple[str, str]]

ZERO = Num(0.0)
ONE = Num(1.0)


class NotDifferentiable(ValueError):
    """An expression with no derivative by these rules (``min``, ``max``, a gradient of a gradient)."""


def derivative(expr: Expr, wrt: str, indices: tuple[Expr, ...]) -> Expr:
    """``d expr / d wrt[indices]``: zero terms and unit factors are left out, nothing else is rearranged.

    Letters free in ``indices`` may not be bound inside ``expr`` (``derivative_contribution`` renames beforehand).
    Raises ``NotDifferentiable``.
    """
    match expr:
        case Ref(name, "", at) if name == wrt:
            if len(at) != len(indices):
                raise NotDifferentiable(f"{wrt} is read with {len(at)} indices, its gradient has {len(indices)}")
            return _same_cell(at, indices)
        case Ref() | Num() | Const() | Scalar() | Idx() | Cmp() | Bool():
            return ZERO
        case Add(terms):
            return _add(derivative(term, wrt, indices) for term in terms)
        case Neg(x):
            inner = derivative(x, wrt, indices)
            return ZERO if inner == ZERO else Neg(inner)
        case Mul(factors):
            return _add(
                _mul(*factors[:k], derivative(factor, wrt, indices), *factors[k + 1 :])
                for k, factor in enumerate(factors)
            )
        case Div(over, under):
            top, bottom = derivative(over, wrt, indices), derivative(under, wrt, indices)
            first = ZERO if top == ZERO else Div(top, under)
            second = ZERO if bottom == ZERO else Neg(Div(_mul(over, bottom), Pow(under, Num(2.0))))
            return _add((first, second))
        case Pow(base, exponent):
            return _power(base, exponent, derivative(base, wrt, indices), derivative(exponent, wrt, indices))
        case Fn(name, args):
            return _function(name, args, tuple(derivative(arg, wrt, indices) for arg in args))
        case Cond(test, then, other):
            yes, no = derivative(then, wrt, indices), derivative(other, wrt, indices)
            return ZERO if yes == ZERO and no == ZERO else Cond(test, yes, no)
        case Reduce(op, body, loops, where):
            inner = derivative(body, wrt, indices)
            if inner == ZERO:
                return ZERO
            if op == "max":
                raise NotDifferentiable(f"a maximum over {wrt} has no derivative where two candidates are equal")
            return Reduce(op, inner, loops, where)


def derivative_contribution(statement: Statement, wrt: str, letters: Letters) -> Expr:
    """What the forward ``statement`` adds to ``wrt.grad[letters]``: a sum over every cell of its target.

    Letters of the statement that also stand in ``letters`` are renamed (``r`` to ``q`` where the legend has a second
    letter, otherwise ``h`` to ``h2``). Zero, as a number, where the statement does not read ``wrt``.
    """
    asked = tuple(Idx(letter) for letter, _ in letters)
    expr, loops = separate(statement.expr, statement.letters, {letter for letter, _ in letters})
    inner = derivative(expr, wrt, asked)
    if inner == ZERO:
        return ZERO
    seed = Ref(statement.target, "grad", tuple(Idx(letter) for letter, _ in loops))
    product = _mul(seed, inner)
    return Reduce("sum", product, loops) if loops else product


def separate(expr: Expr, letters: Letters, taken: set[str]) -> tuple[Expr, tuple[tuple[str, str], ...]]:
    """``expr`` and its own ``letters`` with every letter in ``taken`` replaced, so that both fit in one formula."""
    used = taken | {letter for letter, _ in letters} | bound_letters(expr)
    names: dict[str, str] = {}
    for letter in (*(a for a, _ in letters), *sorted(bound_letters(expr))):
        if letter in taken:
            names[letter] = another_letter(letter, used)
            used.add(names[letter])
    return rename_letters(expr, names), tuple((names.get(a, a), dim) for a, dim in letters)


def another_letter(like: str, taken: set[str]) -> str:
    """A letter with the range of ``like`` that is not ``taken``: one of the legend if it has one to spare."""
    stem = like.rstrip("0123456789")
    for letter, dim in LETTERS.items():
        if dim == LETTERS.get(stem) and letter not in taken:
            return letter
    return fresh_letter(stem, taken)


def inline_folded(expr: Expr, program: Program, taken: Iterable[str] = ()) -> Expr:
    """``expr`` with every folded quantity (the mean and deviation inside a norm) replaced by its definition.

    The gradient lines of a norm account for the paths through these, so differentiation has to see them.
    ``taken`` are letters that the new sums may not bind.
    """
    folded = {s.target: s for s in program.forward if program.quantities[s.target].quantity.folded}
    return inline(expr, folded, taken)


def inline(expr: Expr, definitions: Mapping[str, Statement], taken: Iterable[str] = ()) -> Expr:
    """``expr`` with every quantity that ``definitions`` names replaced by what defines it, again and again."""
    while any(ref.face == "" and ref.name in definitions for ref in refs(expr)):
        used = {*taken, *free_letters(expr), *bound_letters(expr)}
        expr = transform(expr, _opener(definitions, used))
    return expr


def _opener(definitions: Mapping[str, Statement], used: set[str]) -> Callable[[Expr], Expr]:
    def change(node: Expr) -> Expr:
        if not isinstance(node, Ref) or node.face or node.name not in definitions:
            return node
        statement = definitions[node.name]
        body, loops = separate(statement.expr, statement.letters, used)
        used.update(bound_letters(body))
        return substitute_letters(body, {a: index for (a, _), index in zip(loops, node.indices, strict=True)})

    return change


def _same_cell(at: tuple[Expr, ...], asked: tuple[Expr, ...]) -> Expr:
    tests = tuple(Cmp("==", a, b) for a, b in zip(at, asked, strict=True) if a != b)
    if not tests:
        return ONE
    return Cond(tests[0] if len(tests) == 1 else Bool("and", tests), ONE, ZERO)


def _power(base: Expr, exponent: Expr, d_base: Expr, d_exponent: Expr) -> Expr:
    if exponent == Num(2.0):
        first = _mul(exponent, base, d_base)
    elif isinstance(exponent, Num):
        first = _mul(exponent, Pow(base, Num(exponent.value - 1.0)), d_base)
    else:
        first = _mul(exponent, Pow(base, Add((exponent, Neg(ONE)))), d_base)
    return _add((first, _mul(Pow(base, exponent), Fn("ln", (base,)), d_exponent)))


def _function(name: str, args: tuple[Expr, ...], inner: tuple[Expr, ...]) -> Expr:
    if all(d == ZERO for d in inner):
        return ZERO
    if len(args) != 1 or name not in _RULES:
        raise NotDifferentiable(f"{name} has no derivative where two of its arguments are equal")
    return _RULES[name](args[0], inner[0])


def _sign(x: Expr) -> Expr:
    return Cond(Cmp(">", x, ZERO), ONE, Cond(Cmp("<", x, ZERO), Neg(ONE), ZERO))


def _bell(x: Expr) -> Expr:
    """``2/sqrt(pi)*exp(-x**2)``, the derivative of ``erf``."""
    return Mul((Div(Num(2.0), Fn("sqrt", (Const("pi"),))), Fn("exp", (Neg(Pow(x, Num(2.0))),))))


_RULES: dict[str, Callable[[Expr, Expr], Expr]] = {
    "exp": lambda x, dx: _mul(Fn("exp", (x,)), dx),
    "ln": lambda x, dx: Div(dx, x),
    "sqrt": lambda x, dx: Div(dx, Mul((Num(2.0), Fn("sqrt", (x,))))),
    "sin": lambda x, dx: _mul(Fn("cos", (x,)), dx),
    "cos": lambda x, dx: Neg(_mul(Fn("sin", (x,)), dx)),
    "tanh": lambda x, dx: _mul(Add((ONE, Neg(Pow(Fn("tanh", (x,)), Num(2.0))))), dx),
    "erf": lambda x, dx: _mul(_bell(x), dx),
    "abs": lambda x, dx: _mul(_sign(x), dx),
}


def _add(terms: Iterable[Expr]) -> Expr:
    kept = tuple(term for term in terms if term != ZERO)
    return ZERO if not kept else kept[0] if len(kept) == 1 else Add(kept)


def _mul(*factors: Expr) -> Expr:
    if ZERO in factors:
        return ZERO
    opened = (inner for factor in factors for inner in (factor.factors if isinstance(factor, Mul) else (factor,)))
    kept = tuple(factor for factor in opened if factor != ONE)
    return ONE if not kept else kept[0] if len(kept) == 1 else Mul(kept)
