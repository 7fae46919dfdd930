"""What ``glassformer check`` says of models that cannot be checked: one message, and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from glassformer.cli.check_table import lines
from glassformer.errors import UserError
from glassformer.laws.reading import exit_code
from glassformer.laws.worker import checked

from .commands import run

LAWS = Path(__file__).parents[1] / "laws"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LAWS))


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("foreign:Nothing", "No law could be tried: forward returned no (batch, positions, 31): str"),
        ("foreign:NeedsGPU", "Found no NVIDIA driver"),
        ("foreign:NotANumber", "No law could be tried: every logit is NaN or infinite"),
        ("foreign:Uncopied", "cannot be copied (RuntimeError: holds a lock)"),
    ],
)
def test_a_model_of_which_nothing_can_be_tried_is_said_in_one_line(subject: str, said: str) -> None:
    report = checked({"subject": subject, "only": ("causality", "determinism")}, lambda *_: None)
    told = list(lines(report, "en"))
    assert exit_code(report) == 2
    assert any(said in line for line in told)
    assert len(told) <= 4
    assert "没有一条定律可以检验" in "".join(lines(report, "zh"))


def test_what_a_model_raises_is_printed_without_what_it_would_do_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = run(capsys, "check", "foreign:Raising", "--only", "causality")
    assert (done.code, done.err) == (2, "")
    assert "No law could be tried: the model cannot be run in float32: RuntimeError: no kernel image" in done.out
    assert "\x1b" not in done.out


def test_code_in_a_model_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"auto_map": {"AutoModelForCausalLM": "modeling_x.X"}}))
    (tmp_path / "modeling_x.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    done = run(capsys, "check", str(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert "asks for code of its own (auto_map)." in done.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("subject", "only", "said"),
    [
        ("foreign:NoIds", (), "Write a module around it whose forward takes token ids"),
        ("foreign:GPTModl", (), 'Did you mean "GPTModel"'),
        ("foreign:GPTModel", ("causalty",), 'Did you mean "causality"'),
    ],
)
def test_what_cannot_be_had_is_said_with_what_is_near(subject: str, only: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        checked({"subject": subject, "only": only}, lambda *_: None)
