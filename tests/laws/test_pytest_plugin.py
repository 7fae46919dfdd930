"""The plugin adds one test a probe where it is asked to, and is not noticed where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from source_tree import run_python

HERE = Path(__file__).parent


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(HERE), *sys.path])
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *_plugin(), *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=environment, check=False, timeout=250
    )  # fmt: skip


def _plugin() -> list[str]:
    """The plugin by name, where the package is not installed with its entry point."""
    from importlib.metadata import entry_points

    known = any(each.value == "glassformer.laws.pytest_plugin" for each in entry_points(group="pytest11"))
    return [] if known else ["-p", "glassformer.laws.pytest_plugin"]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")
    (tmp_path / "test_own.py").write_text("def test_own():\n    assert True\n")
    return tmp_path


def test_each_probe_is_a_test_with_its_verdict(suite: Path) -> None:
    done = run(
        suite, "--glassformer-check=misbehaving:Leaking", "--glassformer-check=misbehaving:Nope", "-rs", "-q",
        "-k", "test_own or causality.forward or cache.uneven or unavailable",
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "misbehaving:Leaking::causality.forward" in done.stdout
    assert "causality.forward is violated: " in done.stdout
    assert "not supported: forward takes no cache" in done.stdout
    assert 'misbehaving has no "Nope"' in done.stdout
    assert "2 failed, 1 passed, 1 skipped" in done.stdout, done.stdout
    assert "Traceback" not in done.stdout


def test_a_suite_that_does_not_ask_is_left_alone(suite: Path) -> None:
    done = run(suite, "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_loading_the_plugin_loads_nothing_heavy() -> None:
    loaded = run_python("import sys, glassformer.laws.pytest_plugin; print(*sys.modules)").split()
    assert not {"torch", "numpy", "transformers", "tokenizers", "rich", "typer"} & set(loaded)
