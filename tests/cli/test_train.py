"""``glassformer train``: a run folder and the truth about it, or one clear message and nothing left behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from glassformer.cli import train as module
from glassformer.cli.progress import shown
from glassformer.cli.train import phrase, train_command
from glassformer.errors import UserError
from glassformer.text import split
from glassformer.training import Step, load_run, validation_loss
from glassformer.training.baseline import fit_bigram
from learning import words_text

from .commands import run

SMALL = {"d": 16, "blocks": 1, "heads": 2, "context": 8, "batch": 8}


@pytest.fixture(autouse=True)
def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE", 30)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text(words_text(500).replace("cab ", "cab\n"))
    return path


def test_the_saved_model_has_the_losses_that_were_printed(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_command(text, tmp_path / "run", steps=60, **SMALL)
    printed = capsys.readouterr().out
    model, tokenizer, meta, _ = load_run(tmp_path / "run")
    data = split(tokenizer.ids(text.read_text()))
    loss = validation_loss(model, data.validation(model.config.context, 64))
    bigram = fit_bigram(data.train, tokenizer.vocab_size).loss(data.validation(model.config.context, 64))
    assert bigram is not None
    assert loss is not None
    assert meta["validation_loss"] == pytest.approx(loss)
    assert meta["bigram_loss"] == pytest.approx(bigram)
    assert meta["scored_characters"] == len(data.held_out) - 1
    assert f"validation loss   {loss:.3f} nats per character ({bigram - loss:.3f} below the bigram)" in printed
    assert f"character bigram  {bigram:.3f}" in printed
    assert meta["steps"] == 60


def test_metrics_and_samples_are_kept(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train_command(text, tmp_path / "run", steps=25, **SMALL)
    metrics = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert metrics[0]["step"] == 1
    assert metrics[-1]["step"] == 25
    assert metrics[-1]["validation"] is not None
    head, _, sample = (tmp_path / "run" / "samples.txt").read_text().partition("\n")
    assert "sampled" in head
    assert len(sample) == module.SAMPLE + 1
    assert set(sample) <= set(text.read_text())
    printed = capsys.readouterr().out
    assert [line for line in sample.split("\n") if f"  {line}" not in printed] == []


def test_a_model_that_lost_to_the_bigram_is_not_praised(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_command(text, tmp_path / "run", steps=1, **SMALL)
    assert "not better than the bigram" in capsys.readouterr().out


def test_the_next_command_it_prints_names_the_run_and_text_the_model_can_read(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "my run"
    train_command(text, out, steps=1, **SMALL)
    line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("next: "))
    words = shlex.split(line.removeprefix("next: "))
    assert words[:2] == ["glassformer", "trace"]
    assert Path(words[2]) == out
    model, tokenizer, *_ = load_run(out)
    assert 2 <= len(tokenizer.encode(words[3]).ids) <= model.config.context


def test_two_runs_of_one_seed_give_the_same_files(text: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        train_command(text, tmp_path / name, steps=8, seed=3, **SMALL)
    for file in ("model.safetensors", "samples.txt", "config.json", "tokenizer.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_text_that_steers_a_terminal_is_shown_not_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostile.txt"
    path.write_text("\x1b[31m[/]</script>[link=file:///x]\u202e" * 40)
    train_command(path, tmp_path / "run", steps=2, **SMALL)
    printed = capsys.readouterr().out
    assert "␛" in printed
    assert not {"\x1b", "\u202e"} & set(printed)


# --- stopping --------------------------------------------------------------------------------------------------------


def interrupted(times: int) -> object:
    """``shown``, with Ctrl-C pressed ``times`` times while step 3 is shown."""

    def press(steps: Iterator[Step]) -> Iterator[Step]:
        for step in shown(steps):
            if step.step == 3:
                for _ in range(times):
                    os.kill(os.getpid(), signal.SIGINT)
            yield step

    return press


def test_ctrl_c_saves_what_there_is_and_says_so(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "shown", interrupted(1))
    with pytest.raises(typer.Exit) as caught:
        train_command(text, tmp_path / "run", steps=10**6, **SMALL)
    assert caught.value.exit_code == 130
    assert "stopped by you after 3 steps; what was learned until then is saved" in capsys.readouterr().out
    meta = load_run(tmp_path / "run").meta
    assert meta["steps"] == 3
    assert meta["stopped_early"] is True


def test_ctrl_c_twice_stops_at_once_and_leaves_nothing(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "shown", interrupted(2))
    with pytest.raises(KeyboardInterrupt):
        train_command(text, tmp_path / "run", steps=10**6, **SMALL)
    assert not (tmp_path / "run").exists()


def test_ctrl_c_means_what_it_meant_before_once_the_run_is_over(text: Path, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    train_command(text, tmp_path / "run", steps=1, **SMALL)
    assert signal.getsignal(signal.SIGINT) is before


# --- at the command line ---------------------------------------------------------------------------------------------


def test_the_command_trains_and_exits_with_zero(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--d", "16", "--blocks", "1", "--heads", "2", "--context", "8", "--steps", "2"]
    outcome = run(capsys, "train", str(text), "--out", str(tmp_path / "run"), *options)
    assert (outcome.code, outcome.err) == (0, "")
    assert "step 2" in outcome.out
    load_run(tmp_path / "run")


@pytest.mark.parametrize(
    "arguments",
    [
        ["no such file", "--out", "run"],
        ["words.txt"],
        ["words.txt", "--out", "words.txt"],
        ["words.txt", "--out", "run", "--steps", "many"],
        ["words.txt", "--out", "run", "--steps", "5", "--learning-rate", "nan"],
        ["words.txt", "--out", "run", "--steps", "5", "--sterps", "6"],
    ],
)
def test_a_request_that_cannot_be_carried_out_is_one_message_and_code_2(
    text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(text.parent)
    outcome = run(capsys, "train", *arguments)
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")
    assert "Traceback" not in outcome.err
    assert sorted(path.name for path in text.parent.iterdir()) == ["words.txt"]


# --- requests that cannot be carried out -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"steps": 5, "seconds": 5.0}, "Both --seconds and --steps"),
        ({"steps": 0}, "--steps cannot be 0"),
        ({"seconds": 0.0}, "--seconds cannot be 0.0"),
        ({"seconds": float("nan")}, "--seconds cannot be nan"),
        ({"seconds": -1.0}, "--seconds"),
        ({"steps": 1, "batch": 0}, "--batch"),
        ({"steps": 1, "seed": -1}, "--seed"),
        ({"steps": 1, "learning_rate": float("inf")}, "--learning-rate"),
        ({"steps": 1, "threads": 0}, "--threads"),
        ({"steps": 1, "heads": 3}, "3 heads do not divide d = 16"),
        ({"steps": 1, "heads": 0}, "heads"),
        ({"steps": 1, "d": 0}, "d"),
        ({"steps": 1, "blocks": -2}, "blocks"),
        ({"steps": 1, "context": 0}, "context"),
        ({"steps": 1, "context": 10**6}, "shorter than one window"),
    ],
)
def test_an_option_that_makes_no_sense_is_named_and_leaves_nothing(
    text: Path, tmp_path: Path, options: dict[str, float], part: str
) -> None:
    with pytest.raises(UserError) as caught:
        train_command(text, tmp_path / "run", **{**SMALL, **options})  # pyright: ignore[reportArgumentType]
    assert part in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_folder_in_use_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes").write_text("precious")
    with pytest.raises(UserError, match="exists and is not empty"):
        train_command(tmp_path / "no such text", tmp_path / "run", steps=1)
    assert (tmp_path / "run" / "notes").read_text() == "precious"


@pytest.mark.parametrize("raw", [b"", b"a", "ab".encode("utf-16"), b"\xff\xfe\x00", b"a\x00b"])
def test_a_file_that_is_no_text_leaves_nothing(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "bad.txt").write_bytes(raw)
    with pytest.raises(UserError):
        train_command(tmp_path / "bad.txt", tmp_path / "run", steps=1)
    assert not (tmp_path / "run").exists()


def test_a_run_that_diverges_leaves_nothing(text: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="diverged"):
        train_command(text, tmp_path / "run", steps=200, learning_rate=1e30, **SMALL)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("The quality of mercy is not strained", 24, "The quality of mercy is"),
        ("The quality of mercy", 20, "The quality of mercy"),
        ("The quality of mercy", 11, "The quality"),
        ("The quality of mercy", 10, "The"),
        ("ay\nx\n  A drum, a drum!  ", 24, "A drum, a drum!"),
        ("ay\nx", 24, "ay"),
        ("春眠不觉晓处处闻啼鸟夜来风雨声", 12, "春眠不觉晓处处闻啼鸟夜来"),
        ("\x1b[31m a line of escapes\nplain and safe", 24, "plain and safe"),
        ("a\nb\nc", 24, "a\n"),
    ],
)
def test_the_phrase_to_look_at_is_words_of_one_line_within_the_limit(text: str, limit: int, expected: str) -> None:
    assert phrase(text, limit) == expected


@pytest.mark.parametrize("sizes", [{"blocks": 10**8}, {"d": 10**6}, {"context": 10**10}])
def test_a_model_that_the_machine_cannot_hold_is_refused_before_it_is_built(sizes: dict[str, int]) -> None:
    from glassformer.cli.train import model_config

    with pytest.raises(UserError, match="does not fit into this machine"):
        model_config(80, **{"d": 64, "blocks": 2, "heads": 4, "context": 64, **sizes})
