"""A model against a language whose probabilities are known, and training on that language."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from glassformer.errors import UserError
from glassformer.model import Decoder, read_config
from glassformer.text import clinic, first_scored
from glassformer.training import TrainingConfig, log_probabilities, train, validation_loss
from learning import tiny_decoder

LANGUAGE = clinic("zh")


def model(seed: int = 0) -> Decoder:
    size = {"vocab_size": LANGUAGE.tokenizer.vocab_size, "context": 11, "d": 16}
    layer = {"attention": {"heads": 2, "d_k": 8, "d_v": 8}, "ffn": {"d_ff": 32}}
    return Decoder(read_config({**size, "layers": [layer]}), torch.Generator().manual_seed(seed))


def test_the_log_probabilities_are_the_models_own_after_each_beginning() -> None:
    decoder = model()
    log_q = log_probabilities(decoder, LANGUAGE)
    assert log_q.shape == LANGUAGE.truth.shape
    np.testing.assert_allclose(np.exp(log_q).sum(-1), 1, rtol=1e-12)
    for row, place in ((0, 0), (700, 4), (2303, 10)):
        with torch.no_grad():
            logits = decoder(torch.from_numpy(LANGUAGE.rows[row : row + 1, : place + 1])).logits[0, -1]
        np.testing.assert_allclose(log_q[row, place], torch.log_softmax(logits.double(), -1).numpy(), atol=1e-5)


def test_the_divergence_of_a_model_is_its_expected_loss_above_the_entropy() -> None:
    log_q = log_probabilities(model(), LANGUAGE)
    assert LANGUAGE.divergence(log_q) == pytest.approx(LANGUAGE.loss(log_q) - LANGUAGE.entropy, rel=1e-10)


def test_the_expected_loss_is_that_of_the_models_own_cross_entropy() -> None:
    decoder = model()
    weights = torch.from_numpy(LANGUAGE.probabilities * LANGUAGE.scored.sum(1))
    rows, scored = torch.from_numpy(LANGUAGE.rows), torch.from_numpy(LANGUAGE.scored)
    with torch.no_grad():
        losses = [decoder(r[None, :-1], r[None, 1:], s[None]).loss for r, s in zip(rows, scored, strict=True)]
    mean = float((torch.stack(losses).double() * weights).sum() / weights.sum())  # pyright: ignore
    assert LANGUAGE.loss(log_probabilities(decoder, LANGUAGE)) == pytest.approx(mean, rel=1e-5)


def test_a_short_training_brings_a_model_near_the_truth() -> None:
    decoder = model()
    before = LANGUAGE.divergence(log_probabilities(decoder, LANGUAGE))
    steps = list(train(decoder, LANGUAGE, TrainingConfig(steps=120, batch=32)))
    after = LANGUAGE.divergence(log_probabilities(decoder, LANGUAGE))
    assert before > 2.0
    assert after < 0.15
    assert steps[0].loss > 2.5
    assert steps[-1].validation == pytest.approx(LANGUAGE.loss(log_probabilities(decoder, LANGUAGE)), abs=0.02)


@pytest.mark.parametrize("limit", [200, 1000, 8192, 40_000])
def test_any_first_part_of_the_sentences_for_validation_has_nearly_the_expected_loss(limit: int) -> None:
    decoder = model()
    measured = validation_loss(decoder, first_scored(LANGUAGE.validation(16, 64), limit))
    assert measured == pytest.approx(LANGUAGE.loss(log_probabilities(decoder, LANGUAGE)), rel=0.02)


def test_training_on_one_seed_twice_gives_the_same_model_and_another_seed_another() -> None:
    models = []
    for seed in (0, 0, 1):
        decoder = model()
        list(train(decoder, LANGUAGE, TrainingConfig(steps=3, batch=8, seed=seed)))
        models.append(decoder.get_parameter("head.U").detach())
    assert torch.equal(models[0], models[1])
    assert not torch.equal(models[0], models[2])


def test_a_model_of_another_vocabulary_is_refused() -> None:
    with pytest.raises(UserError, match="The model has 5 words, the language 21"):
        log_probabilities(tiny_decoder(5), LANGUAGE)


def test_a_model_that_cannot_read_the_longest_sentence_is_refused() -> None:
    with pytest.raises(UserError, match="more than this model's context of 8"):
        log_probabilities(tiny_decoder(21), LANGUAGE)
    with pytest.raises(UserError, match="has 11 words, the model reads 8"):
        next(train(tiny_decoder(21), LANGUAGE, TrainingConfig(steps=1)))
