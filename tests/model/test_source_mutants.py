"""One hundred slips of the pen in the model, made by chance: a law of a trace or a test of the model sees each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from source_mutation import KINDS, Mutant, package_files, sample

COUNT, SEED = 100, 1
LIMIT = 600  # seconds for one mutant, on a machine that is busy

# What catches those that no law of a trace sees. Not here: what compiles the model, and what asks about derivations.
TESTS = (
    "test_config.py",
    "test_definitions.py",
    "test_decoder.py",
    "test_toy24.py",
    "test_no_leak.py",
    "test_qk_norm.py",
    "test_dropout.py",
    "test_twins.py",
    "test_segments.py",
    "test_cache.py",
)

# By file, line and mutated line: why nobody can tell the difference.
EQUIVALENT: dict[tuple[str, str, str], str] = {}


@pytest.fixture(scope="module")
def mutants(root: Path) -> list[Mutant]:
    return sample(package_files(root / "src" / "glassformer" / "model"), COUNT, SEED)


def test_mutants_are_the_same_every_time_and_of_every_kind(mutants: list[Mutant], root: Path) -> None:
    assert mutants == sample(package_files(root / "src" / "glassformer" / "model"), COUNT, SEED)
    assert len({mutant.key for mutant in mutants}) == len(mutants) == COUNT
    assert COUNT % len(KINDS) == 0
    assert len({mutant.file for mutant in mutants}) > 15
    assert all(mutant.before != mutant.after for mutant in mutants)


def test_a_change_of_one_line_leaves_the_choice_on_other_lines_alone() -> None:
    lines = [f"def f{k}(a, b):\n    return a + {k}*b\n" for k in range(20)]
    before = {mutant.key for mutant in sample({"f": "".join(lines)}, 20, SEED)}
    lines[3] = "def f3(a, b):\n    return a - 3*b\n"
    after = {mutant.key for mutant in sample({"f": "".join(lines)}, 20, SEED)}
    assert len(before & after) > 12


@pytest.mark.mutants
def test_every_mutant_of_the_model_is_caught_unless_it_is_listed_as_equivalent(
    mutants: list[Mutant], root: Path
) -> None:
    """Printed with `pytest -rP`: who caught how many."""
    by = dict(zip((mutant.key for mutant in mutants), verdicts(mutants, root), strict=True))
    for key, who in by.items():
        print(f"{who or 'nobody':40} {key[0]}: {key[1]}  ->  {key[2]}")
    assert {key for key, who in by.items() if who is None} == set(EQUIVALENT)


@pytest.mark.mutants
def test_the_model_itself_is_caught_by_nobody(root: Path) -> None:
    path = root / "src" / "glassformer" / "model" / "mask.py"
    assert verdicts([Mutant("mask.py", "", "", path.read_text(encoding="utf-8"))], root) == [None]


def verdicts(mutants: list[Mutant], root: Path) -> list[str | None]:
    """Who caught each of ``mutants``: None is nobody."""
    package, tests = root / "src" / "glassformer", [str(root / "tests" / "model" / name) for name in TESTS]
    asked = "".join(json.dumps([mutant.file.removesuffix(".py"), mutant.source]) + "\n" for mutant in mutants)
    done = subprocess.run(
        [sys.executable, str(root / "tests" / "mutant_runner.py"), str(package), str(LIMIT), *tests],
        input=asked,
        env={**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
