"""Training with a look at any step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import glassformer
from glassformer.errors import UserError
from glassformer.training import TrainingConfig
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
        assert trace.program.scalars["eta"] == step.learning_rate
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
