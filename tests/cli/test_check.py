"""``glassformer check`` and ``glassformer laws``: exit codes, tables, files, and requests that cannot be carried out."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from glassformer.laws.table import LAWS

from .commands import run, run_alone

SOURCE = """
import torch
from torch import nn

class Reads(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(20, 8), nn.Linear(8, 20)
    def forward(self, ids):
        return self.head(self.table(ids).cumsum(1))

class Leaks(Reads):
    def forward(self, ids):
        return self.head(self.table(ids).cumsum(1) + 0.1 * self.table(ids).sum(1, keepdim=True))

class Wide(nn.Module):
    def forward(self, ids):
        return nn.functional.one_hot(ids, 12).double().cumsum(1)
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models_here.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


QUICK = ("--only", "causality.forward", "--only", "cache.uneven")


def test_a_violation_exits_with_one_and_is_written_in_every_form(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ("--json", "r.json", "--junit", "r.xml", "--html", "r.html")
    done = run(capsys, "check", "models_here:Leaks", *QUICK, *files)
    assert (done.code, done.err) == (1, "")
    assert "causality.forward  violated: " in done.out
    assert "cache.uneven       not supported: forward takes no cache" in done.out
    assert "forward passes: " in done.out
    report = json.loads((models / "r.json").read_text())
    assert report["laws"][0]["verdict"] == "violated"
    assert "torch.manual_seed(0)" in report["laws"][0]["program"]
    assert ElementTree.parse(models / "r.xml").getroot()[0].get("failures") == "1"
    assert "models_here:Leaks" in (models / "r.html").read_text("utf-8")
    again = run(capsys, "check", "models_here:Leaks", *QUICK, "--html", "r.html")
    assert again.code == 2
    assert "exists already" in again.err


def test_a_sound_model_exits_with_zero_and_strict_counts_what_is_not_supported(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(capsys, "check", "models_here:Reads", *QUICK, "--lang", "zh")
    assert done.code == 0
    assert "成立" in done.out
    assert run(capsys, "check", "models_here:Reads", *QUICK, "--strict").code == 1


def test_what_the_model_does_not_say_is_asked_for_and_told(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = run(capsys, "check", "models_here:Wide", *QUICK)
    assert asked.code == 2
    assert "--vocab-size" in asked.err
    told = run(capsys, "check", "models_here:Wide", *QUICK, "--vocab-size", "12", "--context", "9", "--json", "-")
    assert json.loads(told.out)["facts"]["context"] == 9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("toy24", "--out", "somewhere"), "--out does not apply to toy24"),
        (("toy24", "--jobs", "2"), "--jobs does not apply to toy24"),
        (("transformers:all",), "--out FOLDER"),
        (("transformers:all", "--out", "o", "--kind", "causal"), "Leave out kind"),
        (("toy24", "--html", "no/such/folder/r.html"), "There is no folder"),
        (("toy24", "--only", "causalty"), 'Did you mean "causality"'),
        (("toy24", "--kind", "masked"), "kind cannot be told of toy24"),
        (("lama",), "There is nothing called"),
        (("toy24", "--timeout", "-1"), "timeout"),
    ],
)
def test_a_request_that_cannot_be_carried_out_is_one_message(
    arguments: tuple[str, ...], said: str, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(capsys, "check", *arguments)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert not list(models.glob("o*"))


def test_the_table_of_laws_has_every_law_in_both_languages(capsys: pytest.CaptureFixture[str]) -> None:
    for lang in ("en", "zh"):
        done = run(capsys, "laws", "--lang", lang)
        assert done.code == 0
        assert all(law.statement[lang] in done.out for law in LAWS)


def test_one_law_is_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "laws", "cache")
    cache = next(law for law in LAWS if law.id == "cache")
    for said in (cache.why["en"], cache.conditions["en"], cache.formula, *(probe.id for probe in cache.probes)):
        assert said in done.out
    unknown = run(capsys, "laws", "cach")
    assert unknown.code == 2
    assert 'Did you mean "cache"' in unknown.err


def test_the_table_of_laws_is_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    table = json.loads(run(capsys, "laws", "--json", "-").out)
    assert [law["id"] for law in table["laws"]] == [law.id for law in LAWS]


@pytest.mark.full
def test_a_terminal_of_ascii_gets_the_report() -> None:
    done = run_alone("check", "toy24", "--only", "causality", PYTHONIOENCODING="ascii")
    assert done.code == 0, done.err
