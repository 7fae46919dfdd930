"""What every test relies on: one thread, no network, reproducible random examples, where the repository is."""

from __future__ import annotations

import os
from pathlib import Path

# Libraries read these when they are loaded: small matrices on one thread, no network, no telemetry.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import hypothesis
import pytest

from browsing import browser, built, open_page

__all__ = ["browser", "built", "open_page"]

hypothesis.settings.register_profile("small", deadline=None, derandomize=True, max_examples=50, print_blob=True)
hypothesis.settings.register_profile("full", deadline=None, max_examples=500, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "small"))

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the repository (or of the unpacked sdist)."""
    return ROOT


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """`tests/data`: golden files and fixtures."""
    return ROOT / "tests" / "data"
