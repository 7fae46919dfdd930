r"""The matrix face of a formula, derived from the tree of its definition.

``Q[h,i,c] = sum(X[i,r]*W_Q[r,h,c] for r in d)`` is the product ``X W_Q^{(h)}`` because the summed letter is the last of
one factor and the first of the other; ``sum(... for i in n if t[i] == w)`` is the product with a one-hot matrix; a mean
over ``q`` is a row mean. Nothing is written by hand, so a matrix formula cannot say anything else than the definition
does, and its value is computed from the matrices (``matrix_value``) and compared with the index face in tests.

The head letter is no axis: one formula holds for each head, and a sum over heads is written as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from .matrix_build import NoMatrixForm, build, is_head
from .matrix_latex import MatrixPrinter
from .matrix_nodes import Node
from .matrix_value import Array, MatrixEvaluator
from .program import Program, Statement
from .symbols import Style, style_of


@dataclass(frozen=True, slots=True)
class MatrixFace:
    """The right side of ``statement`` as a matrix formula; ``dims`` gives the dimension of every letter in it."""

    statement: Statement
    node: Node
    dims: Mapping[str, str]

    def latex(self, program: Program, style: Style | None = None) -> str:
        r"""The whole equation; a contribution that is one of several prints ``\mathrel{+}=``."""
        s = self.statement
        printer = MatrixPrinter(style or style_of(program), frozenset(a for a in self.dims if is_head(a)))
        left = printer.name(s.target, s.face, tuple(letter for letter, _ in s.letters))
        partly = s.adds and len(program.contributions(s.target)) > 1
        return f"{left} {chr(92) + 'mathrel{+}=' if partly else '='} {printer.show(self.node)}"

    def evaluate(self, values: Mapping[str, Array], scalars: Mapping[str, float]) -> Array:
        """The value, float64, with one axis per letter of the statement, in that order."""
        letters = [letter for letter, _ in self.statement.letters]
        sizes = {letter: int(scalars[dim]) for letter, dim in self.dims.items()}
        heads = [letter for letter in letters if is_head(letter)]
        shape = tuple(sizes[letter] for letter in letters)
        result = np.empty(shape)
        with np.errstate(all="ignore"):  # a branch that a mask discards may overflow
            for at in product(*(range(sizes[letter]) for letter in heads)):
                fixed = dict(zip(heads, at, strict=True))
                inner = MatrixEvaluator(values, scalars, sizes, fixed).value(self.node)
                cell = tuple(fixed.get(letter, slice(None)) for letter in letters)
                result[cell] = inner.reshape(result[cell].shape)
        return result


def matrix_face(statement: Statement, program: Program) -> MatrixFace | None:
    """The matrix formula of ``statement``; None where it has none (a third axis, a letter read as a number)."""
    dims: dict[str, str] = dict(statement.letters)
    try:
        node = build(statement, program, dims)
    except NoMatrixForm:
        return None
    return MatrixFace(statement, node, dims)
