"""The language in which quantities are defined, and everything that is read off a definition.

One definition gives the formula in two faces, the float64 reference value, the arithmetic of one cell, the dataflow and
the JSON that the page recomputes from. ``spec.md`` in this folder is the specification.
"""

from .compose import Instance, build_program, place
from .evaluate import EvaluationError, evaluate, key, run
from .magnitude import REPLAY_FACTOR, UNIT_ROUNDOFF, magnitude
from .parse import NotationError, parse_expression, parse_lines
from .program import Placed, Program, Statement
from .quantity import Group, Kind, Quantity, group, quantity
from .say import Place, SaidTwice, Say, dictionary_recorder, id_at, silent

__all__ = [
    "REPLAY_FACTOR",
    "UNIT_ROUNDOFF",
    "EvaluationError",
    "Group",
    "Instance",
    "Kind",
    "NotationError",
    "Place",
    "Placed",
    "Program",
    "Quantity",
    "SaidTwice",
    "Say",
    "Statement",
    "build_program",
    "dictionary_recorder",
    "evaluate",
    "group",
    "id_at",
    "key",
    "magnitude",
    "parse_expression",
    "parse_lines",
    "place",
    "quantity",
    "run",
    "silent",
]
