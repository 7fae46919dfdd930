"""One step on several samples: the batch gains, and one of them may pay."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from decoders import CONFIGS, random_decoder
from glassformer.errors import UserError
from glassformer.model import toy24_model
from glassformer.tracing import SGD, AdamW, trace, update_batch

TOKENS, TARGETS, SCORED = [3, 1, 3, 0, 6, 1], [1, 3, 0, 6, 1, 2], [True, False, True, True, False, True]


def decoder():
    return random_decoder(CONFIGS["everything"])


LAST = [[False, True]] * 2


def test_the_loss_of_one_sample_rises_while_that_of_the_batch_falls():
    # "A B" is to be followed by C, "B B" by B: the first gradient is the larger one, and takes B's probability away.
    done = update_batch(toy24_model(), [[0, 1], [1, 1]], [[1, 2], [1, 1]], LAST, update=SGD(lr=0.1))
    assert done.change < -0.15
    assert done.rising == (1,)
    assert done.samples[1].change > 0.02
    assert done.samples[1].predicted > 0
    assert done.samples[0].change < 0


def test_a_step_may_raise_a_loss_that_first_order_promised_to_lower():
    done = update_batch(toy24_model(), [[1, 1], [0, 1]], [[1, 2], [1, 1]], LAST, update=SGD(lr=0.1))
    assert done.samples[1].predicted < 0 < done.samples[1].change


def test_the_batch_is_the_mean_of_its_samples_by_scored_positions():
    scored = [SCORED, [True] * 6]
    done = update_batch(decoder(), [TOKENS, TARGETS], [TARGETS, TOKENS], scored, update=AdamW(lr=0.01))
    weights = np.array([s.scored for s in done.samples]) / sum(s.scored for s in done.samples)
    for number in ("before", "after", "predicted"):
        parts = np.array([getattr(s, number) for s in done.samples])
        assert getattr(done, number) == pytest.approx(float(weights @ parts), abs=1e-12)


@pytest.mark.parametrize("update", [SGD(lr=0.05), AdamW(lr=0.02)])
def test_a_batch_of_one_row_is_the_step_of_a_trace(update):
    done = update_batch(decoder(), [TOKENS], [TARGETS], [SCORED], update=update)
    alone = trace(decoder(), TOKENS, TARGETS, SCORED, update=update, witness_cells=0).analysis
    assert done.before == pytest.approx(alone.loss, rel=1e-13)
    assert done.change == pytest.approx(alone.exact, rel=1e-10)
    assert done.predicted == pytest.approx(alone.predicted, rel=1e-10)
    assert done.samples[0].after == pytest.approx(done.after, rel=1e-14)


def test_the_model_is_left_as_it_was():
    model = decoder()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    update_batch(model, [TOKENS], [TARGETS])
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


@pytest.mark.parametrize(
    ("tokens", "targets", "scored", "fact"),
    [
        ([[0, 1], [0]], [[1, 2], [1]], None, "have one length"),
        ([[0, 1]], [[1, 2], [1, 2]], None, "have one length"),
        ([[0, 1]], [[1, 2]], [[False, False]], "no scored position"),
        ([], [], None, "have one length"),
    ],
)
def test_rows_that_make_no_batch_are_refused(tokens, targets, scored, fact):
    with pytest.raises(UserError, match=fact):
        update_batch(toy24_model(), tokens, targets, scored)
