"""A sweep does each architecture once, writes what came of it, and goes on where it ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from glassformer.errors import UserError
from glassformer.laws import sweeping
from glassformer.laws.subjects import architectures
from glassformer.laws.subjects.architectures import Architecture
from glassformer.laws.subjects.base import Kind
from glassformer.laws.supervising import Order
from glassformer.laws.sweeping import swept

pytest.importorskip("transformers")

NAMES = ("AForCausalLM", "BForCausalLM", "CForCausalLM")


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The subjects that were checked; B cannot be built."""
    done: list[str] = []

    def supervised(order: Order) -> dict[str, Any]:
        done.append(order.subject)
        assert order.memory is not None
        assert order.limit is not None
        if "BFor" in order.subject:
            raise UserError("No small model.", "Too large.", "")
        entry = {"law": "cache", "probe": "cache.uneven", "verdict": "violated"}
        return {"subject": order.subject, "laws": [entry], "verdicts": {"violated": 1}}

    monkeypatch.setattr(sweeping, "supervised", supervised)
    known = tuple(Architecture(name, name, Kind.CAUSAL) for name in NAMES)
    monkeypatch.setattr(architectures, "architectures", lambda: known)
    return done


ORDER = Order(subject="transformers:all")


def test_a_sweep_writes_each_report_and_does_none_twice(checked: list[str], tmp_path: Path) -> None:
    told: list[str] = []
    reports = swept(ORDER, tmp_path / "out", 2, told.append)
    assert sorted(checked) == [f"transformers:{name}" for name in NAMES]
    assert sorted(told)[0] == "AForCausalLM: violates cache.uneven"
    assert sorted(told)[1] == "BForCausalLM: No small model. Too large."
    assert json.loads((tmp_path / "out" / "BForCausalLM.json").read_text())["error"][0] == "No small model."
    assert swept(ORDER, tmp_path / "out", 2, told.append) == reports
    assert len(checked) == 3


def test_a_report_that_was_cut_short_is_made_anew(checked: list[str], tmp_path: Path) -> None:
    swept(ORDER, tmp_path, 1, lambda _: None)
    path = tmp_path / "CForCausalLM.json"
    path.write_text(path.read_text()[:20])
    swept(ORDER, tmp_path, 1, lambda _: None)
    assert checked[3:] == ["transformers:CForCausalLM"]


def test_reports_of_another_order_are_not_mixed_in(checked: list[str], tmp_path: Path) -> None:
    swept(ORDER, tmp_path, 1, lambda _: None)
    with pytest.raises(UserError, match="another sweep"):
        swept(Order(subject="transformers:all", fast=True), tmp_path, 1, lambda _: None)
    assert len(checked) == 3
