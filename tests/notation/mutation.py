"""Mechanical wrong versions of a definition: pure functions on expression trees.

A *mutator* takes one node and the letters in scope there, and yields what a careless author might have written in its
stead. ``mutants`` applies every mutator at every node of a definition, one change at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from glassformer.notation import Statement
from glassformer.notation.tree import (
    Add,
    Bool,
    Cmp,
    Cond,
    Div,
    Expr,
    Fn,
    Idx,
    Mul,
    Neg,
    Num,
    Reduce,
    Ref,
    Scalar,
    children,
    rebuild,
)

Scope: TypeAlias = Mapping[str, str]
Mutator: TypeAlias = Callable[[Expr, Scope], Iterator[Expr]]


@dataclass(frozen=True)
class Mutant:
    """One wrong version: what was done, and the expression that came of it."""

    what: str
    expr: Expr


@dataclass(frozen=True)
class Surroundings:
    """What an author could confuse: names with the axes (dimensions) of each, by face; sizes; what stands for a count."""

    axes: Mapping[tuple[str, str], tuple[str, ...]]
    sizes: Collection[str]

    def siblings(self, ref: Ref) -> Iterator[Ref]:
        """Every other quantity, or other face, with the same axes, read at the same indices."""
        own = self.axes.get((ref.name, ref.face))
        for (name, face), axes in self.axes.items():
            if axes == own and (name, face) != (ref.name, ref.face):
                yield Ref(name, face, ref.indices)


def everywhere(e: Expr, scope: Scope, change: Mutator) -> Iterator[Expr]:
    """``e`` with ``change`` applied at one node, for every node and every result of ``change``."""
    yield from change(e, scope)
    inner = {**scope, **dict(e.loops)} if isinstance(e, Reduce) else scope
    parts = children(e)
    for k, part in enumerate(parts):
        for changed in everywhere(part, inner, change):
            yield rebuild(e, (*parts[:k], changed, *parts[k + 1 :]))


def mutants(statement: Statement, around: Surroundings) -> tuple[Mutant, ...]:
    """Every distinct wrong version of ``statement``'s right side, each made by one change."""
    found: dict[Expr, str] = {}
    for what, mutator in mutators(around).items():
        for expr in everywhere(statement.expr, dict(statement.letters), mutator):
            if expr != statement.expr:
                found.setdefault(expr, what)
    negated = Neg(statement.expr)
    found.setdefault(negated, "flip a sign")
    return tuple(Mutant(what, expr) for expr, what in found.items())


def mutators(around: Surroundings) -> dict[str, Mutator]:
    """All mutators by name."""

    def other_operand(e: Expr, scope: Scope) -> Iterator[Expr]:
        if isinstance(e, Ref):
            yield from around.siblings(e)

    def other_size(e: Expr, scope: Scope) -> Iterator[Expr]:
        if isinstance(e, Scalar):
            yield from (Scalar(name) for name in around.sizes if name != e.name)
        if isinstance(e, Ref) and not e.indices:
            yield from (Scalar(name) for name in around.sizes)

    def other_range(e: Expr, scope: Scope) -> Iterator[Expr]:
        if isinstance(e, Reduce):
            for k, (letter, dim) in enumerate(e.loops):
                for name in around.sizes:
                    if name != dim:
                        yield Reduce(e.op, e.body, (*e.loops[:k], (letter, name), *e.loops[k + 1 :]), e.where)

    return {
        "drop a term": drop_a_term,
        "drop a factor": drop_a_factor,
        "flip a sign": flip_a_sign,
        "alter a divisor": alter_a_divisor,
        "transpose a read": transpose_a_read,
        "read with another letter": read_with_another_letter,
        "drop or invert a filter": drop_or_invert_a_filter,
        "drop a condition or swap its branches": drop_a_condition,
        "another comparison": another_comparison,
        "another reduction": another_reduction,
        "forget a sum": forget_a_sum,
        "a number one off": a_number_one_off,
        "drop a function": drop_a_function,
        "another operand of the same axes": other_operand,
        "another size": other_size,
        "another range": other_range,
    }


def drop_a_term(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Add):
        for k in range(len(e.terms)):
            kept = (*e.terms[:k], *e.terms[k + 1 :])
            yield kept[0] if len(kept) == 1 else Add(kept)


def drop_a_factor(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Mul):
        for k in range(len(e.factors)):
            kept = (*e.factors[:k], *e.factors[k + 1 :])
            yield kept[0] if len(kept) == 1 else Mul(kept)


def flip_a_sign(e: Expr, scope: Scope) -> Iterator[Expr]:
    match e:
        case Neg(x):
            yield x
        case Add(terms):
            for k, term in enumerate(terms):
                flipped = term.x if isinstance(term, Neg) else Neg(term)
                yield Add((*terms[:k], flipped, *terms[k + 1 :]))
        case Fn(name, (x,)):
            yield Fn(name, (Neg(x),))


def alter_a_divisor(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Div):
        yield e.over
        yield Mul((e.over, e.under))
        yield Div(e.under, e.over)
        yield Div(e, e.under)
        yield Div(e.over, Fn("sqrt", (e.under,)))


def transpose_a_read(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Ref):
        for a in range(len(e.indices)):
            for b in range(a + 1, len(e.indices)):
                swapped = list(e.indices)
                swapped[a], swapped[b] = swapped[b], swapped[a]
                yield Ref(e.name, e.face, tuple(swapped))


def read_with_another_letter(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Idx):
        yield from (Idx(letter) for letter in scope if letter != e.letter)


def drop_or_invert_a_filter(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Reduce) and e.where is not None:
        yield Reduce(e.op, e.body, e.loops, None)
        yield Reduce(e.op, e.body, e.loops, Bool("not", (e.where,)))


def drop_a_condition(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Cond):
        yield e.then
        yield e.other
        yield Cond(e.test, e.other, e.then)


def another_comparison(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Cmp):
        yield from (Cmp(op, e.a, e.b) for op in ("<", "<=", ">", ">=", "==", "!=") if op != e.op)


def another_reduction(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Reduce):
        yield from (Reduce(op, e.body, e.loops, e.where) for op in ("sum", "mean", "max") if op != e.op)


def forget_a_sum(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Reduce):
        yield e.body
        if len(e.loops) > 1:
            for k in range(len(e.loops)):
                yield Reduce(e.op, e.body, (*e.loops[:k], *e.loops[k + 1 :]), e.where)


def a_number_one_off(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Num):
        yield Num(e.value + 1)
        yield Num(e.value - 1)


def drop_a_function(e: Expr, scope: Scope) -> Iterator[Expr]:
    if isinstance(e, Fn):
        yield e.args[0]
