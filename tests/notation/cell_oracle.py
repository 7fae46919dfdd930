"""A second reader of expression trees, as plain as possible: one cell at a time, textbook formulas, Python numbers.

It shares nothing with the evaluators of the package but the tree. ``rounding`` is applied to every operand and every
result, so the same code computes in float64 or, with ``numpy.float32``, as a program of lower precision would.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from glassformer.notation.tree import (
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

FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "exp": math.exp, "ln": math.log, "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "tanh": math.tanh,
    "erf": math.erf, "abs": abs, "min": min, "max": max,
}  # fmt: skip
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


class CellOracle:
    """Computes cells; ``largest`` is the largest number met on the way, the scale of all rounding errors."""

    def __init__(
        self, values: Mapping[str, Any], scalars: Mapping[str, float], rounding: Callable[[float], float] = float
    ) -> None:
        self.values, self.scalars, self.rounding = values, scalars, rounding
        self.largest = 1.0

    def array(self, e: Expr, letters: tuple[tuple[str, str], ...]) -> np.ndarray[Any, Any]:
        sizes = [int(self.scalars[dim]) for _, dim in letters]
        out = np.zeros(sizes)
        for index in itertools.product(*map(range, sizes)):
            out[index] = self.number(e, dict(zip((letter for letter, _ in letters), index, strict=True)))
        return out

    def number(self, e: Expr, at: At) -> float:
        x = self.rounding(self.exact(e, at))
        if math.isfinite(x):
            self.largest = max(self.largest, abs(x))
        return float(x)

    def exact(self, e: Expr, at: At) -> float:
        match e:
            case Num(x):
                return x
            case Const(name):
                return math.pi if name == "pi" else math.inf
            case Scalar(name):
                return self.scalars[name]
            case Idx(letter):
                return at[letter]
            case Ref(name, face, indices):
                cell = tuple(int(self.number(index, at)) for index in indices)
                assert all(k >= 0 for k in cell)
                return float(self.values[f"{name}.{face}" if face else name][cell])
            case Add(terms):
                return self.folded(lambda a, b: a + b, terms, at)
            case Mul(factors):
                return self.folded(lambda a, b: a * b, factors, at)
            case Neg(x):
                return -self.number(x, at)
            case Div(over, under):
                return self.number(over, at) / self.number(under, at)
            case Pow(base, exponent):
                return self.number(base, at) ** self.number(exponent, at)
            case Fn(name, args):
                return FUNCTIONS[name](*(self.number(x, at) for x in args))
            case Cond(test, then, other):
                return self.number(then if self.truth(test, at) else other, at)
            case Reduce():
                return self.reduced(e, at)
            case _:
                return float(self.truth(e, at))

    def folded(self, op: Callable[[float, float], float], parts: tuple[Expr, ...], at: At) -> float:
        total = self.number(parts[0], at)
        for part in parts[1:]:
            total = float(self.rounding(op(total, self.number(part, at))))
        return total

    def truth(self, e: Expr, at: At) -> bool:
        match e:
            case Cmp(op, a, b):
                return COMPARISONS[op](self.number(a, at), self.number(b, at))
            case Bool("not", (x,)):
                return not self.truth(x, at)
            case Bool(op, args):
                return (all if op == "and" else any)([self.truth(x, at) for x in args])
            case _:
                return self.number(e, at) != 0

    def reduced(self, e: Reduce, at: At) -> float:
        terms = [
            self.number(e.body, here) for here in self.places(e, at) if e.where is None or self.truth(e.where, here)
        ]
        if e.op == "max":
            return max(terms, default=-math.inf)
        total = 0.0
        for term in terms:
            total = float(self.rounding(total + term))
        return total / math.prod(self.scalars[dim] for _, dim in e.loops) if e.op == "mean" else total

    def places(self, e: Reduce, at: At) -> Iterator[At]:
        for index in itertools.product(*(range(int(self.scalars[dim])) for _, dim in e.loops)):
            yield {**at, **dict(zip((letter for letter, _ in e.loops), index, strict=True))}


SIZES = {"n": 3, "n_k": 3, "d": 4, "d_k": 2, "H": 2, "eps": 0.25}
LETTERS = {"i": "n", "j": "n_k", "r": "d", "c": "d_k", "h": "H"}
AXES = {"x": "", "b": "i", "X": "ir", "W": "rc", "S": "hij", "mask": "ij", "t": "i"}


def operands(seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """Random operands that float32 holds exactly: numbers, a mask, and ``t``, a table of positions in ``d``."""
    rng = np.random.default_rng(seed)
    shapes = {name: [int(SIZES[LETTERS[a]]) for a in axes] for name, axes in AXES.items()}
    values = {name: rng.standard_normal(shape).astype(np.float32).astype(float) for name, shape in shapes.items()}
    values["mask"] = rng.random(shapes["mask"]) < 0.5
    values["t"] = rng.integers(0, SIZES["d"], shapes["t"])
    return values


def leaves(scope: tuple[str, ...]) -> st.SearchStrategy[Expr]:
    """Numbers, sizes, and cells that the letters in scope can read, through the table ``t`` as well."""
    cells: list[Expr] = []
    for name in ("x", "b", "X", "W", "S"):
        for letters in itertools.product(*([a for a in scope if LETTERS[a] == LETTERS[x]] for x in AXES[name])):
            cells.append(Ref(name, "", tuple(map(Idx, letters))))  # noqa: PERF401
    if "i" in scope:
        looked_up = Ref("t", "", (Idx("i"),))
        cells += [Ref("X", "", (Idx("i"), looked_up)), *([Ref("W", "", (looked_up, Idx("c")))] if "c" in scope else [])]
    return st.sampled_from([*cells, *cells, *map(Num, (0.0, 1.0, 2.0, 0.5)), Scalar("d_k"), Scalar("eps"), Const("pi")])


def conditions(scope: tuple[str, ...]) -> st.SearchStrategy[Expr]:
    """Tests that no rounding can turn: comparisons of leaves, the mask, a letter against the table."""
    leaf = leaves(scope)
    simple = st.builds(Cmp, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), leaf, leaf)
    if "i" in scope and "j" in scope:
        simple = simple | st.just(Ref("mask", "", (Idx("i"), Idx("j"))))
    if "i" in scope and "r" in scope:
        simple = simple | st.just(Cmp("==", Ref("t", "", (Idx("i"),)), Idx("r")))
    both = st.tuples(simple, simple)
    return simple | st.builds(Bool, st.sampled_from(["and", "or"]), both) | simple.map(lambda x: Bool("not", (x,)))


def trees(scope: tuple[str, ...] = ("i",), depth: int = 3) -> st.SearchStrategy[Expr]:
    """Well-conditioned trees of every kind of node over ``scope``; inner reductions bind the other letters."""
    leaf = leaves(scope)
    if depth == 0:
        return leaf
    part = trees(scope, depth - 1)
    several = st.lists(part, min_size=2, max_size=3).map(tuple)
    positive = part.map(lambda x: Add((Num(1.0), Fn("abs", (x,)))))  # a divisor that is never near 0
    kinds = [
        leaf,
        st.builds(Add, several),
        st.builds(Mul, several),
        st.builds(Neg, part),
        st.builds(Div, part, positive),
        st.builds(Pow, part, st.sampled_from([Num(2.0), Num(3.0)])),
        st.builds(Pow, positive, st.sampled_from([Neg(Num(1.0)), Neg(Num(2.0)), Num(0.5)])),
        st.builds(lambda f, x: Fn(f, (x,)), st.sampled_from(["tanh", "sin", "cos", "erf", "abs"]), part),
        st.builds(lambda f, x: Fn(f, (x,)), st.sampled_from(["ln", "sqrt"]), positive),
        part.map(lambda x: Fn("exp", (Fn("tanh", (x,)),))),
        st.builds(Fn, st.sampled_from(["min", "max"]), several),
        st.builds(Cond, conditions(scope), part, part),
    ]
    for loops in (("j",), ("r",), ("r", "c"), ("h", "j")):
        if not set(loops) & set(scope):
            inner = (*scope, *loops)
            bound = st.just(tuple((letter, LETTERS[letter]) for letter in loops))
            where = st.none() | conditions(inner)
            body = trees(inner, depth - 1)
            kinds.append(st.builds(Reduce, st.sampled_from(["sum", "sum", "mean"]), body, bound, where))
            # The maximum of nothing is minus infinity: a number beside it keeps what follows finite.
            largest = st.builds(Reduce, st.just("max"), body, bound, where)
            kinds.append(st.builds(lambda a, b: Fn("max", (a, b)), leaf, largest))
    if "j" not in scope:
        kinds.append(st.sampled_from(stable_patterns(scope)))
    return st.one_of(kinds)


def stable_patterns(scope: tuple[str, ...]) -> list[Expr]:
    """A softmax and a log-sum-exp in the textbook's form."""
    h = Idx("h") if "h" in scope else Num(1.0)
    i = Idx("i")

    def exp_S(letter: str) -> Expr:
        return Fn("exp", (Ref("S", "", (h, i, Idx(letter))),))

    total = Reduce("sum", exp_S("j"), (("j", "n_k"),))
    return [Fn("ln", (total,)), Reduce("max", Div(exp_S("j"), rename(total)), (("j", "n_k"),))]


def rename(total: Reduce) -> Reduce:
    """The same sum over ``m`` instead of ``j``."""
    body = total.body
    assert isinstance(body, Fn)
    (cell,) = body.args
    assert isinstance(cell, Ref)
    return Reduce("sum", Fn("exp", (Ref("S", "", (*cell.indices[:2], Idx("m"))),)), (("m", "n_k"),))
