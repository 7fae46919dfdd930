"""One sdist, one wheel made from it, one environment: built once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from building import PAGE, ROOT, build, environment_with, unpack


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, built without Node and network; holds the page when the clone has built it."""
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist") / "made")


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the unpacked sdist, again without Node and network."""
    if not PAGE.is_file():
        pytest.skip("the page is not built, for which Node is needed; a wheel without it is refused")
    folder = tmp_path_factory.mktemp("wheel")
    return build("wheel", unpack(sdist, folder / "source"), folder / "made")


@pytest.fixture(scope="session")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of an environment that has the wheel, and the clone nowhere on its path."""
    return environment_with(wheel, tmp_path_factory.mktemp("installed") / "environment")
