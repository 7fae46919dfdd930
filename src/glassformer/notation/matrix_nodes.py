r"""The nodes of a matrix formula: a small tree of its own, made from the tree of a definition and never typed.

Every node is a matrix over two letters (its rows and its columns), of size one along a letter that it lacks: a column
over ``i``, a row over ``r``, a number. The head letter is not an axis here; it is carried along, one formula per head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .tree import Const, Num, Ref, Scalar


@dataclass(frozen=True, slots=True)
class Matrix:
    """A quantity. ``letters`` are those of its axes in declared order, ``rows`` and ``cols`` two of them (or None)."""

    name: str
    face: str
    letters: tuple[str, ...]
    rows: str | None
    cols: str | None


@dataclass(frozen=True, slots=True)
class Number:
    """A literal, a constant, a size or a hyperparameter."""

    value: Num | Const | Scalar


@dataclass(frozen=True, slots=True)
class Transposed:
    """Rows and columns exchanged."""

    x: Node


@dataclass(frozen=True, slots=True)
class Product:
    """The matrix product."""

    factors: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Hadamard:
    """The entrywise product of matrices of one shape."""

    factors: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Scaled:
    """``x`` times the number ``by``."""

    by: Node
    x: Node


@dataclass(frozen=True, slots=True)
class Quotient:
    """``x`` divided by the number ``by``."""

    x: Node
    by: Node


@dataclass(frozen=True, slots=True)
class EntryQuotient:
    """Entrywise division of matrices of one shape."""

    x: Node
    by: Node


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of matrices of one shape."""

    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """Minus ``x``."""

    x: Node


@dataclass(frozen=True, slots=True)
class Entrywise:
    """A function of every entry."""

    function: str
    x: Node


@dataclass(frozen=True, slots=True)
class EntryPower:
    """Every entry to the same power; ``plain`` where ``x`` is a number."""

    x: Node
    exponent: Node
    plain: bool


@dataclass(frozen=True, slots=True)
class RowSoftmax:
    """The softmax of each row."""

    x: Node


@dataclass(frozen=True, slots=True)
class RowLogSumExp:
    """For each row, the logarithm of the sum of the exponentials; a column."""

    x: Node


@dataclass(frozen=True, slots=True)
class Reduced:
    """``sum`` or ``mean`` over the columns of each row (``along`` is ``row``) or over the rows of each column."""

    op: str
    along: str
    x: Node


@dataclass(frozen=True, slots=True)
class Spread:
    """``x`` repeated along the letters ``rows`` or ``cols`` that it lacks (None where it has them): products with ones.

    ``is_row`` tells a row from a number.
    """

    x: Node
    rows: str | None
    cols: str | None
    is_row: bool


@dataclass(frozen=True, slots=True)
class HeadSum:
    """The sum over all heads; ``letter`` is bound in ``x``."""

    letter: str
    dim: str
    x: Node


@dataclass(frozen=True, slots=True)
class OneHot:
    """For each ``rows``, the row that is 1 at the entry that ``table`` names; 0 everywhere when it names none."""

    table: Ref
    rows: str
    cols: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """1 where the entries compare, 0 elsewhere."""

    op: str
    a: Node
    b: Node


@dataclass(frozen=True, slots=True)
class Indicator:
    """1 where the mask ``x`` is true, 0 elsewhere."""

    x: Matrix


@dataclass(frozen=True, slots=True)
class Masked:
    """``x`` where ``test`` is 1, minus infinity elsewhere."""

    test: Node
    x: Node


@dataclass(frozen=True, slots=True)
class Selected:
    """``x`` where ``test`` is 1, 0 elsewhere; ``by_row`` when the test is one column and ``x`` is not."""

    test: Node
    x: Node
    by_row: bool


Node: TypeAlias = (
    Matrix
    | Number
    | Transposed
    | Product
    | Hadamard
    | Scaled
    | Quotient
    | EntryQuotient
    | Total
    | Negated
    | Entrywise
    | EntryPower
    | RowSoftmax
    | RowLogSumExp
    | Reduced
    | Spread
    | HeadSum
    | OneHot
    | Comparison
    | Indicator
    | Masked
    | Selected
)
