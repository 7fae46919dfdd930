"""The value of a matrix formula: plain two-dimensional NumPy, one head at a time.

Shares nothing with the evaluator of index formulas, so that agreement of the two faces means something.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from .erf import erf
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
from .tree import Const, Num, Scalar

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_FUNCTIONS: Mapping[str, Any] = {
    "exp": np.exp,
    "ln": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": erf,
    "abs": np.abs,
}
_COMPARE: Mapping[str, Any] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


@dataclass(frozen=True, slots=True)
class MatrixEvaluator:
    """Values by key, numbers by name, the length of every letter, and which head is looked at."""

    values: Mapping[str, Array]
    scalars: Mapping[str, float]
    sizes: Mapping[str, int]
    heads: Mapping[str, int]

    def value(self, node: Node) -> Array:
        """The node as an array of two axes."""
        match node:
            case Matrix():
                return self.matrix(node)
            case Number(Num(x)):
                return np.array([[x]])
            case Number(Const(name)):
                return np.array([[math.pi if name == "pi" else math.inf]])
            case Number(Scalar(name)):
                return np.array([[float(self.scalars[name])]])
            case Transposed(x):
                return self.value(x).T
            case Product(factors):
                return reduce(np.matmul, map(self.value, factors))
            case Hadamard(factors):
                return reduce(np.multiply, map(self.value, factors))
            case Scaled(by, x):
                return self.value(by) * self.value(x)
            case Quotient(x, by) | EntryQuotient(x, by):
                return self.value(x) / self.value(by)
            case Total(terms):
                return reduce(np.add, map(self.value, terms))
            case Negated(x):
                return -self.value(x)
            case Entrywise(function, x):
                return _FUNCTIONS[function](self.value(x))
            case EntryPower(x, exponent, _):
                return self.value(x) ** self.value(exponent)
            case HeadSum(letter, dim, x):
                count = int(self.scalars[dim])
                return reduce(np.add, (self.at_head(letter, h).value(x) for h in range(count)))
            case _:
                return self.arrangement(node)

    def arrangement(self, node: Node) -> Array:
        """Nodes that look at whole rows or columns, or at truth."""
        match node:
            case RowSoftmax(x):
                inner = self.value(x)
                weights = np.exp(inner - inner.max(axis=1, keepdims=True))
                return weights / weights.sum(axis=1, keepdims=True)
            case RowLogSumExp(x):
                inner = self.value(x)
                largest = inner.max(axis=1, keepdims=True)
                return largest + np.log(np.exp(inner - largest).sum(axis=1, keepdims=True))
            case Reduced(op, along, x):
                inner, axis = self.value(x), 1 if along == "row" else 0
                return inner.mean(axis=axis, keepdims=True) if op == "mean" else inner.sum(axis=axis, keepdims=True)
            case Spread(x, rows, cols, _):
                down = np.ones((self.sizes[rows] if rows else 1, 1))
                across = np.ones((1, self.sizes[cols] if cols else 1))
                return down * self.value(x) * across
            case OneHot(table, _, cols):
                named = self.values[table.name].astype(np.int64)
                return (named[:, None] == np.arange(self.sizes[cols])[None, :]).astype(np.float64)
            case Comparison(op, a, b):
                return _COMPARE[op](self.value(a), self.value(b)).astype(np.float64)
            case Indicator(x):
                return (self.value(x) != 0).astype(np.float64)
            case Masked(test, x):
                return np.where(self.value(test) != 0, self.value(x), -np.inf)
            case Selected(test, x, _):
                return np.where(self.value(test) != 0, self.value(x), 0.0)
            case _:
                raise TypeError(f"not a node of a matrix formula: {node!r}")

    def at_head(self, letter: str, head: int) -> MatrixEvaluator:
        """The same with the head ``letter`` fixed."""
        return replace(self, heads={**self.heads, letter: head})

    def matrix(self, node: Matrix) -> Array:
        array = self.values[f"{node.name}.{node.face}" if node.face else node.name]
        at = tuple(self.heads[a] if a in self.heads else slice(None) for a in node.letters)
        inner = np.asarray(array[at], dtype=np.float64)
        if node.rows and node.cols:
            return inner
        return inner.reshape(-1, 1) if node.rows else inner.reshape(1, -1)
