"""The conformance vectors, and the two Python evaluators against each other on them."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from glassformer.notation.evaluate import EvaluationError
from glassformer.notation.scalar import ScalarEvaluator
from glassformer.notation.tree import from_json, walk
from notation import vectors

STORED = json.loads(vectors.FILE.read_text(encoding="utf-8"))
ALL = [*STORED["cases"], *STORED["gradients"]]


def near(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-13 * max(abs(a), abs(b))


def same(a: Any, b: Any) -> bool:
    """Equal in everything but the last digits of floats, in which C libraries differ."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return near(float(a), float(b))
    return a == b


def test_the_file_is_what_the_generator_writes() -> None:
    built = json.loads(vectors.as_text(vectors.build()))
    for kind in ("cases", "gradients", "numbers"):
        for old, new in itertools.zip_longest(STORED[kind], built[kind]):
            assert same(old, new), f"{(new or old).get('name')}: run PYTHONPATH=tests python -m notation.vectors"


@pytest.mark.parametrize("case", ALL, ids=lambda case: case["name"])
def test_the_cell_by_cell_value_is_the_array_value(case: dict[str, Any]) -> None:
    values = {name: vectors.array(x) for name, x in case["operands"].items()}
    evaluator = ScalarEvaluator(values, case["dims"])
    statements = vectors.statements_of(case)
    letters = [letter for letter, _ in statements[0]["letters"]]
    shape = [int(case["dims"][dim]) for _, dim in statements[0]["letters"]]
    expected = [vectors.number(x) for x in case["value"]]
    for index, value in zip(itertools.product(*map(range, shape)), expected, strict=True):
        total = 0.0
        for s in statements:
            at = dict(zip([letter for letter, _ in s["letters"]], index, strict=True))
            total += evaluator.number(from_json(s["expr"]), at)
        # Two sums of the same terms in another order differ by rounding of the terms, not of their sum.
        assert near(total, value) or abs(total - value) <= 1e-14, (letters, index)


def test_every_kind_of_node_and_every_function_has_a_case() -> None:
    seen: set[str] = set()
    for case in ALL:
        for s in vectors.statements_of(case):
            for node in walk(from_json(s["expr"])):
                named = getattr(node, "op", None) or (node.name if type(node).__name__ in ("Fn", "Const") else "")
                seen |= {type(node).__name__, f"{type(node).__name__} {named}"}
    kinds = [
        "Num",
        "Const",
        "Scalar",
        "Idx",
        "Ref",
        "Add",
        "Neg",
        "Mul",
        "Div",
        "Pow",
        "Fn",
        "Cmp",
        "Bool",
        "Cond",
        "Reduce",
    ]
    fns = [f"Fn {name}" for name in ["exp", "ln", "sqrt", "sin", "cos", "tanh", "erf", "abs", "min", "max"]]
    ops = [f"Cmp {op}" for op in ["<", "<=", ">", ">=", "==", "!="]] + [f"Bool {op}" for op in ["and", "or", "not"]]
    reductions = [f"Reduce {op}" for op in ["sum", "mean", "max"]]
    assert not {*kinds, *fns, *ops, *reductions, "Const pi", "Const inf"} - seen


def test_titles_are_unique() -> None:
    titles = [case["name"] for case in ALL]
    assert len(set(titles)) == len(titles)


def test_the_file_is_strict_json() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(vectors.FILE.read_text(encoding="utf-8"), parse_constant=refuse)


def test_a_lookup_that_misses_is_an_error_and_never_wraps_round() -> None:
    evaluator = ScalarEvaluator({"E": np.ones(3), "t": np.array([-1])}, {})
    lookup = from_json(["ref", "E", "", [["ref", "t", "", [["num", 0]]]]])
    with pytest.raises(EvaluationError, match="index -1 of an axis of 3"):
        evaluator.number(lookup, {})
