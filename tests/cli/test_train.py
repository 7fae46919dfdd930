"""``glassformer train``: a run folder and the truth about it, or one clear message and nothing left behind."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path

import pytest

from glassformer.cli import text_run
from glassformer.cli.text_run import phrase, trace_command
from glassformer.text import open_prepared, split
from glassformer.training import load_run, validation_loss
from glassformer.training.baseline import fit_bigram
from glassformer.training.run_folder import RunFolder

from .commands import run
from .runs import SMALL, everything, lines_file, pressing, refused, short_samples, train, words_file

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    short_samples(monkeypatch)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return words_file(tmp_path)


def test_the_saved_model_has_the_losses_that_were_printed(text: Path, tmp_path: Path, capsys: Capture) -> None:
    outcome = train(capsys, text, tmp_path / "run", *SMALL, "--steps", "60")
    assert (outcome.code, outcome.err) == (0, "")
    model, tokenizer, meta, _ = load_run(tmp_path / "run")
    data = split(tokenizer.ids(text.read_text()))
    loss = validation_loss(model, data.validation(model.config.context, 64))
    bigram = fit_bigram(data.train, tokenizer.vocab_size).loss(data.validation(model.config.context, 64))
    assert bigram is not None
    assert loss is not None
    assert meta["validation_loss"] == meta["validation_loss_per_token"] == pytest.approx(loss)
    assert meta["bigram_loss"] == pytest.approx(bigram)
    assert meta["scored_characters"] == meta["scored_tokens"] == len(data.held_out) - 1
    assert f"validation loss   {loss:.3f} nats per character ({bigram - loss:.3f} below the bigram)" in outcome.out
    assert f"character bigram  {bigram:.3f}" in outcome.out
    assert meta["steps"] == 60


def test_losses_of_byte_pairs_are_those_of_the_same_characters(tmp_path: Path, capsys: Capture) -> None:
    """Two tokenizers, the same documents: the same characters are scored, and the same bigram is the one to beat."""
    text = lines_file(tmp_path)
    metas = []
    for kind, more in (("characters", ()), ("bytes", ("--vocab-size", "300"))):
        out = tmp_path / kind
        assert train(capsys, text, out, *SMALL, "--steps", "2", "--tokenizer", kind, *more).code == 0
        model, _, meta, _ = load_run(out)
        corpus = open_prepared(out / "data").corpus
        loss = validation_loss(model, corpus.validation(model.config.context, 64))
        assert loss is not None
        assert meta["validation_loss_per_token"] == pytest.approx(loss)
        per_character = loss * meta["scored_tokens"] / meta["scored_characters"]
        assert meta["validation_loss"] == pytest.approx(per_character)
        metas.append(meta)
    characters, pairs = metas
    assert characters["scored_characters"] == pairs["scored_characters"] < characters["scored_tokens"]
    assert pairs["scored_tokens"] < characters["scored_tokens"]
    # PAD is a token of one of them that the other does not count among its characters.
    assert pairs["bigram_loss"] == pytest.approx(characters["bigram_loss"], rel=1e-3)


def test_characters_are_counted_whole_where_a_batch_ends_inside_one(tmp_path: Path, capsys: Capture) -> None:
    text = tmp_path / "zh.txt"
    text.write_text("患者服用华法林后出现黑便。" * 40)
    options = ("--tokenizer", "bytes", "--vocab-size", "260", "--steps", "1")
    assert train(capsys, text, tmp_path / "run", *SMALL, *options).code == 0
    meta = load_run(tmp_path / "run").meta
    whole = text.read_text()
    assert meta["scored_characters"] == len(whole) - len(whole) * 9 // 10


def test_metrics_and_samples_are_kept(text: Path, tmp_path: Path, capsys: Capture) -> None:
    printed = train(capsys, text, tmp_path / "run", *SMALL, "--steps", "25").out
    metrics = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert metrics[0]["step"] == 1
    assert metrics[-1]["step"] == 25
    assert metrics[-1]["validation"] is not None
    head, _, sample = (tmp_path / "run" / "samples.txt").read_text().partition("\n")
    assert "sampled" in head
    assert len(sample) == text_run.SAMPLE + 1
    assert set(sample) <= set(text.read_text())
    assert [line for line in sample.split("\n") if f"  {line}" not in printed] == []


def test_a_model_that_lost_to_the_bigram_is_not_praised(text: Path, tmp_path: Path, capsys: Capture) -> None:
    outcome = train(capsys, text, tmp_path / "run", *SMALL, "--steps", "1")
    assert "not better than the bigram" in outcome.out


@pytest.mark.parametrize("content", ["word and word\n", "-word -and --word\n"])
def test_the_next_command_it_prints_runs_and_names_the_run(content: str, tmp_path: Path, capsys: Capture) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "my run"
    text.write_text(content * 40)
    outcome = train(capsys, text, out, *SMALL, "--steps", "1")
    line = next(x for x in outcome.out.splitlines() if x.startswith("next: "))
    words = shlex.split(line.removeprefix("next: "))
    assert words[:2] == ["glassformer", "trace"]
    assert str(out) in words
    page = words.index("page.html")
    words[page] = str(tmp_path / "some.trace")
    words[page - 1] = "--out"
    assert run(capsys, *words[1:]).code == 0


def test_a_folder_that_looks_like_an_option_is_named_so_that_it_is_none() -> None:
    assert shlex.split(trace_command(Path("-r"), "ab"))[-3:] == ["--", "-r", "ab"]


def test_two_runs_of_one_seed_give_the_same_files(text: Path, tmp_path: Path, capsys: Capture) -> None:
    for name in ("a", "b"):
        train(capsys, text, tmp_path / name, *SMALL, "--steps", "8", "--seed", "3")
    for file in ("model.safetensors", "samples.txt", "config.json", "tokenizer.json", "recipe.toml"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_the_recipe_it_saves_makes_the_same_run(text: Path, tmp_path: Path, capsys: Capture) -> None:
    options = (
        "--steps",
        "4",
        "--seed",
        "3",
        "--set",
        "model.positions=rope",
        "--set",
        "training.schedule.kind=constant",
    )
    train(capsys, text, tmp_path / "a", *SMALL, *options)
    assert train(capsys, text, tmp_path / "b", "--config", str(tmp_path / "a" / "recipe.toml")).code == 0
    for file in ("model.safetensors", "config.json", "training.json", "recipe.toml"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_text_that_steers_a_terminal_is_shown_not_obeyed(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "hostile.txt"
    path.write_text("\x1b[31m[/]</script>[link=file:///x]\u202e" * 40)
    printed = train(capsys, path, tmp_path / "run", *SMALL, "--steps", "2").out
    assert "␛" in printed
    assert not {"\x1b", "\u202e"} & set(printed)


# --- stopping --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_stop_saves_what_there_is_and_says_how_to_go_on(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, number: int
) -> None:
    pressing(monkeypatch, 3, number=number)
    out = tmp_path / "my run"
    outcome = train(capsys, text, out, *SMALL, "--steps", "1000000")
    assert (outcome.code, outcome.err) == (130, "")
    assert "stopped by you after 3 steps; what was learned until then is saved" in outcome.out
    assert f"go on with: glassformer train --resume '{out}'" in outcome.out
    meta = load_run(out).meta
    assert meta["steps"] == 3
    assert meta["stopped_early"] is True


def test_ctrl_c_twice_before_anything_was_saved_leaves_nothing_and_says_so(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    pressing(monkeypatch, 3, times=2)
    outcome = train(capsys, text, tmp_path / "new" / "run", *SMALL, "--steps", "1000000")
    assert outcome.code == 130
    assert outcome.err == "Stopped at once.\n  Nothing was saved yet, and nothing is left behind.\n"
    assert list(tmp_path.iterdir()) == [text]


def test_ctrl_c_twice_after_a_checkpoint_keeps_it_and_says_how_to_go_on(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    often = ("--set", "training.checkpoint.every_seconds=1e-9")
    pressing(monkeypatch, 3, times=2)
    outcome = train(capsys, text, tmp_path / "run", *SMALL, "--steps", "5", *often)
    assert outcome.code == 130
    assert outcome.err.startswith("Stopped at once.\n  What was learned until its last checkpoint is kept: ")
    command = shlex.split(outcome.err.splitlines()[1].partition(": ")[2])
    monkeypatch.undo()
    outcome = run(capsys, *command[1:])
    assert outcome.code == 0
    assert "going on after step 2" in outcome.out


def test_ctrl_c_while_the_text_is_read_stops_before_the_first_step(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    import os

    from glassformer.text import characters

    real = characters.CharacterTokenizer.of_characters

    def press(*arguments: object, **options: object) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments, **options)  # pyright: ignore

    monkeypatch.setattr(characters.CharacterTokenizer, "of_characters", press)
    outcome = train(capsys, text, tmp_path / "run", *SMALL, "--steps", "5")
    assert (outcome.code, outcome.out) == (130, "")
    assert "nothing is left behind" in outcome.err
    assert list(tmp_path.iterdir()) == [text]


def test_ctrl_c_means_what_it_meant_before_once_the_run_is_over(text: Path, tmp_path: Path, capsys: Capture) -> None:
    before = signal.getsignal(signal.SIGINT)
    train(capsys, text, tmp_path / "run", *SMALL, "--steps", "1")
    assert signal.getsignal(signal.SIGINT) is before


# --- requests that cannot be carried out -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["no such file", "--out", "run"], "There is no file no such file."),
        (["word.txt", "--out", "run"], 'Did you mean "words.txt"?'),
        ([], "A new run needs a text and a folder."),
        (["words.txt"], "A new run needs a folder."),
        (["--out", "run"], "A new run needs a text"),
        (["words.txt", "--out", "words.txt"], "is a file, not a folder"),
        (["words.txt", "--out", "run", "--steps", "many"], "--steps"),
        (["words.txt", "--out", "run", "--steps", "5", "--learning-rate", "nan"], "--learning-rate cannot be nan"),
        (["words.txt", "--out", "run", "--steps", "5", "--sterps", "6"], "--sterps"),
        (["-words.txt", "--out", "run"], 'begins with "-" comes last, after --'),
        (["words.txt", "--out", "run", "--config", "none.toml"], "There is no file none.toml."),
        (["words.txt", "--out", "run", "--config", "words.txt"], "words.txt is not TOML."),
        (["words.txt", "--out", "run", "--set", "model.d"], "does not set anything"),
        (["words.txt", "--out", "run", "--set", "modl.d=3"], 'There is no setting "modl".'),
        (["words.txt", "--out", "run", "--set", "model.dd=3"], 'Did you mean "model.d"'),
        (["words.txt", "--out", "run", "--field", "body"], 'There is no field "body" to read.'),
        (["words.txt", "--out", "run", "--vocab-size", "500"], "--vocab-size has no effect: each character is a token"),
        (["words.txt", "--out", "run", "--set", "model.windowed=all"], "has no effect: there is no window"),
    ],
)
def test_a_request_that_cannot_be_carried_out_is_one_message_and_code_2(
    text: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, arguments: list[str], part: str
) -> None:
    monkeypatch.chdir(text.parent)
    before = everything(text.parent)
    outcome = run(capsys, "train", *arguments)
    refused(outcome, part)
    assert outcome.out == ""
    assert everything(text.parent) == before


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--steps", "5", "--seconds", "5"], "Both --seconds and --steps"),
        (["--steps", "0"], "--steps cannot be 0."),
        (["--steps", "1" + "0" * 400], "--steps cannot be 1000"),
        (["--seconds", "0"], "--seconds cannot be 0"),
        (["--seconds", "nan"], "--seconds cannot be nan"),
        (["--seconds=-1"], "--seconds cannot be -1"),
        (["--batch", "0"], "--batch cannot be 0."),
        (["--batch", "100000000000"], "A batch of 100,000,000,000 rows does not fit into this machine."),
        (["--seed", "-1"], "--seed cannot be -1."),
        (["--learning-rate", "inf"], "--learning-rate cannot be inf."),
        (["--threads", "0"], "--threads cannot be 0."),
        (["--heads", "3"], "3 heads do not divide d = 16"),
        (["--heads", "0"], "--heads cannot be 0."),
        (["--heads", "32"], "32 heads do not divide d = 16"),
        (["--d", "0"], "--d cannot be 0."),
        (["--d", "1", "--heads", "1"], "d = 1"),
        (["--blocks", "-2"], "--blocks cannot be -2."),
        (["--context", "0"], "--context cannot be 0."),
        (["--context", "1000000"], "shorter than one window"),
        (["--blocks", "100000000"], "does not fit into this machine"),
        (["--d", "1000000"], "does not fit into this machine"),
        (["--d", "2147483647"], "does not fit into this machine"),
        (["--d", "9" * 400], "It must be less than 2,147,483,648."),
        (["--set", "model.d_ff=2000000000"], "does not fit into this machine"),
        (["--set", "model.d_k=2000000000"], "does not fit into this machine"),
        (["--set", "model.positions=rope", "--set", "model.d_k=3"], "must be even"),
        (["--set", "model.kv_heads=5"], "cannot share 5 key-value heads"),
        (["--set", "training.accumulation=100000000000"], "does not fit into this machine"),
    ],
)
def test_an_option_that_makes_no_sense_is_named_and_leaves_nothing(
    text: Path, tmp_path: Path, capsys: Capture, options: list[str], part: str
) -> None:
    steps = [] if any(option.startswith(("--steps", "--seconds")) for option in options) else ["--steps", "1"]
    refused(train(capsys, text, tmp_path / "run", *SMALL, *steps, *options), part)
    assert list(tmp_path.iterdir()) == [text]


def test_memory_that_the_system_refuses_is_one_message(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    import torch

    monkeypatch.setattr("glassformer.training.loop.accumulate", lambda *_: torch.empty(2**60))
    refused(train(capsys, text, tmp_path / "run", *SMALL, "--steps", "1"), "There is not enough memory for this.")
    assert list(tmp_path.iterdir()) == [text]


def test_a_folder_in_use_is_refused_before_anything_is_read(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes").write_text("precious")
    refused(train(capsys, tmp_path / "no such text", tmp_path / "run"), "exists and is not empty")
    assert everything(tmp_path / "run") == {"notes": b"precious"}


def test_a_run_is_not_written_over(text: Path, tmp_path: Path, capsys: Capture) -> None:
    train(capsys, text, tmp_path / "run", *SMALL, "--steps", "1")
    before = everything(tmp_path)
    refused(train(capsys, text, tmp_path / "run", *SMALL, "--steps", "1"), "exists and is not empty")
    assert everything(tmp_path) == before


def test_a_run_that_diverges_leaves_nothing_but_an_empty_folder_that_was_there(
    text: Path, tmp_path: Path, capsys: Capture
) -> None:
    options = (*SMALL, "--steps", "200", "--learning-rate", "1e30")
    refused(train(capsys, text, tmp_path / "a" / "b", *options), "diverged")
    assert list(tmp_path.iterdir()) == [text]
    (tmp_path / "a").mkdir()
    refused(train(capsys, text, tmp_path / "a", *options), "diverged")
    assert everything(tmp_path) == {"a": None, "words.txt": text.read_bytes()}


def test_what_was_learned_before_it_diverged_is_kept_and_that_is_said(
    text: Path, tmp_path: Path, capsys: Capture
) -> None:
    often = ("--set", "training.checkpoint.every_seconds=1e-9")
    outcome = train(capsys, text, tmp_path / "run", *SMALL, "--steps", "200", "--learning-rate", "1e30", *often)
    refused(outcome, "diverged", f"train --resume {tmp_path / 'run'}")
    with RunFolder.resume(tmp_path / "run").folder:
        pass


# --- phrases ---------------------------------------------------------------------------------------------------------


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
