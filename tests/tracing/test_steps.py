"""Training with a look at any step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import glassformer
from glassformer.errors import UserError
from glassformer.text.batches import Batch
from glassformer.tracing import SGD
from glassformer.training import OptimizerConfig, TrainingConfig
from glassformer.training import train as plain_train
from learning import tiny_decoder, tokens_of, words_text


def config(steps: int = 3) -> TrainingConfig:
    return TrainingConfig(steps=steps, batch=4, threads=1)


def test_every_step_can_be_traced_and_training_is_the_same_with_and_without_looking() -> None:
    tokenizer, data = tokens_of(words_text(80))
    looked_at, alone = tiny_decoder(tokenizer.vocab_size), tiny_decoder(tokenizer.vocab_size)
    for step in glassformer.train(looked_at, data, config(), vocabulary=tokenizer.texts):
        trace = step.trace(row=2, witness_cells=0)
        assert trace.replay.holds
        assert np.array_equal(trace["t"], step.batch.tokens[2])
        assert trace.text.vocabulary == tokenizer.texts
    for _ in plain_train(alone, data, config()):
        pass
    for (name, a), b in zip(looked_at.named_parameters(), alone.parameters(), strict=True):
        assert torch.equal(a, b), name


def test_a_trace_of_a_step_has_the_parameters_as_they_are_after_it() -> None:
    tokenizer, data = tokens_of(words_text(80))
    model = tiny_decoder(tokenizer.vocab_size)
    *_, last = glassformer.train(model, data, config())
    trace = last.trace(witness_cells=0)
    assert np.array_equal(trace["embed.E"], model.embed.E.detach().double().numpy())


class OneRow:
    """Data whose every batch is the same single row: what a trace says of that row is then what training does."""

    def __init__(self, vocab_size: int) -> None:
        row = np.arange(8)[None] % vocab_size
        self.row = Batch(row, (row + 3) % vocab_size, np.ones((1, 8), dtype=bool), None)

    def batch(self, n: int, b: int, generator: np.random.Generator) -> Batch:
        return self.row

    def validation(self, n: int, b: int) -> Iterator[Batch]:
        return iter(())

    def describe(self) -> str:
        return "one row"


@pytest.mark.parametrize(
    "optimizer",
    [
        OptimizerConfig(clip=0.5, weight_decay=0.3),
        OptimizerConfig(clip=None),
        OptimizerConfig(kind="gradient_descent", learning_rate=0.3, clip=0.2),
    ],
)
def test_a_trace_of_a_step_shows_the_next_one_which_then_happens(optimizer: OptimizerConfig) -> None:
    model = tiny_decoder(9)
    plan = TrainingConfig(steps=6, batch=1, threads=1, optimizer=optimizer)
    foretold = None
    for step in glassformer.train(model, OneRow(9), plan):
        if foretold is not None:
            assert foretold.program.scalars["eta"] == step.learning_rate
            for id, theta in model.named_parameters():
                np.testing.assert_allclose(theta.detach().numpy(), foretold[f"{id}.new"], rtol=2e-5, atol=2e-6)
            if optimizer.kind == "adamw":
                for name, moment in step.state().optimizer.items():
                    np.testing.assert_allclose(moment.numpy(), foretold.moments.tensors[name], rtol=1e-4, atol=1e-7)
        foretold = step.trace(witness_cells=0)
        assert foretold.replay.holds
        assert (foretold.moments is not None) == (optimizer.kind == "adamw")
    assert foretold is not None


def test_a_step_can_be_traced_with_any_other_update() -> None:
    tokenizer, data = tokens_of(words_text(80))
    step = next(iter(glassformer.train(tiny_decoder(tokenizer.vocab_size), data, config())))
    trace = step.trace(update=SGD(lr=0.25), witness_cells=0)
    assert trace.moments is None
    np.testing.assert_array_equal(trace["embed.E.new"], trace["embed.E"] - 0.25 * trace["embed.E.grad"])


def test_a_step_that_is_over_is_not_traced_with_the_numbers_of_another() -> None:
    tokenizer, data = tokens_of(words_text(80))
    first, second, _ = glassformer.train(tiny_decoder(tokenizer.vocab_size), data, config())
    for step in (first, second):
        with pytest.raises(UserError, match="is over"):
            step.trace()


def test_a_row_that_the_batch_does_not_have_is_refused() -> None:
    tokenizer, data = tokens_of(words_text(80))
    step = next(iter(glassformer.train(tiny_decoder(tokenizer.vocab_size), data, config())))
    with pytest.raises(UserError, match="no row 4"):
        step.trace(4)
