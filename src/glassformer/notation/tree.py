"""The expression tree of a definition: fifteen kinds of node, nothing else.

Everything that glassformer knows about a quantity (its formulas, its reference value, the arithmetic of one of its
cells, its place in the dataflow, its recomputation in the page) is read off one of these trees. They are plain frozen
values; ``to_json`` and ``from_json`` give the form that travels in a trace file and that the page evaluates.

The order of terms and factors is kept as written, because printers need it; only evaluators may regroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Num:
    """A literal number."""

    value: float


@dataclass(frozen=True, slots=True)
class Const:
    """``pi`` or ``inf``."""

    name: str


@dataclass(frozen=True, slots=True)
class Scalar:
    """The size of a dimension (``d_k``) or a hyperparameter (``eps``, ``eta``)."""

    name: str


@dataclass(frozen=True, slots=True)
class Idx:
    """A letter read as its own position, counted from zero: ``w`` in ``w == y[i]``."""

    letter: str


@dataclass(frozen=True, slots=True)
class Ref:
    """A cell of a quantity: ``K[h,j,c]``, ``E[t[i],r]`` (a lookup), ``S.grad[h,i,j]`` (face ``grad``)."""

    name: str
    face: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Add:
    """A sum of two or more written terms; a subtracted term is ``Neg``."""

    terms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Neg:
    x: Expr


@dataclass(frozen=True, slots=True)
class Mul:
    factors: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Div:
    over: Expr
    under: Expr


@dataclass(frozen=True, slots=True)
class Pow:
    base: Expr
    exponent: Expr


@dataclass(frozen=True, slots=True)
class Fn:
    """One of ``FUNCTIONS`` applied to its argument (``min`` and ``max`` take two or more)."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Cmp:
    """``op`` is one of ``< <= > >= == !=``."""

    op: str
    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True)
class Bool:
    """``op`` is ``and``, ``or`` or ``not`` (one argument)."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Cond:
    """``then if test else other``."""

    test: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Reduce:
    """``op(body for letter in dim ... if where)`` with ``op`` one of ``sum``, ``mean``, ``max``."""

    op: str
    body: Expr
    loops: tuple[tuple[str, str], ...]
    where: Expr | None = None


Expr: TypeAlias = Num | Const | Scalar | Idx | Ref | Add | Neg | Mul | Div | Pow | Fn | Cmp | Bool | Cond | Reduce

FUNCTIONS = ("exp", "ln", "sqrt", "sin", "cos", "tanh", "erf", "abs", "min", "max")
"""What may be called by name inside an expression (besides the reductions ``sum``, ``mean``, ``max``)."""

REDUCTIONS = ("sum", "mean", "max")


def children(e: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions of ``e``, in written order (the filter of a reduction last)."""
    match e:
        case Ref(_, _, parts) | Add(parts) | Mul(parts) | Fn(_, parts) | Bool(_, parts):
            return parts
        case Neg(x):
            return (x,)
        case Div(a, b) | Pow(a, b) | Cmp(_, a, b):
            return (a, b)
        case Cond(test, then, other):
            return (test, then, other)
        case Reduce(_, body, _, where):
            return (body,) if where is None else (body, where)
        case _:
            return ()


def rebuild(e: Expr, parts: tuple[Expr, ...]) -> Expr:
    """``e`` with its direct subexpressions replaced by ``parts`` (same number and order as ``children``)."""
    match e:
        case Ref(name, face, _):
            return Ref(name, face, parts)
        case Add():
            return Add(parts)
        case Mul():
            return Mul(parts)
        case Fn(name, _):
            return Fn(name, parts)
        case Bool(op, _):
            return Bool(op, parts)
        case Neg():
            return Neg(parts[0])
        case Div():
            return Div(parts[0], parts[1])
        case Pow():
            return Pow(parts[0], parts[1])
        case Cmp(op):
            return Cmp(op, parts[0], parts[1])
        case Cond():
            return Cond(parts[0], parts[1], parts[2])
        case Reduce(op, _, loops, where):
            return Reduce(op, parts[0], loops, None if where is None else parts[1])
        case _:
            return e


def walk(e: Expr) -> Iterator[Expr]:
    """``e`` and everything below it, parents before children."""
    yield e
    for part in children(e):
        yield from walk(part)


def transform(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """``e`` rebuilt from the leaves up, ``change`` applied to every node once its children are done."""
    return change(rebuild(e, tuple(transform(part, change) for part in children(e))))


def refs(e: Expr) -> Iterator[Ref]:
    """Every cell that ``e`` reads, lookup tables included, in written order."""
    return (node for node in walk(e) if isinstance(node, Ref))


def free_letters(e: Expr) -> tuple[str, ...]:
    """The letters of ``e`` that no reduction inside it binds, in order of first appearance."""
    found: dict[str, None] = {}

    def visit(node: Expr, bound: frozenset[str]) -> None:
        if isinstance(node, Idx):
            if node.letter not in bound:
                found.setdefault(node.letter)
            return
        if isinstance(node, Reduce):
            bound = bound | {letter for letter, _ in node.loops}
        for part in children(node):
            visit(part, bound)

    visit(e, frozenset())
    return tuple(found)


def bound_letters(e: Expr) -> set[str]:
    """Every letter that some reduction inside ``e`` binds."""
    return {letter for node in walk(e) if isinstance(node, Reduce) for letter, _ in node.loops}


def rename_letters(e: Expr, names: Mapping[str, str]) -> Expr:
    """``e`` with letters renamed, bound ones included; the caller sees to it that nothing is captured."""

    def change(node: Expr) -> Expr:
        match node:
            case Idx(letter):
                return Idx(names.get(letter, letter))
            case Reduce(op, body, loops, where):
                return Reduce(op, body, tuple((names.get(a, a), dim) for a, dim in loops), where)
            case _:
                return node

    return transform(e, change)


def substitute_letters(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """``e`` with free letters replaced by expressions (a number, another letter, a lookup).

    Bound letters that would capture a letter of the new expressions are renamed first.
    """
    incoming = {letter for value in values.values() for letter in free_letters(value)}

    def visit(node: Expr, live: Mapping[str, Expr]) -> Expr:
        if isinstance(node, Idx):
            return live.get(node.letter, node)
        if isinstance(node, Reduce):
            clashes = {a: fresh_letter(a, incoming | bound_letters(node)) for a, _ in node.loops if a in incoming}
            if clashes:
                node = rename_letters(node, clashes)
                assert isinstance(node, Reduce)
            live = {a: v for a, v in live.items() if a not in {b for b, _ in node.loops}}
        return rebuild(node, tuple(visit(part, live) for part in children(node)))

    return visit(e, values)


def fresh_letter(like: str, taken: set[str]) -> str:
    """A letter that is not ``taken``, made from ``like`` by adding a number."""
    number = 2
    while f"{like}{number}" in taken:
        number += 1
    return f"{like}{number}"


def rename_names(e: Expr, names: Mapping[str, str]) -> Expr:
    """``e`` with quantities, dimensions and hyperparameters renamed."""

    def change(node: Expr) -> Expr:
        match node:
            case Ref(name, face, indices):
                return Ref(names.get(name, name), face, indices)
            case Scalar(name):
                return Scalar(names.get(name, name))
            case Reduce(op, body, loops, where):
                return Reduce(op, body, tuple((a, names.get(dim, dim)) for a, dim in loops), where)
            case _:
                return node

    return transform(e, change)


def same_up_to_letters(a: Expr, b: Expr, letters: Mapping[str, str]) -> bool:
    """Whether renaming the free ``letters`` of ``a`` gives ``b``, exactly."""
    return rename_letters(a, letters) == b


_TAGS: dict[type, str] = {
    Num: "num", Const: "const", Scalar: "scalar", Idx: "idx", Ref: "ref", Add: "add", Neg: "neg", Mul: "mul",
    Div: "div", Pow: "pow", Fn: "fn", Cmp: "cmp", Bool: "bool", Cond: "cond", Reduce: "reduce",
}  # fmt: skip


def to_json(e: Expr) -> list[Any]:
    """The array form: the tag, then the fields in order.

    ``["ref", name, face, [index, ...]]``, ``["add", term, ...]``, ``["mul", factor, ...]``, ``["fn", name, arg, ...]``,
    ``["bool", op, arg, ...]``, ``["reduce", op, body, [[letter, dim], ...], where or null]``; the others as declared.
    """
    tag = _TAGS[type(e)]
    match e:
        case Num(value):
            return [tag, value]
        case Const(name) | Scalar(name) | Idx(name):
            return [tag, name]
        case Ref(name, face, indices):
            return [tag, name, face, [to_json(i) for i in indices]]
        case Fn(name, args) | Bool(name, args):
            return [tag, name, *map(to_json, args)]
        case Cmp(op, a, b):
            return [tag, op, to_json(a), to_json(b)]
        case Reduce(op, body, loops, where):
            return [tag, op, to_json(body), [list(loop) for loop in loops], None if where is None else to_json(where)]
        case _:
            return [tag, *map(to_json, children(e))]


def from_json(data: list[Any]) -> Expr:
    """The inverse of ``to_json``; raises ``ValueError`` for an unknown tag."""
    tag, *rest = data
    match tag:
        case "num":
            return Num(float(rest[0]))
        case "const":
            return Const(rest[0])
        case "scalar":
            return Scalar(rest[0])
        case "idx":
            return Idx(rest[0])
        case "ref":
            return Ref(rest[0], rest[1], tuple(map(from_json, rest[2])))
        case "add":
            return Add(tuple(map(from_json, rest)))
        case "mul":
            return Mul(tuple(map(from_json, rest)))
        case "neg":
            return Neg(from_json(rest[0]))
        case "div":
            return Div(from_json(rest[0]), from_json(rest[1]))
        case "pow":
            return Pow(from_json(rest[0]), from_json(rest[1]))
        case "fn":
            return Fn(rest[0], tuple(map(from_json, rest[1:])))
        case "cmp":
            return Cmp(rest[0], from_json(rest[1]), from_json(rest[2]))
        case "bool":
            return Bool(rest[0], tuple(map(from_json, rest[1:])))
        case "cond":
            return Cond(from_json(rest[0]), from_json(rest[1]), from_json(rest[2]))
        case "reduce":
            where = None if rest[3] is None else from_json(rest[3])
            return Reduce(rest[0], from_json(rest[1]), tuple((a, b) for a, b in rest[2]), where)
        case _:
            raise ValueError(f"unknown node {tag!r} in a definition")
