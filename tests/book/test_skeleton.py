"""Both languages of a chapter are built alike, with the sections of the notes."""

from __future__ import annotations

import pytest

from book_pieces import chapter

SECTIONS = {1: 3, 2: 3, 3: 3, 4: 3, 5: 3, 6: 5, 7: 5, 8: 7, 9: 4, 10: 9, 11: 7, 12: 5, 13: 4, 14: 4}


@pytest.mark.parametrize("number", SECTIONS)
def test_both_languages_have_the_same_skeleton(number: int) -> None:
    zh, en = chapter(number, "zh"), chapter(number, "en")
    assert zh.skeleton() == en.skeleton()
    assert [s.number for s in zh.sections] == [
        str(number),
        *(f"{number}.{k}" for k in range(1, SECTIONS[number] + 1)),
    ]
