"""``glassformer trace`` with the options of a trained model: dropout, and the size of the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from glassformer.model import Decoder, DropoutConfig
from glassformer.page import document
from learning import save_run, tiny_decoder, tokens_of, words_text

from .commands import run
from .test_trace_command import refused


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without dropout, the same with, and a model with more than a megabyte of numbers."""
    root = tmp_path_factory.mktemp("runs")
    tokenizer, _ = tokens_of(words_text(80))
    plain = tiny_decoder(tokenizer.vocab_size)
    rates = DropoutConfig(embedding=0.3, attention=0.3, residual=0.3)
    dropping = Decoder(plain.config.model_copy(update={"dropout": rates}), torch.Generator().manual_seed(0))
    models = {"plain": plain, "dropping": dropping, "large": tiny_decoder(tokenizer.vocab_size, d=96)}
    for name, model in models.items():
        save_run(root / name, model, tokenizer)
    return root


def test_a_step_of_training_mode_is_traced_and_explained_with_its_masks(
    capsys: pytest.CaptureFixture[str], folders: Path, tmp_path: Path
) -> None:
    subject, file = str(folders / "dropping"), str(tmp_path / "step.trace")
    without = json.loads(run(capsys, "trace", subject, "abc bca", "--json", "-").out)["values"]
    with_masks = json.loads(run(capsys, "trace", subject, "abc bca", "--dropout", "--json", "-").out)["values"]
    masks = {"embed.kept_X", "blocks.0.attn.kept_A", "blocks.0.kept_O", "blocks.0.kept_F"}
    assert masks == {name for name in with_masks if "kept_" in name}
    assert not {name for name in without if "kept_" in name}
    flat = [kept for row in with_masks["embed.kept_X"] for kept in row]
    assert 0 < sum(flat) < len(flat)
    told = run(capsys, "explain", subject, "embed.X_D[0,0]", "abc bca", "--dropout")
    assert told.code == 0
    assert "kept_X" in told.out
    assert run(capsys, "trace", subject, "abc bca", "--dropout", "--out", file).code == 0
    assert run(capsys, "trace", file).code == 0
    refused(run(capsys, "trace", file, "--dropout"), "--dropout does not apply to a trace file")


def test_dropout_is_refused_where_there_is_none(capsys: pytest.CaptureFixture[str], folders: Path) -> None:
    refused(run(capsys, "trace", "toy24", "--dropout"), "toy24 has no dropout")
    refused(run(capsys, "explain", "toy24", "A[0,1,0]", "--dropout"), "toy24 has no dropout")
    refused(run(capsys, "trace", str(folders / "plain"), "abc", "--dropout"), "no dropout", "without")


def test_the_page_holds_as_many_numbers_as_it_may(
    capsys: pytest.CaptureFixture[str], folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        document, "template", lambda: '<html lang="en"><title>glassformer</title><!--GLASSFORMER-DATA-->'
    )
    subject, small, whole = str(folders / "large"), tmp_path / "small.html", tmp_path / "whole.html"
    assert run(capsys, "trace", subject, "abc", "--html", str(whole)).code == 0
    assert run(capsys, "trace", subject, "abc", "--html", str(small), "--page-size", "1").code == 0
    assert '"left_out"' not in whole.read_text("utf-8")
    assert '"left_out":{"limit":1000000,' in small.read_text("utf-8")
    numbers = [sum(map(len, document_blocks(path))) for path in (small, whole)]
    assert numbers[0] <= 1_000_000 + 100_000 < numbers[1]


def document_blocks(path: Path) -> list[str]:
    """The blocks of numbers of a page."""
    return [block for block in path.read_text("utf-8").split("<script")[1:] if "glassformer-header" not in block]


@pytest.mark.parametrize("size", ["0", "-5", "many"])
def test_a_page_size_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], size: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    refused(run(capsys, "trace", "toy24", "--html", str(page), "--page-size", size), "--page-size")
    assert not page.exists()
