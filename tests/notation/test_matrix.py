"""The matrix face of every definition: its value against the index face, its text, and what has no matrix face."""

from __future__ import annotations

import numpy as np
import pytest

from decoders import CONFIGS, err
from glassformer.model import definitions
from glassformer.model.toy24 import CONFIG as TOY24
from glassformer.notation import Kind, Program, build_program, evaluate, group, place, quantity
from glassformer.notation.matrix import matrix_face
from glassformer.notation.operands import complete, draw

# Which position may be read is a comparison of two positions, not algebra of matrices.
WITHOUT_MATRIX_FACE = {"mask.allowed"}


def operands(program: Program, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = draw((s.expr for s in program.statements), program, rng)
    return complete(values, (s.target for s in program.forward), program, rng)


@pytest.mark.parametrize("name", CONFIGS)
def test_both_faces_of_every_definition_give_the_same_numbers(name: str) -> None:
    program = definitions(CONFIGS[name], 5)
    values = operands(program, 7)
    compared = 0
    for statement in program.statements:
        face = matrix_face(statement, program)
        if face is not None:
            index = evaluate(statement.expr, statement.letters, values, program.scalars)
            matrix = face.evaluate(values, program.scalars)
            assert matrix.dtype == np.float64
            assert err(matrix, index) <= 1e-12, face.latex(program)
            compared += 1
    assert compared == len(program.statements) - 1


@pytest.mark.parametrize("name", CONFIGS)
def test_only_the_mask_has_no_matrix_face(name: str) -> None:
    program = definitions(CONFIGS[name], 5)
    assert {s.target for s in program.statements if matrix_face(s, program) is None} == WITHOUT_MATRIX_FACE


def test_the_toys_matrix_formulas_are_those_of_the_notes() -> None:
    program = definitions(TOY24, 2)
    found = {}
    for statement in program.statements:
        face = matrix_face(statement, program)
        if face is not None:
            found.setdefault((statement.target.rpartition(".")[2], statement.face), []).append(face.latex(program))
    expected = {
        ("Q", ""): r"Q = X W_Q",
        ("S", ""): r"S = \frac{Q K^\top}{\sqrt{d_k}} + M",
        ("A", ""): r"A = \operatorname{softmax}_{\text{row}}(S)",
        ("Z", ""): r"Z = A V",
        ("R", ""): r"R = X + O",
        ("logits", ""): r"\Lambda = R U",
        ("U", "grad"): r"\bar U = R^\top \bar \Lambda",
        ("W_O", "grad"): r"\bar W_O = Z^\top \bar O",
        ("Z", "grad"): r"\bar Z = \bar O W_O^\top",
        ("A", "grad"): r"\bar A = \bar Z V^\top",
        ("V", "grad"): r"\bar V = A^\top \bar Z",
        ("S", "grad"): r"\bar S = A \odot (\bar A - \operatorname{rowsum}(A \odot \bar A) \mathbf 1^\top)",
        ("Q", "grad"): r"\bar Q = \frac{\bar S K}{\sqrt{d_k}}",
        ("K", "grad"): r"\bar K = \frac{\bar S^\top Q}{\sqrt{d_k}}",
        ("W_Q", "grad"): r"\bar W_Q = X^\top \bar Q",
        ("E", "grad"): r"\bar E = \operatorname{onehot}(t)^\top \bar X",
    }
    assert {name: found[name][0] for name in expected} == expected
    assert [text.split(" ", 1)[1][:14] for text in found["X", "grad"]] == [r"X \mathrel{+}="] * 4


def test_heads_are_carried_along_and_summed_where_they_are_bound() -> None:
    program = definitions(CONFIGS["attention alone"], 4)
    texts = {}
    for statement in program.statements:
        face = matrix_face(statement, program)
        if face is not None:
            texts[statement.target, statement.face, statement.consumer] = face.latex(program)
    attn = "blocks.0.attn."
    at = "(1,h)" if "(1,h)" in texts[f"{attn}Q", "", f"{attn}Q"] else "(h)"
    mine = {key[0].removeprefix(attn) + key[1]: text for key, text in texts.items() if key[0].startswith(attn)}
    assert f"W_Q^{{{at}}}" in mine["Q"]
    assert rf"K^{{{at}\top}}" in mine["S"]
    assert r"\sum_{h=1}^{H}" in mine["O"]
    assert rf"W_O^{{{at}\top}}" in mine["Zgrad"]


def program_of(text: str, kind: Kind = Kind.INTERMEDIATE) -> Program:
    part = group(
        "part",
        quantity("X", "X", "", "", Kind.PARAMETER, "X[i,r]"),
        quantity("W", "W", "", "", Kind.PARAMETER, "W[r,h,c]"),
        quantity("K", "K", "", "", Kind.PARAMETER, "K[h,j,c]"),
        quantity("g", "g", "", "", Kind.PARAMETER, "g[r]"),
        quantity("u", "u", "", "", Kind.PARAMETER, "u[i]"),
        quantity("x", "x", "", "", Kind.PARAMETER, "x"),
        quantity("y", "y", "", "", Kind.INPUT, "y[i]"),
        quantity("mask", "J", "", "", Kind.INPUT, "mask[i,r]"),
        quantity("T", "T", "", "", kind, text),
    )
    sizes = {"n": 3, "n_k": 4, "d": 5, "H": 2, "d_k": 2, "N": 6, "eta": 0.1}
    return build_program([place(part, "p")], sizes)


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("T[h,i,c] = sum(X[i,r]*W[r,h,c]*g[r] for r in d)", r"T^{(h)} = (X \odot \mathbf 1 g) W^{(h)}"),
        ("T[r,h,c] = W[r,h,c] - eta*W[r,h,c]", r"T^{(h)} = W^{(h)} - \eta\,W^{(h)}"),
        ("T[i] = sum(X[i,r]*g[r] for r in d)", r"T = X g^\top"),
        ("T[r] = sum(X[i,r]*u[i] for i in n)", r"T = u^\top X"),
        ("T[r,i] = X[i,r]", r"T = X^\top"),
        ("T = sum(u[i]*u[i] for i in n)", r"T = \mathbf 1^\top (u \odot u)"),
        ("T[i,r] = x*X[i,r] if X[i,r] > 0 else 0", r"T = \left[X > 0\right] \odot x\,X"),
        ("T[i,r] = X[i,r]*u[i]/g[r]", r"T = (X \odot u \mathbf 1^\top) \oslash \mathbf 1 g"),
        ("T[i,r] = u[i]*g[r]", r"T = u \mathbf 1^\top \odot \mathbf 1 g"),
        ("T[r,q] = sum(X[i,r]*X[i,q] for i in n)", r"T = X^\top X"),
        ("T[i,w] = u[i]*(1 if y[i] == w else 0)", r"T = u \mathbf 1^\top \odot \operatorname{onehot}(y)"),
        ("T[i] = mean(X[i,r]*g[r] for r in d)", r"T = \frac{X g^\top}{d}"),
        ("T[i,r] = -(X[i,r] + x)**2", r"T = -(X + x \mathbf 1 \mathbf 1^\top)^{\odot 2}"),
        ("T[h,r] = sum(W[r,h,c] for c in d_k)", r"T^{(h)} = \mathbf 1^\top W^{(h)\top}"),
        ("T[i,r] = X[i,r] if mask[i,r] else 0", r"T = \mathbf 1_{J} \odot X"),
    ],
)
def test_small_formulas_print_and_evaluate_as_matrices(text: str, latex: str) -> None:
    program = program_of(text)
    statement = program.definition("p.T")
    assert statement is not None
    values = draw([statement.expr], program, np.random.default_rng(8))
    face = matrix_face(statement, program)
    assert face is not None
    index = evaluate(statement.expr, statement.letters, values, program.scalars)
    assert err(face.evaluate(values, program.scalars), index) <= 1e-12
    assert face.latex(program) == latex


@pytest.mark.parametrize(
    "text",
    [
        "T[r,h,c] = sum(X[i,r]*X[i,r]*W[r,h,c] for i in n)*max(X[i,r] for i in n)",
        "T[i] = max(X[i,r] for r in d)",
        "T[i,r] = X[i,r] if X[i,r] > 0 else 2*X[i,r]",
        "T[i,r] = X[i,r]*r",
        "T[i,r] = sum(X[i,r]*K[h,j,c] for h in H for j in n_k for c in d_k)*g[r]**u[i]",
    ],
)
def test_what_is_no_matrix_algebra_has_no_matrix_face(text: str) -> None:
    program = program_of(text)
    statement = program.definition("p.T")
    assert statement is not None
    assert matrix_face(statement, program) is None


def test_the_mask_of_the_score_gradient_stays_where_the_coefficients_are_not_a_softmax_of_masked_scores() -> None:
    part = group(
        "part",
        quantity("allowed", "J", "", "", Kind.INPUT, "allowed[i,j]"),
        quantity("S", "S", "", "", Kind.PARAMETER, "S[i,j]"),
        quantity("A", "A", "", "", Kind.COEFFICIENT, "A[i,j] = exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)"),
        quantity("T", "T", "", "", Kind.INTERMEDIATE, "T[i,j] = A[i,j]*S[i,j] if allowed[i,j] else 0"),
    )
    program = build_program([place(part, "p")], {"n": 3, "n_k": 4})
    statement = program.definition("p.T")
    assert statement is not None
    face = matrix_face(statement, program)
    assert face is not None
    assert face.latex(program) == r"T = \mathbf 1_{J} \odot A \odot S"
