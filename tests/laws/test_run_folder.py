"""The folder of a run of ours is checked as a whole: model, tokenizer, loop, rules and data files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from glassformer.generation.sample import Reader, Reading
from glassformer.laws import Verdict, check_subject
from glassformer.laws.law import Family
from glassformer.laws.subjects.decoding import Generator
from glassformer.laws.subjects.resolve import subjects_from
from glassformer.laws.worker import checked
from resuming import begin, go_on

PARTS = (Family.MODEL, Family.TOKENIZER, Family.GENERATOR, Family.SAMPLER, Family.LOADER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "words"
    begin(path)
    go_on(path)
    return path


def loop_of(folder: Path) -> Generator:
    (loop,) = (subject for subject in subjects_from(str(folder)) if isinstance(subject, Generator))
    return loop


def test_a_run_is_all_that_was_trained_and_all_that_serves_it(folder: Path) -> None:
    assert tuple(subject.family for subject in subjects_from(str(folder))) == PARTS


def test_a_run_breaks_no_law_and_its_loop_is_held_to_those_of_loops(folder: Path) -> None:
    laws = ("causality", "cache", "generate", "score", "rows", "rules.top-k", "tokenizer", "data")
    report = checked({"subject": str(folder), "only": laws}, lambda *_: None)
    verdicts = {entry["probe"]: entry["verdict"] for entry in report["laws"]}
    assert "violated" not in verdicts.values()
    wanted = (
        "causality.forward", "cache.one-by-one", "generate.greedy", "generate.loop", "generate.batch", "score.greedy",
        "score.sampled", "rows.companions", "rows.finished", "rows.stop-strings", "rules.top-k", "tokenizer.round-trip",
        "data.ids", "data.tokens",
    )  # fmt: skip
    assert {probe: verdicts[probe] for probe in wanted} == dict.fromkeys(wanted, "holds")


def test_a_quick_check_of_a_run_leaves_its_loop_out(folder: Path) -> None:
    report = checked({"subject": str(folder), "fast": True}, lambda *_: None)
    families = {entry["law"] for entry in report["laws"]}
    assert {"causality", "prefix", "cache"} <= families
    assert not families & {"generate", "score", "rows", "rules"}


def test_a_loop_that_forgets_what_was_read_is_caught_and_placed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, read = loop_of(folder), Reader.read

    def forgetful(reader: Reader, tokens: Sequence[int]) -> Reading:
        return read(reader, tokens) if len(tokens) < 3 else read(Reader(reader._model), tokens[-1:])

    monkeypatch.setattr(Reader, "read", forgetful)
    report = check_subject(loop, only=("generate.batch", "score.greedy"))
    assert {result.verdict for result in report} == {Verdict.VIOLATED}
    place = report["generate.batch"].place
    assert place is not None
    assert (place.file or "").endswith("run.py")


def test_a_token_that_is_never_written_is_no_choice_of_the_loop(folder: Path) -> None:
    loop = loop_of(folder)
    assert loop.never <= loop.special
    assert check_subject(loop, only=("generate",))["generate.loop"].verdict is Verdict.HOLDS
