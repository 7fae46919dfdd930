"""``glassformer generate``: the text on standard output, notes beside it, one message for what cannot be done."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from glassformer.cli import generate as module
from glassformer.generation import Continuation, generate
from glassformer.training import load_run
from learning import save_run, tiny_decoder, tokens_of, words_text

from .commands import run, run_alone


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a model nobody trained, over the letters a, b, c and space; its context is 8."""
    path = tmp_path_factory.mktemp("runs") / "mine"
    tokenizer, _ = tokens_of(words_text(50))
    save_run(path, tiny_decoder(tokenizer.vocab_size, seed=3), tokenizer)
    return path


def expected(folder: Path, prompt: str, count: int, **rule: float) -> str:
    model, tokenizer, *_ = load_run(folder)
    ids = list(generate(model, tokenizer.encode(prompt).ids.tolist(), count, **rule))  # pyright: ignore
    return tokenizer.decode(ids)


def test_it_prints_the_prompt_and_what_the_model_writes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--prompt", "ab", "--temperature", "0.8", "--top-p", "0.95", "--top-k", "3", "--max-tokens", "30"]
    outcome = run(capsys, "generate", str(folder), *arguments, "--seed", "7")
    text = expected(folder, "ab", 30, temperature=0.8, top_p=0.95, top_k=3, seed=7)
    assert (outcome.code, outcome.out) == (0, f"ab{text}\n")
    assert outcome.err == "ended after 30 tokens (--max-tokens)\n"


def test_it_ends_before_a_stop_string(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = expected(folder, "ab", 60)
    stop = whole[20:23]
    outcome = run(capsys, "generate", str(folder), "--prompt", "ab", "--stop", stop, "--max-tokens", "60")
    assert outcome.out == f"ab{whole[: whole.index(stop)]}\n"
    assert f"“{stop}”" in outcome.err


def test_json_has_text_ids_and_the_probability_of_each_chosen_token(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("generate", str(folder), "--prompt", "ab", "--max-tokens", "5", "--top-k", "2", "--json", "-")
    outcome = run(capsys, *arguments)
    data = json.loads(outcome.out)
    model, tokenizer, *_ = load_run(folder)
    assert data["prompt"] == {"text": "ab", "ids": tokenizer.encode("ab").ids.tolist(), "read": 2}
    assert (
        data["text"] == "".join(data["tokens"]) == tokenizer.decode(data["ids"]) == expected(folder, "ab", 5, top_k=2)
    )
    tokens = [*data["prompt"]["ids"], *data["ids"]]
    for k, (id, p, q) in enumerate(zip(data["ids"], data["probabilities"], data["model_probabilities"], strict=True)):
        softmax = torch.softmax(model(torch.tensor([tokens[: 2 + k]])).logits[0, -1].detach().double(), -1)
        assert q == pytest.approx(float(softmax[id]), rel=1e-5)
        assert p == pytest.approx(float(softmax[id] / softmax.topk(2).values.sum()), rel=1e-5)
    assert (data["ended"], data["stop"]) == ("length", None)
    assert outcome.err == ""


def test_json_in_a_file_leaves_the_text_on_the_terminal_and_an_older_file_alone(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("generate", str(folder), "--prompt", "ab", "--max-tokens", "5", "--json", str(tmp_path / "out.json"))
    outcome = run(capsys, *arguments)
    assert "ab" + json.loads((tmp_path / "out.json").read_text())["text"] + "\n" == outcome.out
    again = run(capsys, *arguments)
    assert (again.code, again.out) == (2, "")
    assert "exists already" in again.err
    assert run(capsys, *arguments, "--force").code == 0


def test_of_a_prompt_longer_than_the_context_the_end_is_read_and_that_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = run(capsys, "generate", str(folder), "--prompt", "abc bca cab", "--max-tokens", "4")
    assert outcome.out == "abc bca cab" + expected(folder, " bca cab", 4) + "\n"
    assert "the prompt has 11 tokens, the model reads 8 at once: it sees the last 8" in outcome.err


def test_the_notes_are_in_chinese_when_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "generate", str(folder), "--prompt", "ab", "--max-tokens", "2", "--lang", "zh")
    assert "写满 2 个词元后结束" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--prompt", ""], "prompt is empty"),
        (["--prompt", "aXb"], "'X' (U+0058) is not in the vocabulary"),
        (["--prompt", "ab", "--temperature", "-1"], "-1.0 is not a temperature"),
        (["--prompt", "ab", "--temperature", "nan"], "not a temperature"),
        (["--prompt", "ab", "--temperature", "warm"], "--temperature"),
        (["--prompt", "ab", "--top-p", "0"], "top-p cannot be 0.0"),
        (["--prompt", "ab", "--top-k", "0"], "top-k cannot be 0"),
        (["--prompt", "ab", "--max-tokens", "0"], "--max-tokens cannot be 0"),
        (["--prompt", "ab", "--seed", "-1"], "seed cannot be -1"),
        (["--prompt", "ab", "--stop", ""], "stop string is empty"),
        (["--prompt", "ab", "--json", "no such folder/out.json"], "no folder"),
        (["--prompt", "ab", "--sotp", "x"], "--sotp"),
        ([], "--prompt"),
    ],
)
def test_what_cannot_be_done_is_one_message_and_code_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], part: str
) -> None:
    outcome = run(capsys, "generate", str(folder), *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert part in outcome.err


def test_a_folder_that_is_no_run_is_one_message_and_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "generate", str(tmp_path / "none"), "--prompt", "ab")
    assert (outcome.code, outcome.out) == (2, "")
    assert "There is no run folder" in outcome.err


# --- any terminal, or none -------------------------------------------------------------------------------------------


def test_what_a_terminal_cannot_show_is_named_and_what_steers_it_is_not_obeyed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    module.stream("é药\x1b\n")
    assert raw.getvalue() == b"\xe9<U+836F><U+241B>\n"


def test_each_part_is_there_before_the_next_is_computed(folder: Path) -> None:
    """Through a pipe, without a terminal: the first characters arrive while the process still writes."""
    command = [
        sys.executable,
        "-m",
        "glassformer",
        "generate",
        str(folder),
        "--prompt",
        "ab",
        "--max-tokens",
        "9000000",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(process.stdout.read(12)) == 12
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        rest, notes = process.communicate(timeout=60)
    assert process.returncode == 130
    assert rest.endswith(b"\n")
    assert b"ended by you after" in notes
    assert b"Traceback" not in notes


def test_a_reader_that_goes_away_ends_it_quietly(folder: Path) -> None:
    code = '"$0" -m glassformer generate "$1" --prompt ab --max-tokens 9000000 | head -c 20'
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", code, sys.executable, str(folder)],
        capture_output=True,
        env={**os.environ},
        check=False,
        timeout=120,
    )
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 20, b"")


def test_without_standard_output_it_says_so(folder: Path) -> None:
    outcome = run_alone("generate", str(folder), "--prompt", "ab", closed=True)
    assert outcome.code == 2
    assert "no standard output" in outcome.err


def test_ctrl_c_with_json_still_gives_what_there_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press(self: Continuation, original=Continuation._parts):
        for k, part in enumerate(original(self)):
            if k == 2:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
            yield part

    monkeypatch.setattr(Continuation, "_parts", press)
    outcome = run(capsys, "generate", str(folder), "--prompt", "ab", "--json", "-")
    data = json.loads(outcome.out)
    assert outcome.code == 130
    assert (data["ended"], len(data["ids"])) == ("interrupted", 3)
