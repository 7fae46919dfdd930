"""``glassformer train --resume``: the run that comes out is the one that nobody interrupted, or one message."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from glassformer.training import load_run

from .commands import quietly, run
from .runs import (
    OF_CLINIC,
    SMALL,
    everything,
    lines_file,
    pressing,
    refused,
    short_samples,
    train,
    what_it_left,
    words_file,
)

Capture = pytest.CaptureFixture[str]

OFTEN = ("--set", "training.checkpoint.every_seconds=1e-9")
"""A checkpoint after each step."""


@pytest.fixture(autouse=True)
def _short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    short_samples(monkeypatch)


def subject(kind: str, folder: Path) -> tuple[Path | str, tuple[str, ...]]:
    if kind == "text":
        return words_file(folder), (*SMALL, "--set", "model.dropout=0.1")
    if kind == "clinic":
        return "clinic", OF_CLINIC
    isolated = ("--tokenizer", "bytes", "--vocab-size", "300", "--isolated", "--set", "training.accumulation=2")
    return lines_file(folder), (*SMALL, *isolated)


@pytest.mark.parametrize("kind", ["text", "lines", "clinic"])
def test_an_interrupted_run_that_goes_on_is_the_run_that_nobody_interrupted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    source, options = subject(kind, tmp_path)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert train(capsys, source, whole, *options, "--steps", "40").code == 0
    with monkeypatch.context() as patch:
        pressing(patch, 17)
        assert train(capsys, source, parts, *options, "--steps", "40").code == 130
        assert load_run(parts).meta["stopped_early"] is True
        pressing(patch, 23)
        assert run(capsys, "train", "--resume", str(parts)).code == 130
    if kind != "clinic":
        Path(source).unlink()  # the run has its own copy
    outcome = run(capsys, "train", "--resume", str(parts))
    assert (outcome.code, outcome.err) == (0, "")
    assert "going on after step 23" in outcome.out
    assert what_it_left(parts) == what_it_left(whole)


@pytest.mark.full
def test_a_killed_process_leaves_a_run_that_goes_on_as_if_nothing_had_been(tmp_path: Path, capsys: Capture) -> None:
    text = words_file(tmp_path)
    options = (*SMALL, *OFTEN, "--steps", "150")
    assert train(capsys, text, tmp_path / "whole", *options).code == 0
    path = tmp_path / "killed"
    command = [sys.executable, "-m", "glassformer", "train", str(text), "--out", str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        last = time.monotonic() + 120
        while not list(path.glob("checkpoints/step-0*[1-9][0-9]")):
            assert time.monotonic() < last
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    refused(run(capsys, "generate", str(path), "--prompt", "ab"), f"train --resume {path}")
    assert run(capsys, "train", "--resume", str(path)).code == 0
    assert what_it_left(path) == what_it_left(tmp_path / "whole")


# --- requests that cannot be carried out -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text run that was stopped after step 3 of 6, and one that is finished."""
    folder = tmp_path_factory.mktemp("runs")
    text = words_file(folder)
    with pytest.MonkeyPatch.context() as patch:
        short_samples(patch)
        pressing(patch, 3)
        for name, steps in (("finished", "2"), ("stopped", "6")):
            code = quietly("train", str(text), "--out", str(folder / name), *SMALL, "--steps", steps)
            assert code == {"finished": 0, "stopped": 130}[name]
    return folder


@pytest.fixture
def stopped(runs: Path, tmp_path: Path) -> Path:
    """A copy of the stopped run."""
    return Path(shutil.copytree(runs / "stopped", tmp_path / "stopped"))


def test_a_finished_run_does_not_go_on(runs: Path, capsys: Capture) -> None:
    before = everything(runs)
    refused(run(capsys, "train", "--resume", str(runs / "finished")), "is finished", "glassformer generate")
    assert everything(runs) == before


def test_what_is_no_run_does_not_go_on(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("precious")
    before = everything(tmp_path)
    refused(run(capsys, "train", "--resume", str(tmp_path / "foreign")), "is not a finished run", "another folder")
    refused(run(capsys, "train", "--resume", str(tmp_path / "foreing")), "no run folder", 'Did you mean "foreign"?')
    refused(run(capsys, "train", "--resume", str(tmp_path / "foreign" / "notes.txt")), "is a file, not a run folder")
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    "beside",
    [["words.txt"], ["--out", "x"], ["--steps", "9"], ["--config", "x.toml"], ["--set", "model.d=3"], ["--joined"],
     ["--lang", "en"], ["--seed", "0"]],
)  # fmt: skip
def test_nothing_can_be_changed_about_a_run_that_goes_on(stopped: Path, capsys: Capture, beside: list[str]) -> None:
    before = everything(stopped)
    refused(run(capsys, "train", "--resume", str(stopped), *beside), "does not apply to --resume")
    assert everything(stopped) == before


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("config.json", "config.json is not what was saved"),
        ("tokenizer.json", "tokenizer.json is not what was saved"),
        ("run.json", "run.json is not JSON"),
        ("manifest.json", "manifest.json is not JSON"),
        ("data/train-00000.bin", "train-00000.bin is not what was written"),
        ("data/manifest.json", "manifest.json is not JSON"),
    ],
)
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_damaged_run_does_not_go_on_and_is_left_as_it_is(
    stopped: Path, capsys: Capture, file: str, part: str, how: str
) -> None:
    path = stopped / file
    if how == "cut":
        path.write_bytes(path.read_bytes()[:-3])
    else:
        path.unlink()
    before = everything(stopped)
    outcome = run(capsys, "train", "--resume", str(stopped))
    if (file, how) == ("manifest.json", "gone"):
        assert outcome.code == 0  # as if it had been killed and not stopped
        return
    refused(outcome, *([part] if how == "cut" else []))
    assert everything(stopped) == before


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        pressing(patch, 5)
        train(capsys, words_file(tmp_path), out, *SMALL, *OFTEN, "--steps", "8")
    (out / "checkpoints" / "step-00000005" / "optimizer.safetensors").write_bytes(b"")
    outcome = run(capsys, "train", "--resume", str(out))
    assert outcome.code == 0
    assert "step-00000005" in outcome.err
    assert "going on after step 4" in outcome.out
    assert json.loads((out / "manifest.json").read_text())["finished"] is True


def test_without_a_whole_checkpoint_nothing_goes_on(stopped: Path, capsys: Capture) -> None:
    for path in (stopped / "checkpoints").iterdir():
        (path / "model.safetensors").unlink()
    before = everything(stopped)
    refused(run(capsys, "train", "--resume", str(stopped)), "no checkpoint is whole")
    assert everything(stopped) == before
