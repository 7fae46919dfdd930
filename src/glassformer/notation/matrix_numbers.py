r"""Matrix formulas with a run's numbers in them: ``\begin{bmatrix} 0 & 1 \end{bmatrix} ...`` where the letters stood.

A matrix is shown whole up to ten rows and columns (the most that ``bmatrix`` takes); of a larger one the first few, the
last, and the row and column of the cell that is being explained, with dots between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from .latex import condition_latex, in_parentheses
from .matrix import MatrixFace
from .matrix_build import is_head
from .matrix_latex import ATOM, ENTRIES, SUM, MatrixPrinter
from .matrix_nodes import HeadSum, Indicator, Masked, Matrix, Node, Number, OneHot, Transposed
from .matrix_value import MatrixEvaluator
from .numerals import number_latex
from .program import Program
from .symbols import Style, style_of
from .tree import Cond, Scalar

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

MOST = 10
"""How many rows and columns a matrix may have to be shown whole."""

HEADS = 4
"""Up to this many heads, a sum over heads is written out."""

LONGEST = 2000
"""A formula with numbers of more characters than this is nobody's reading."""


class TooManyHeads(ValueError):
    """A sum over more heads than anybody reads written out."""


def number_matrix(array: Array, row: int | None = None, column: int | None = None) -> str:
    """``array`` (at most two axes) as LaTeX: a number, a vector as a row, or a ``bmatrix`` with ``row`` and ``column``."""
    if array.ndim == 0:
        return number_latex(float(array))
    grid = np.atleast_2d(array)
    rows, columns = _shown(grid.shape[0], row), _shown(grid.shape[1], column)
    lines = []
    for i in rows:
        cells = (r"\ddots" if j is None else r"\vdots" for j in columns)
        if i is not None:
            cells = (r"\cdots" if j is None else number_latex(float(grid[i, j])) for j in columns)
        lines.append(" & ".join(cells))
    body = r" \\ ".join(lines)
    return rf"\begin{{bmatrix}} {body} \end{{bmatrix}}"


def _shown(size: int, at: int | None) -> list[int | None]:
    """The positions to show of ``size``, None for a gap."""
    if size <= MOST:
        return list(range(size))
    kept = sorted({0, 1, 2, size - 1} | (set() if at is None else {at}))
    shown: list[int | None] = []
    for before, k in zip([-1, *kept], kept, strict=False):
        shown += [k] if k == before + 1 else [None, k]
    return shown


def numbers_latex(
    face: MatrixFace,
    program: Program,
    values: Mapping[str, Array],
    index: Sequence[int],
    style: Style | None = None,
    target_face: str | None = None,
) -> str | None:
    """``left = formula with numbers = result`` of one statement, at the heads of the cell ``index`` (from 0).

    ``target_face`` names the left side where it is not the statement's (``after``: ``values`` are those after the
    update). None where a sum over many heads would have to be written out. Raises ``KeyError`` for an operand not recorded.
    """
    style, s = style or style_of(program), face.statement
    at = {letter: k for (letter, _), k in zip(s.letters, index, strict=True)}
    heads = {letter: k for letter, k in at.items() if is_head(letter)}
    sizes = {letter: int(program.scalars[dim]) for letter, dim in face.dims.items()}
    evaluator = MatrixEvaluator(values, program.scalars, sizes, heads)
    letters = tuple(letter for letter, _ in s.letters)
    head_names = frozenset(letter for letter in face.dims if is_head(letter))
    with np.errstate(all="ignore"):
        try:
            numbers = NumberPrinter(style, head_names, evaluator, at).show(face.node)
        except TooManyHeads:
            return None
        result = evaluator.value(face.node)
    axes = [letter for letter in letters if letter not in heads]
    # A statement of one axis is a row or a column of the formula, one of none a number.
    whole = result if axes else result.reshape(())
    row, column = (at[axes[0]], at[axes[1]]) if len(axes) == 2 else (_along(result, at, axes))
    head = next((str(heads[letter] + 1) for letter in letters if letter in heads), "")
    left = style.name(s.target, s.face if target_face is None else target_face, "" if "H" in style.hidden else head)
    partly = s.adds and len(program.contributions(s.target)) > 1
    steps = dict.fromkeys((numbers, number_matrix(whole, row, column)))  # a copy has one step, not two
    text = f"{left} {chr(92) + 'mathrel{+}=' if partly else '='} {' = '.join(steps)}"
    return text if len(text) <= LONGEST else None


def _along(result: Array, at: Mapping[str, int], axes: Sequence[str]) -> tuple[int | None, int | None]:
    if not axes:
        return None, None
    return (at[axes[0]], None) if result.shape[0] > 1 else (None, at[axes[0]])


def mask_latex(face: MatrixFace, style: Style) -> str | None:
    r"""What the ``M`` of a masked formula stands for, entry by entry; None where there is none.

    ``M_{ij} = 0`` where reading is allowed, minus infinity elsewhere.
    """
    expr = face.statement.expr
    if not (isinstance(face.node, Masked) and isinstance(expr, Cond)):
        return None
    letters = "".join(letter for letter, _ in face.statement.letters if not is_head(letter))
    allowed, forbidden = (condition_latex(expr.test, style, holds=holds) for holds in (True, False))
    return rf"M_{{{letters}}} = \begin{{cases}} 0, & {allowed} \\ -\infty, & {forbidden} \end{{cases}}"


@dataclass(frozen=True, slots=True)
class NumberPrinter(MatrixPrinter):
    """Prints a matrix formula with the numbers of ``evaluator``; ``at`` are the letters of the cell looked at."""

    evaluator: MatrixEvaluator
    at: Mapping[str, int]

    def piece(self, node: Node) -> tuple[str, int]:
        match node:
            case Matrix(_, _, _, rows, cols) | Indicator(Matrix(_, _, _, rows, cols)) | OneHot(_, rows, cols):
                return self.matrix(self.evaluator.value(node), rows, cols)
            case Number(Scalar(name)):
                return number_latex(float(self.evaluator.scalars[name])), ATOM
            case Transposed(x):
                text, strength = self.piece(x)
                return (text if strength == ATOM else in_parentheses(text)) + r"^\top", ATOM
            case Masked(test, x):
                M = np.where(self.evaluator.value(test) != 0, 0.0, -np.inf)
                rows, cols = (test.rows, test.cols) if isinstance(test, Matrix) else (None, None)
                return f"{self.show(x)} + {number_matrix(M, self.at.get(rows or ''), self.at.get(cols or ''))}", SUM
            case HeadSum(letter, dim, x):
                return " + ".join(p.show(x, ENTRIES) for p in self.each_head(letter, dim)), SUM
            case _:
                return MatrixPrinter.piece(self, node)

    def each_head(self, letter: str, dim: str) -> Iterator[NumberPrinter]:
        count = int(self.evaluator.scalars[dim])
        if count > HEADS:
            raise TooManyHeads
        return (replace(self, evaluator=self.evaluator.at_head(letter, h)) for h in range(count))

    def matrix(self, value: Array, rows: str | None, cols: str | None) -> tuple[str, int]:
        if rows is None and cols is None:
            number = float(value.reshape(()))
            return number_latex(number), SUM if number < 0 else ATOM
        return number_matrix(value, self.at.get(rows or ""), self.at.get(cols or "")), ATOM
