"""What the page computes is what PyTorch records."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from glassformer.model import toy24_model
from glassformer.notation import Program
from glassformer.tracing import Trace, tensors_of
from glassformer.tracing.record import record, record_forward
from glassformer.tracing.request import sample_of

EDITS = 50
APPLY = """edit => {
  const { engine } = window.glassformer;
  engine.reset();
  for (const [id, cells] of Object.entries(edit.parameters)) cells.forEach((x, flat) => engine.setCell(id, flat, x));
  engine.setTokens(edit.tokens);
  edit.targets.forEach((id, row) => { if (id !== null) engine.setTarget(row, id); });
  edit.targets.forEach((id, row) => { if (id === null) engine.setTarget(row, null); });
  engine.setScalar("eta", edit.eta);
  engine.recompute();
  const spelt = x => Number.isFinite(x) ? x : String(x);
  return Object.fromEntries(engine.keys.map(key => [key, Array.from(engine.value(key), spelt)]));
}"""
TIME = """() => {
  const { engine } = window.glassformer;
  const times = Array.from({ length: 60 }, (_, k) => {
    engine.setCell("blocks.0.attn.W_Q", 1, 1 + k / 100);
    const began = performance.now();
    engine.recompute();
    return performance.now() - began;
  });
  return times.sort((a, b) => a - b)[30];
}"""

pytestmark = pytest.mark.browser


def random_edit(rng: np.random.Generator, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Parameters of moderate size: where a probability is 1 but for rounding, its gradient has no digits to compare."""
    targets = [int(rng.integers(3)) if k or rng.random() < 0.5 else None for k in range(2)]
    return {
        "parameters": {id: rng.normal(0, 0.7, shape).ravel().tolist() for id, shape in shapes.items()},
        "tokens": rng.integers(0, 3, 2).tolist(),
        "targets": targets,
        "eta": float(rng.choice([0.0, 0.03, 0.1, 1.0])),
    }


def recorded(edit: dict[str, Any], program: Program) -> dict[str, np.ndarray[Any, Any]]:
    """The same by PyTorch: the model's own arithmetic and automatic differentiation."""
    model = toy24_model().double()
    sample = sample_of(edit["tokens"], [id or 0 for id in edit["targets"]], [id is not None for id in edit["targets"]])
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for id, parameter in parameters.items():
            parameter.copy_(torch.tensor(edit["parameters"][id], dtype=torch.float64).reshape(parameter.shape))
    values = record(model, sample, program)
    with torch.no_grad():
        for id, parameter in parameters.items():
            values[f"{id}.new"] = values[id] - edit["eta"] * values[f"{id}.grad"]
            parameter.copy_(torch.from_numpy(values[f"{id}.new"]))
    computed = {s.target for s in program.forward}
    after = record_forward(model, sample, program)
    return {**values, **{f"{id}.after": array for id, array in after.items() if id in computed}}


def err(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """The largest difference in units of the largest number; infinities must match."""
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite]):
        return math.inf
    largest = float(np.max(np.abs(b[finite]), initial=0.0))
    return float(np.max(np.abs(a[finite] - b[finite]), initial=0.0)) / max(1e-300, largest)


def test_fifty_random_edits_recompute_to_what_pytorch_records(
    open_page: Callable[..., Any], toy: Trace, toy_page: str
) -> None:
    opened = open_page(toy_page)
    shapes = {id: toy.values[id].shape for id in toy.parameters}
    rng = np.random.default_rng(0)
    worst: dict[str, float] = {}
    for _ in range(EDITS):
        edit = random_edit(rng, shapes)
        shown = opened.page.evaluate(APPLY, edit)
        told = recorded(edit, toy.program)
        assert set(shown) == set(told)
        for key, array in told.items():
            if key == "loss.y":  # the target of a row that is not scored is nobody's number
                continue
            page = np.array([float(x) for x in shown[key]])
            array = np.asarray(array, dtype=np.float64)
            worst[key] = max(worst.get(key, 0.0), err(page, array.ravel()))
    assert max(worst.values()) <= 1e-13, sorted(worst.items(), key=lambda item: -item[1])[:5]


def test_one_edit_recomputes_within_five_milliseconds(open_page: Callable[..., Any], toy_page: str) -> None:
    opened = open_page(toy_page)
    assert opened.page.evaluate(TIME) <= 5


def test_the_page_explains_a_cell_as_the_command_line_does(
    open_page: Callable[..., Any], toy: Trace, toy_page: str
) -> None:
    from glassformer.notation.cell import explain_cell, text_lines

    opened = open_page(toy_page)
    ask = "([key, flat, language]) => window.glassformer.engine.arithmetic(key, flat).text(language)"
    for id, face, cell in (
        ("W_Q", "grad", (1, 0, 0)),
        ("E", "grad", (0, 0)),
        ("A", "after", (0, 1, 0)),
        ("U", "new", (0, 2)),
    ):
        placed = toy.program.resolve(id)
        key = f"{placed}.{face}"
        flat = int(np.ravel_multi_index(cell, toy.values[key].shape))
        explanation = explain_cell(toy.program, id, face, cell, toy.values, updates=toy.update)
        for language in ("en", "zh"):
            lines = text_lines(explanation, lang=language)[:-1]  # the last compares with the record
            assert opened.page.evaluate(ask, [key, flat, language]) == lines


def test_header_and_record_reach_the_page_unchanged(
    open_page: Callable[..., Any], toy: Trace, toy_header: dict[str, Any], toy_page: str
) -> None:
    opened = open_page(toy_page)
    assert opened.page.evaluate("() => window.glassformer.header") == json.loads(json.dumps(toy_header))
    for key, array in tensors_of(toy).items():
        told = opened.page.evaluate(
            "key => Array.from(window.glassformer.trace.tensor(key), x => Number.isFinite(x) ? x : String(x))", key
        )
        assert np.array_equal(np.array([float(x) for x in told]), array.ravel())
