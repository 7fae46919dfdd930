"""``glassformer data show``: the batch it shows is the batch that the model reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.cli.data import COLUMNS, positions_of
from glassformer.cli.words import DATA
from glassformer.text.batches import Batch
from glassformer.training import load_run, open_run_data

from .commands import run
from .runs import OF_CLINIC, SMALL, lines_file, refused, short_samples, train, words_file

Capture = pytest.CaptureFixture[str]
KINDS = ("text", "joined", "isolated", "clinic")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(params=KINDS)
def path(request: pytest.FixtureRequest, runs: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Path:
    return trained(request.param, runs, capsys, monkeypatch)


def trained(kind: str, runs: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of one step on data of this kind."""
    path = runs / kind
    if not path.exists():
        short_samples(monkeypatch)
        source: Path | str = "clinic" if kind == "clinic" else words_file(runs) if kind == "text" else lines_file(runs)
        bytes_ = ("--tokenizer", "bytes", "--vocab-size", "270", "--set", "model.context=100")
        options = {"text": (), "clinic": OF_CLINIC, "joined": ("--joined",), "isolated": ("--isolated", *bytes_)}[kind]
        small = () if kind == "clinic" else SMALL
        assert train(capsys, source, path, *small, *options, "--steps", "1").code == 0
    return path


def shown(capsys: Capture, path: Path, *options: str) -> dict[str, Any]:
    outcome = run(capsys, "data", "show", str(path), "--json", "-", *options)
    assert (outcome.code, outcome.err) == (0, "")
    return json.loads(outcome.out)


def test_json_has_the_batch_that_training_draws_with_this_seed(path: Path, capsys: Capture) -> None:
    data = shown(capsys, path, "--rows", "3", "--seed", "5")
    opened = open_run_data(path)
    batch = opened.data.batch(opened.context, 3, np.random.default_rng(5))
    assert data["tokens"] == batch.tokens.tolist()
    assert data["targets"] == batch.targets.tolist()
    assert data["scored"] == batch.scored.tolist()
    assert data["segments"] == (None if batch.segments is None else batch.segments.tolist())
    assert (data["segments"] is not None) == (path.name == "isolated")
    assert data["texts"] == [[opened.tokenizer.texts[id] for id in row] for row in data["tokens"]]
    assert data["data"] == opened.origin


def test_positions_are_those_that_the_model_itself_uses(path: Path, capsys: Capture) -> None:
    model = load_run(path).model
    data = shown(capsys, path, "--rows", "4")
    said = positions_in_model(model, data["tokens"], data["segments"])
    assert np.broadcast_to(said, np.shape(data["tokens"])).tolist() == data["positions"]


def positions_in_model(model: Any, tokens: Any, segments: Any) -> np.ndarray:
    heard = {}

    def say(quantity: Any, value: Any, at: Any) -> Any:
        if quantity.name == "pos":
            heard["pos"] = value
        return value

    more = {} if segments is None else {"segments": torch.tensor(segments)}
    with torch.no_grad():
        model(torch.tensor(tokens), say=say, **more)
    return heard["pos"].numpy()


def test_a_packed_row_with_several_documents_begins_its_positions_anew(
    runs: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = shown(capsys, trained("isolated", runs, capsys, monkeypatch), "--rows", "8")
    assert max(max(row) for row in data["segments"]) >= 1
    assert any(row.count(0) > 1 for row in data["positions"])


@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=6), min_size=1, max_size=4))
def test_positions_count_from_0_in_every_segment(lengths: list[list[int]]) -> None:
    n = max(map(sum, lengths))
    rows = [np.repeat(np.arange(len(row) + 1), [*row, n - sum(row)]) for row in lengths]
    segments = np.stack(rows).astype(np.int64)
    nothing = np.zeros_like(segments)
    expected = [[int((row[:i] == row[i]).sum()) for i in range(n)] for row in segments]
    assert positions_of(Batch(nothing, nothing, nothing > 0, segments)).tolist() == expected
    assert positions_of(Batch(nothing, nothing, nothing > 0)).tolist() == [list(range(n))] * len(rows)


def is_row(line: str) -> bool:
    return line.startswith("  ") and line.strip()[:1].isdigit()


def test_the_table_says_what_json_says(path: Path, capsys: Capture) -> None:
    data = shown(capsys, path, "--rows", "2")
    outcome = run(capsys, "data", "show", str(path), "--rows", "2", "--positions", "1000")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == data["data"]
    rows = [line.split("  ") for line in lines if is_row(line)]
    count = [len(row) for row in data["tokens"]]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [int(row[0]) for row in cells] == [i + 1 for n in count for i in range(n)]
    flat = [id for row in data["tokens"] for id in row]
    scored = [flag for row in data["scored"] for flag in row]
    positions = [place for row in data["positions"] for place in row]
    first = 1 if data["segments"] is None else 2
    for row, id, flag, place in zip(cells, flat, scored, positions, strict=True):
        assert int(row[first]) == place
        assert str(id) in row
        assert row[-1] == ("yes" if flag else "no")
    if data["segments"] is not None:
        assert [int(row[1]) for row in cells] == [segment for row in data["segments"] for segment in row]
    for number, row in enumerate(data["scored"], 1):
        assert f"row {number}: {len(row)} positions, {sum(row)} scored" in outcome.out


def test_the_table_shows_as_many_positions_as_asked_for_and_says_how_many_more_there_are(
    path: Path, capsys: Capture
) -> None:
    outcome = run(capsys, "data", "show", str(path), "--rows", "1", "--positions", "3")
    shown_rows = [line for line in outcome.out.splitlines() if is_row(line)]
    n = open_run_data(path).data.batch(open_run_data(path).context, 1, np.random.default_rng(0)).tokens.shape[1]
    assert len(shown_rows) == 3
    assert f"… and {n - 3} more" in outcome.out


def test_the_table_speaks_chinese(path: Path, capsys: Capture) -> None:
    outcome = run(capsys, "data", "show", str(path), "--rows", "1", "--lang", "zh")
    assert "第 1 行：" in outcome.out
    header = next(line for line in outcome.out.splitlines() if "位置  " in line)
    assert header.split() == [DATA["zh"][column] for column in COLUMNS]


def test_validation_begins_at_its_beginning(path: Path, capsys: Capture) -> None:
    data = shown(capsys, path, "--part", "validation", "--rows", "2")
    opened = open_run_data(path)
    first = next(iter(opened.data.validation(opened.context, 2)))
    assert data["tokens"] == first.tokens.tolist()
    assert data["targets"] == first.targets.tolist()


def test_a_run_that_is_not_finished_can_be_looked_at(path: Path, tmp_path: Path, capsys: Capture) -> None:
    import shutil

    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    (copy / "manifest.json").unlink()
    assert shown(capsys, copy)["tokens"] == shown(capsys, path)["tokens"]


def test_json_in_a_file_is_not_written_over(path: Path, tmp_path: Path, capsys: Capture) -> None:
    arguments = ("data", "show", str(path), "--json", str(tmp_path / "batch.json"))
    outcome = run(capsys, *arguments)
    assert outcome.code == 0
    assert "row 1: " in outcome.out
    before = (tmp_path / "batch.json").read_bytes()
    refused(run(capsys, *arguments), "exists already")
    assert (tmp_path / "batch.json").read_bytes() == before
    assert run(capsys, *arguments, "--force").code == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["none"], "There is no run folder none."),
        (["RUN", "--rows", "0"], "--rows"),
        (["RUN", "--positions", "0"], "--positions"),
        (["RUN", "--seed", "-1"], "--seed"),
        (["RUN", "--part", "test"], "--part"),
        (["RUN", "--json", "no/folder.json"], "no folder"),
        ([], "RUN"),
    ],
)
def test_what_cannot_be_shown_is_one_message(
    runs: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, arguments: list[str], part: str
) -> None:
    path = trained("text", runs, capsys, monkeypatch)
    capsys.readouterr()
    outcome = run(capsys, "data", "show", *(str(path) if word == "RUN" else word for word in arguments))
    refused(outcome, part)
    assert outcome.out == ""


def test_damaged_data_are_not_shown(path: Path, tmp_path: Path, capsys: Capture) -> None:
    import shutil

    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    file = "config.json" if path.name == "clinic" else "data/train-00000.bin"
    content = (copy / file).read_bytes()
    (copy / file).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refused(run(capsys, "data", "show", str(copy)), "is damaged")


def test_tokens_that_steer_a_terminal_are_shown_as_pictures(tmp_path: Path, capsys: Capture) -> None:
    text = tmp_path / "hostile.txt"
    text.write_text("a\x1b[31m\u202e\n" * 60)
    assert train(capsys, text, tmp_path / "run", *SMALL, "--steps", "1").code == 0
    printed = run(capsys, "data", "show", str(tmp_path / "run")).out
    assert "“␛”" in printed
    assert "“␊”" in printed
    assert not {"\x1b", "\u202e"} & set(printed)
