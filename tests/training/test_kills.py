"""Killed at any moment and gone on with: the run that comes out is bit for bit the one that nobody killed."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import pytest

from glassformer.errors import UserError
from glassformer.training import RunFolder, load_run
from glassformer.training.checkpoint import latest
from killing import begin_in_child, child, kind
from resuming import EVERY_STEP, begin, result, settings, state_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="open files are named through /proc")

STEPS, MANY_STEPS = 30, 150  # more than the processes of a test can make
ONE_LIFE = 3  # steps that one process makes at most before it is killed
IN_A_STEP = 0.5  # seconds: long enough for any moment of a life

FEW = (
    "in the middle of writing checkpoint/optimizer.safetensors",
    "before flushing checkpoint/manifest.json",
    "before naming checkpoint",
    "after naming checkpoint",
    "in the middle of writing metrics.jsonl",
)
"""What the small version kills at, beside one random moment."""

Whole = tuple[Path, dict[str, int]]


def unharmed(path: Path, steps: int) -> Whole:
    """A run that nobody killed, and how often each moment of writing came while it went on."""
    begin(path, settings(steps=steps, checkpoint=EVERY_STEP))
    seen = child(path)
    assert seen is not None
    return path, seen


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The run that the small version compares with."""
    return unharmed(tmp_path_factory.mktemp("kills") / "whole", STEPS)


@pytest.fixture
def trained(tmp_path: Path, whole: Whole) -> Path:
    """The same run after its last step, before it is sealed."""
    path = tmp_path / "trained"
    shutil.copytree(whole[0], path)
    for name in ("model.safetensors", "samples.txt", "manifest.json"):
        (path / name).unlink()
    return path


def survive(path: Path, moments: list[str | None], seed: int) -> None:
    """Kill one process after the other at these moments; None is a random one."""
    draw = random.Random(seed)
    for moment in moments:
        if moment is None:
            assert child(path, lives=ONE_LIFE, after=draw.uniform(0, IN_A_STEP)) is None
        else:
            occurrence = 1 if "metrics" in moment else draw.randint(1, 2)  # not every step has its line
            assert child(path, chosen=moment, occurrence=occurrence) is None
        assert latest(path / "checkpoints").path is not None
        with pytest.raises(UserError, match="is not a finished run"):
            load_run(path)


def while_training(seen: dict[str, int]) -> list[str]:
    """The kinds of moments that come with every step, and those of the metrics."""
    return sorted(m for m, times in seen.items() if times >= STEPS - 1 or "metrics.jsonl" in m)


def while_sealing(seen: dict[str, int]) -> list[str]:
    """The kinds of moments of the last save."""
    return sorted(m for m, times in seen.items() if times == 1 and "metrics.jsonl" not in m)


def test_a_run_killed_at_six_moments_is_the_run_that_nobody_killed(tmp_path: Path, whole: Whole) -> None:
    path, seen = whole
    assert set(FEW) <= set(while_training(seen))
    begin(tmp_path / "a", settings(steps=STEPS, checkpoint=EVERY_STEP))
    survive(tmp_path / "a", [*FEW, None], seed=0)
    assert 0 < state_of(tmp_path / "a").step < STEPS
    assert child(tmp_path / "a") is not None
    assert result(tmp_path / "a") == result(path)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_a_run_killed_in_every_kind_of_write_and_at_random_is_the_run_that_nobody_killed(
    tmp_path: Path, seed: int
) -> None:
    path, seen = unharmed(tmp_path / "whole", MANY_STEPS)
    moments: list[str | None] = list(while_training(seen))
    for part in ("model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"):
        for when in ("in the middle of writing", "before flushing", "after flushing"):
            assert f"{when} checkpoint/{part}" in moments
    assert {"before naming checkpoint", "after naming checkpoint", "before setting aside checkpoint"} < set(moments)
    assert {"in the middle of writing metrics.jsonl", "before flushing metrics.jsonl"} < set(moments)
    moments += [None] * max(10, 30 - len(moments))
    random.Random(seed).shuffle(moments)
    begin(tmp_path / "a", settings(steps=MANY_STEPS, checkpoint=EVERY_STEP))
    survive(tmp_path / "a", moments, seed)
    assert child(tmp_path / "a") is not None
    assert result(tmp_path / "a") == result(path)


SEALING = ("in the middle of writing model.safetensors", "before naming manifest.json")


@pytest.mark.parametrize("moment", SEALING)
def test_a_run_killed_while_it_is_sealed_is_sealed_by_the_next_process(
    trained: Path, whole: Whole, moment: str
) -> None:
    killed_while_sealing(trained, whole, [moment])


@pytest.mark.full
def test_a_run_killed_in_every_kind_of_write_of_its_sealing_is_sealed_by_the_next_process(
    trained: Path, whole: Whole
) -> None:
    moments = [m for m in while_sealing(whole[1]) if m != "after naming manifest.json"]
    assert set(SEALING) <= set(moments)
    assert {kind(m.split()[-1]) for m in moments} >= {"model.safetensors", "samples.txt", "manifest.json"}
    killed_while_sealing(trained, whole, moments)


def killed_while_sealing(path: Path, whole: Whole, moments: list[str]) -> None:
    for moment in moments:
        assert child(path, chosen=moment) is None
    assert state_of(path).step == STEPS
    assert child(path) is not None
    assert result(path) == result(whole[0])
    load_run(path)


def test_a_run_killed_after_its_manifest_has_its_name_is_finished(trained: Path) -> None:
    assert child(trained, chosen="after naming manifest.json") is None
    load_run(trained)
    with pytest.raises(UserError, match="is finished"):
        RunFolder.resume(trained)


BEGINNING = (
    "in the middle of writing config.json",
    "in the middle of writing checkpoint/model.safetensors",
    "before naming run.json",
)


@pytest.mark.parametrize("moment", BEGINNING)
def test_a_run_killed_before_its_first_step_claims_nothing(tmp_path: Path, moment: str) -> None:
    killed_while_beginning(tmp_path / "a", moment)


@pytest.mark.full
def test_a_run_killed_in_any_kind_of_write_before_its_first_step_claims_nothing(tmp_path: Path) -> None:
    seen = child(tmp_path / "whole", target=begin_in_child)
    assert seen is not None
    assert set(BEGINNING) <= set(seen)
    # The metrics are only opened here, and with its last name the run is begun.
    others = {"in the middle of writing metrics.jsonl", "after naming run.json"}
    for number, moment in enumerate(seen.keys() - others):
        killed_while_beginning(tmp_path / str(number), moment)


def killed_while_beginning(path: Path, moment: str) -> None:
    assert child(path, chosen=moment, target=begin_in_child) is None
    with pytest.raises(UserError, match="before its first step"):
        RunFolder.resume(path)
    with pytest.raises(UserError, match="exists and is not empty"):
        RunFolder.create(path)


def test_of_two_processes_that_go_on_with_one_run_one_is_refused(trained: Path, whole: Whole) -> None:
    with RunFolder.resume(trained).folder, pytest.raises(AssertionError, match="ended with 1"):
        child(trained)
    assert child(trained) is not None
    assert result(trained) == result(whole[0])
