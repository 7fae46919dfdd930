"""A run's own optimizer, as its last checkpoint left it, makes the step of a trace."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from glassformer.errors import UserError
from glassformer.model import Decoder, DropoutConfig
from glassformer.tracing import SGD, AdamW, trace_run
from glassformer.training import OptimizerConfig, RunFolder, TrainingConfig, run
from glassformer.training.checkpoint import latest, load_checkpoint, save_checkpoint
from glassformer.training.run_files import CHECKPOINTS
from learning import save_run, tiny_decoder, tokens_of, words_text

CONFIG = TrainingConfig(steps=4, batch=4, threads=1, optimizer=OptimizerConfig(weight_decay=0.2, clip=0.4))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "words"
    tokenizer, data = tokens_of(words_text(80))
    model = tiny_decoder(tokenizer.vocab_size)
    with RunFolder.create(path) as folder:
        config = folder.begin(model, tokenizer, {}, CONFIG, facts={})
        run(model, data, config, folder)
        folder.save(model, meta={}, samples="")
    return path


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_the_step_goes_on_from_the_runs_last_state(trained: Path) -> None:
    trace = trace_run(trained, "abc bca", update="run", witness_cells=0)
    found = latest(trained / CHECKPOINTS).path
    assert found is not None
    state = load_checkpoint(found, tiny_decoder(4))
    for name, moment in state.optimizer.items():
        kind, _, id = name.partition(".")
        assert np.array_equal(trace.values[f"{id}.{kind}"], moment.double().numpy())
    assert trace.program.scalars["step"] == 5
    assert trace.program.scalars["clip"] == 0.4
    # All of the run is over, so the schedule has come down to its floor.
    assert trace.program.scalars["eta"] == pytest.approx(CONFIG.optimizer.learning_rate * CONFIG.schedule.floor)
    assert trace.replay.holds
    assert trace.audit is not None
    assert trace.audit.uncovered == ()


def test_a_fresh_optimizer_or_a_rate_alone_is_another_step(trained: Path) -> None:
    fresh = trace_run(trained, "abc", update=AdamW(lr=0.02), witness_cells=0)
    assert fresh.program.scalars["step"] == 1
    assert not fresh["head.U.moment1"].any()
    assert trace_run(trained, "abc", update=SGD(lr=0.3), witness_cells=0).moments is None


def test_a_state_that_belongs_to_other_parameters_is_refused(copied: Path) -> None:
    state = latest(copied / CHECKPOINTS).path
    assert state is not None
    model = tiny_decoder(4)
    loaded = load_checkpoint(state, model)
    with torch.no_grad():
        model.head.U.add_(1.0)
    save_checkpoint(copied / CHECKPOINTS, model, loaded)
    with pytest.raises(UserError, match="holds other parameters than the finished model"):
        trace_run(copied, "abc", update="run", witness_cells=0)


def test_a_run_without_checkpoints_says_so(copied: Path) -> None:
    shutil.rmtree(copied / CHECKPOINTS)
    with pytest.raises(UserError, match="no checkpoint"):
        trace_run(copied, "abc", update="run", witness_cells=0)


def test_a_step_of_training_mode_records_its_masks_and_a_model_without_dropout_has_none(
    trained: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="no dropout"):
        trace_run(trained, "abc", dropout=True, witness_cells=0)
    tokenizer, _ = tokens_of(words_text(80))
    plain = tiny_decoder(tokenizer.vocab_size)
    rates = DropoutConfig(embedding=0.3, attention=0.3, residual=0.3)
    model = Decoder(plain.config.model_copy(update={"dropout": rates}), torch.Generator().manual_seed(0))
    save_run(tmp_path / "run", model, tokenizer)
    run = trace_run(tmp_path / "run", "abc bca", dropout=True, witness_cells=0)
    assert {"embed.kept_X", "blocks.0.attn.kept_A", "blocks.0.kept_O", "blocks.0.kept_F"} <= set(run.values)
    assert run.replay.holds
    assert "embed.kept_X" not in trace_run(tmp_path / "run", "abc bca", witness_cells=0).values
