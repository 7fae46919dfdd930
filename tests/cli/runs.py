"""Small runs through the command line, and what is compared of them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glassformer.cli import running, text_run
from glassformer.training.loop import Steps
from learning import words_text
from resuming import result

from .commands import Outcome, run

SMALL = ("--d", "16", "--blocks", "1", "--heads", "2", "--context", "8", "--batch", "8", "--threads", "1")
"""Options of a model that trains in no time."""

OF_CLINIC = ("--d", "16", "--blocks", "1", "--heads", "2", "--batch", "16", "--threads", "1")


def words_file(folder: Path) -> Path:
    path = folder / "words.txt"
    path.write_text(words_text(500).replace("cab ", "cab\n"))
    return path


def lines_file(folder: Path) -> Path:
    """Twelve documents, a line each."""
    path = folder / "lines.jsonl"
    documents = (words_text(40, seed) + "é药" for seed in range(12))
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    return path


def train(capsys: pytest.CaptureFixture[str], source: Path | str, out: Path, *options: str) -> Outcome:
    return run(capsys, "train", str(source), "--out", str(out), *options)


def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_run, "SAMPLE", 30)


def pressing(monkeypatch: pytest.MonkeyPatch, at: int, times: int = 1, number: int = signal.SIGINT) -> None:
    """Ctrl-C, pressed ``times`` times while step ``at`` is shown."""
    shown: Callable[[Steps], Steps] = running.shown

    def press(steps: Steps) -> Steps:
        for step in shown(steps):
            if step.step == at:
                for _ in range(times):
                    os.kill(os.getpid(), number)
            yield step

    monkeypatch.setattr(running, "shown", press)


def what_it_left(path: Path) -> dict[str, Any]:
    """All that a finished run left, but for the times."""
    meta = json.loads((path / "manifest.json").read_text("utf-8"))
    assert meta["finished"]
    facts = {key: value for key, value in meta["meta"].items() if key != "seconds"}
    return {**result(path), "facts": facts, "recipe": (path / "recipe.toml").read_text("utf-8")}


def everything(folder: Path) -> dict[str, bytes | None]:
    """All files below ``folder`` with their content, and all folders."""
    paths = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in paths}


def refused(outcome: Outcome, *parts: str) -> None:
    """One message, and the exit code of a request that could not be carried out."""
    assert outcome.code == 2, outcome
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("error: ") == 1
    assert "Traceback" not in outcome.err
    assert "\x1b" not in outcome.err + outcome.out
    assert [part for part in parts if part not in outcome.err] == []
