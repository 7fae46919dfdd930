"""The value of an expression at one cell, in plain Python floats: a second path, independent of the array evaluator.

It is lazy: only the branch that a condition takes is ever looked at. Softmax and log-sum-exp are computed with the
largest exponent taken out. Sums run from left to right, so that the page gets the same digits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping

from .evaluate import EvaluationError, Values, key
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

At = Mapping[str, int]


class ScalarEvaluator:
    """Evaluates trees at one cell. ``at`` (from 0) gives every free letter its position.

    Raises ``EvaluationError`` for a value that is missing, a lookup out of range, a softmax with nothing allowed.
    """

    def __init__(self, values: Values, scalars: Mapping[str, float]) -> None:
        self.values = values
        self.scalars = scalars

    def with_scalars(self, more: Mapping[str, float]) -> ScalarEvaluator:
        """The same operands with further named numbers."""
        return ScalarEvaluator(self.values, {**self.scalars, **more}) if more else self

    def number(self, e: Expr, at: At) -> float:
        """The value of ``e``; a condition counts as 1 or 0."""
        match e:
            case Num(value):
                return value
            case Const(name):
                return math.pi if name == "pi" else math.inf
            case Scalar(name):
                return self.scalar(name)
            case Idx(letter):
                return float(at[letter])
            case Ref():
                return float(self.cell(e, at)[1])
            case Neg(x):
                return -self.number(x, at)
            case Add(terms):
                total = self.number(terms[0], at)
                for term in terms[1:]:
                    total += self.number(term, at)
                return total
            case Mul(factors):
                total = self.number(factors[0], at)
                for factor in factors[1:]:
                    total *= self.number(factor, at)
                return total
            case Div(over, under):
                return self.quotient(over, under, at)
            case Pow(base, exponent):
                return _power(self.number(base, at), self.number(exponent, at))
            case Fn(name, args):
                return self.function(name, args, at)
            case Cond(test, then, other):
                return self.number(then if self.truth(test, at) else other, at)
            case Reduce():
                return self.reduction(e, at)
            case Cmp() | Bool():
                return 1.0 if self.truth(e, at) else 0.0

    def truth(self, e: Expr, at: At) -> bool:
        """Whether the condition ``e`` holds; ``and`` and ``or`` stop at the first part that decides."""
        match e:
            case Cmp(op, a, b):
                return _COMPARE[op](self.number(a, at), self.number(b, at))
            case Bool("not", (x,)):
                return not self.truth(x, at)
            case Bool(op, args):
                return (all if op == "and" else any)(self.truth(x, at) for x in args)
            case _:
                return self.number(e, at) != 0

    def scalar(self, name: str) -> float:
        if name not in self.scalars:
            raise EvaluationError(f"no value for {name}")
        return float(self.scalars[name])

    def cell(self, ref: Ref, at: At) -> tuple[tuple[int, ...], float]:
        """Which cell ``ref`` reads (lookups followed) and what stands there."""
        name = key(ref.name, ref.face)
        if name not in self.values:
            raise EvaluationError(f"no value for {name}")
        table = self.values[name]
        if table.ndim != len(ref.indices):
            raise EvaluationError(f"{name} has {table.ndim} axes, read with {len(ref.indices)} indices")
        index = tuple(int(self.number(i, at)) for i in ref.indices)
        for k, size in zip(index, table.shape, strict=True):
            if not 0 <= k < size:
                raise EvaluationError(f"{name}: index {k} of an axis of {size}")
        return index, table[index].item()

    def steps(self, e: Reduce, at: At) -> Iterator[dict[str, int]]:
        """The positions that a reduction runs over, last letter fastest, its filter applied."""
        letters = [letter for letter, _ in e.loops]
        for here in itertools.product(*(range(int(self.scalar(dim))) for _, dim in e.loops)):
            inner = {**at, **dict(zip(letters, here, strict=True))}
            if e.where is None or self.truth(e.where, inner):
                yield inner

    def count(self, e: Reduce) -> int:
        """How many positions a reduction runs over, filter or not: what a mean divides by."""
        return math.prod(int(self.scalar(dim)) for _, dim in e.loops)

    def reduction(self, e: Reduce, at: At) -> float:
        if e.op == "max":
            return max((self.number(e.body, inner) for inner in self.steps(e, at)), default=-math.inf)
        total = 0.0
        for inner in self.steps(e, at):
            total += self.number(e.body, inner)
        return total / self.count(e) if e.op == "mean" else total

    def quotient(self, over: Expr, under: Expr, at: At) -> float:
        total = exponential_sum(under)
        if total is None or not (isinstance(over, Fn) and over.name == "exp"):
            return _quotient(self.number(over, at), self.number(under, at))
        largest = self.largest_exponent(total, at)
        return _exp(self.number(over.args[0], at) - largest) / self.exponentials(total, at, largest)

    def largest_exponent(self, total: Reduce, at: At) -> float:
        """The largest exponent in a sum of exponentials."""
        assert isinstance(total.body, Fn)
        body = total.body.args[0]
        largest = max((self.number(body, inner) for inner in self.steps(total, at)), default=-math.inf)
        if largest == -math.inf:
            raise EvaluationError("a softmax over a row in which nothing is allowed")
        return largest

    def exponentials(self, total: Reduce, at: At, largest: float) -> float:
        assert isinstance(total.body, Fn)
        body = total.body.args[0]
        result = 0.0
        for inner in self.steps(total, at):
            result += _exp(self.number(body, inner) - largest)
        return result

    def function(self, name: str, args: tuple[Expr, ...], at: At) -> float:
        if name == "ln" and (total := exponential_sum(args[0])) is not None:
            largest = self.largest_exponent(total, at)
            return largest + math.log(self.exponentials(total, at, largest))
        numbers = [self.number(a, at) for a in args]
        return max(numbers) if name == "max" else min(numbers) if name == "min" else _UNARY[name](numbers[0])


def exponential_sum(e: Expr) -> Reduce | None:
    """``e`` itself when it is ``sum(exp(...) for ...)``."""
    return e if isinstance(e, Reduce) and e.op == "sum" and isinstance(e.body, Fn) and e.body.name == "exp" else None


# Python raises where IEEE arithmetic has an answer; these give that answer, as NumPy and JavaScript do.


def _quotient(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _ln(x: float) -> float:
    return math.log(x) if x > 0 else (-math.inf if x == 0 else math.nan)


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _wave(f: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: math.nan if math.isinf(x) else f(x)


def _power(base: float, exponent: float) -> float:
    if base < 0 and not float(exponent).is_integer():
        return math.nan
    if base == 0 and exponent < 0:
        return math.inf
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_UNARY: dict[str, Callable[[float], float]] = {
    "exp": _exp,
    "ln": _ln,
    "sqrt": _sqrt,
    "sin": _wave(math.sin),
    "cos": _wave(math.cos),
    "tanh": math.tanh,
    "erf": math.erf,
    "abs": abs,
}
