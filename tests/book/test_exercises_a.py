"""The exercises of chapters 1 to 7: every draw can be answered by hand, and answers are those of NumPy."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from glassformer.book.exercise import Compute
from glassformer.book.exercises import EXERCISES, a

Array = np.ndarray[Any, Any]

LANGUAGES = ("zh", "en")


@pytest.mark.parametrize("exercise", [e for e in a.EXERCISES if isinstance(e, Compute)], ids=lambda e: e.id)
def test_every_draw_of_an_exercise_has_answers_that_can_be_written_down(exercise: Compute) -> None:
    program = exercise.program()
    given = {id for id in program.quantities if program.definition(id) is None}
    assert set(exercise.draw) == given
    seen = set()
    for seed in range(30):
        inputs = exercise.drawn(np.random.default_rng(seed))
        for id, x in inputs.items():
            draw = exercise.draw[id]
            assert draw.low <= x.min() <= x.max() <= draw.high
            assert not ((x - draw.low) % draw.step).any()
        values = exercise.values(inputs)
        for asked in exercise.ask:
            answer = values[asked if isinstance(asked, str) else asked[0]]
            assert np.isfinite(answer).all()
            # A fraction with a small denominator: nothing that takes a calculator.
            assert all(abs(Fraction(x).limit_denominator(100) - Fraction(x)) < 1e-12 for x in answer.ravel().tolist())
        seen.add(json.dumps([values[a if isinstance(a, str) else a[0]].tolist() for a in exercise.ask]))
    assert len(seen) > 5
    plain = exercise.plain()
    assert all(plain[part][language] for part in ("text", "title") for language in LANGUAGES)
    json.dumps(plain, allow_nan=False)


def test_the_answers_of_exercises_are_those_of_numpy() -> None:
    def answers(id: str) -> tuple[dict[str, Array], dict[str, Array]]:
        exercise = EXERCISES[id]
        assert isinstance(exercise, Compute)
        inputs = exercise.drawn(np.random.default_rng(3))
        short = {k.removeprefix("ex."): v for k, v in exercise.values(inputs).items()}
        return {k.removeprefix("ex."): v for k, v in inputs.items()}, short

    g, v = answers("shapes")
    H = int(g["size_H"])
    Z = [np.zeros((int(g["size_n"]), int(g["size_v"]))) for _ in range(H)]
    W_O = np.zeros((H * int(g["size_v"]), int(g["size_d"])))
    joined = np.concatenate(Z, axis=1)
    assert (v["rows_C"], v["columns_C"]) == joined.shape
    assert (v["rows_W_O"], v["columns_W_O"]) == W_O.shape
    assert ((joined @ W_O).shape[1], float(g["size_N"])) == (v["rows_U"], v["columns_U"])
    g, v = answers("twice-the-token")
    np.testing.assert_array_equal(v["back"], np.eye(3)[g["t"].astype(int)].T @ g["X_back"])
    g, v = answers("matching")
    np.testing.assert_array_equal(v["S"], g["X"] @ g["W_Q"] @ g["W_K"].T @ g["X"].T)
    g, v = answers("mix")
    np.testing.assert_allclose(v["Z"], (g["power"] / g["power"].sum()) @ g["V"])
    g, v = answers("variance-of-two")
    assert v["whole"] == np.var(g["X"] + g["Y"])
    g, v = answers("masked-shares")
    below = np.tril(g["power"])
    np.testing.assert_allclose(v["A"], below / below.sum(1, keepdims=True))
    g, v = answers("two-layers")
    reads = np.tril(g["link"], -1) + np.eye(4)
    np.testing.assert_array_equal(v["dep_2"], (reads @ reads > 0).astype(float))
