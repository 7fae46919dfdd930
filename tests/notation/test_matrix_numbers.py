"""Matrix formulas with numbers: what stands in them computes the result that stands behind them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from decoders import CONFIGS
from glassformer.model import definitions
from glassformer.notation.matrix import matrix_face
from glassformer.notation.matrix_numbers import mask_latex, number_matrix, numbers_latex
from glassformer.notation.symbols import style_of

from .test_matrix import operands


def matrices(text: str) -> list[np.ndarray]:
    """Every ``bmatrix`` of a formula as an array."""
    found = []
    for body in re.findall(r"\\begin\{bmatrix\} (.*?) \\end\{bmatrix\}", text):
        cells = [[cell.replace(r"\infty", "inf") for cell in row.split(" & ")] for row in body.split(r" \\ ")]
        found.append(
            np.array([[float(re.sub(r"\\cdot 10\^\{(-?\d+)\}", r"e\1", cell)) for cell in row] for row in cells])
        )
    return found


def test_a_number_a_row_and_a_matrix() -> None:
    assert number_matrix(np.array(-0.5)) == "-0.5"
    assert number_matrix(np.array([1.0, 2.0])) == r"\begin{bmatrix} 1 & 2 \end{bmatrix}"
    assert number_matrix(np.array([[0.0, -np.inf], [1e-7, 0.25]])) == (
        r"\begin{bmatrix} 0 & -\infty \\ 1\cdot 10^{-7} & 0.25 \end{bmatrix}"
    )


def test_of_a_large_matrix_the_cell_looked_at_is_shown_and_what_is_left_out_is_dots() -> None:
    grid = np.arange(400.0).reshape(20, 20)
    text = number_matrix(grid, row=7, column=19)
    assert text == (
        r"\begin{bmatrix} 0 & 1 & 2 & \cdots & 19 \\ 20 & 21 & 22 & \cdots & 39 \\ 40 & 41 & 42 & \cdots & 59 \\ "
        r"\vdots & \vdots & \vdots & \ddots & \vdots \\ 140 & 141 & 142 & \cdots & 159 \\ "
        r"\vdots & \vdots & \vdots & \ddots & \vdots \\ 380 & 381 & 382 & \cdots & 399 \end{bmatrix}"
    )
    assert "dots" not in number_matrix(np.zeros((10, 10)))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_formula_ends_with_the_numbers_of_its_quantity(name: str) -> None:
    program = definitions(CONFIGS[name], 3)
    values, style, compared = operands(program, 7), style_of(program), 0
    for statement in program.statements:
        face = matrix_face(statement, program)
        if face is None:
            continue
        cell = tuple(size - 1 for size in program.shape(statement.target))
        text = numbers_latex(face, program, values, cell, style)
        whole = face.evaluate(values, program.scalars)
        heads = [k for k, (letter, _) in enumerate(statement.letters) if letter in "hk"]
        part = whole[tuple(cell[k] if k in heads else slice(None) for k in range(whole.ndim))]
        if text is None or part.size == 0 or r"\cdots" in text or part.ndim == 0:
            continue
        result = matrices(text)[-1]
        np.testing.assert_allclose(result.ravel(), part.ravel(), atol=6e-7, rtol=6e-6, err_msg=text)
        compared += 1
    assert compared > len(program.statements) / 3


def test_the_numbers_of_a_product_multiply_to_the_result() -> None:
    program = definitions(CONFIGS["no biases"], 3)
    values = operands(program, 7)
    (statement,) = [s for s in program.forward if s.target == "blocks.0.attn.Z"]
    face = matrix_face(statement, program)
    assert face is not None
    text = numbers_latex(face, program, values, (1, 2, 0))
    assert text is not None
    assert text.startswith("Z^{(2)} = ")
    A, V, Z = matrices(text)
    np.testing.assert_allclose(A @ V, Z, atol=1e-5)
    np.testing.assert_allclose(A, values["blocks.0.attn.A"][1], atol=1e-6)


def test_what_the_mask_of_a_formula_stands_for_is_said() -> None:
    program = definitions(CONFIGS["everything"], 3)
    said = {}
    for statement in program.forward:
        face = matrix_face(statement, program)
        said[statement.target] = None if face is None else mask_latex(face, style_of(program))
    assert said.pop("blocks.1.attn.S") == said.pop("blocks.0.attn.S")
    assert set(said.values()) == {None}
