"""Annotations are executed while these tests run: `make test` says so to pytest (tests/executed_types.py)."""

from __future__ import annotations

import pytest
import torch

from glassformer.model import toy24_model
from glassformer.notation import silent
from glassformer.text import visible


@pytest.fixture(autouse=True)
def _executed(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--jaxtyping-packages"):
        pytest.skip("annotations are not executed in this run; `make test` executes them")


def test_a_wrong_type_is_caught_while_tests_run() -> None:
    with pytest.raises(Exception, match="Type-check error"):
        visible(3)  # pyright: ignore[reportArgumentType] - the wrong type is the test


def test_a_wrong_number_of_axes_is_caught_while_tests_run() -> None:
    with pytest.raises(Exception, match="Type-check error"):
        toy24_model().blocks[0].attn(torch.zeros(2, 2), torch.zeros(1, 2, 2), torch.ones(2, 2).bool(), silent)
