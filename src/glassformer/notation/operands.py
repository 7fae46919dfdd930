"""Random operands for a formula: every cell independent, each quantity within its range and nothing more.

A law that only holds because operands fit together (coefficients that sum to one) fails on these, so whoever relies on
such a fit has to say so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from .evaluate import evaluate, key
from .program import Program
from .quantity import Kind
from .tree import Add, Cmp, Cond, Div, Expr, Fn, Idx, Mul, Num, Pow, Reduce, Ref, Scalar, refs, walk

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def draw(
    exprs: Iterable[Expr],
    program: Program,
    rng: np.random.Generator,
    known: Mapping[str, Array] | None = None,
    loose: Collection[str] = (),
) -> dict[str, Array]:
    """``known`` and a value for every other cell that ``exprs`` read.

    Tables are whole numbers in range, masks truth values with at least one true and one false per row where there is
    room, constants what they are defined to be (those in ``loose`` are drawn as if they were anything), quantities that
    cannot be negative positive, all else normal.
    """
    values = dict(known or {})
    for expr in exprs:
        for ref in refs(expr):
            name = key(ref.name, ref.face)
            if name in values:
                continue
            definition = program.definition(ref.name)
            constant = program.quantities[ref.name].quantity.kind is Kind.CONSTANT and not ref.face
            if constant and definition is not None and name not in loose:
                values = draw([definition.expr], program, rng, values, loose)
                values[name] = evaluate(definition.expr, definition.letters, values, program.scalars)
            else:
                values[name] = _draw_one(ref.name, ref.face, program, rng)
    return values


def draw_key(name: str, program: Program, rng: np.random.Generator) -> Array:
    """A value for the key ``name`` (``blocks.0.attn.S.grad``), a constant as if it were anything."""
    id, face = (name, "") if name in program.quantities else name.rsplit(".", 1)
    return _draw_one(id, face, program, rng)


def _draw_one(name: str, face: str, program: Program, rng: np.random.Generator) -> Array:
    """One value; its shape is that of the quantity."""
    kind, shape = program.quantities[name].quantity.kind, program.shape(name)
    if kind in (Kind.INPUT, Kind.CONSTANT) and not face:
        bound = _table_bound(name, program)
        if bound is not None:
            return rng.integers(0, bound, shape)
        return _truth(shape, rng) if kind is Kind.INPUT else rng.standard_normal(shape)
    if not face and nonnegative(Ref(name, "", ()), program):
        return rng.uniform(0.5, 1.5, shape)
    return rng.standard_normal(shape)


def complete(
    values: Mapping[str, Array], keys: Iterable[str], program: Program, rng: np.random.Generator
) -> dict[str, Array]:
    """``values`` with each of ``keys`` (``S``, ``S.grad``) computed from its statements; missing operands are drawn."""
    wanted = set(keys)
    known = dict(values)
    begun: set[str] = set()
    for statement in program.statements:
        name = key(statement.target, statement.face)
        if name not in wanted:
            continue
        known = draw([statement.expr], program, rng, known)
        value = evaluate(statement.expr, statement.letters, known, program.scalars)
        known[name] = known[name] + value if name in begun else value
        begun.add(name)
    return known


def nonnegative(e: Expr, program: Program) -> bool:
    """Whether ``e`` can be seen, from its form and the kinds of what it reads alone, never to be negative."""
    match e:
        case Num(value):
            return value >= 0
        case Scalar() | Cmp() | Idx():
            return True
        case Ref(name, "", _):
            if program.quantities[name].quantity.kind is Kind.PROBABILITY:
                return True
            definition = program.definition(name)
            return definition is not None and nonnegative(definition.expr, program)
        case Fn(name, args):
            return name in ("exp", "sqrt", "abs") or (name == "max" and any(nonnegative(a, program) for a in args))
        case Pow(base, exponent):
            return exponent == Num(2.0) or nonnegative(base, program)
        case Add(parts) | Mul(parts):
            return all(nonnegative(part, program) for part in parts)
        case Div(a, b) | Cond(_, a, b):
            return nonnegative(a, program) and nonnegative(b, program)
        case Reduce(_, body, _, _):
            return nonnegative(body, program)
        case _:
            return False


def _table_bound(name: str, program: Program) -> int | None:
    """The size of the axis that the table ``name`` indexes or is compared with; its own size where it is a factor.

    None for any other: a truth value, a table of numbers.
    """
    counted = program.quantities[name].quantity.kind is Kind.INPUT and bool(program.quantities[name].axes)
    for statement in program.statements:
        scope = dict(statement.letters)
        for node in walk(statement.expr):
            match node:
                case Reduce(_, _, loops, _):
                    scope.update(loops)
                case Ref(other, _, indices):
                    for index, (_, dim) in zip(indices, program.quantities[other].axes, strict=True):
                        if isinstance(index, Ref) and index.name == name:
                            return int(program.scalars[dim])
                case Cmp(_, Ref(other, "", _), Idx(letter)) | Cmp(_, Idx(letter), Ref(other, "", _)) if other == name:
                    return int(program.scalars[scope[letter]])
                case Mul(factors) if counted and any(isinstance(f, Ref) and f.name == name for f in factors):
                    return int(program.shape(name)[0])
                case _:
                    pass
    return None


def _truth(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    truth = rng.random(shape) < 0.5
    if shape:
        truth[..., -1] = False
        truth[..., 0] = True
    return truth
