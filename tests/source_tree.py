"""The package's source as data: its modules, what they import, what they define."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "glassformer"


@dataclass(frozen=True)
class Module:
    """One source file; `package` is the folder below `glassformer`, empty for a file directly in it."""

    path: Path
    package: str
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """The path below `src/glassformer`, as the README writes it."""
        return self.path.relative_to(PACKAGE).as_posix()


@functools.cache
def modules() -> tuple[Module, ...]:
    """Every Python file of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        text = path.read_text(encoding="utf-8")
        found.append(Module(path, parts[0] if len(parts) > 1 else "", text, ast.parse(text, str(path))))
    return tuple(found)


def imports(module: Module, *, at_run_time: bool) -> Iterator[tuple[str, int]]:
    """Dotted names that `module` imports, relative ones resolved, with the line.

    `at_run_time` leaves out what stands under `if TYPE_CHECKING:`.
    """
    hidden = {
        inner
        for node in ast.walk(module.tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for child in node.body
        for inner in ast.walk(child)
    }
    here = ["glassformer", *module.path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(module.tree):
        if at_run_time and node in hidden:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            # `from . import x` imports the module x; `from .x import y` imports x, and y may be a module of it.
            yield from ((f"{start}.{alias.name}" if node.level and not node.module else start, node.lineno)
                        for alias in node.names)  # fmt: skip


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of `module`."""
    return (n for n in ast.walk(module.tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def calls(module: Module) -> Iterator[tuple[str, ast.Call]]:
    """Every call whose function is written as a name or a dotted name, with that name."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            dotted = ast.unparse(node.func)
            if re.fullmatch(r"[\w.]+", dotted):
                yield dotted, node


def committed_files() -> tuple[Path, ...]:
    """The files of the repository that git knows or would add; without git (an unpacked sdist), what lies there."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if listing.returncode == 0:
        names = [name for name in listing.stdout.decode().split("\0") if name]
        return tuple(path for path in (ROOT / name for name in names) if path.is_file())
    skipped = {"node_modules", ".venv", "__pycache__", "bundle", ".pytest_cache", ".ruff_cache", ".hypothesis", "build"}
    return tuple(p for p in ROOT.rglob("*") if p.is_file() and not skipped & set(p.relative_to(ROOT).parts))


def run_python(code: str, *arguments: str) -> str:
    """What a fresh interpreter prints when it runs `code`."""
    done = subprocess.run([sys.executable, *arguments, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
