"""From the tree of a definition to its matrix formula."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .evaluate import softmax_letter
from .legend import LETTERS
from .matrix_nodes import (
    Comparison,
    EntryPower,
    EntryQuotient,
    Entrywise,
    Hadamard,
    HeadSum,
    Indicator,
    Masked,
    Matrix,
    Negated,
    Node,
    Number,
    OneHot,
    Product,
    Quotient,
    Reduced,
    RowLogSumExp,
    RowSoftmax,
    Scaled,
    Selected,
    Spread,
    Total,
    Transposed,
)
from .program import Program, Statement
from .tree import (
    Add,
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
    substitute_letters,
)


class NoMatrixForm(ValueError):
    """The expression is not matrix algebra over two letters."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """A node and the letters of its rows and columns (None: size one)."""

    node: Node
    rows: str | None = None
    cols: str | None = None

    @property
    def letters(self) -> frozenset[str]:
        return frozenset(a for a in (self.rows, self.cols) if a is not None)


def is_head(letter: str) -> bool:
    """Whether ``letter`` runs over heads, or over the heads of keys and values."""
    return LETTERS.get(letter) in ("H", "G")


def is_position(letter: str) -> bool:
    """Whether ``letter`` runs over positions."""
    return LETTERS.get(letter) in ("n", "n_k")


def orientation(axes: list[str]) -> tuple[str | None, str | None]:
    """Rows and columns of a quantity with these axes: one number per position is a column, any other list a row."""
    if len(axes) == 2:
        return axes[0], axes[1]
    if len(axes) == 1:
        return (axes[0], None) if is_position(axes[0]) else (None, axes[0])
    return None, None


def build(statement: Statement, program: Program, dims: dict[str, str]) -> Node:
    """The right side of ``statement``, over the rows and columns that ``orientation`` gives its left side.

    Letters bound on the way are added to ``dims``. Raises ``NoMatrixForm``.
    """
    axes = [letter for letter, _ in statement.letters if not is_head(letter)]
    if len(axes) > 2:
        raise NoMatrixForm(f"{statement.target} has more than two axes besides the head")
    rows, cols = orientation(axes)
    builder = _Builder(program, (rows, cols), dims)
    return orient(builder.shaped(statement.expr), rows, cols).node


def transpose(x: Shaped) -> Shaped:
    """``x`` with rows and columns exchanged."""
    node = x.node.x if isinstance(x.node, Transposed) else Transposed(x.node)
    return Shaped(node if x.letters else x.node, x.cols, x.rows)


def orient(x: Shaped, rows: str | None, cols: str | None) -> Shaped:
    """``x`` over ``rows`` and ``cols``: transposed where it lies the other way, repeated along what it lacks."""
    if (x.rows is not None and x.rows == cols) or (x.cols is not None and x.cols == rows):
        x = transpose(x)
    if (x.rows is not None and x.rows != rows) or (x.cols is not None and x.cols != cols):
        raise NoMatrixForm(f"a matrix over {x.rows}, {x.cols} in a place for {rows}, {cols}")
    lacks = (rows if x.rows is None else None, cols if x.cols is None else None)
    if lacks == (None, None):
        return x
    is_row = x.cols is not None
    if isinstance(x.node, Negated):
        return Shaped(Negated(Spread(x.node.x, *lacks, is_row)), rows, cols)
    return Shaped(Spread(x.node, *lacks, is_row), rows, cols)


@dataclass(slots=True)
class _Builder:
    """Turns expressions into shaped nodes. ``wanted`` is the orientation of the statement's left side."""

    program: Program
    wanted: tuple[str | None, str | None]
    dims: dict[str, str]
    tables: int = field(default=0)

    def shaped(self, e: Expr) -> Shaped:
        match e:
            case Num() | Const() | Scalar():
                return Shaped(Number(e))
            case Ref():
                return self.cell(e)
            case Neg(x):
                inner = self.shaped(x)
                return Shaped(Negated(inner.node), inner.rows, inner.cols)
            case Add(terms):
                parts, rows, cols = self.alike([self.shaped(t) for t in terms])
                return Shaped(Total(tuple(p.node for p in parts)), rows, cols)
            case Mul():
                return self.times([self.shaped(f) for f in factors_of(e)])
            case Div(over, under):
                return self.softmax(e) or self.quotient(self.shaped(over), self.shaped(under))
            case Pow(base, exponent):
                x, power = self.shaped(base), self.shaped(exponent)
                if power.letters:
                    raise NoMatrixForm("a power that differs from entry to entry")
                return Shaped(EntryPower(x.node, power.node, not x.letters), x.rows, x.cols)
            case Fn(name, (x,)):
                return self.log_sum_exp(e) or self.entrywise(name, self.shaped(x))
            case Cond(test, then, other):
                return self.choice(test, then, other)
            case Reduce():
                return self.reduction(e)
            case _:
                raise NoMatrixForm(f"not matrix algebra: {e}")

    def cell(self, e: Ref) -> Shaped:
        """A quantity, or a lookup: the sum over the table's axis of a one-hot matrix times the quantity."""
        letters: list[str] = []
        hot: list[tuple[Shaped, str]] = []
        for index, (_, dim) in zip(e.indices, self.program.quantities[e.name].axes, strict=True):
            if isinstance(index, Idx):
                letters.append(index.letter)
                continue
            letter = self.new_letter(dim)
            hot.append((self.one_hot(index, letter), letter))
            letters.append(letter)
        axes = [letter for letter in letters if not is_head(letter)]
        if len(axes) > 2 or len(set(letters)) < len(letters):
            raise NoMatrixForm(f"{e.name} read with {letters}")
        rows, cols = orientation(axes)
        factors = [Shaped(Matrix(e.name, e.face, tuple(letters), rows, cols), rows, cols)]
        for table, letter in hot:
            factors = self.eliminate([*factors, table], letter, "sum")
        return self.times(factors)

    def new_letter(self, dim: str) -> str:
        self.tables += 1
        letter = f"table{self.tables}"
        self.dims[letter] = dim
        return letter

    def one_hot(self, table: Expr, letter: str) -> Shaped:
        match table:
            case Ref(_, _, (Idx(row),)):
                return Shaped(OneHot(table, row, letter), row, letter)
            case _:
                raise NoMatrixForm("a lookup through more than one letter")

    def alike(self, parts: list[Shaped]) -> tuple[list[Shaped], str | None, str | None]:
        """All of ``parts`` over the same rows and columns."""
        letters = list(dict.fromkeys(a for p in parts for a in (p.rows, p.cols) if a is not None))
        if len(letters) > 2:
            raise NoMatrixForm(f"a sum or an entrywise product over {letters}")
        if len(letters) == 2:
            whole = next((p for p in parts if len(p.letters) == 2), None)
            rows, cols = self.pair(*letters) if whole is None else (whole.rows, whole.cols)
        else:
            first = next((p for p in parts if p.letters), Shaped(parts[0].node))
            rows, cols = first.rows, first.cols
        return [orient(p, rows, cols) for p in parts], rows, cols

    def pair(self, a: str, b: str) -> tuple[str | None, str | None]:
        """Which of two letters is the rows: as on the left side; else positions before coordinates."""
        if {a, b} == set(self.wanted):
            return self.wanted
        return (b, a) if is_position(b) and not is_position(a) else (a, b)

    def times(self, factors: list[Shaped]) -> Shaped:
        """The entrywise product; factors that are numbers scale it."""
        numbers = [f.node for f in factors if not f.letters]
        rest = [f for f in factors if f.letters]
        if not rest:
            return Shaped(scaled(numbers[:-1], numbers[-1]))
        parts, rows, cols = self.alike(rest)
        node = parts[0].node if len(parts) == 1 else Hadamard(tuple(p.node for p in parts))
        return Shaped(scaled(numbers, node), rows, cols)

    def quotient(self, over: Shaped, under: Shaped) -> Shaped:
        if not under.letters:
            return Shaped(Quotient(over.node, under.node), over.rows, over.cols)
        (x, by), rows, cols = self.alike([over, under])
        return Shaped(EntryQuotient(x.node, by.node), rows, cols)

    def entrywise(self, name: str, x: Shaped) -> Shaped:
        return Shaped(Entrywise(name, x.node), x.rows, x.cols)

    def softmax(self, e: Div) -> Shaped | None:
        letter = softmax_letter(e)
        if letter is None:
            return None
        assert isinstance(e.over, Fn)
        x = self.along(self.shaped(e.over.args[0]), letter)
        return Shaped(RowSoftmax(x.node), x.rows, x.cols)

    def log_sum_exp(self, e: Fn) -> Shaped | None:
        match e:
            case Fn("ln", (Reduce("sum", Fn("exp", (f,)), ((letter, dim),), None),)) if not is_head(letter):
                self.dims[letter] = dim
                x = self.along(self.shaped(f), letter)
                return Shaped(RowLogSumExp(x.node), x.rows)
            case _:
                return None

    def along(self, x: Shaped, letter: str) -> Shaped:
        """``x`` with ``letter`` as its columns."""
        if letter not in x.letters:
            raise NoMatrixForm(f"nothing depends on {letter}")
        return x if x.cols == letter else transpose(x)

    def choice(self, test: Expr, then: Expr, other: Expr) -> Shaped:
        if other == Neg(Const("inf")):
            (where, x), rows, cols = self.alike([self.truth(test), self.shaped(then)])
            return Shaped(Masked(where.node, x.node), rows, cols)
        if other != Num(0.0):
            raise NoMatrixForm("a choice between two formulas")
        if then == Num(1.0):
            return self.truth(test)
        if vanishes(then, test, self.program):
            return self.shaped(then)
        where, x = self.truth(test), self.shaped(then)
        if x.rows and x.cols and where.rows == x.rows and where.cols is None:
            return Shaped(Selected(where.node, x.node, True), x.rows, x.cols)
        (where, x), rows, cols = self.alike([where, x])
        return Shaped(Selected(where.node, x.node, False), rows, cols)

    def truth(self, test: Expr) -> Shaped:
        """A condition as a matrix of ones and zeros."""
        match test:
            case Ref():
                x = self.cell(test)
                if not isinstance(x.node, Matrix):
                    raise NoMatrixForm("a mask that is looked up")
                return Shaped(Indicator(x.node), x.rows, x.cols)
            case Cmp("==", Ref() as table, Idx(letter)) | Cmp("==", Idx(letter), Ref() as table):
                return self.one_hot(table, letter)
            case Cmp(op, a, b):
                x, y = self.shaped(a), self.shaped(b)
                if y.letters:
                    (x, y), _, _ = self.alike([x, y])
                return Shaped(Comparison(op, x.node, y.node), x.rows, x.cols)
            case _:
                raise NoMatrixForm(f"a condition that is no matrix: {test}")

    def reduction(self, e: Reduce) -> Shaped:
        if e.op == "max":
            raise NoMatrixForm("a maximum")
        if isinstance(e.body, Neg):
            inner = self.reduction(Reduce(e.op, e.body.x, e.loops, e.where))
            return Shaped(Negated(inner.node), inner.rows, inner.cols)
        self.dims.update(dict(e.loops))
        factors = [self.shaped(f) for f in factors_of(e.body)]
        if e.where is not None:
            factors.append(self.truth(e.where))
        heads = [loop for loop in e.loops if is_head(loop[0])]
        if heads and e.op == "mean":
            raise NoMatrixForm("a mean over heads")
        for letter in reversed([letter for letter, _ in e.loops if not is_head(letter)]):
            factors = self.eliminate(factors, letter, e.op)
        result = self.times(factors)
        for letter, dim in heads:
            result = Shaped(HeadSum(letter, dim, result.node), result.rows, result.cols)
        return result

    def eliminate(self, factors: list[Shaped], letter: str, op: str) -> list[Shaped]:
        """``factors`` with the sum (or mean) over ``letter`` of their product carried out as a matrix product."""
        alone = [f for f in factors if f.letters == {letter}]
        paired: dict[str, list[Shaped]] = {}
        for f in factors:
            if letter in f.letters and len(f.letters) == 2:
                paired.setdefault(next(iter(f.letters - {letter})), []).append(f)
        rest = [f for f in factors if letter not in f.letters]
        if len(paired) > 2 or not (paired or alone):
            raise NoMatrixForm(f"a sum over {letter} that is no product of two matrices")
        if len(paired) == 2:
            rows, cols = self.pair(*paired)
            assert rows is not None
            assert cols is not None
            left = self.entries([*paired[rows], *alone], rows, letter)
            right = self.entries(paired[cols], letter, cols)
            return [*rest, self.averaged(Shaped(chain(left.node, right.node), rows, cols), letter, op)]
        if not paired:
            vector = self.times(alone)
            along = "row" if vector.cols == letter else "column"
            return [*rest, Shaped(Reduced(op, along, vector.node))]
        ((other, matrices),) = paired.items()
        return [*rest, self.with_vector(other, matrices, alone, letter, op)]

    def with_vector(self, other: str, matrices: list[Shaped], alone: list[Shaped], letter: str, op: str) -> Shaped:
        """A matrix times a vector, or the sums of its rows or columns; the result lies as ``orientation`` has it."""
        rows, cols = orientation([other])
        x = self.entries(matrices, *((rows, letter) if rows else (letter, cols)))
        if not alone:
            return Shaped(Reduced(op, "row" if rows else "column", x.node), rows, cols)
        vector = orient(self.times(alone), *((letter, None) if rows else (None, letter))).node
        node = chain(x.node, vector) if rows else chain(vector, x.node)
        return self.averaged(Shaped(node, rows, cols), letter, op)

    def entries(self, factors: list[Shaped], rows: str | None, cols: str | None) -> Shaped:
        return orient(self.times(factors), rows, cols)

    def averaged(self, x: Shaped, letter: str, op: str) -> Shaped:
        if op == "sum":
            return x
        return Shaped(Quotient(x.node, Number(Scalar(self.dims[letter]))), x.rows, x.cols)


def factors_of(e: Expr) -> list[Expr]:
    """The factors of ``e``, products within products opened."""
    return [inner for factor in e.factors for inner in factors_of(factor)] if isinstance(e, Mul) else [e]


def scaled(numbers: Iterable[Node], x: Node) -> Node:
    """``x`` times each of ``numbers``."""
    for number in reversed(list(numbers)):
        x = Scaled(number, x)
    return x


def chain(left: Node, right: Node) -> Product:
    """A product of products as one product."""
    parts: list[Node] = []
    for node in (left, right):
        parts += node.factors if isinstance(node, Product) else [node]
    return Product(tuple(parts))


def vanishes(e: Expr, test: Expr, program: Program) -> bool:
    """Whether ``e`` is 0 wherever ``test`` is false: a factor is a softmax of scores that are minus infinity there."""
    for factor in factors_of(e):
        if not isinstance(factor, Ref) or factor.face:
            continue
        softmax = _opened(factor, program)
        if not (isinstance(softmax, Div) and softmax_letter(softmax) and isinstance(softmax.over, Fn)):
            continue
        score = softmax.over.args[0]
        opened = _opened(score, program) if isinstance(score, Ref) else score
        if isinstance(opened, Cond) and opened.test == test and opened.other == Neg(Const("inf")):
            return True
    return False


def _opened(ref: Ref, program: Program) -> Expr | None:
    """The definition behind a cell, in the letters with which it is read."""
    statement = program.definition(ref.name)
    if statement is None:
        return None
    renamed = {a: index for (a, _), index in zip(statement.letters, ref.indices, strict=True) if index != Idx(a)}
    return substitute_letters(statement.expr, renamed) if renamed else statement.expr
