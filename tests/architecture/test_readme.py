"""The README is true: its file list is the tree, its commands run, its two languages are in step."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from source_tree import ROOT

PAGE = ROOT / "src" / "glassformer" / "page" / "bundle" / "index.html"
READMES = ("README.md", "README.zh.md")
FENCE = re.compile(r"^```(?P<info>[^\n]+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(readme: str, info: str) -> list[str]:
    """The fenced blocks of `readme` whose info string is `info`."""
    text = (ROOT / readme).read_text(encoding="utf-8")
    return [match["body"] for match in FENCE.finditer(text) if match["info"].strip() == info]


def listed_files(readme: str) -> list[str]:
    """Paths of the block marked `text files`: a folder ends in `/`, two spaces of indentation are one level."""
    folders: list[str] = []
    found = []
    for line in "".join(blocks(readme, "text files")).splitlines():
        match = re.match(r"(?P<indent> *)(?P<name>\S+) +\S", line) or re.match(r"(?P<indent> *)(?P<name>\S+/)$", line)
        if match is None:
            continue
        level = len(match["indent"]) // 2
        del folders[level:]
        if match["name"].endswith("/"):
            folders.append(match["name"])
        else:
            found.append("".join(folders) + match["name"])
    return found


def real_files() -> set[str]:
    """The modules of the package and of the page's source; `__init__.py` is the folder's own line."""
    python = {path for path in (ROOT / "src" / "glassformer").rglob("*.py") if path.name != "__init__.py"}
    page = {path for pattern in ("*.ts", "*.tsx") for path in (ROOT / "web" / "src").rglob(pattern)}
    return {path.relative_to(ROOT).as_posix() for path in python | page if not path.name.endswith(".d.ts")}


@pytest.mark.parametrize("readme", READMES)
def test_the_readme_has_one_line_for_every_file_and_no_other(readme: str) -> None:
    listed = listed_files(readme)
    assert len(listed) == len(set(listed))
    assert set(listed) == real_files()


@pytest.mark.parametrize("info", ["sh executable", "python executable", "sh", "python"])
def test_both_readmes_show_the_same_commands(info: str) -> None:
    assert blocks("README.md", info) == blocks("README.zh.md", info)


def test_both_readmes_have_the_same_sections() -> None:
    depths = [re.findall(r"^(#+) ", (ROOT / readme).read_text(encoding="utf-8"), re.MULTILINE) for readme in READMES]
    assert depths[0] == depths[1]


@pytest.mark.parametrize("readme", READMES)
def test_every_local_link_of_the_readme_leads_somewhere(readme: str) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", (ROOT / readme).read_text(encoding="utf-8"))
    assert targets
    assert not [target for target in targets if not (ROOT / target).exists()]


def environment() -> dict[str, str]:
    """This process's environment with the tested interpreter's commands first and UTF-8 output."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONUTF8": "1"}


@pytest.mark.parametrize("body", blocks("README.md", "sh executable"), ids=lambda body: body.split("\n")[0][:50])
def test_the_commands_of_the_readme_run(body: str, tmp_path: Path) -> None:
    if "--html" in body and not PAGE.is_file():
        pytest.skip("the page is not built, for which Node is needed")
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", body],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]


@pytest.mark.parametrize("body", blocks("README.md", "python executable"), ids=lambda body: body.split("\n")[0][:50])
def test_the_python_of_the_readme_runs(body: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", body],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
