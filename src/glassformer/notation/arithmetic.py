"""The arithmetic of one expression at one cell, as data: what is printed, linked and checked.

Conditions are decided first; a sum inside a larger formula becomes one number and is spelt out beside it; a long sum
keeps its largest terms, the remainder as one number, and a count of the terms that are exactly zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .evaluate import EvaluationError
from .plain import is_iverson
from .scalar import At, ScalarEvaluator, exponential_sum
from .tree import Add, Cmp, Cond, Div, Expr, Fn, Neg, Reduce, Ref, Scalar, children, rebuild, walk

KEEP = 4
FOLD_ABOVE = 6
LARGE_EXPONENT = 700.0
NOTHING_KNOWN: Mapping[Expr, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Operand:
    """A cell that a formula reads: ``index`` counts from 0, lookups followed."""

    id: str
    face: str
    index: tuple[int, ...]
    value: float


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression at one cell, conditions decided.

    ``at`` gives its letters their position (from 0); ``numbers`` gives its operands, sizes and sums their number.
    """

    expr: Expr
    at: Mapping[str, int]
    numbers: Mapping[Expr, float]
    operands: tuple[Operand, ...]
    value: float


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition met on the way, and how it was decided."""

    test: Formula
    holds: bool


@dataclass(frozen=True, slots=True)
class Maximum:
    """The largest exponent, taken out of a softmax or log-sum-exp whose plain exponentials would overflow."""

    name: str
    of: Reduce
    at: Mapping[str, int]
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """A sum, mean or maximum spelt out.

    ``terms`` are shown, in written order; ``others`` more are gathered in ``rest``; ``zeros`` are exactly 0 (minus
    infinity in a maximum). ``count`` is what a mean divides by.
    """

    of: Reduce
    at: Mapping[str, int]
    terms: tuple[Formula, ...]
    others: int
    rest: float
    zeros: int
    count: int
    value: float


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """One statement at one cell. ``consumer`` is the quantity through which a gradient comes back (else None).

    ``tables`` are the lookups that the formula goes through (``t[1] = 0``). ``series`` spells out each reduction of the
    formula; when the formula is itself one, it is the only one.
    """

    consumer: str | None
    formula: Formula
    conditions: tuple[Condition, ...]
    tables: tuple[Formula, ...]
    maxima: tuple[Maximum, ...]
    series: tuple[Series, ...]

    @property
    def value(self) -> float:
        return self.formula.value

    @property
    def whole(self) -> Series | None:
        """The series that the whole formula is, if it is one."""
        return self.series[0] if isinstance(self.formula.expr, Reduce) else None


def arithmetic(
    expr: Expr, at: At, evaluator: ScalarEvaluator, consumer: str | None = None, keep: int = KEEP
) -> Arithmetic:
    """Work out ``expr`` at one cell. Raises ``EvaluationError`` when an operand is missing or a lookup misses."""
    value = evaluator.number(expr, at)
    conditions: list[Condition] = []
    maxima: list[Maximum] = []
    decided = decide(expr, at, evaluator, conditions)
    shown = _take_out_maxima(decided, at, evaluator, maxima)
    stable = evaluator.with_scalars({m.name: m.value for m in maxima})
    nodes = dict.fromkeys(_outside_series(shown))
    series = {e: spell_out(e, at, stable, keep) for e in nodes if isinstance(e, Reduce)}
    tables = dict.fromkeys(index for node in nodes if isinstance(node, Ref) for index in node.indices)
    return Arithmetic(
        consumer,
        _formula(shown, at, stable, value, known={e: s.value for e, s in series.items()}),
        tuple(conditions),
        tuple(_formula(t, at, stable, stable.number(t, at)) for t in tables if isinstance(t, Ref)),
        tuple(maxima),
        tuple(series.values()),
    )


def decide(e: Expr, at: At, evaluator: ScalarEvaluator, found: list[Condition]) -> Expr:
    """``e`` with every condition outside a reduction replaced by the branch taken, noting each in ``found``.

    ``1 if test else 0`` is noted too, but stays: it is a number of the formula, printed as ``[test]``.
    """
    match e:
        case Cond(test, then, other):
            holds = evaluator.truth(test, at)
            condition = Condition(_formula(test, at, evaluator, float(holds), lenient=True), holds)
            if condition not in found:
                found.append(condition)
            return e if is_iverson(e) else decide(then if holds else other, at, evaluator, found)
        case Reduce() | Ref():
            return e
        case _:
            return rebuild(e, tuple(decide(part, at, evaluator, found) for part in children(e)))


def spell_out(e: Reduce, at: At, evaluator: ScalarEvaluator, keep: int = KEEP) -> Series:
    """The terms of a reduction, the largest ``keep`` of them when there are more than ``FOLD_ABOVE`` that count."""
    steps = list(evaluator.steps(e, at))
    values = [evaluator.number(e.body, inner) for inner in steps]
    nothing = -math.inf if e.op == "max" else 0.0
    counting = [k for k, value in enumerate(values) if value != nothing]
    shown = counting
    if len(counting) > FOLD_ABOVE:
        size = [value if e.op == "max" else abs(value) for value in values]
        # The sort is stable, so of equal terms the earlier is kept; then back into written order.
        shown = sorted(sorted(counting, key=size.__getitem__, reverse=True)[:keep])
    hidden = sorted(set(counting) - set(shown))
    count = evaluator.count(e)
    return Series(
        e,
        at,
        tuple(_term(e.body, steps[k], evaluator, values[k]) for k in shown),
        len(hidden),
        added_up(values[k] for k in hidden),
        len(values) - len(counting),
        count,
        max(values, default=nothing) if e.op == "max" else added_up(values) / (count if e.op == "mean" else 1),
    )


def added_up(values: Iterable[float]) -> float:
    """``values`` added from left to right.

    Nothing cleverer: later versions of Python compensate in ``sum``, and the page could not agree to the last digit.
    """
    total = 0.0
    for value in values:
        total += value
    return total


def _term(body: Expr, at: At, evaluator: ScalarEvaluator, value: float) -> Formula:
    return _formula(decide(body, at, evaluator, []), at, evaluator, value)


def _formula(
    e: Expr,
    at: At,
    evaluator: ScalarEvaluator,
    value: float,
    *,
    known: Mapping[Expr, float] = NOTHING_KNOWN,
    lenient: bool = False,
) -> Formula:
    """``e`` with the numbers of its parts, those in ``known`` without working them out again.

    ``lenient``: what cannot be read stays a symbol (the part of a condition that an earlier part made irrelevant).
    """
    numbers: dict[Expr, float] = dict(known)
    operands: dict[Operand, None] = {}

    def read(ref: Ref) -> None:
        try:
            index, number = evaluator.cell(ref, at)
        except EvaluationError:
            if not lenient:
                raise
            return
        operands.setdefault(Operand(ref.name, ref.face, index, float(number)))
        numbers[ref] = float(number)

    for node in _outside_series(e):
        if isinstance(node, Ref):
            read(node)
        elif isinstance(node, Cond):
            numbers[node] = evaluator.number(node, at)
            operands.update(dict.fromkeys(_formula(node.test, at, evaluator, 0.0, lenient=True).operands))
        elif isinstance(node, Scalar | Reduce) and node not in numbers:
            numbers[node] = evaluator.number(node, at)
    return Formula(e, dict(at), numbers, tuple(operands), value)


def _outside_series(e: Expr) -> Iterator[Expr]:
    """``e`` and what is below it, without looking into reductions, cells and ``[test]`` brackets."""
    yield e
    if not isinstance(e, Reduce | Ref | Cond):
        for part in children(e):
            yield from _outside_series(part)


def _take_out_maxima(e: Expr, at: At, evaluator: ScalarEvaluator, found: list[Maximum]) -> Expr:
    """``exp(f)/sum(exp(g))`` as ``exp(f - max)/sum(exp(g - max))``, ``ln(sum(exp(g)))`` as ``max + ln(sum(exp(g - max)))``,
    where the largest exponent is beyond ``LARGE_EXPONENT``."""
    if isinstance(e, Reduce | Ref | Cond):
        return e
    match e:
        case Div(Fn("exp", (f,)), under) if (total := _large(under, at, evaluator)) is not None:
            name = _maximum(total, at, evaluator, found)
            return Div(Fn("exp", (_less(f, name),)), _shifted(total, name))
        case Fn("ln", (inside,)) if (total := _large(inside, at, evaluator)) is not None:
            name = _maximum(total, at, evaluator, found)
            return Add((name, Fn("ln", (_shifted(total, name),))))
        case _:
            return rebuild(e, tuple(_take_out_maxima(part, at, evaluator, found) for part in children(e)))


def _large(e: Expr, at: At, evaluator: ScalarEvaluator) -> Reduce | None:
    total = exponential_sum(e)
    if total is None or abs(evaluator.largest_exponent(total, at)) <= LARGE_EXPONENT:
        return None
    return total


def _maximum(total: Reduce, at: At, evaluator: ScalarEvaluator, found: list[Maximum]) -> Scalar:
    assert isinstance(total.body, Fn)
    of = Reduce("max", total.body.args[0], total.loops, total.where)
    for known in found:
        if known.of == of:
            return Scalar(known.name)
    name = "max" if not found else f"max{len(found) + 1}"
    found.append(Maximum(name, of, dict(at), evaluator.largest_exponent(total, at)))
    return Scalar(name)


def _shifted(total: Reduce, name: Scalar) -> Reduce:
    assert isinstance(total.body, Fn)
    return Reduce("sum", Fn("exp", (_less(total.body.args[0], name),)), total.loops, total.where)


def _less(e: Expr, name: Scalar) -> Expr:
    return Add((*(e.terms if isinstance(e, Add) else (e,)), Neg(name)))


def reads_a_comparison(test: Expr) -> bool:
    """Whether a condition compares numbers, so that these are worth showing."""
    return any(isinstance(node, Cmp) for node in walk(test))
