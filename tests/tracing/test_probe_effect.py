"""Attention beside measured effect: every removal against the definitions alone or a model that lacks the part."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.model import toy24_model
from glassformer.tracing.probes import Aim, Reading, aim_at, attention_effect, reading_of, watch
from glassformer.tracing.probes.effect import AttentionEffect
from glassformer.tracing.probes.ranks import spearman
from options import OPTION_CONFIGS
from probe_oracle import SOME_CONFIGS, by_definition, loss_and_logit, random_reading

AIM = Aim(4, 2)


@pytest.fixture(scope="module", params=SOME_CONFIGS)
def found(request: pytest.FixtureRequest) -> AttentionEffect:
    return attention_effect(random_reading(request.param), AIM, layer=0)


def changes_of(found: AttentionEffect, changed) -> tuple[float, float]:
    """The change of loss and logit that the definitions alone give for ``changed``."""
    before, after = (loss_and_logit(by_definition(found.reading, x), AIM.row, AIM.target) for x in ({}, changed))
    return after[0] - before[0], after[1] - before[1]


def unread(head, rows, j):
    def change(S):
        S[head, rows, j] = -np.inf
        return S

    return change


def close(removal, at, expected: tuple[float, float]) -> None:
    assert (removal.loss[at], removal.logit[at]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_coefficient_taken_out_changes_what_the_definitions_say(found: AttentionEffect) -> None:
    for j in (0, 3, 4):
        if found.allowed.sum() == 1 and found.allowed[j]:
            assert np.isnan(found.cells.loss[:, j]).all()
            continue
        h = len(found.coefficient) - 1
        close(found.cells, (h, j), changes_of(found, {"blocks.0.attn.S": unread(h, 4, j)}))


def test_a_position_that_the_mask_hides_has_no_effect(found: AttentionEffect) -> None:
    hidden = ~found.allowed
    assert (found.coefficient[:, hidden] == 0).all()
    assert (found.cells.loss[:, hidden] == 0).all()


def test_a_position_not_read_changes_what_the_definitions_say(found: AttentionEffect) -> None:
    ids = [f"blocks.{k}.attn.S" for k in range(found.reading.model.config.blocks)]
    for j in (1, 4):
        rows = [m for m in range(5) if m > j] or [4]
        for removal, hidden in ((found.direct, [4]), (found.everywhere, rows)):
            if np.isnan(removal.loss[j]):
                assert j == 4  # only its own row can be all that a row reads
                assert any(x.attention.window == 1 for x in found.reading.model.config.layers)
                continue
            close(removal, j, changes_of(found, {id: unread(slice(None), hidden, j) for id in ids}))


def test_a_head_taken_out_is_a_model_without_its_projection(found: AttentionEffect) -> None:
    for layer, h in np.ndindex(*found.heads.loss.shape):
        close(found.heads, (layer, h), lacking(found.reading, {f"blocks.{layer}.attn.W_O": h}))


def test_a_block_taken_out_is_a_model_without_its_outputs(found: AttentionEffect) -> None:
    names = [name for name, _ in found.reading.model.named_parameters()]
    for layer in range(len(found.blocks.loss)):
        outputs = ("attn.W_O", "attn.b_O", "ffn.W_2", "ffn.b_2")
        out = {name: slice(None) for name in names if name in {f"blocks.{layer}.{x}" for x in outputs}}
        close(found.blocks, layer, lacking(found.reading, out))


def lacking(reading: Reading, zero: dict) -> tuple[float, float]:
    """Loss and logit of a model with parameters set to zero, run by nobody's arithmetic but torch's own, minus before."""
    poorer = copy.deepcopy(reading.model)
    with torch.no_grad():
        for name, at in zero.items():
            poorer.get_parameter(name)[at] = 0.0
        after, before = (m(torch.tensor([reading.tokens])).logits[0, AIM.row] for m in (poorer, reading.model))
    loss = [torch.nn.functional.cross_entropy(x, torch.tensor(AIM.target)).item() for x in (after, before)]
    return loss[0] - loss[1], (after - before)[AIM.target].item()


def test_norms_and_first_order_estimates_by_hand(found: AttentionEffect) -> None:
    reading, config = found.reading, found.reading.model.config
    seen = watch(reading, loss=AIM.scored(reading.n))
    at, attention = "blocks.0.attn", config.layers[0].attention
    A, G = seen[f"{at}.A"][:, 4], seen[f"{at}.A.grad"][:, 4]
    share = attention.heads // (attention.kv_heads or attention.heads)
    for h in range(attention.heads):
        for j in range(5):
            v = A[h, j] * seen[f"{at}.V"][h // share, j] @ seen[f"{at}.W_O"][h]
            assert found.norm[h, j] == pytest.approx(math.sqrt(sum(x * x for x in v)), rel=1e-12)
            assert found.gradient_times_value[h, j] == pytest.approx(A[h, j] * G[h, j], rel=1e-12)
            if A[h, j] < 1:
                left = A[h].copy()
                left[j] = 0
                predicted = (left / left.sum() - A[h]) @ G[h]
                assert found.first_order[h, j] == pytest.approx(predicted, rel=1e-6, abs=1e-12)


def test_ranks_are_compared_over_the_positions_that_are_read(found: AttentionEffect) -> None:
    read = found.allowed
    for h, row in enumerate(found.agreement):
        guesses = (found.coefficient, found.norm, abs(found.gradient_times_value))
        for rho, guess in zip(row, guesses, strict=True):
            if np.isnan(rho):
                assert read.sum() == 1
                continue
            expected = scipy.stats.spearmanr(guess[h, read], abs(found.cells.loss[h, read])).statistic
            assert rho == pytest.approx(expected, abs=1e-12)


def test_what_follows_the_row_plays_no_part() -> None:
    case = next(iter(OPTION_CONFIGS))
    long, short = random_reading(case), random_reading(case).until(4)
    a, b = (attention_effect(reading, AIM, 0) for reading in (long, short))
    assert np.array_equal(a.cells.loss, b.cells.loss, equal_nan=True)
    assert a.loss == b.loss


def test_the_toy_by_hand() -> None:
    """Without A the second row reads itself: z = (0,1), h = (0,2). Without itself it reads A: z = (1,0), h = (1,1)."""
    reading = reading_of(toy24_model(), [0, 1])
    found = attention_effect(reading, aim_at(reading, target=2))
    a, c = math.e / (1 + math.e), 1 / (1 + math.e)
    whole = math.log(math.exp(a) + math.exp(1 + c) + math.exp(-a)) + a
    without = [math.log(1 + math.e**2 + 1), math.log(math.e + math.e + 1 / math.e) + 1]
    assert found.loss == pytest.approx(whole, abs=1e-15)
    assert found.cells.loss[0] == pytest.approx([x - whole for x in without], abs=1e-14)
    assert found.heads.loss[0, 0] == pytest.approx(math.log(1 + math.e + 1) - whole, abs=1e-14)
    assert found.coefficient[0].tolist() == pytest.approx([a, c])


ROWS = st.lists(st.tuples(st.integers(-4, 4), st.floats(-10, 10)), min_size=2, max_size=12)


@given(ROWS)
def test_spearmans_correlation_is_scipys_with_ties_too(rows: list) -> None:
    x, y = np.array(rows, dtype=float).T
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert math.isnan(spearman(x, y))
    else:
        assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize(
    ("ask", "fact"),
    [
        (lambda r: aim_at(r, row=6, target=0), "There is no row 6"),
        (lambda r: aim_at(r, row=5), "no next token"),
        (lambda r: aim_at(r, target=7), "Target id 7"),
        (lambda r: attention_effect(r, AIM, layer=9), "There is no layer 9"),
        (lambda r: r.of([]), "The text is empty"),
        (lambda r: r.of([7]), "not in the vocabulary"),
        (lambda r: r.of([0] * 10), "more than this model's context"),
    ],
)
def test_what_is_not_there_is_refused(ask, fact: str) -> None:
    with pytest.raises(UserError) as refused:
        ask(random_reading(next(iter(OPTION_CONFIGS))))
    assert fact in str(refused.value)


def test_a_model_with_a_number_that_is_not_finite_is_refused_by_name() -> None:
    model = toy24_model()
    with torch.no_grad():
        model.head.U[0, 1] = math.nan
    with pytest.raises(UserError, match=r"head\.U\[0,1\] is NaN.*first parameter that is not finite"):
        reading_of(model, [0, 1])


def test_the_model_is_left_as_it_was() -> None:
    model = toy24_model().float().train()
    before = {name: p.clone() for name, p in model.named_parameters()}
    reading = reading_of(model, [0, 1])
    attention_effect(reading, aim_at(reading, target=2))
    assert model.training
    for name, p in model.named_parameters():
        assert p.dtype == torch.float32
        assert torch.equal(p, before[name])
        assert p.grad is None
