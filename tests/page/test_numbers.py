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
from glassformer.page import build
from glassformer.tracing import Trace, header_of, tensors_of, trace

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
    targets = [int(rng.integers(3)) if k or rng.random() < 0.5 else None for k in range(2)]
    return {
        "parameters": {id: rng.normal(size=shape).ravel().tolist() for id, shape in shapes.items()},
        "tokens": rng.integers(0, 3, 2).tolist(),
        "targets": targets,
        "eta": float(rng.choice([0.0, 0.03, 0.1, 1.0])),
    }


def recorded(edit: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The same by PyTorch: the model's own arithmetic and automatic differentiation."""
    model = toy24_model().double()
    with torch.no_grad():
        for id, parameter in model.named_parameters():
            parameter.copy_(torch.tensor(edit["parameters"][id], dtype=torch.float64).reshape(parameter.shape))
    scored = [id is not None for id in edit["targets"]]
    targets = [id or 0 for id in edit["targets"]]
    return tensors_of(trace(model, edit["tokens"], targets, scored, eta=edit["eta"], witness_cells=0))


def err(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """The largest difference in units of the largest number; infinities must match."""
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite]):
        return math.inf
    largest = float(np.max(np.abs(b[finite]), initial=0.0))
    return float(np.max(np.abs(a[finite] - b[finite]), initial=0.0)) / max(1e-300, largest)


def test_fifty_random_edits_recompute_to_what_pytorch_records(open_page: Callable[..., Any], toy: Trace) -> None:
    opened = open_page(build(header_of(toy), tensors_of(toy)))
    shapes = {id: toy.values[id].shape for id in toy.parameters}
    rng = np.random.default_rng(0)
    worst: dict[str, float] = {}
    for _ in range(EDITS):
        edit = random_edit(rng, shapes)
        shown = opened.page.evaluate(APPLY, edit)
        told = recorded(edit)
        assert set(shown) == set(told)
        for key, array in told.items():
            if key == "loss.y":  # the target of a row that is not scored is nobody's number
                continue
            page = np.array([float(x) for x in shown[key]])
            worst[key] = max(worst.get(key, 0.0), err(page, array.ravel()))
    assert max(worst.values()) <= 1e-13, sorted(worst.items(), key=lambda item: -item[1])[:5]


def test_one_edit_recomputes_within_five_milliseconds(open_page: Callable[..., Any], toy: Trace) -> None:
    opened = open_page(build(header_of(toy), tensors_of(toy)))
    assert opened.page.evaluate(TIME) <= 5


def test_the_page_explains_a_cell_as_the_command_line_does(open_page: Callable[..., Any], toy: Trace) -> None:
    from glassformer.notation.cell import explain_cell, text_lines

    opened = open_page(build(header_of(toy), tensors_of(toy)))
    ask = "([key, flat, language]) => window.glassformer.engine.arithmetic(key, flat).text(language)"
    for id, face, cell in (("W_Q", "grad", (1, 0, 0)), ("E", "grad", (0, 0)), ("A", "after", (0, 1, 0)), ("U", "new", (0, 2))):
        placed = toy.program.resolve(id)
        key = f"{placed}.{face}"
        flat = int(np.ravel_multi_index(cell, toy.values[key].shape))
        explanation = explain_cell(toy.program, id, face, cell, toy.values, updates=toy.update)
        for language in ("en", "zh"):
            lines = text_lines(explanation, lang=language)[:-1]  # the last compares with the record
            assert opened.page.evaluate(ask, [key, flat, language]) == lines


def test_header_and_record_reach_the_page_unchanged(open_page: Callable[..., Any], toy: Trace) -> None:
    header = header_of(toy)
    opened = open_page(build(header, tensors_of(toy)))
    assert opened.page.evaluate("() => window.glassformer.header") == json.loads(json.dumps(header))
    for key, array in tensors_of(toy).items():
        told = opened.page.evaluate(
            "key => Array.from(window.glassformer.trace.tensor(key), x => Number.isFinite(x) ? x : String(x))", key
        )
        assert np.array_equal(np.array([float(x) for x in told]), array.ravel())
