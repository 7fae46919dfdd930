"""From the text of a definition to its tree.

The surface is a small subset of Python, read with ``ast`` and never executed. ``spec.md`` beside this file is the
one-page specification.
"""

from __future__ import annotations

import ast
import functools
import sys
import textwrap
from dataclasses import dataclass
from typing import NoReturn

from .legend import DIMENSIONS, HYPERPARAMETERS, LETTERS
from .tree import (
    FUNCTIONS,
    REDUCTIONS,
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

FACES = ("grad", "new", "after")

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


class NotationError(ValueError):
    """A definition that the language does not allow; the message quotes it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One statement as written: ``target.face[letters] = expr``, ``+=`` when ``adds``, no ``expr`` for a declaration.

    ``offset`` counts lines from the start of the text.
    """

    target: str
    face: str
    letters: tuple[str, ...]
    expr: Expr | None
    adds: bool
    offset: int


@functools.cache
def parse_lines(text: str) -> tuple[Line, ...]:
    """The statements of a quantity's text, in order. Raises ``NotationError``."""
    source = _ascii(textwrap.dedent(text).strip("\n"))
    shift = len(text) - len(text.lstrip("\n"))
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        raise NotationError(f"not a definition: {error.msg} in {(error.text or source).strip()!r}") from error
    return tuple(_line(node, source, shift) for node in module.body)


def parse_expression(source: str) -> Expr:
    """The tree of one expression. Raises ``NotationError``."""
    try:
        body = ast.parse(source.strip(), mode="eval").body
    except SyntaxError as error:
        raise NotationError(f"not an expression: {error.msg} in {source.strip()!r}") from error
    return _Reader(_ascii(source.strip())).expr(body)


def _ascii(source: str) -> str:
    # Python folds identifiers (NFKC), so an accented or styled name would silently become another one.
    for line in source.splitlines():
        if not line.isascii():
            raise NotationError(f"names are ASCII: {line.strip()!r}")
    return source


def _line(node: ast.stmt, source: str, shift: int) -> Line:
    reader = _Reader(source)
    offset = shift + node.lineno - 1
    match node:
        case ast.Assign(targets=[left], value=value):
            return Line(*reader.left(left), reader.expr(value), False, offset)
        case ast.AugAssign(target=left, op=ast.Add(), value=value):
            return Line(*reader.left(left), reader.expr(value), True, offset)
        case ast.Expr(value=left):
            return Line(*reader.left(left), None, False, offset)
        case _:
            reader.refuse(node, "a statement is a declaration, `=` or `+=`")


class _Reader:
    """Reads ``ast`` nodes of one source text into trees."""

    def __init__(self, source: str) -> None:
        self.source = source

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        quoted = ast.get_source_segment(self.source, node) or self.source
        raise NotationError(f"{why}: {quoted!r}")

    def left(self, node: ast.expr) -> tuple[str, str, tuple[str, ...]]:
        match node:
            case ast.Name() | ast.Attribute():
                name, face = self.named(node)
                return name, face, ()
            case ast.Subscript(value=value, slice=inside):
                name, face = self.named(value)
                letters = []
                for index in _items(inside):
                    if not isinstance(index, ast.Name) or index.id not in LETTERS:
                        self.refuse(node, "the left side takes letters of the legend as indices")
                    letters.append(index.id)
                if len(set(letters)) != len(letters):
                    self.refuse(node, "a letter appears twice on the left side")
                return name, face, tuple(letters)
            case _:
                self.refuse(node, "the left side names a quantity")

    def named(self, node: ast.expr) -> tuple[str, str]:
        match node:
            case ast.Name(id=name):
                return name, ""
            case ast.Attribute(value=ast.Name(id=name), attr=face):
                if face not in FACES:
                    self.refuse(node, f"the faces of a quantity are {', '.join(FACES)}")
                return name, face
            case _:
                self.refuse(node, "a quantity is a name, perhaps with a face")

    def expr(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=bool()) | ast.Constant(value=str()):
                self.refuse(node, "numbers only")
            case ast.Constant(value=int() | float() as value) if value <= sys.float_info.max:
                return Num(float(value))
            case ast.Name(id=name):
                return self.bare(name)
            case ast.Attribute():
                name, face = self.named(node)
                return Ref(name, face, ())
            case ast.Subscript(value=value, slice=inside):
                name, face = self.named(value)
                return Ref(name, face, tuple(map(self.expr, _items(inside))))
            case ast.UnaryOp(op=ast.USub(), operand=x):
                return Neg(self.expr(x))
            case ast.UnaryOp(op=ast.Not(), operand=x):
                return Bool("not", (self.expr(x),))
            case ast.BinOp():
                return self.binary(node)
            case ast.BoolOp(op=op, values=values):
                return Bool("and" if isinstance(op, ast.And) else "or", tuple(map(self.expr, values)))
            case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in _COMPARISONS:
                return Cmp(_COMPARISONS[type(op)], self.expr(a), self.expr(b))
            case ast.IfExp(test=test, body=then, orelse=other):
                return Cond(self.expr(test), self.expr(then), self.expr(other))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.call(node, name, args)
            case _:
                self.refuse(node, "not part of the language")

    def bare(self, name: str) -> Expr:
        if name in LETTERS:
            return Idx(name)
        if name in DIMENSIONS or name in HYPERPARAMETERS:
            return Scalar(name)
        if name in ("pi", "inf"):
            return Const(name)
        return Ref(name, "", ())

    def binary(self, node: ast.BinOp) -> Expr:
        a, b = self.expr(node.left), self.expr(node.right)
        # Only the left operand is opened: `a + b + c` is one sum of three, `a + (b + c)` stays as written.
        match node.op:
            case ast.Add():
                return Add((*(a.terms if isinstance(a, Add) else (a,)), b))
            case ast.Sub():
                return Add((*(a.terms if isinstance(a, Add) else (a,)), Neg(b)))
            case ast.Mult():
                return Mul((*(a.factors if isinstance(a, Mul) else (a,)), b))
            case ast.Div():
                return Div(a, b)
            case ast.Pow():
                return Pow(a, b)
            case _:
                self.refuse(node, "the operators are + - * / **")

    def call(self, node: ast.Call, name: str, args: list[ast.expr]) -> Expr:
        if name in REDUCTIONS and len(args) == 1 and isinstance(args[0], ast.GeneratorExp):
            return self.reduction(name, args[0])
        if name not in FUNCTIONS:
            self.refuse(node, f"the functions are {', '.join(FUNCTIONS)} and the reductions {', '.join(REDUCTIONS)}")
        few, many = (2, 99) if name in ("min", "max") else (1, 1)
        if not few <= len(args) <= many:
            self.refuse(node, f"wrong number of arguments for {name}")
        return Fn(name, tuple(map(self.expr, args)))

    def reduction(self, name: str, generator: ast.GeneratorExp) -> Expr:
        loops: list[tuple[str, str]] = []
        conditions: list[Expr] = []
        for loop in generator.generators:
            match loop.target, loop.iter:
                case ast.Name(id=letter), ast.Name(id=dim) if letter in LETTERS and not loop.is_async:
                    if dim != LETTERS[letter]:
                        self.refuse(generator, f"letter {letter} runs over {LETTERS[letter]}, not {dim}")
                    loops.append((letter, dim))
                case _:
                    self.refuse(generator, "a reduction runs `for LETTER in DIMENSION`")
            conditions += map(self.expr, loop.ifs)
        where = None if not conditions else conditions[0] if len(conditions) == 1 else Bool("and", tuple(conditions))
        return Reduce(name, self.expr(generator.elt), tuple(loops), where)


def _items(inside: ast.expr) -> list[ast.expr]:
    return list(inside.elts) if isinstance(inside, ast.Tuple) else [inside]
