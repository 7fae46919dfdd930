"""What the sdist and the wheel hold."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

PAGE = "page/bundle/index.html"


@pytest.fixture(scope="module")
def in_sdist(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}


@pytest.fixture(scope="module")
def in_wheel(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_sdist_builds_without_node_and_without_network(sdist: Path) -> None:
    assert sdist.name.startswith("glassformer-")
    assert sdist.name.endswith(".tar.gz")


def test_the_sdist_holds_the_sources_of_the_page(in_sdist: set[str]) -> None:
    assert {"web/package.json", "web/package-lock.json", "web/index.html", "hatch_build.py"} <= in_sdist
    assert not [name for name in in_sdist if "node_modules" in name]


def test_the_sdist_holds_tests_examples_and_licences(in_sdist: set[str]) -> None:
    wanted = {"LICENSE", "NOTICE", "Makefile", "constraints.txt", "examples/toy24.py", "tests/conftest.py"}
    assert wanted <= in_sdist


def test_the_wheel_holds_the_page_and_what_the_package_reads(in_wheel: set[str]) -> None:
    assert {f"glassformer/{name}" for name in (PAGE, "py.typed", "notation/tree.py")} <= in_wheel


def test_the_wheel_holds_the_licences_of_what_is_inside_the_page(in_wheel: set[str]) -> None:
    texts = {name.rsplit("/", 1)[-1] for name in in_wheel if "/licenses/" in name}
    assert {"LICENSE", "NOTICE", "KaTeX.txt", "KaTeX-fonts.txt", "Preact.txt"} <= texts


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(in_wheel: set[str]) -> None:
    package = Path(__file__).resolve().parents[2] / "src" / "glassformer"
    here = {p for p in package.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    mine = {f"glassformer/{path.relative_to(package).as_posix()}" for path in here}
    assert {name for name in in_wheel if ".dist-info/" not in name} == mine


def test_the_wheel_stays_small(wheel: Path) -> None:
    # Two pages, each with the fonts of its formulas inside: that of a trace and that of the book.
    assert wheel.stat().st_size < 1_600_000


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")
def test_a_release_is_sdist_and_wheel_and_beside_them_the_book_that_needs_no_python() -> None:
    root = Path(__file__).resolve().parents[2]
    told = subprocess.run(
        ["make", "--dry-run", "--always-make", "release"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    built, book = told.index("-m build --no-isolation --outdir dist"), told.index("book --out dist/book.html")
    assert built < book
