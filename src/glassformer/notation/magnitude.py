"""How large rounding errors of a definition can be: the magnitude tree.

From the definition ``y = sum(a*b) - c`` follows ``mag = sum(|a|*|b|) + |c|``: the same tree with every operand made
positive and every minus a plus. A right program that computes ``y`` in arithmetic of unit roundoff ``u`` lands within a
small multiple of ``u * mag`` of the definition, however much its terms cancel; the replay law demands ``64 u mag`` per
cell, so no tolerance is ever set by hand. Functions enter with their first-order error, ``|f(x)| + |f'(x)| mag(x)``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from .evaluate import (
    UNARY,
    Array,
    Evaluator,
    Letters,
    Scalars,
    Values,
    exponential_sum,
    filtered,
    product_of,
    softmax_letter,
)
from .named import Named, contract, spread, together, union
from .tree import Add, Cond, Div, Expr, Fn, Mul, Neg, Num, Pow, Reduce, Ref

REPLAY_FACTOR = 64.0
"""The replay law's multiple of ``u * mag``. Measured worst on right programs: 14 to 25."""

UNIT_ROUNDOFF: Mapping[str, float] = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-8}


def magnitude(expr: Expr, letters: Letters, values: Values, scalars: Scalars, softmaxes: Collection[str] = ()) -> Array:
    """The magnitude of each cell of ``expr``, with one axis per letter as in ``evaluate``; finite and non-negative.

    ``softmaxes`` names operands that are softmaxes and that a program may compute anew instead of reading them (automatic
    differentiation of a log-sum-exp does): two stable ways to a coefficient ``a`` differ by ``u |ln a|`` relative, the
    rounding of its exponent.
    """
    sizes = {letter: int(scalars[dim]) for letter, dim in letters}
    with np.errstate(all="ignore"):
        result = _Magnitude(values, scalars, softmaxes).of(expr, sizes, False)
    order = tuple(letter for letter, _ in letters)
    full = np.broadcast_to(spread(result, order), tuple(sizes[letter] for letter in order))
    return np.where(np.isfinite(full), full, 0.0)


class _Magnitude:
    def __init__(self, values: Values, scalars: Scalars, softmaxes: Collection[str]) -> None:
        self.plain = Evaluator(values, scalars)
        self.softmaxes = softmaxes

    def of(self, e: Expr, sizes: Mapping[str, int], guarded: bool) -> Named:
        match e:
            case Ref(name, "", _) if name in self.softmaxes:
                a = self.absolute(e, sizes, guarded)
                cells = np.asarray(a.array)
                return Named(cells * (1 + np.abs(np.log(np.where(cells > 0, cells, 1.0)))), a.letters)
            case Ref() | Num():
                return self.absolute(e, sizes, guarded)
            case Neg(x):
                return self.of(x, sizes, guarded)
            case Add(terms):
                return self.fold(np.add, [self.of(t, sizes, guarded) for t in terms])
            case Mul(factors):
                return self.fold(np.multiply, [self.of(f, sizes, guarded) for f in factors])
            case Div(over, under):
                letter = softmax_letter(e)
                if letter is not None:
                    return self.softmax(e, letter, sizes, guarded)
                b = self.absolute(under, sizes, guarded)
                parts, letters = together(self.of(over, sizes, guarded), self.of(under, sizes, guarded), b)
                return Named(parts[0] * parts[1] / parts[2] ** 2, letters)
            case Pow(base, exponent):
                p = self.plain.value(exponent, sizes, guarded)
                parts, letters = together(self.of(base, sizes, guarded), p, self.absolute(base, sizes, guarded))
                mag, power, size = (part.astype(np.float64) for part in parts)
                # A negative power is a quotient: its base enters as in Div.
                return Named(np.power(mag, np.abs(power)) * np.power(size, np.minimum(2 * power, 0.0)), letters)
            case Cond(test, then, other):
                t = self.plain.value(test, sizes, guarded)
                parts, letters = together(t, self.of(then, sizes, True), self.of(other, sizes, True))
                return Named(np.where(parts[0].astype(bool), parts[1], parts[2]), letters)
            case Fn(name, args):
                return self.function(e, name, args, sizes, guarded)
            case Reduce():
                return self.reduce(e, sizes, guarded)
            case _:
                return self.absolute(e, sizes, guarded)

    def absolute(self, e: Expr, sizes: Mapping[str, int], guarded: bool) -> Named:
        value = self.plain.value(e, sizes, guarded)
        return Named(np.abs(value.array.astype(np.float64)), value.letters)

    def fold(self, op: Any, parts: list[Named]) -> Named:
        arrays, letters = together(*parts)
        total = arrays[0]
        for array in arrays[1:]:
            total = op(total, array)
        return Named(total, letters)

    def softmax(self, e: Div, letter: str, sizes: Mapping[str, int], guarded: bool) -> Named:
        """A softmax is computed from ``f - max f``, whose rounding enters its exponential."""
        assert isinstance(e.over, Fn)
        f = self.plain.value(e.over.args[0], sizes, guarded)
        extra, letters = together(
            self.of(e.over.args[0], sizes, guarded), self.absolute(e.over.args[0], sizes, guarded)
        )
        below = np.abs(f.array - f.array.max(axis=f.letters.index(letter), keepdims=True))
        slack = Named(np.nan_to_num(extra[0] - extra[1], nan=0.0, posinf=0.0), letters)
        parts, letters = together(self.plain.value(e, sizes, guarded), Named(below, f.letters), slack)
        grown = np.where(parts[0] > 0, parts[0] * (1 + parts[1] + parts[2]), 0.0)
        return Named(grown, letters)

    def function(self, e: Fn, name: str, args: tuple[Expr, ...], sizes: Mapping[str, int], guarded: bool) -> Named:
        if name in ("min", "max"):
            return self.fold(np.maximum, [self.of(a, sizes, guarded) for a in args])
        if exponential_sum(name, args):
            inner = args[0]
            assert isinstance(inner, Reduce)
            assert isinstance(inner.body, Fn)
            scope = {**sizes, **self.plain.loop_sizes(inner)}
            body = self.absolute(inner.body.args[0], scope, guarded)
            finite = np.where(np.isfinite(body.array), body.array, 0.0)
            bound = tuple(body.letters.index(a) for a, _ in inner.loops)
            kept = tuple(a for a in body.letters if a not in {b for b, _ in inner.loops})
            return Named(1.0 + finite.max(axis=bound), kept)
        x, m = self.plain.value(args[0], sizes, guarded), self.of(args[0], sizes, guarded)
        parts, letters = together(Named(x.array.astype(np.float64), x.letters), m)
        slope = _SLOPE[name](parts[0])
        return Named(np.abs(UNARY[name](parts[0])) + np.abs(slope) * parts[1], letters)

    def reduce(self, e: Reduce, sizes: Mapping[str, int], guarded: bool) -> Named:
        loops = self.plain.loop_sizes(e)
        inner = {**sizes, **loops}
        guarded = guarded or e.where is not None
        if e.op == "max":
            chosen = self.plain.value(e.where or Num(1.0), inner, guarded)
            parts, letters = together(self.of(e.body, inner, guarded), chosen)
            body = np.where(parts[1].astype(bool), parts[0], 0.0)
            axes = tuple(letters.index(a) for a in loops if a in letters)
            return Named(body.max(axis=axes), tuple(a for a in letters if a not in loops))
        factors = [self.of(f, inner, guarded) for f in product_of(e.body)]
        if e.where is not None:
            factors = filtered(factors, self.plain.value(e.where, inner, guarded))
        have = union(*(f.letters for f in factors))
        total = contract(factors, tuple(a for a in have if a not in loops))
        scale = 1.0
        for letter, size in loops.items():
            scale *= 1.0 if letter in have else size
            scale /= size if e.op == "mean" else 1.0
        return Named(np.multiply(total.array, scale), total.letters)


_SLOPE: Mapping[str, Any] = {
    "exp": np.exp,
    "ln": lambda x: 1 / x,
    "sqrt": lambda x: 0.5 / np.sqrt(x),
    "sin": np.cos,
    "cos": np.sin,
    "tanh": lambda x: 1 - np.tanh(x) ** 2,
    "erf": lambda x: 2 / np.sqrt(np.pi) * np.exp(-(x**2)),
    "abs": np.ones_like,
}
