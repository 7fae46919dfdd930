"""Running the command line from a test: in this process, or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from glassformer.cli.main import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    """``glassformer`` with ``arguments``, in this process."""
    code = quietly(*arguments)
    captured = capsys.readouterr()
    return Outcome(code, captured.out, captured.err)


def quietly(*arguments: str) -> int:
    """The same for fixtures that serve several tests: the exit code alone."""
    before = sys.argv
    sys.argv = ["glassformer", *arguments]
    try:
        with pytest.raises(SystemExit) as exit_:
            main()
    finally:
        sys.argv = before
    return int(exit_.value.code or 0)


def run_alone(*arguments: str, closed: bool = False, **environment: str) -> Outcome:
    """``glassformer`` in a process of its own; ``closed`` starts it without standard output."""
    command = [sys.executable, "-m", "glassformer", *arguments]
    if closed:
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    done = subprocess.run(command, capture_output=True, env={**os.environ, **environment}, check=False, timeout=120)
    return Outcome(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
