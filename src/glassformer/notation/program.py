"""From groups of quantities to one model's program: what is computed, in which order, from what.

A *group* speaks in its own short names. Placing it under a path gives every quantity an id (``blocks.0.attn.S``) and
says what its outside names stand for here (``X`` is ``blocks.0.norm1.Y``). A *program* is the placed groups of a whole
model: every statement with global ids, forward in dependency order, then the gradient contributions in the opposite
order. It is plain data; nothing in it knows how the model is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import UserError, did_you_mean
from .legend import DIMENSIONS, HYPERPARAMETERS, LETTERS
from .parse import FACES, Line, NotationError, parse_lines
from .quantity import Group, Kind, Quantity
from .tree import Add, Cond, Div, Expr, Mul, Neg, Pow, Reduce, Ref, children, rebuild, refs, rename_names

RESERVED = frozenset({*LETTERS, *DIMENSIONS, *HYPERPARAMETERS, "pi", "inf"})
"""Names that mean something else in a definition.

Letters, sizes and quantities are three namespaces that never overlap."""

LettersOf = tuple[tuple[str, str], ...]


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


@dataclass(frozen=True, slots=True)
class Placed:
    """A quantity of this model: its id, its declaration, its axes as (letter, dimension).

    ``names`` is what the short names of its group stand for here (quantities and dimensions).
    """

    id: str
    quantity: Quantity
    axes: LettersOf
    layer: int | None
    path: str
    names: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def shape(self, scalars: Mapping[str, float]) -> tuple[int, ...]:
        """The sizes of its axes, given the sizes of the dimensions."""
        return tuple(int(scalars[dim]) for _, dim in self.axes)


@dataclass(frozen=True, slots=True)
class Statement:
    """``target.face[letters] = expr`` with global ids; ``consumer`` is the quantity beside which it is written."""

    target: str
    face: str
    letters: LettersOf
    expr: Expr
    adds: bool
    consumer: str
    quantity: Quantity
    line: int


@dataclass(frozen=True)
class Program:
    """A whole model as statements over named quantities.

    ``scalars`` holds the sizes of dimensions and hyperparameters; ``aliases`` maps further names to ids (``h`` to the
    final hidden state). Raises ``NotationError`` when a definition breaks a rule of the language.
    """

    quantities: Mapping[str, Placed]
    forward: tuple[Statement, ...]
    backward: tuple[Statement, ...]
    scalars: Mapping[str, float]
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.forward + self.backward

    @property
    def layers(self) -> int:
        """How many layers the program has (1 when none is numbered)."""
        return 1 + max((p.layer for p in self.quantities.values() if p.layer is not None), default=0)

    def definition(self, id: str) -> Statement | None:
        """The forward definition of ``id``; None for parameters and inputs."""
        return next((s for s in self.forward if s.target == id), None)

    def contributions(self, id: str) -> tuple[Statement, ...]:
        """What its consumers send back to the gradient of ``id``, in the order in which they add up."""
        return tuple(s for s in self.backward if s.target == id)

    def shape(self, id: str) -> tuple[int, ...]:
        return self.quantities[id].shape(self.scalars)

    def with_scalars(self, **scalars: float) -> Program:
        """The same program with other sizes or hyperparameters."""
        return replace(self, scalars={**self.scalars, **scalars})

    def resolve(self, name: str) -> str:
        """The id that ``name`` means: an id, an alias, or any unambiguous end of an id.

        Raises ``UserError`` for an unknown or ambiguous name.
        """
        if name in self.quantities:
            return name
        if name in self.aliases:
            return self.aliases[name]
        ends = [id for id in self.quantities if id.endswith(f".{name}")]
        if len(ends) == 1:
            return ends[0]
        if ends:
            raise UserError(
                f'"{name}" is the name of {len(ends)} quantities.',
                f"They are {', '.join(ends[:8])}.",
                "Give one of these ids.",
            )
        short = [*self.quantities, *self.aliases, *dict.fromkeys(id.rpartition(".")[2] for id in self.quantities)]
        raise UserError(f'There is no quantity "{name}".', "", did_you_mean(name, short))

    def reference(self, text: str) -> tuple[str, str, tuple[int, ...] | None]:
        """``W_Q.grad[1,0]`` as (id, face, 0-based cell or None). The head index may be left out when H is 1.

        Raises ``UserError`` for an unknown name, a wrong number of indices, or an index out of range.
        """
        match = re.fullmatch(
            r"\s*(?P<name>[A-Za-z0-9_.]+?)(?:\.(?P<face>grad|new|after))?\s*(?:\[(?P<at>[^\]]*)\])?\s*", text
        )
        if match is None:
            raise UserError(
                f'"{text}" does not name a quantity or a cell.', "", "Write for example W_Q.grad[1,0] or S."
            )
        id, face = self.resolve(match["name"]), match["face"] or ""
        placed = self.quantities[id]
        if match["at"] is None:
            return id, face, None
        try:
            cell = tuple(int(part) for part in match["at"].split(",")) if match["at"].strip() else ()
        except ValueError:
            raise UserError(f'"{match["at"]}" is not a list of indices.', "Indices are whole numbers from 0.") from None
        shape, letters = placed.shape(self.scalars), [letter for letter, _ in placed.axes]
        if len(cell) == len(shape) - 1 and "h" in letters and shape[letters.index("h")] == 1:
            at = letters.index("h")
            cell = (*cell[:at], 0, *cell[at:])
        axes = ", ".join(f"{letter} of {size}" for letter, size in zip(letters, shape, strict=True)) or "none"
        if len(cell) != len(shape):
            raise UserError(f"{id} has {len(shape)} axes, not {len(cell)}.", f"Its axes are: {axes}.")
        for index, size, letter in zip(cell, shape, letters, strict=True):
            if not 0 <= index < size:
                raise UserError(
                    f"Index {index} is out of range for axis {letter} of {id}.",
                    f"The axis has {size} cells.",
                    f"Use 0 to {size - 1}; indices are counted from 0.",
                )
        return id, face, cell


def build_program(
    instances: Sequence[Instance], scalars: Mapping[str, float], aliases: Mapping[str, str] | None = None
) -> Program:
    """Expand, check and order the statements of ``instances``. Raises ``NotationError``."""
    from .check import check_program

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


__all__ = ["FACES", "Instance", "Placed", "Program", "Statement", "build_program", "place", "prune"]
