"""Worksheets: the same numbers from the same seed, and answers that are those of NumPy."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from glassformer.bilingual import same
from glassformer.book.exercise import Choose, Compute, Option
from glassformer.book.exercises import EXERCISES
from glassformer.book.worksheet import worksheet


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_same_seed_gives_the_same_worksheet_and_another_gives_another(lang: str) -> None:
    one, two = (worksheet(EXERCISES.values(), seed=7, lang=lang) for _ in range(2))
    assert one == two
    assert one != worksheet(EXERCISES.values(), seed=8, lang=lang)
    assert one.count("<h2>") == 2 * len(EXERCISES)


def test_answers_of_a_worksheet_are_those_of_numpy() -> None:
    exercise = EXERCISES["outer"]
    assert isinstance(exercise, Compute)
    drawn = exercise.drawn(np.random.default_rng(3))
    values = exercise.values(drawn)
    X, back, W = (drawn[f"ex.{name}"] for name in ("X", "back_Y", "W"))
    np.testing.assert_allclose(values["ex.back_W"], X.T @ back)
    np.testing.assert_allclose(values["ex.back_X"], back @ W.T)
    sheet = worksheet([exercise], seed=3, lang="en")
    numbers = [f"<td>{x:g}</td>" for x in (X.T @ back).reshape(-1)]
    assert all(number in sheet.replace("−", "-") for number in numbers)


def matrices(part: str) -> list[list[float]]:
    """What every table of ``part`` holds, row after row."""
    tables = re.findall(r"<table class=''>(.*?)</table>", part)
    return [[float(x.replace("−", "-")) for x in re.findall(r"<td>([^<]+)</td>", table)] for table in tables]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("seed", [0, 3, 11])
def test_the_printed_answers_belong_to_the_printed_numbers(lang: str, seed: int) -> None:
    """Read off the sheet as a pupil does: given on the first page, answers on the last."""
    asked, answers = worksheet([EXERCISES["outer"]], seed=seed, lang=lang).split('<div class="answers">')
    X, back, W = (np.reshape(x, (2, 2)) for x in matrices(asked))
    back_W, back_X = (np.reshape(x, (2, 2)) for x in matrices(answers))
    np.testing.assert_array_equal(back_W, X.T @ back)
    np.testing.assert_array_equal(back_X, back @ W.T)
    asked, answers = worksheet([EXERCISES["minus-one-hot"]], seed=seed, lang=lang).split('<div class="answers">')
    power, (target,) = matrices(asked)
    p, gradient = matrices(answers)
    np.testing.assert_allclose(p, np.array(power) / sum(power), atol=5e-5)
    np.testing.assert_allclose(gradient, np.array(power) / sum(power) - np.eye(4)[int(target) - 1], atol=5e-5)


def test_a_target_is_counted_from_1() -> None:
    """As the columns of the scores are: of four candidates it is never the 0th, and sometimes the fourth."""
    sheets = (worksheet([EXERCISES["minus-one-hot"]], seed=seed, lang="en") for seed in range(30))
    targets = {int(matrices(sheet.split('<div class="answers">')[0])[1][0]) for sheet in sheets}
    assert targets == {1, 2, 3, 4}


def test_answers_stand_on_the_last_page_only() -> None:
    asked, answers = worksheet([EXERCISES["outer"]], seed=3, lang="en").split('<div class="answers">')
    assert asked.count("<td></td>") == 8
    assert "<td></td>" not in answers


def test_the_order_of_statements_is_drawn_and_each_keeps_its_reason() -> None:
    exercise = EXERCISES["two-roles"]
    assert isinstance(exercise, Choose)
    orders = set()
    for seed in range(8):
        asked, answers = worksheet([exercise], seed=seed, lang="en").split('<div class="answers">')
        texts, whys = (re.findall(r"<li>(.*?)</li>", html.unescape(part)) for part in (asked, answers))
        orders.add(tuple(texts))
        for text, why in zip(texts, whys, strict=True):
            option = next(o for o in exercise.options if o.text["en"] == text)
            assert why == f"{'right' if option.right else 'not right'}. {option.why['en']}"
    assert len(orders) > 2


def test_hostile_text_of_a_statement_is_text() -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    option = Option(same(hostile), True, same(hostile))
    sheet = worksheet([Choose(id="x", text=same(hostile), options=(option,))], seed=0, lang="en")
    assert "<img" not in sheet
    assert sheet.count("&lt;img src=x") == 3
