"""The companion program: its numbers are the reference's, it needs nothing, and it can be read in one sitting."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOLERANCE = 1e-12


@pytest.fixture(scope="module")
def program() -> Path:
    return Path(__file__).resolve().parents[2] / "examples" / "toy24.py"


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    path = Path(__file__).resolve().parents[1] / "data" / "toy24.json"
    return json.loads(path.read_text(encoding="utf-8"))


def output(program: Path, *arguments: str) -> str:
    # -I: no site-packages of the user, no PYTHONPATH; -S: no site-packages at all.
    command = [sys.executable, "-I", "-S", "-W", "error", str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def numbers(program: Path) -> dict[str, Any]:
    def refuse(word: str) -> float:
        raise ValueError(f"{word} is not JSON")

    return json.loads(output(program, "--json"), parse_constant=refuse)


def differences(mine: Any, theirs: Any, place: str) -> list[str]:
    """Where two nested values differ, by structure or by more than the tolerance."""
    if isinstance(theirs, dict):
        assert list(mine) == list(theirs), place
        return [d for key in theirs for d in differences(mine[key], theirs[key], f"{place}.{key}")]
    if isinstance(theirs, list):
        assert len(mine) == len(theirs), place
        pairs = enumerate(zip(mine, theirs, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{place}[{i}]")]
    if theirs is None or mine is None:
        return [] if mine is theirs else [place]
    return [] if abs(mine - theirs) <= TOLERANCE else [f"{place}: {mine} against {theirs}"]


def test_every_number_is_the_references(numbers: dict[str, Any], reference: dict[str, Any]) -> None:
    assert not differences(numbers, reference, "toy24")


def test_chain_rule_and_central_differences_agree_in_all_24_cells(numbers: dict[str, Any]) -> None:
    assert sum(len(row) for rows in numbers["parameters"].values() for row in rows) == 24
    assert numbers["epsilon"] == 1e-5
    assert 0 < numbers["central_difference_max_abs_diff"] < 3e-11


def test_the_table_shows_the_loss_before_and_after(program: Path) -> None:
    table = output(program)
    assert "2.541928" in table
    assert "1.761382" in table
    assert "W_Q[1,0]   1.000000   0.133562" in table


def test_the_program_needs_only_the_standard_library(program: Path) -> None:
    tree = ast.parse(program.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))
    assert names <= sys.stdlib_module_names


def test_the_program_has_at_most_150_readable_lines(program: Path) -> None:
    lines = program.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 120
    statements = [node.lineno for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.stmt)]
    assert len(statements) == len(set(statements)), "two statements share a line"


def test_an_unknown_option_is_refused_without_a_traceback(program: Path) -> None:
    command = [sys.executable, "-I", str(program), "--jsno"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_package_computes_the_same_numbers(numbers: dict[str, Any]) -> None:
    command = [sys.executable, "-m", "glassformer", "trace", "toy24", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    package = json.loads(done.stdout)
    measured = {"central_difference_max_abs_diff"}  # rounding of two programs differs; each keeps its own bound
    for key in numbers.keys() - measured:
        if isinstance(numbers[key], dict):
            shown = {name: package[key][name] for name in numbers[key]}
            assert not differences(shown, numbers[key], key)
        else:
            assert package[key] == numbers[key]
