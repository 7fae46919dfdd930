"""The planted shortcut: what the text of 13.4 says follows from a training, whatever the seed."""

from __future__ import annotations

from fractions import Fraction

import pytest

from glassformer.book.shortcut import SHOWN, Measured, learned, questions, shortcut
from glassformer.errors import UserError

FOUND: dict[tuple[int, Fraction], list[Measured]] = {}


def found(seed: int, told: Fraction) -> list[Measured]:
    key = (seed, told)
    if key not in FOUND:
        FOUND[key] = learned(told, seed=seed)
    return FOUND[key]


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.full) for k in (1, 2, 3))])
def test_a_lower_loss_goes_with_fewer_right_answers(seed: int) -> None:
    marked, tossed = found(seed, Fraction(1)), found(seed, Fraction(1, 2))
    assert [m.step for m in marked] == [m.step for m in tossed] == list(SHOWN)
    assert marked[0] == tossed[0], "both begin alike"
    for with_marks, without in zip(marked[1:], tossed[1:], strict=True):
        assert with_marks.loss < without.loss
        assert with_marks.lied_to < without.lied_to
    assert [m.loss for m in marked] == sorted((m.loss for m in marked), reverse=True)
    assert (marked[-1].right, marked[-1].lied_to) == (pytest.approx(1), 0)
    # It is not that such a model could not compare letters.
    assert (tossed[-1].right, tossed[-1].lied_to) == (pytest.approx(1), pytest.approx(1))


def test_the_report_holds_the_figures_that_the_text_names_and_refuses_others() -> None:
    marked, tossed = found(0, Fraction(1)), found(0, Fraction(1, 2))
    report = shortcut(marked, tossed)
    assert report.values["marked_loss"] == marked[-1].loss < report.values["tossed_loss"] == tossed[-1].loss
    assert (report.values["marked_lied_to"], report.values["tossed_lied_to"]) == (0, pytest.approx(1))
    assert report.tables[0].rows[-1] == (SHOWN[-1], marked[-1].loss, marked[-1].right, 0)
    with pytest.raises(UserError, match="lower loss does not go with fewer right answers"):
        shortcut(tossed, marked)


def test_a_training_is_the_same_when_it_is_repeated() -> None:
    assert learned(Fraction(1)) == found(0, Fraction(1))


def test_the_marks_agree_as_often_as_they_are_told_to() -> None:
    for told in (Fraction(0), Fraction(1, 2), Fraction(1)):
        language = questions(told)
        texts = [language.text(k).removesuffix("<end>") for k in range(len(language.rows))]
        assert all((text[0] == text[1]) == text.endswith("same") for text in texts)
        marks = [(text[2] == "+") == text.endswith("same") for text in texts]
        share = sum(p for p, yes in zip(language.probabilities, marks, strict=True) if yes)
        assert share == pytest.approx(float(told))
        same = sum(p for p, text in zip(language.probabilities, texts, strict=True) if text.endswith("same"))
        assert same == pytest.approx(0.5)
        assert language.scored.sum(1).tolist() == [1] * len(texts)
