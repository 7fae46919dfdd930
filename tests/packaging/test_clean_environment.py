"""Nothing is lent: new environments, every dependency installed anew. Needs a package index; minutes, not seconds."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from building import ROOT, run

pytestmark = pytest.mark.full


def plain_environment() -> dict[str, str]:
    """The caller's environment without anything that points at the running one."""
    dropped = {"PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    return {name: value for name, value in os.environ.items() if name not in dropped}


def test_the_wheel_installs_with_all_its_dependencies_and_works(wheel: Path, tmp_path: Path) -> None:
    run([sys.executable, "-m", "venv", tmp_path / "clean"], cwd=tmp_path, env=plain_environment())
    commands = tmp_path / "clean" / "bin"
    pip = [commands / "python", "-m", "pip", "install", "--constraint", ROOT / "constraints.txt"]
    run([*pip, *shlex.split(os.environ.get("TORCH", "torch"))], cwd=tmp_path, env=plain_environment())
    run([*pip, wheel], cwd=tmp_path, env=plain_environment())
    installed = run([commands / "python", "-m", "pip", "list", "--format=json"], cwd=tmp_path, env=plain_environment())
    names = {entry["name"].lower() for entry in json.loads(installed)}
    assert not names & {"pytest", "jaxtyping", "beartype", "hypothesis", "scipy", "playwright"}
    glassformer = commands / "glassformer"
    out = run([glassformer, "trace", "toy24", "--json", "-"], cwd=tmp_path, env=plain_environment())
    assert abs(json.loads(out)["forward"]["L"] - 2.541928056677009) <= 1e-12
    for arguments in (["formula", "S"], ["explain", "toy24", "E.grad[0,0]"], ["trace", "toy24", "--html", "t.html"]):
        run([glassformer, *arguments], cwd=tmp_path, env=plain_environment())


def test_the_demo_works_in_a_fresh_clone(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("the demo builds the page, for which Node is needed")
    run(["git", "clone", "--quiet", ROOT, tmp_path / "clone"], cwd=tmp_path, env=plain_environment())
    said = run(["make", "demo", "DEMO_SECONDS=5"], cwd=tmp_path / "clone", env=plain_environment())
    pages = sorted((tmp_path / "clone" / "build" / "demo").glob("*.html"))
    assert [page.name for page in pages] == ["clinic.html", "plays.html", "toy24.html"]
    assert all(page.name in said for page in pages)
