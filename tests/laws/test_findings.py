"""The programs of `docs/findings.md` run alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = re.compile(r"^### (?P<title>[^\n]+)\n(?P<told>.*?)^```python\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


def programs(root: Path) -> dict[str, tuple[str, str]]:
    """Title, what is told of it, and the code, of every program in the findings."""
    text = (root / "docs" / "findings.md").read_text(encoding="utf-8")
    return {found["title"]: (found["told"], found["code"]) for found in PROGRAM.finditer(text)}


def test_every_finding_that_looks_like_a_defect_has_a_program_that_says_what_is_expected(root: Path) -> None:
    found = programs(root)
    assert len(found) >= 20
    assert [title for title, (told, code) in found.items() if "xpected" not in told + code] == []


@pytest.mark.full
def test_every_program_of_the_findings_runs_and_prints(root: Path, tmp_path: Path) -> None:
    silent = []
    for title, (_, code) in programs(root).items():
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
        )
        if run.returncode != 0 or not run.stdout.strip():
            silent.append((title, run.stderr[-500:]))
    assert silent == []
