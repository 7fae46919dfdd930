"""Every worked example, exercise and run of the whole book, worked through in a browser: its numbers are Python's."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from book.test_book_page import go
from glassformer.book.build import CHAPTERS
from glassformer.book.example import places_in
from glassformer.book.examples import EXAMPLES
from glassformer.book.exercise import Choose, Compute
from glassformer.book.exercises import EXERCISES
from glassformer.book.library import Library
from page.reader import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from browsing import Opened

pytestmark = pytest.mark.browser

CLOSE = 1e-9
CELLS = "cells => cells.map(cell => [cell.dataset.cell, cell.title])"
RUN = """name => {
    const { engine, trace } = window.glassformerBook.shelf.run(name, "compare")
    return Object.fromEntries(trace.keys.map(key => [key, Array.from(engine.value(key), String)]))
}"""

FEW = (2, 11)
"""Chapters that are worked through at every run of the tests."""


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf"))


def shown(place: Locator) -> dict[str, float]:
    """Every number that stands under ``place``, by its cell."""
    return {cell: number(title) for cell, title in place.locator("button.number[data-cell]").evaluate_all(CELLS)}


def require_equal(place: Locator, values: Mapping[str, Any], places: set[str], about: str) -> None:
    """Raise unless every number on the page is the one of ``values``; those of ``places`` are counted from 1."""
    found = shown(place)
    assert found, f"{about}: nothing is shown"
    for cell, x in found.items():
        id, _, flat = cell.rpartition(":")
        wanted = float(np.asarray(values[id], dtype=np.float64).reshape(-1)[int(flat)]) + (id in places)
        assert x == wanted or math.isclose(x, wanted, rel_tol=CLOSE, abs_tol=CLOSE), (about, cell, x, wanted)


def work_example(page: Page, id: str) -> None:
    """As it opens, after an edit of its first field, and put back: three times what Python computes."""
    example = EXAMPLES[id]
    program = example.program()
    places = places_in(program) | set(example.places)
    place = page.locator(f'.shown [data-example="{id}"]')
    place.scroll_into_view_if_needed()
    require_equal(place, example.values(), places, id)
    field = place.locator("input.field").first
    cell = field.get_attribute("data-cell") or ""
    target, _, flat = cell.rpartition(":")
    inputs = {key: np.array(x, dtype=np.float64) for key, x in example.inputs.items()}
    old = inputs[target].reshape(-1)[int(flat)]
    new = (1 if old != 1 else 0) if target in places else old + 1
    inputs[target].reshape(-1)[int(flat)] = new
    field.fill(repr(float(new + (target in places))))
    field.press("Enter")
    eventually(place.locator(".live-tools button")).to_be_enabled()
    changed = dataclasses.replace(example, inputs=inputs)
    require_equal(place, changed.values(), places, f"{id} with {cell} = {new}")
    place.locator(".live-tools button").click()
    require_equal(place, example.values(), places, f"{id} put back")


def given_in(place: Locator, exercise: Compute) -> dict[str, Any]:
    """The numbers of this try, read off the page and counted from 0 where the program does."""
    program = exercise.program()
    places = places_in(program)
    found = shown(place)
    return {
        id: np.array(
            [found[f"{id}:{k}"] - (id in places) for k in range(math.prod(program.shape(id)))], dtype=np.float64
        ).reshape(program.shape(id))
        for id in exercise.draw
    }


def work_compute(place: Locator, exercise: Compute) -> None:
    """Python's answers are all right; of other numbers, a wrong answer is told, and the hint says what Python says."""
    for wrong in (False, True):
        values = exercise.values(given_in(place, exercise))
        fields = place.locator("input.answer")
        asked = fields.evaluate_all("fields => fields.map(field => field.dataset.answer)")
        answers = {cell: _at(values, cell) for cell in asked}
        for cell, x in answers.items():
            place.locator(f'input[data-answer="{cell}"]').fill(f"{x + (wrong and cell == asked[0]):.6g}")
        place.locator(".answer-tools button.primary").click()
        if not wrong:
            eventually(place.locator(".verdict.right")).to_be_visible()
            place.locator(".answer-tools button").nth(1).click()
            eventually(place.locator("input.answer").first).to_have_value("")
            continue
        eventually(place.locator(".verdict.wrong")).to_be_visible()
        assert place.locator("input.answer.wrong").evaluate_all("x => x.map(y => y.dataset.answer)") == asked[:1]
        place.locator(".verdict button").click()
        told = number(place.locator(".told [data-role=result]").inner_text())
        assert math.isclose(told, answers[asked[0]], rel_tol=CLOSE, abs_tol=CLOSE), exercise.id


def _at(values: Mapping[str, Any], cell: str) -> float:
    id, _, flat = cell.rpartition(":")
    return float(np.asarray(values[id]).reshape(-1)[int(flat)])


def work_choose(place: Locator, exercise: Choose) -> None:
    """Every option says whether it is right, and why, as Python has it."""
    options = place.locator(".options > li")
    assert options.count() == len(exercise.options)
    for k in range(options.count()):
        options.nth(k).locator("button").click()
        eventually(options.nth(k).locator("p")).to_be_visible()
    right = place.locator(".options > li.right").count()
    assert right == sum(option.right for option in exercise.options), exercise.id
    assert place.locator(".options > li.wrong").count() == len(exercise.options) - right


def work_run(page: Page, name: str) -> None:
    """Every number that the page computes of a run is the one that Python recorded."""
    trace = Library().run(name)
    found = page.evaluate(RUN, name)
    assert set(found) == set(trace.values)
    for key, x in trace.values.items():
        numbers = np.array([float(text.replace("Infinity", "inf")) for text in found[key]])
        np.testing.assert_allclose(numbers, x.reshape(-1).astype(np.float64), rtol=CLOSE, atol=CLOSE, err_msg=key)


def work_chapter(page: Page, chapter: int, lang: str) -> int:
    """How many examples, exercises and runs it has; each was worked through."""
    go(page, f"#{lang}-{chapter}")
    eventually(page.locator(f'article.shown[data-chapter="{chapter}"][lang|="{lang}"]')).to_be_visible()
    worked = 0
    for id in page.locator(".shown .live[data-example]").evaluate_all("all => all.map(x => x.dataset.example)"):
        work_example(page, id)
        worked += 1
    for place in page.locator(".shown .exercise[data-exercise]").all():
        exercise = EXERCISES[place.get_attribute("data-exercise") or ""]
        work_compute(place, exercise) if isinstance(exercise, Compute) else work_choose(place, exercise)
        worked += 1
    for name in set(page.locator(".shown .run[data-run]").evaluate_all("all => all.map(x => x.dataset.run)")):
        work_run(page, name)
        worked += 1
    return worked


@pytest.mark.parametrize("chapter", FEW)
def test_what_two_chapters_compute_is_what_python_computes(
    open_page: Callable[..., Opened], whole_book: str, chapter: int
) -> None:
    page = open_page(whole_book, viewport={"width": 1280, "height": 900}).page
    assert work_chapter(page, chapter, "zh") >= 2


@pytest.mark.full
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_example_exercise_and_run_of_the_book_computes_what_python_computes(
    open_page: Callable[..., Opened], whole_book: str, lang: str
) -> None:
    page = open_page(whole_book, viewport={"width": 1280, "height": 900}).page
    worked = sum(work_chapter(page, chapter, lang) for chapter in range(1, CHAPTERS + 1))
    # Some exercises stand in chapter 14 a second time.
    assert worked >= len(EXAMPLES) + len(EXERCISES)
