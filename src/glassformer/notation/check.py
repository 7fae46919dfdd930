"""The rules that a definition must keep before anybody computes it.

Two thirds of all wrong gradients (a transposed read, a forgotten sum) are refused here, without a single number: an axis
read with a letter of another dimension, a letter that is free on the right and missing on the left, a wrong rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .legend import LETTERS
from .parse import NotationError
from .quantity import Kind
from .tree import Add, Cmp, Const, Div, Expr, Fn, Idx, Mul, Neg, Num, Pow, Reduce, Ref, Scalar, children, refs, walk

if TYPE_CHECKING:
    from .program import Program, Statement


def check_program(program: Program) -> None:
    """Raise ``NotationError`` for the first statement that breaks a rule, quoting it."""
    infinite = {s.target for s in program.forward if _mentions_infinity(s.expr)}
    for statement in program.statements:
        try:
            check_statement(statement, program, infinite)
        except NotationError as error:
            where = f"{statement.quantity.file}:{statement.line}"
            face = f".{statement.face}" if statement.face else ""
            raise NotationError(f"{error} (in {statement.target}{face}, {where})") from None


def check_statement(statement: Statement, program: Program, infinite: set[str]) -> None:
    """One statement: letters, ranks, axes, ranges, stable exponentials, infinities."""
    target = program.quantities.get(statement.target)
    if target is None:
        raise NotationError(f"unknown quantity {statement.target}")
    if tuple(dim for _, dim in statement.letters) != tuple(dim for _, dim in target.axes):
        raise NotationError(f"{statement.target} has axes {target.axes}, written with {statement.letters}")
    _check_letters(statement.expr, dict(statement.letters), program)
    _check_gradients_read(statement)
    for size in (node.name for node in walk(statement.expr) if isinstance(node, Scalar)):
        if size not in program.scalars:
            raise NotationError(f"unknown size or hyperparameter {size}")
    unstable = _unstable(statement.expr)
    if unstable is not None:
        raise NotationError(f"exp outside a stable pattern overflows silently: {unstable}")
    _check_infinite(statement.expr, infinite, False)


def _check_gradients_read(statement: Statement) -> None:
    """A definition reads no gradient; a contribution reads the gradient of the quantity it stands beside, and no other.

    So the order of the backward pass is right by construction, and an edge is answered where it is written.
    """
    read = {ref.name for ref in refs(statement.expr) if ref.face == "grad"}
    allowed = {statement.consumer} if statement.face == "grad" else set()
    if read - allowed:
        raise NotationError(f"the gradient of {', '.join(sorted(read - allowed))} is not this statement's to read")
    if allowed - read:
        raise NotationError(f"a contribution of {statement.consumer} does not read its gradient")


def _check_letters(e: Expr, scope: Mapping[str, str], program: Program) -> None:
    match e:
        case Idx(letter):
            if letter not in scope:
                raise NotationError(f"letter {letter} is free on the right and missing on the left")
        case Ref(name, _, indices):
            placed = program.quantities.get(name)
            if placed is None:
                raise NotationError(f"unknown quantity {name}")
            if len(indices) != len(placed.axes):
                raise NotationError(f"{name} has {len(placed.axes)} axes, read with {len(indices)}")
            for index, (axis, dim) in zip(indices, placed.axes, strict=True):
                if isinstance(index, Idx):
                    if index.letter not in scope:
                        raise NotationError(f"letter {index.letter} is free on the right and missing on the left")
                    if scope[index.letter] != dim:
                        raise NotationError(
                            f"{name} axis {axis} ({dim}) read with {index.letter} ({scope[index.letter]})"
                        )
                elif not (isinstance(index, Ref) and _is_table(index, program)):
                    raise NotationError(f"{name} is looked up with something that is not an integer table")
                else:
                    _check_letters(index, scope, program)
        case Reduce(_, body, loops, where):
            inner = dict(scope)
            for letter, dim in loops:
                if letter in inner:
                    raise NotationError(f"letter {letter} is bound twice")
                if dim != LETTERS[letter] and dim not in program.scalars:
                    raise NotationError(f"letter {letter} runs over {LETTERS[letter]}, not {dim}")
                inner[letter] = dim
            for part in (body,) if where is None else (body, where):
                _check_letters(part, inner, program)
        case _:
            for part in children(e):
                _check_letters(part, scope, program)


def _mentions_infinity(e: Expr) -> bool:
    return any(isinstance(node, Const) and node.name == "inf" for node in walk(e))


def _check_infinite(e: Expr, infinite: set[str], safe: bool) -> None:
    """A quantity that can be infinite may be read only by exp, max and comparisons: 0 * inf is not a number."""
    if isinstance(e, Ref) and e.face in ("", "after") and e.name in infinite and not safe:
        raise NotationError(f"{e.name} can be infinite, so only exp, max and comparisons may read it")
    safe_below = isinstance(e, Cmp) or (isinstance(e, Fn) and e.name in ("exp", "max"))
    safe_below = safe_below or (isinstance(e, Reduce) and e.op == "max")
    for part in children(e):
        _check_infinite(part, infinite, safe_below)


def _unstable(e: Expr) -> Expr | None:
    """The first exp that stands outside softmax, log-sum-exp, ``1/(1+exp(-x))`` and ``exp(-x**2)``."""
    from .evaluate import softmax_letter

    match e:
        case Div() if softmax_letter(e) is not None:
            return None
        case Fn("ln", (Reduce("sum", Fn("exp", (_,)), _, None),)):
            return None
        case Div(Num(1.0), Add((Num(1.0), Fn("exp", (Neg(_),))))):
            return None
        case Fn("exp", (arg,)):
            return None if _negated_square(arg) else e
        case _:
            return next((bad for part in children(e) if (bad := _unstable(part)) is not None), None)


def _negated_square(e: Expr) -> bool:
    match e:
        case Neg(x):
            return _square(x)
        case Div(x, _):
            return _negated_square(x)
        case _:
            return False


def _square(e: Expr) -> bool:
    match e:
        case Pow(_, Num(2.0)):
            return True
        case Div(x, _):
            return _square(x)
        case Mul(factors):
            return any(_square(f) for f in factors)
        case _:
            return False


def _is_table(index: Ref, program: Program) -> bool:
    """Whether ``index`` reads a table of whole numbers: an input (``t``, ``y``) or a constant (``pos``)."""
    placed = program.quantities.get(index.name)
    return placed is not None and placed.quantity.kind in (Kind.INPUT, Kind.CONSTANT)
