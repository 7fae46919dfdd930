"""Conformance vectors: definitions, operands, values and cell arithmetic that Python and the page must both give.

    PYTHONPATH=tests python -m notation.vectors        # writes src/glassformer/notation/vectors.json

``cases`` are single definitions of ``y``, ``gradients`` several contributions to ``x.grad``, ``numbers`` numerals. Arrays
are flattened row by row beside their shape; infinities and NaN are the strings ``"inf"``, ``"-inf"``, ``"nan"``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.notation.arithmetic import added_up, arithmetic
from glassformer.notation.cell import CellExplanation, text_lines
from glassformer.notation.evaluate import evaluate
from glassformer.notation.legend import LETTERS
from glassformer.notation.numerals import number_text
from glassformer.notation.parse import parse_expression
from glassformer.notation.scalar import ScalarEvaluator
from glassformer.notation.tree import from_json, to_json
from notation.vector_cases import CASES, GRADIENTS, NUMBERS, SIZES, Case, GradientCase

FILE = Path(__file__).resolve().parents[2] / "src" / "glassformer" / "notation" / "vectors.json"


def build() -> dict[str, Any]:
    """All vectors, as the file holds them."""
    return {
        "cases": [_case(case, seed) for seed, case in enumerate(CASES)],
        "gradients": [_gradient(case, seed) for seed, case in enumerate(GRADIENTS)],
        "numbers": [
            {"x": flat(x), "digits": digits, "text": number_text(x, digits)} for x in NUMBERS for digits in (6, 2, None)
        ],
    }


def letters_of(text: str) -> list[list[str]]:
    return [[letter, LETTERS[letter]] for letter in text]


def flat(x: float) -> float | int | str:
    """A number as the file spells it."""
    x = float(x)
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    minus_zero = x == 0 and math.copysign(1.0, x) < 0
    return int(x) if x.is_integer() and abs(x) < 2**53 and not minus_zero else x


def number(x: float | str) -> float:
    """The inverse of ``flat``."""
    return float(x)


def array(data: dict[str, Any]) -> np.ndarray[Any, Any]:
    """An operand of the file as an array."""
    return np.array([number(x) for x in data["values"]], dtype=np.float64).reshape(data["shape"])


def _operands(shapes: dict[str, str], given: dict[str, Any], sizes: dict[str, float], seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    arrays = {name: rng.normal(size=[int(sizes[LETTERS[a]]) for a in axes]).round(3) for name, axes in shapes.items()}
    arrays |= {name: np.array(value, dtype=np.float64) for name, value in given.items()}
    return {
        name: {"shape": list(value.shape), "values": [flat(x) for x in value.ravel()]} for name, value in arrays.items()
    }


def _case(case: Case, seed: int) -> dict[str, Any]:
    sizes = {**SIZES, **case.sizes}
    data = {
        "name": case.title,
        "target": "y",
        "face": "",
        "letters": letters_of(case.letters),
        "dims": sizes,
        "source": case.text,
        "expr": to_json(parse_expression(case.text)),
        "operands": _operands(case.shapes, case.given, sizes, seed),
    }
    data["value"] = value_of(data)
    cells = case.cells or [tuple(0 for _ in case.letters)]
    data["cells"] = [{"index": list(cell), "lines": lines_of(data, cell)} for cell in cells]
    return data


def _gradient(case: GradientCase, seed: int) -> dict[str, Any]:
    data = {
        "name": case.title,
        "target": "x",
        "face": "grad",
        "dims": dict(SIZES),
        "contributions": [
            {
                "consumer": consumer,
                "letters": letters_of(letters),
                "source": text,
                "expr": to_json(parse_expression(text)),
            }
            for consumer, letters, text in case.contributions
        ],
        "operands": _operands(case.shapes, {}, SIZES, 1000 + seed),
    }
    data["value"] = value_of(data)
    data["cells"] = [{"index": list(cell), "lines": lines_of(data, cell)} for cell in case.cells]
    return data


def statements_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The statements of a case: itself, or the contributions of a gradient."""
    return data.get("contributions", [{**data, "consumer": None}])


def value_of(data: dict[str, Any]) -> list[float | int | str]:
    """The value of a case, flattened, by the array evaluator."""
    values = {name: array(x) for name, x in data["operands"].items()}
    total = sum(
        evaluate(from_json(s["expr"]), [tuple(pair) for pair in s["letters"]], values, data["dims"])
        for s in statements_of(data)
    )
    return [flat(x) for x in np.asarray(total).ravel()]


def explanation_of(data: dict[str, Any], cell: Sequence[int]) -> CellExplanation:
    """The arithmetic of one cell of a case."""
    values = {name: array(x) for name, x in data["operands"].items()}
    evaluator = ScalarEvaluator(values, data["dims"])
    parts = []
    for s in statements_of(data):
        at = {letter: k for (letter, _), k in zip(s["letters"], cell, strict=True)}
        parts.append(arithmetic(from_json(s["expr"]), at, evaluator, s["consumer"]))
    value = added_up(part.value for part in parts)
    return CellExplanation(data["target"], data["face"], tuple(cell), tuple(parts), value)


def lines_of(data: dict[str, Any], cell: Sequence[int]) -> list[str]:
    return text_lines(explanation_of(data, cell))


def as_text(vectors: dict[str, Any]) -> str:
    """The file: strict JSON, one case a line."""

    def rows(items: list[Any]) -> str:
        return ",\n".join(json.dumps(item, ensure_ascii=False, allow_nan=False) for item in items)

    parts = ",\n".join(f'"{name}": [\n{rows(items)}\n]' for name, items in vectors.items())
    return f"{{\n{parts}\n}}\n"


if __name__ == "__main__":
    FILE.write_text(as_text(build()), encoding="utf-8")
