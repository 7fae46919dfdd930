"""The installed wheel does its work outside the clone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from building import ROOT, run

NAMES = {"parameters", "forward", "gradients", "updated", "forward_after"}


@pytest.fixture
def environment(commands: Path) -> dict[str, str]:
    """A user's environment: the new commands first, no trace of the clone."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    return {**kept, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "PYTHONWARNINGS": "error"}


def glassformer(commands: Path, environment: dict[str, str], cwd: Path, *arguments: str) -> str:
    return run([commands / "glassformer", *arguments], cwd=cwd, env=environment)


def test_the_package_is_the_installed_one(commands: Path, environment: dict[str, str], tmp_path: Path) -> None:
    code = "import glassformer; print(glassformer.__file__)"
    file = Path(run([commands / "python", "-c", code], cwd=tmp_path, env=environment).strip())
    assert ROOT not in file.parents
    assert commands.parent in file.parents


def test_trace_prints_every_number_as_strict_json(commands: Path, environment: dict[str, str], tmp_path: Path) -> None:
    numbers = json.loads(glassformer(commands, environment, tmp_path, "trace", "toy24", "--json", "-"))
    reference = json.loads((ROOT / "tests" / "data" / "toy24.json").read_text(encoding="utf-8"))
    assert set(numbers) >= NAMES
    assert abs(numbers["forward"]["L"] - reference["forward"]["L"]) <= 1e-12
    assert abs(numbers["forward_after"]["L"] - reference["forward_after"]["L"]) <= 1e-12


def test_formula_tells_where_scores_are_defined(commands: Path, environment: dict[str, str], tmp_path: Path) -> None:
    text = glassformer(commands, environment, tmp_path, "formula", "S")
    assert "attention.py:" in text
    assert "sqrt(d_k)" in text


def test_explain_shows_the_operands_of_one_cell(commands: Path, environment: dict[str, str], tmp_path: Path) -> None:
    text = glassformer(commands, environment, tmp_path, "explain", "toy24", "W_Q.grad[1,0]")
    assert "0.133562" in text


def test_the_page_comes_out_of_the_wheel(commands: Path, environment: dict[str, str], tmp_path: Path) -> None:
    glassformer(commands, environment, tmp_path, "trace", "toy24", "--html", "toy24.html", "--lang", "zh")
    page = (tmp_path / "toy24.html").read_text(encoding="utf-8")
    assert "Content-Security-Policy" in page
    assert "SIL Open Font License" in page


def test_a_small_model_can_be_trained_and_traced(commands: Path, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the cat sat on the mat. the dog sat on the log.\n" * 200, encoding="utf-8")
    glassformer(commands, environment, tmp_path, "train", "notes.txt", "--out", "runs/mine", "--seconds", "2")
    glassformer(commands, environment, tmp_path, "trace", "runs/mine", "the cat", "--html", "mine.html")
    assert (tmp_path / "mine.html").stat().st_size > 100_000
