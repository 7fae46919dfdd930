"""Composing a program: groups put at places, their statements in global names, checked and in order.

A *group* speaks in its own short names. Placing it under a path gives every quantity an id (``blocks.0.attn.S``) and
says what its outside names stand for here (``X`` is ``blocks.0.norm1.Y``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .check import check_program
from .legend import DIMENSIONS, HYPERPARAMETERS, LETTERS
from .parse import Line, NotationError, parse_lines
from .program import LettersOf, Placed, Program, Statement
from .quantity import Group, Kind
from .tree import Add, Cond, Div, Expr, Mul, Neg, Pow, Reduce, Ref, children, rebuild, refs, rename_names

RESERVED = frozenset({*LETTERS, *DIMENSIONS, *HYPERPARAMETERS, "pi", "inf"})
"""Names that mean something else in a definition.

Letters, sizes and quantities are three namespaces that never overlap."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A group at a place. ``bind`` maps local names (quantities, dimensions) to global ones; None means absent."""

    group: Group
    path: str
    layer: int | None
    bind: Mapping[str, str | None]


def place(group: Group, path: str, layer: int | None = None, **bind: str | None) -> Instance:
    """Put ``group`` at ``path``; ``bind`` says what its outside names stand for (None: absent here)."""
    return Instance(group, path, layer, bind)


def build_program(
    instances: Sequence[Instance], scalars: Mapping[str, float], aliases: Mapping[str, str] | None = None
) -> Program:
    """Expand, check and order the statements of ``instances``. Raises ``NotationError``."""
    quantities: dict[str, Placed] = {}
    forward: dict[str, Statement] = {}
    gradients: dict[str, list[Statement]] = {}
    for instance in instances:
        for placed, statements in _expand(instance):
            if placed.id in quantities:
                raise NotationError(f"{placed.id} is declared twice")
            quantities[placed.id] = placed
            for s in statements:
                if s.face == "" and not s.adds:
                    forward[s.target] = s
                else:
                    gradients.setdefault(s.consumer, []).append(s)
    ordered = _in_order(forward)
    # A consumer's contributions read its own gradient, which is complete once all of *its* consumers are done.
    # An input or a constant has no gradient, so what would be sent to one (a table in a parameter's place) is dropped.
    fixed = {id for id, placed in quantities.items() if placed.quantity.kind in (Kind.INPUT, Kind.CONSTANT)}
    backward = tuple(
        s for statement in reversed(ordered) for s in gradients.get(statement.target, ()) if s.target not in fixed
    )
    program = Program(quantities, tuple(ordered), backward, dict(scalars), dict(aliases or {}))
    check_program(program)
    return program


def _expand(instance: Instance) -> Iterable[tuple[Placed, list[Statement]]]:
    """Every present quantity of the instance with its statements in global names."""
    own = {q.name: f"{instance.path}.{q.name}" for q in instance.group.quantities}
    names: dict[str, str | None] = {**own, **instance.bind}
    absent = frozenset(name for name, id in names.items() if id is None)
    present = {name: id for name, id in names.items() if id is not None}

    def letters_of(line: Line) -> LettersOf:
        return tuple((letter, present.get(LETTERS[letter], LETTERS[letter])) for letter in line.letters)

    for q in instance.group.quantities:
        if q.name in absent:
            continue
        if q.name in RESERVED:
            raise NotationError(
                f"{q.name} is a letter, a dimension or a hyperparameter, so no quantity can have the name"
            )
        lines = parse_lines(q.text)
        if not lines or lines[0].target != q.name or lines[0].face or lines[0].adds:
            raise NotationError(f"the text of {q.name} must begin with its own declaration or definition")
        if not all(x.face == "grad" and x.adds for x in lines[1:]):
            raise NotationError(
                f"beside its definition the text of {q.name} may only add to gradients (`X.grad[...] += ...`)"
            )
        first = lines[0]
        placed = Placed(present[q.name], q, letters_of(first), instance.layer, instance.path, present)
        statements = []
        for line in lines:
            if line.expr is None or line.target in absent:
                continue
            unknown = {r.name for r in refs(line.expr)} | {line.target}
            for name in unknown - set(names):
                raise NotationError(
                    f"{instance.group.name}.{q.name} at {instance.path} speaks of {name!r}, which is not bound"
                )
            expr = prune(line.expr, absent)
            if expr is None:
                raise NotationError(f"nothing is left of {q.name} at {instance.path}: everything in it is absent")
            statements.append(
                Statement(
                    present[line.target],
                    line.face,
                    letters_of(line),
                    rename_names(expr, present),
                    line.adds,
                    placed.id,
                    q,
                    q.line + line.offset,
                )
            )
        yield placed, statements


def prune(e: Expr, absent: frozenset[str]) -> Expr | None:
    """``e`` without the quantities in ``absent``, which vanish from sums and products; None when all of it vanishes.

    Raises ``NotationError`` where an absent quantity is needed.
    """
    if isinstance(e, Ref) and e.name in absent:
        return None
    parts = [prune(part, absent) for part in children(e)]
    kept = tuple(part for part in parts if part is not None)
    if len(kept) == len(parts):
        return rebuild(e, kept)
    match e:
        case Add() | Mul():
            return None if not kept else kept[0] if len(kept) == 1 else rebuild(e, kept)
        case Neg():
            return None
        case Reduce() | Div() | Pow() | Cond() if parts[0] is None and len(kept) == len(parts) - 1:
            return None
        case _:
            raise NotationError(f"an absent quantity ({', '.join(sorted(absent))}) is needed in {e}")


def _in_order(forward: Mapping[str, Statement]) -> list[Statement]:
    """Definitions so that each comes after what it reads; written order otherwise. Raises on a cycle."""
    ordered: list[Statement] = []
    state: dict[str, bool] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name not in forward or state.get(name):
            return
        if name in trail:
            raise NotationError("a cycle of definitions: " + " -> ".join((*trail, name)))
        for ref in refs(forward[name].expr):
            visit(ref.name, (*trail, name))
        if not state.get(name):
            state[name] = True
            ordered.append(forward[name])

    for name in forward:
        visit(name, ())
    return ordered
