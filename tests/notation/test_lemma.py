"""The checker of lemmas: assumptions are needed exactly where they are named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from glassformer.notation import Kind, NotationError, Program, build_program, group, place, quantity
from glassformer.notation.lemma import Lemma, Premise, check_lemma, grant, lemma_json, place_lemma
from glassformer.notation.steps import Step
from glassformer.notation.tree import from_json

X = quantity("X", "X", "numbers", "若干数", Kind.INTERMEDIATE, "X[i,r]")
Y = quantity("Y", "Y", "squares", "平方", Kind.INTERMEDIATE, "Y[i,r] = X[i,r]**2")
PART = group("part", X, Y)

CENTRED = Premise("centred", "mean 0", "均值为 0", lambda values, rng: {"X": values["X"] - values["X"].mean(0)})
START = Step("mean((X[i,r] - mean(X[m,r] for m in n_k))**2 for i in n)", "variance", "方差")
SHORT = Step("mean(X[i,r]**2 for i in n)", "the mean is 0", "均值为 0", ("centred",))
NAMED = Step("mean(Y[i,r] for i in n)", "squares have a name", "平方有名字", ("Y",))


def program() -> Program:
    return build_program([place(PART, "p", n_k="n")], {"n": 5, "d": 3, "H": 1})


LEMMA = Lemma("variance", "variance", "方差", "7.2", program, "r", (START, SHORT, NAMED), (CENTRED,))


def problems(lemma: Lemma) -> tuple[str, ...]:
    return check_lemma(lemma, np.random.default_rng(0)).problems


def test_a_right_lemma_holds_and_each_assumption_fails_when_it_is_not_granted() -> None:
    report = check_lemma(LEMMA, np.random.default_rng(0))
    assert report.holds
    assert all(step.err <= 1e-12 for step in report.steps)
    assert all(step.broken is not None and step.broken > 1e-3 for step in report.steps)


def test_a_premise_that_is_not_named_is_missed() -> None:
    assert "line 1 differs" in problems(replace(LEMMA, steps=(START, replace(SHORT, relies_on=()), NAMED)))[0]


def test_a_definition_that_is_not_named_is_missed() -> None:
    assert "line 2 differs" in problems(replace(LEMMA, steps=(START, SHORT, replace(NAMED, relies_on=()))))[0]


def test_a_premise_that_is_not_needed_is_refused() -> None:
    steps = (START, SHORT, replace(NAMED, relies_on=("Y", "centred")))
    assert problems(replace(LEMMA, steps=steps)) == ("variance: line 2 does not need centred",)


def test_a_premise_that_grants_nothing_is_refused() -> None:
    empty = replace(CENTRED, impose=lambda values, rng: {})
    assert "line 1 differs" in problems(replace(LEMMA, premises=(empty,)))[0]


def test_a_wrong_line_is_refused() -> None:
    wrong = replace(SHORT, text="mean(X[i,r]**3 for i in n)")
    assert "line 1 differs" in problems(replace(LEMMA, steps=(START, wrong)))[0]


def test_an_assumption_may_hold_now_and_then_by_luck_and_is_still_needed() -> None:
    """One draw in two keeps this one; the checker asks more than once."""
    T = quantity("T", "T", "a table", "表", Kind.INPUT, "T")
    lucky = Premise("lucky", "it is 1", "它是 1", lambda values, rng: {"T": np.array(True)})
    steps = (Step("1 if T else 0", "", ""), Step("1", "", "", ("lucky",)))

    def coin() -> Program:
        return build_program([place(group("part", T), "p")], {"H": 1})

    lemma = Lemma("coin", "", "", "", coin, "", steps, (lucky,))
    assert not [found for seed in range(20) for found in check_lemma(lemma, np.random.default_rng(seed)).problems]


def test_the_first_line_may_be_what_differentiation_makes_of_a_definition() -> None:
    steps = (Step("", "differentiate", "求导"), Step("2*X[i,r]*(1 if r == q else 0)", "power rule", "幂法则"))
    lemma = replace(LEMMA, letters="i r q", steps=steps, derivative=("Y", "X[i,q]"))
    assert problems(lemma) == ()
    wrong = replace(steps[1], text="X[i,r]*(1 if r == q else 0)")
    assert "line 1 differs" in problems(replace(lemma, steps=(steps[0], wrong)))[0]


@pytest.mark.parametrize(
    "changed",
    [
        {"steps": (START, replace(SHORT, text="mean(W[i,r] for i in n)"))},
        {"steps": (START, replace(SHORT, relies_on=("skewed",)))},
        {"steps": (replace(START, text=""), SHORT)},
        {"steps": (replace(START, text=""), SHORT), "derivative": ("X", "X[i,r]")},
    ],
)
def test_what_a_lemma_does_not_have_is_named(changed: dict[str, object]) -> None:
    with pytest.raises(NotationError, match="variance"):
        place_lemma(replace(LEMMA, **changed))  # pyright: ignore[reportArgumentType]


def test_granting_gives_premises_and_definitions_and_nothing_else() -> None:
    placed = place_lemma(LEMMA)
    rng = np.random.default_rng(0)
    nothing, centred, both = (grant(placed, names, rng) for names in ((), ("centred",), ("centred", "p.Y")))
    assert abs(nothing["p.X"].mean(0)).min() > 1e-3
    assert abs(centred["p.X"].mean(0)).max() < 1e-15
    assert not np.allclose(centred["p.Y"], centred["p.X"] ** 2)
    assert np.allclose(both["p.Y"], both["p.X"] ** 2)


def test_the_plain_form_has_lines_and_premises() -> None:
    data = lemma_json(LEMMA)
    assert data["letters"] == [["r", "d"]]
    assert data["premises"] == {"centred": {"en": "mean 0", "zh": "均值为 0"}}
    assert [(step["condition"], step["premises"]) for step in data["steps"]] == [
        (False, []),
        (True, ["centred"]),
        (True, []),
    ]
    for step, line in zip(data["steps"], place_lemma(LEMMA).lines, strict=True):
        assert from_json(step["expr"]) == line.expr
        assert step["latex"]
