"""The exercises of chapters 8 to 14: every draw can be answered by hand, and answers are those of NumPy."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from glassformer.book.exercise import Choose, Compute
from glassformer.book.exercises import EXERCISES, a, b

Array = np.ndarray[Any, Any]
LANGUAGES = ("zh", "en")
DENOMINATOR = 400
"""Softmax of three powers up to 4, squared: the largest denominator of an answer."""


@pytest.mark.parametrize("exercise", [e for e in b.EXERCISES if isinstance(e, Compute)], ids=lambda e: e.id)
def test_every_draw_of_an_exercise_has_answers_that_can_be_written_down(exercise: Compute) -> None:
    program = exercise.program()
    assert set(exercise.draw) == {id for id in program.quantities if program.definition(id) is None}
    seen = set()
    for seed in range(30):
        inputs = exercise.drawn(np.random.default_rng(seed))
        for id, x in inputs.items():
            assert exercise.draw[id].low <= x.min() <= x.max() <= exercise.draw[id].high
        values = exercise.values(inputs)
        asked = [values[a if isinstance(a, str) else a[0]] for a in exercise.ask]
        for answer in asked:
            assert np.isfinite(answer).all()
            near = [Fraction(x).limit_denominator(DENOMINATOR) for x in answer.ravel().tolist()]
            np.testing.assert_allclose([float(x) for x in near], answer.ravel(), atol=1e-12)
        seen.add(json.dumps([answer.tolist() for answer in asked]))
    assert len(seen) > 5
    plain = exercise.plain()
    assert all(plain[part][language] for part in ("text", "title") for language in LANGUAGES)
    json.dumps(plain, allow_nan=False)


def drawn(id: str, seed: int) -> tuple[dict[str, Array], dict[str, Array]]:
    exercise = EXERCISES[id]
    assert isinstance(exercise, Compute)
    inputs = exercise.drawn(np.random.default_rng(seed))
    values = exercise.values(inputs)
    given, found = ({k.removeprefix("ex."): v for k, v in each.items()} for each in (inputs, values))
    return given, found


@pytest.mark.parametrize("seed", range(5))
def test_the_answers_of_exercises_are_those_of_numpy(seed: int) -> None:
    g, v = drawn("normalise", seed)
    np.testing.assert_allclose([v["mu"], v["var"]], [np.mean(g["x"]), np.var(g["x"])])
    g, v = drawn("two-roads", seed)
    np.testing.assert_array_equal(v["back_x"], g["back_y"] @ (np.eye(2) + g["W"]).T)
    g, v = drawn("whole-text", seed)
    p = g["power"] / g["power"].sum(1, keepdims=True)
    np.testing.assert_allclose(v["whole"], np.prod(p[[0, 1], g["y"].astype(int)]))
    g, v = drawn("minus-one-hot", seed)
    p = g["power"] / g["power"].sum()
    np.testing.assert_allclose(v["back"], p - np.eye(4)[int(g["target"])])
    g, v = drawn("outer", seed)
    np.testing.assert_array_equal(v["back_W"], g["X"].T @ g["back_Y"])
    np.testing.assert_array_equal(v["back_X"], g["back_Y"] @ g["W"].T)
    g, v = drawn("scores-back", seed)
    a = g["power"] / g["power"].sum()
    np.testing.assert_allclose(v["back_S"], (np.diag(a) - np.outer(a, a)) @ g["back_A"], atol=1e-14)
    g, v = drawn("keep-two", seed)
    kept = g["power"] >= np.sort(g["power"])[-2]
    np.testing.assert_allclose(v["final"], np.where(kept, g["power"], 0) / g["power"][kept].sum())
    g, v = drawn("reuse", seed)
    n, held = int(g["held"] + g["fresh"]), int(g["held"])
    assert (v["without"], v["using"]) == (np.tri(n).sum(), np.tri(n)[held:].sum())


@pytest.mark.parametrize("seed", range(5))
def test_a_tied_table_receives_what_moving_its_cells_shows(seed: int) -> None:
    """Central differences of a loss in which one table is looked up and scores."""
    g, v = drawn("tied-roads", seed)
    t, y = g["t"].astype(int), int(g["target"])
    # The scores at E are those drawn; moving E moves them by its rows times the hidden row.
    start = np.log(g["power"])

    def loss(change: Array) -> float:
        scores = start + change @ g["hidden"]
        return float(np.log(np.exp(scores).sum()) - scores[y] + (change[t] * g["back_X"]).sum())

    cells = np.eye(6).reshape(6, 3, 2) * 1e-5
    measured = [(loss(cell) - loss(-cell)) / 2e-5 for cell in cells]
    np.testing.assert_allclose(v["back"].ravel(), measured, atol=1e-8)


@pytest.mark.parametrize("exercise", [e for e in EXERCISES.values() if isinstance(e, Choose)], ids=lambda e: e.id)
def test_every_choice_has_right_and_wrong_statements_each_with_its_reason_in_both_languages(exercise: Choose) -> None:
    plain = exercise.plain()
    assert {option["right"] for option in plain["options"]} == {True, False}
    for text in [plain["text"], *(part for option in plain["options"] for part in (option["text"], option["why"]))]:
        assert all(text[language] for language in LANGUAGES)
    for language in LANGUAGES:
        assert len({option["text"][language] for option in plain["options"]}) == len(plain["options"])


def test_no_id_is_given_twice() -> None:
    assert len(EXERCISES) == len(a.EXERCISES) + len(b.EXERCISES)
