"""Builds the page (web/ to src/glassformer/page/bundle/) when a wheel or sdist is made and it is missing or stale.

A built page carries the stamp of its sources, so an sdist, which holds both, installs without Node and without network.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGES = (Path("src/glassformer/page/bundle/index.html"), Path("src/glassformer/page/bundle/book.html"))
FOLDERS = ("build", "src")
FILES = ("book.html", "index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts")
"""The sources of the page below web/; web/build/stamp.ts has the same list."""


def source_stamp(web: Path) -> str:
    """The stamp of the sources: sha256 over a line ``path NUL sha256(content)`` per file, sorted by path."""
    inside = [p.relative_to(web).as_posix() for folder in FOLDERS for p in (web / folder).rglob("*") if p.is_file()]
    total = hashlib.sha256()
    for path in sorted([*inside, *FILES]):
        content = hashlib.sha256((web / path).read_bytes()).hexdigest()
        total.update(f"{path}\0{content}\n".encode())
    return total.hexdigest()


def built_stamp(page: Path) -> str | None:
    """The stamp that a built page carries; None when there is no page."""
    if not page.is_file():
        return None
    found = re.search(r'<meta name="glassformer-source" content="([0-9a-f]{64})">', page.read_text("utf-8"))
    return found[1] if found else ""


def is_current(root: Path) -> bool:
    """Whether the built pages belong to the sources; true for pages without sources (a stripped archive)."""
    built = {built_stamp(root / page) for page in PAGES}
    return None not in built and (not (root / "web").is_dir() or built == {source_stamp(root / "web")})


class CustomBuildHook(BuildHookInterface[Any]):
    """Run by hatchling before it collects files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make sure that the page is there; an sdist or editable install made without Node only loses it."""
        root = Path(self.root)
        if is_current(root):
            return
        npm = shutil.which("npm")
        if npm is None:
            if version == "editable" or self.target_name == "sdist":
                self.app.display_warning(
                    "The page is not built: npm was not found. Install Node 20 or newer, then run `make page`."
                )
                return
            raise RuntimeError(
                "The page of glassformer is missing or older than its sources in web/, and building it needs npm, "
                "which was not found. Install Node 20 or newer, or build from an sdist, which holds the built page."
            )
        for command in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
            subprocess.run([npm, *command], cwd=root / "web", check=True)
        if not is_current(root):
            raise RuntimeError(
                "The page was built, but its stamp does not match its sources; did they change meanwhile?"
            )
