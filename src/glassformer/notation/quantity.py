"""Quantities: anything that has a name in the notes, declared once.

A quantity's text holds its definition and, beside it, what it sends back to the gradient of each of its operands::

    D = quantity("D", "D", "doubled", "两倍", Kind.INTERMEDIATE, '''
    D[i,r] = 2*X[i,r]
    X.grad[i,r] += 2*D.grad[i,r]
    ''')
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import no_type_check


class Kind(StrEnum):
    """What a number is; one list everywhere."""

    INPUT = "input"
    PARAMETER = "parameter"
    INTERMEDIATE = "intermediate"
    COEFFICIENT = "coefficient"
    PROBABILITY = "probability"
    LOSS = "loss"
    GRADIENT = "gradient"
    OPTIMIZER_STATE = "optimizer state"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class Quantity:
    """One declared quantity.

    ``name`` is its ASCII name within its group, ``symbol`` its LaTeX, ``en`` and ``zh`` its names for readers, ``text``
    its statements. ``folded`` says that consumers' gradient lines already account for the path through it (the mean and
    deviation inside a norm). ``file`` and ``line`` tell where the text starts.
    """

    name: str
    symbol: str
    en: str
    zh: str
    kind: Kind
    text: str
    folded: bool
    file: str
    line: int


@no_type_check  # a checking wrapper of the tests would become the caller whose place is noted
def quantity(name: str, symbol: str, en: str, zh: str, kind: Kind, text: str, *, folded: bool = False) -> Quantity:
    """Declare a quantity; the caller's file and line become its place of definition."""
    frame = sys._getframe(1)
    return Quantity(name, symbol, en, zh, kind, text, folded, frame.f_code.co_filename, frame.f_lineno)


@dataclass(frozen=True, slots=True)
class Group:
    """Quantities that belong to one part of the model and name one another."""

    name: str
    quantities: tuple[Quantity, ...]


def group(name: str, *quantities: Quantity) -> Group:
    """Collect the quantities of one part; raises ``ValueError`` for a name declared twice."""
    names = [q.name for q in quantities]
    for doubled in {n for n in names if names.count(n) > 1}:
        raise ValueError(f"group {name!r} declares {doubled!r} twice")
    return Group(name, quantities)
