"""``glassformer book`` and ``glassformer worksheet``: a file, never over another unasked, and how they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from glassformer.book import build, runs
from glassformer.errors import UserError

from .commands import quietly, run
from .runs import OF_CLINIC, SMALL, refused, words_file

STUB = '<html lang="en"><body><!--BOOK-CHAPTERS--><!--BOOK-DATA--></body></html>'
HOSTILE = ("<img src=x onerror=alert(1)>", "\x1b[31mred", "[/]")


@pytest.fixture(scope="module")
def clinic_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has seen thirty batches: enough for every number of the book to exist."""
    out = tmp_path_factory.mktemp("book") / "clinic"
    assert quietly("train", "clinic", "--lang", "zh", "--out", str(out), "--steps", "30", *OF_CLINIC) == 0
    return out


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's own script is not needed here, and a checkout need not have built it."""
    monkeypatch.setattr(build, "template", lambda: STUB)


@pytest.mark.usefixtures("stub")
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_book_is_one_file_of_the_run_that_was_given(
    clinic_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], lang: str
) -> None:
    out = tmp_path / "book.html"
    done = run(capsys, "book", "--run", str(clinic_run), "--out", str(out), "--lang", lang)
    assert (done.code, done.err) == (0, "")
    text = out.read_text("utf-8")
    assert f"{len(text.encode()) / 1e6:.1f} MB" in done.out
    assert text.startswith(f'<html lang="{"zh-CN" if lang == "zh" else "en"}">')
    assert text.count("<article ") == 28
    assert len(text.encode()) < 7_000_000
    blocks = re.findall(r'<script type="application/json" data-book="\w+">(.*?)</script>', text, re.DOTALL)
    assert blocks
    for block in blocks:
        json.loads(block, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    # Numbers of this run, not of a stand-in: a model that has hardly been trained is no expert.
    (p,) = {
        float(x) for x in re.findall(r'<data class="num" value="([^"]+)" data-from="measured" data-name="p">', text)
    }
    assert 0 < p < 0.5


@pytest.mark.usefixtures("stub")
def test_a_book_that_is_there_is_not_overwritten_unasked(
    clinic_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "book.html"
    out.write_text("mine")
    refused(run(capsys, "book", "--run", str(clinic_run), "--out", str(out)), "exists already", "--force")
    assert out.read_text() == "mine"
    assert run(capsys, "book", "--run", str(clinic_run), "--out", str(out), "--force").code == 0
    assert out.read_text("utf-8").startswith("<html")


@pytest.mark.usefixtures("stub")
def test_what_is_no_run_of_the_clinic_language_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "book.html"
    none = run(capsys, "book", "--run", str(tmp_path / "none"), "--out", str(out))
    refused(none, "no run folder", "none", "glassformer train clinic --out")
    other = tmp_path / "english"
    train = ("train", "clinic", "--lang", "en", "--out", str(other), "--steps", "2", *OF_CLINIC)
    assert quietly(*train) == 0
    capsys.readouterr()
    refused(run(capsys, "book", "--run", str(other), "--out", str(out)), "clinic language in Chinese")
    text = tmp_path / "text"
    assert quietly("train", str(words_file(tmp_path)), "--out", str(text), "--steps", "2", *SMALL) == 0
    capsys.readouterr()
    refused(run(capsys, "book", "--run", str(text), "--out", str(out)), "clinic language in Chinese")
    assert not out.exists()


def test_a_page_that_was_not_built_is_told_before_a_model_is_trained_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> str:
        raise UserError("The book's page has not been built.", "", "Run `make page`.")

    def trained(*_: object, **__: object) -> None:
        raise AssertionError("half a minute of training for a page that is not there")

    monkeypatch.setattr(build, "template", missing)
    monkeypatch.setattr(runs, "library_with", trained)
    out = tmp_path / "book.html"
    done = run(capsys, "book", "--out", str(out))
    refused(done, "has not been built", "make page")
    assert done.out == ""
    assert not out.exists()


def test_a_worksheet_is_written_again_only_when_asked_and_the_same_from_the_same_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, other = (tmp_path / name for name in ("one.html", "two.html", "other.html"))
    done = run(
        capsys, "worksheet", "--seed", "5", "--lang", "zh", "--only", "outer", "--only", "order", "--out", str(one)
    )
    assert (done.code, done.err) == (0, "")
    assert "2 exercises with seed 5" in done.out
    assert '<html lang="zh-CN">' in one.read_text("utf-8")
    for out, seed in ((two, "5"), (other, "6")):
        run(
            capsys, "worksheet", "--seed", seed, "--lang", "zh", "--only", "outer", "--only", "order", "--out", str(out)
        )
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()
    refused(run(capsys, "worksheet", "--out", str(one)), "exists already")
    assert one.read_bytes() == two.read_bytes()


def test_a_worksheet_of_everything_has_every_exercise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from glassformer.book.exercises import EXERCISES

    out = tmp_path / "sheet.html"
    assert f"{len(EXERCISES)} exercises" in run(capsys, "worksheet", "--out", str(out)).out
    assert out.read_text("utf-8").count("<h2>") == 2 * len(EXERCISES)


@pytest.mark.parametrize("command", ["book", "worksheet"])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_language_is_refused_in_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, hostile: str
) -> None:
    out = tmp_path / "out.html"
    done = run(capsys, command, "--lang", hostile, "--out", str(out))
    assert done.code == 2
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err + done.out
    assert not out.exists()


def test_an_unknown_exercise_is_refused_with_the_one_that_was_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sheet.html"
    refused(
        run(capsys, "worksheet", "--only", "outr", "--out", str(out)), 'no exercise "outr"', 'Did you mean "outer"?'
    )
    for hostile in HOSTILE:
        refused(run(capsys, "worksheet", "--only", hostile, "--out", str(out)), "no exercise")
    assert not out.exists()


def test_a_negative_seed_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sheet.html"
    done = run(capsys, "worksheet", "--seed", "-1", "--out", str(out))
    assert done.code == 2
    assert "Traceback" not in done.err
    assert not out.exists()
