"""The checker of derivations: right chains hold, and every way of being wrong is seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from glassformer.notation import Kind, Program, build_program, group, place, quantity
from glassformer.notation.chain import Chain, ChainMisplaced, Step, chain_json, check_chain, place_chain
from glassformer.notation.tree import from_json

S = quantity("S", "S", "scores", "分数", Kind.PARAMETER, "S[i,j]")
A = quantity("A", "A", "coefficients", "系数", Kind.COEFFICIENT, """
A[i,j] = exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)
S.grad[i,j] += A[i,j]*(A.grad[i,j] - sum(A[i,m]*A.grad[i,m] for m in n_k))
""")  # fmt: skip
V = quantity("V", "V", "values", "内容", Kind.PARAMETER, "V[j,e]")
Z = quantity("Z", "Z", "mixed", "混合", Kind.INTERMEDIATE, """
Z[i,e] = sum(A[i,j]*V[j,e] for j in n_k)
A.grad[i,j] += sum(Z.grad[i,e]*V[j,e] for e in d_v)
V.grad[j,e] += sum(A[i,j]*Z.grad[i,e] for i in n)
""")  # fmt: skip
PART = group("part", S, A, V, Z)

PICK = Step(
    "sum(A.grad[i,m]*A[i,m]*((1 if m == j else 0) - A[i,j]) for m in n_k)", "A is a softmax", "A 是 Softmax", ("A",)
)
LAST = Step("", "only m = j is left, then factor", "只剩 m = j，再提出因子")
CHAIN = Chain("softmax", "softmax", "Softmax", "10.6", (A,), "S", (PICK, LAST))


@pytest.fixture
def program() -> Program:
    return build_program([place(PART, "p")], {"n": 3, "n_k": 4, "d_v": 2, "H": 1})


def check(chain: Chain, program: Program) -> tuple[str, ...]:
    return check_chain(chain, program, np.random.default_rng(0)).problems


def test_a_right_chain_holds_and_its_condition_fails_when_broken(program: Program) -> None:
    report = check_chain(CHAIN, program, np.random.default_rng(0))
    assert report.holds
    assert [step.broken is None for step in report.steps] == [False, True]
    assert max(step.err for step in report.steps) <= 1e-12
    assert (report.steps[0].broken or 0) > 1e-3


@pytest.mark.parametrize(
    "wrong",
    [
        "sum(A.grad[i,m]*A[i,m]*((1 if m == j else 0) - A[i,m]) for m in n_k)",
        "sum(A.grad[i,m]*A[i,m]*((1 if m == j else 0) + A[i,j]) for m in n_k)",
        "mean(A.grad[i,m]*A[i,m]*((1 if m == j else 0) - A[i,j]) for m in n_k)",
        "sum(A.grad[i,m]*A[i,m]*(0 - A[i,j]) for m in n_k)",
    ],
)
def test_a_wrong_middle_step_is_refused(program: Program, wrong: str) -> None:
    problems = check(replace(CHAIN, steps=(replace(PICK, text=wrong), LAST)), program)
    assert any("differs from the line above" in problem for problem in problems)


def test_a_condition_given_as_a_rule_is_refused(program: Program) -> None:
    problems = check(replace(CHAIN, steps=(replace(PICK, relies_on=()), LAST)), program)
    assert problems
    assert "line 1 differs" in problems[0]


def test_a_rule_given_as_a_condition_is_refused(program: Program) -> None:
    problems = check(replace(CHAIN, steps=(PICK, replace(LAST, relies_on=("A",)))), program)
    assert "line 2 does not need p.A" in problems[0]


def test_a_condition_that_names_one_quantity_too_many_is_refused(program: Program) -> None:
    problems = check(replace(CHAIN, steps=(replace(PICK, relies_on=("A", "Z")), LAST)), program)
    assert [problem for problem in problems if "does not need p.Z" in problem]
    assert not [problem for problem in problems if "does not need p.A" in problem]


def test_a_wrong_gradient_line_cannot_be_derived() -> None:
    wrong = replace(A, text=A.text.replace("A.grad[i,j] -", "A.grad[i,j] +"))
    program = build_program([place(group("part", S, wrong, V, Z), "p")], {"n": 3, "n_k": 4, "d_v": 2, "H": 1})
    assert check(replace(CHAIN, homes=(wrong,)), program)


def test_first_and_last_line_come_from_the_program(program: Program) -> None:
    placed = place_chain(CHAIN, program)
    (written,) = program.contributions("p.S")
    assert placed.lines[-1].expr == written.expr
    assert placed.letters == written.letters
    assert placed.lines[0].expr != placed.lines[1].expr


def test_another_reader_of_the_target_is_a_broken_condition(program: Program) -> None:
    chain = Chain(
        "values", "values", "内容", "10.5", (Z,), "V", (Step("", "m = j", "m = j"),), intruder="A[i,j] = V[j,e]"
    )
    report = check_chain(
        replace(chain, intruder="Z[i,e] = sum(V[j,e] for j in n_k)"), program, np.random.default_rng(0)
    )
    assert report.holds
    assert (report.steps[0].broken or 0) > 1e-3
    unread = check_chain(replace(chain, intruder="Z[i,e] = Z[i,e]"), program, np.random.default_rng(0))
    assert "changes nothing" in unread.problems[0]


def test_a_chain_without_its_quantities_is_misplaced(program: Program) -> None:
    other = quantity("A", "A", "", "", Kind.COEFFICIENT, A.text)
    with pytest.raises(ChainMisplaced):
        place_chain(replace(CHAIN, homes=(other,)), program)
    with pytest.raises(ChainMisplaced):
        place_chain(replace(CHAIN, target="V"), program)


def test_the_header_form_has_every_step_with_formula_reason_and_tree(program: Program) -> None:
    data = chain_json(CHAIN, program)
    assert (data["id"], data["status"], data["target"], data["face"]) == ("softmax", "derivation", "p.S", "grad")
    assert data["letters"] == [["i", "n"], ["j", "n_k"]]
    assert [step["condition"] for step in data["steps"]] == [False, True, False]
    for step, line in zip(data["steps"], place_chain(CHAIN, program).lines, strict=True):
        assert from_json(step["expr"]) == line.expr
        assert step["latex"]
        assert step["reason"]["en"]
        assert step["reason"]["zh"]
