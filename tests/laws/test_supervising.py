"""A check goes on when a model hangs or ends its process, and says so."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from glassformer.errors import UserError
from glassformer.laws import supervising
from glassformer.laws.supervising import Order, supervised

HERE = Path(__file__).parent
ONLY = ("causality.forward", "causality.dropout", "causality.past")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    return {entry["probe"]: entry["verdict"] for entry in report["laws"]}


@pytest.mark.parametrize(("name", "said"), [("Hanging", "did not end in 4 s"), ("Dying", "signal SIGKILL")])
def test_a_probe_that_hangs_or_dies_says_so_and_the_others_run(name: str, said: str) -> None:
    report = supervised(Order(subject=f"misbehaving:{name}", only=ONLY, timeout=4))
    assert verdicts(report) == {
        "causality.forward": "holds", "causality.past": "holds", "causality.dropout": "not supported",
    }  # fmt: skip
    lost = next(entry for entry in report["laws"] if entry["probe"] == "causality.dropout")
    assert said in lost["reason"]["en"]
    assert report["verdicts"]["not supported"] == 1
    json.dumps(report, allow_nan=False)


def test_a_model_whose_building_hangs_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "START", 8.0)
    with pytest.raises(UserError, match="building the model did not end"):
        supervised(Order(subject="misbehaving:never", timeout=1))


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("misbehaving:fails", "ValueError: no such"),
        ("misbehaving:needs", "needs size"),
        ("misbehaving:Leakin", 'Did you mean "Leaking"'),
        ("misbehavin:Leaking", "There is no module"),
    ],
)
def test_what_cannot_be_had_is_one_message(subject: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        supervised(Order(subject=subject))


def test_the_probes_are_listed_without_a_check() -> None:
    listed = supervised(Order(subject="misbehaving:Leaking", only=("prefix",), listing=True))
    assert [entry["probe"] for entry in listed["laws"]] == ["prefix.lengths", "prefix.last-position"]


def test_the_memory_of_a_check_can_be_limited() -> None:
    if sys.platform != "linux":
        pytest.skip("address space is limited on Linux")
    with pytest.raises(UserError):
        supervised(Order(subject="misbehaving:Leaking", only=ONLY, memory=256))
