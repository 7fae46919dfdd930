"""The value of a definition, in float64 NumPy.

Two shapes of expression are recognised and computed without overflow, so that formulas can stay the textbook's:
``exp(f)/sum(exp(f) for ...)`` (softmax) and ``ln(sum(exp(f) for ...))``. Inside a condition the branch that is not taken
may look a table up out of range or overflow; neither can leak into the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .erf import erf
from .named import Named, contract, spread, together, union
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
    free_letters,
    rename_letters,
)

if TYPE_CHECKING:
    from .program import Statement

Array: TypeAlias = NDArray[Any]
Values: TypeAlias = Mapping[str, Array]
Scalars: TypeAlias = Mapping[str, float]
Letters: TypeAlias = Sequence[tuple[str, str]]


class EvaluationError(ValueError):
    """A definition that cannot be computed from these operands (a lookup out of range, a row with nothing allowed)."""


def key(name: str, face: str = "") -> str:
    """The key of a value: ``S`` or ``S.grad``."""
    return f"{name}.{face}" if face else name


def evaluate(expr: Expr, letters: Letters, values: Values, scalars: Scalars) -> Array:
    """The value of ``expr`` with one axis per letter of ``letters``, in that order, as float64.

    ``letters`` pairs each letter with its dimension; ``values`` holds operands by ``key``; ``scalars`` holds sizes of
    dimensions and hyperparameters. Raises ``EvaluationError``; never returns a NaN that the operands do not force.
    """
    sizes = {letter: int(scalars[dim]) for letter, dim in letters}
    with np.errstate(all="ignore"):
        result = Evaluator(values, scalars).value(expr, sizes, False)
    order = tuple(letter for letter, _ in letters)
    shape = tuple(sizes[letter] for letter in order)
    return np.array(np.broadcast_to(spread(result, order), shape), dtype=np.float64)


def run(statements: Iterable[Statement], values: Values, scalars: Scalars) -> dict[str, Array]:
    """``values`` and everything that ``statements`` compute from them, in the order given; contributions add up."""
    known: dict[str, Array] = dict(values)
    begun: set[str] = set()
    for statement in statements:
        name = key(statement.target, statement.face)
        value = evaluate(statement.expr, statement.letters, known, scalars)
        known[name] = np.asarray(known[name] + value) if statement.adds and name in begun else value
        begun.add(name)
    return known


class Evaluator:
    """Evaluates trees over one set of operands. ``sizes`` gives the length of every letter in scope."""

    def __init__(self, values: Values, scalars: Scalars) -> None:
        self.values = values
        self.scalars = scalars

    def value(self, e: Expr, sizes: Mapping[str, int], guarded: bool) -> Named:
        """The value of ``e``; ``guarded`` is true inside a condition, where lookups may miss."""
        match e:
            case Num(x):
                return Named(np.float64(x) * np.ones(()), ())
            case Const(name):
                return Named(np.array(math.pi if name == "pi" else math.inf), ())
            case Scalar(name):
                return Named(np.array(float(self.scalars[name])), ())
            case Idx(letter):
                return Named(np.arange(sizes[letter]), (letter,))
            case Ref():
                return self.gather(e, sizes, guarded)
            case Add(terms):
                parts, letters = together(*(self.value(t, sizes, guarded) for t in terms))
                return Named(_fold(np.add, parts), letters)
            case Mul(factors):
                parts, letters = together(*(self.value(f, sizes, guarded) for f in factors))
                return Named(_fold(np.multiply, parts), letters)
            case Neg(x):
                inner = self.value(x, sizes, guarded)
                return Named(np.negative(_number(inner.array)), inner.letters)
            case Div(over, under):
                return self.softmax(e, sizes, guarded) or self.pair(np.divide, over, under, sizes, guarded)
            case Pow(base, exponent):
                return self.pair(np.power, base, exponent, sizes, guarded)
            case Cmp(op, a, b):
                return self.pair(_COMPARE[op], a, b, sizes, guarded)
            case Bool(op, args):
                parts, letters = together(*(self.value(x, sizes, guarded) for x in args))
                truth = [p.astype(bool) for p in parts]
                return Named(~truth[0] if op == "not" else _fold(_LOGIC[op], truth), letters)
            case Cond(test, then, other):
                parts, letters = together(
                    self.value(test, sizes, guarded), self.value(then, sizes, True), self.value(other, sizes, True)
                )
                return Named(np.where(parts[0].astype(bool), parts[1], parts[2]), letters)
            case Fn(name, args):
                return self.function(name, args, sizes, guarded)
            case Reduce():
                return self.reduce(e, sizes, guarded)

    def pair(self, op: Any, a: Expr, b: Expr, sizes: Mapping[str, int], guarded: bool) -> Named:
        (x, y), letters = together(self.value(a, sizes, guarded), self.value(b, sizes, guarded))
        return Named(op(_number(x), _number(y)), letters)

    def gather(self, e: Ref, sizes: Mapping[str, int], guarded: bool) -> Named:
        """A cell, or a lookup ``E[t[i],r]`` through integer tables."""
        name = key(e.name, e.face)
        if name not in self.values:
            raise EvaluationError(f"no value for {name}")
        table = self.values[name]
        if table.ndim != len(e.indices):
            raise EvaluationError(f"{name} has {table.ndim} axes, read with {len(e.indices)} indices")
        if all(isinstance(i, Idx) for i in e.indices) and len(set(e.indices)) == len(e.indices):
            letters = tuple(i.letter for i in e.indices if isinstance(i, Idx))
            for letter, size in zip(letters, table.shape, strict=True):
                if sizes[letter] != size:
                    raise EvaluationError(f"{name} has shape {table.shape}, but {letter} runs over {sizes[letter]}")
            return Named(table, letters)
        indices, letters = together(*(self.value(i, sizes, guarded) for i in e.indices))
        safe = []
        for axis, index in enumerate(indices):
            whole = index.astype(np.int64)
            outside = (whole < 0) | (whole >= table.shape[axis])
            if outside.any() and not guarded:
                raise EvaluationError(f"{name}: index {int(whole[outside][0])} of an axis of {table.shape[axis]}")
            safe.append(np.where(outside, 0, whole))
        shape = tuple(sizes[letter] for letter in letters)
        return Named(np.broadcast_to(table[tuple(safe)], shape), letters)

    def function(self, name: str, args: tuple[Expr, ...], sizes: Mapping[str, int], guarded: bool) -> Named:
        if exponential_sum(name, args):
            return self.log_sum_exp(args[0], sizes, guarded)
        parts, letters = together(*(self.value(a, sizes, guarded) for a in args))
        if name in ("min", "max"):
            return Named(_fold(np.minimum if name == "min" else np.maximum, parts), letters)
        return Named(UNARY[name](_number(parts[0])), letters)

    def softmax(self, e: Div, sizes: Mapping[str, int], guarded: bool) -> Named | None:
        """``exp(f)/sum(exp(f) over one letter)`` shifted by the largest ``f``; None where ``e`` is something else."""
        letter = softmax_letter(e)
        if letter is None:
            return None
        assert isinstance(e.over, Fn)
        f = self.value(e.over.args[0], sizes, guarded)
        shifted, _ = self.shift(f, (letter,), guarded)
        weights = np.exp(shifted)
        return Named(weights / weights.sum(axis=f.letters.index(letter), keepdims=True), f.letters)

    def log_sum_exp(self, total: Expr, sizes: Mapping[str, int], guarded: bool) -> Named:
        """``ln(sum(exp(f)))`` shifted by the largest ``f``."""
        assert isinstance(total, Reduce)
        assert isinstance(total.body, Fn)
        f = self.value(total.body.args[0], {**sizes, **self.loop_sizes(total)}, guarded)
        loops = tuple(letter for letter, _ in total.loops)
        shifted, largest = self.shift(f, loops, guarded)
        axes = tuple(f.letters.index(letter) for letter in loops)
        kept = tuple(letter for letter in f.letters if letter not in loops)
        return Named(np.log(np.exp(shifted).sum(axis=axes)) + largest.squeeze(axes), kept)

    def shift(self, f: Named, letters: tuple[str, ...], guarded: bool) -> tuple[Array, Array]:
        """``f`` minus its largest value along ``letters``, and that value (axes kept)."""
        largest = f.array.max(axis=tuple(f.letters.index(a) for a in letters), keepdims=True)
        if np.isneginf(largest).any() and not guarded:
            raise EvaluationError("a softmax over a row in which nothing is allowed")
        return f.array - largest, largest

    def loop_sizes(self, e: Reduce) -> dict[str, int]:
        return {letter: int(self.scalars[dim]) for letter, dim in e.loops}

    def reduce(self, e: Reduce, sizes: Mapping[str, int], guarded: bool) -> Named:
        loops = self.loop_sizes(e)
        inner = {**sizes, **loops}
        where = None if e.where is None else self.value(e.where, inner, guarded)
        if e.op == "max":
            return self.largest(e, where, loops, inner, guarded)
        factors = [self.value(f, inner, guarded or where is not None) for f in product_of(e.body)]
        count = 1.0
        if where is not None:
            factors = filtered(factors, where)
        have = union(*(f.letters for f in factors))
        for letter, size in loops.items():
            if letter not in have:
                count *= size
        total = contract(factors, tuple(a for a in have if a not in loops))
        scale = count / math.prod(loops.values()) if e.op == "mean" else count
        return total if scale == 1.0 else Named(np.multiply(total.array, scale), total.letters)

    def largest(
        self, e: Reduce, where: Named | None, loops: dict[str, int], inner: Mapping[str, int], guarded: bool
    ) -> Named:
        body = self.value(e.body, inner, guarded or where is not None)
        parts, letters = together(body, where or Named(np.array(True), ()))
        masked = np.where(parts[1].astype(bool), parts[0], -np.inf)
        axes = tuple(letters.index(a) for a in loops if a in letters)
        return Named(masked.max(axis=axes), tuple(a for a in letters if a not in loops))


def filtered(factors: list[Named], where: Named) -> list[Named]:
    """Factors whose product is that of ``factors`` where ``where`` is true (not 0) and 0 elsewhere."""
    chosen = Named(where.array.astype(bool), where.letters)
    if all(np.isfinite(f.array).all() for f in factors):
        return [*factors, chosen]
    # What is left out may be infinite or no number (1/x at 0), and 0 times that is not 0.
    parts, letters = together(chosen, *factors)
    return [Named(np.where(parts[0], _fold(np.multiply, parts[1:]), 0.0), letters)]


def product_of(e: Expr) -> list[Expr]:
    """The factors of ``e``, products within products opened."""
    match e:
        case Mul(factors):
            return [inner for factor in factors for inner in product_of(factor)]
        case Neg(x):
            return [Num(-1.0), *product_of(x)]
        case _:
            return [e]


def exponential_sum(name: str, args: tuple[Expr, ...]) -> bool:
    """Whether the function ``name`` of ``args`` is a log-sum-exp: ``ln(sum(exp(f) for ...))``, ``f`` of every letter."""
    match name, args:
        case "ln", (Reduce("sum", Fn("exp", (f,)), loops, None),):
            return {letter for letter, _ in loops} <= set(free_letters(f))
    return False


def softmax_letter(e: Div) -> str | None:
    """The letter along which ``e`` is a softmax, or None."""
    match e:
        case Div(Fn("exp", (f,)), Reduce("sum", Fn("exp", (g,)), ((bound, _),), None)):
            for letter in free_letters(f):
                if letter not in free_letters(g) and rename_letters(f, {letter: bound}) == g:
                    return letter
    return None


def _number(x: Array | np.generic) -> Array:
    return np.asarray(x, dtype=np.float64)


def _fold(op: Any, parts: Sequence[Array]) -> Array:
    numeric = op not in (np.logical_and, np.logical_or)
    total = _number(parts[0]) if numeric else parts[0]
    for part in parts[1:]:
        total = np.asarray(op(total, _number(part) if numeric else part))
    return total


_COMPARE: dict[str, Any] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_LOGIC: dict[str, Any] = {"and": np.logical_and, "or": np.logical_or}
UNARY: dict[str, Any] = {
    "exp": np.exp,
    "ln": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": erf,
    "abs": np.abs,
}
