"""Variance, saturation and linearity: each against NumPy by hand, a closed form, or automatic differentiation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoders import random_decoder
from glassformer.errors import UserError
from glassformer.model import toy24_model
from glassformer.tracing.probes import (
    Reading,
    aim_at,
    linearity,
    reading_of,
    saturation,
    score_variance,
    sign_sums,
    watch,
)
from glassformer.tracing.probes.linearity import FACTORS, coefficients, mixed
from glassformer.tracing.probes.places import read_rows
from glassformer.tracing.probes.saturation import SCALES
from glassformer.tracing.probes.variance import Moments, independent_variance, moments
from options import OPTION_CONFIGS
from probe_oracle import SOME_CONFIGS, bare_config, by_definition, random_reading


@pytest.fixture(scope="module", params=SOME_CONFIGS)
def reading(request: pytest.FixtureRequest) -> Reading:
    return random_reading(request.param)


# Variance of the scores


def test_variances_are_those_of_all_pairs_over_the_windows(reading: Reading) -> None:
    config = reading.model.config
    text = [int(t) for t in np.random.default_rng(0).integers(0, 7, 2 * config.context + 4)]
    found = score_variance(reading, text)
    assert found.windows == 3
    windows = [text[k : k + config.context] for k in range(0, len(text), config.context)]
    for layer in range(config.blocks):
        seen = [by_definition(reading.of(w))[f"blocks.{layer}.attn.S"] for w in windows]
        for h in range(config.layers[layer].attention.heads):
            scores = [S[h, i, j] for S in seen for i in range(S.shape[1]) for j in range(i + 1) if S[h, i, j] > -np.inf]
            products = np.array(scores) * math.sqrt(found.d_k)
            assert found.before[layer, h] == pytest.approx(np.var(products), rel=1e-9)
            assert found.after[layer, h] == pytest.approx(np.var(scores), rel=1e-9)
            assert found.mean[layer, h] == pytest.approx(products.mean(), rel=1e-9, abs=1e-9)
            assert found.largest[layer, h] == pytest.approx(abs(products).max(), rel=1e-9)
        if layer == 0:
            assert found.pairs == len(scores)


def test_four_signs_are_counted_as_in_the_notes() -> None:
    found = sign_sums(4)
    assert found.sums == (-4, -2, 0, 2, 4)
    assert found.counts == (1, 4, 6, 4, 1)
    assert (found.mean, found.second_moment, found.deviation) == (0, 4, 2)


@pytest.mark.parametrize("m", [1, 2, 5, 9])
def test_sums_of_signs_are_binomial_with_variance_m(m: int) -> None:
    found = sign_sums(m)
    assert found.counts == tuple(math.comb(m, k) for k in range(m + 1))
    assert found.second_moment == m
    with pytest.raises(ValueError, match="cannot be enumerated"):
        sign_sums(21)


NUMBERS = st.lists(st.floats(-3, 3), min_size=1, max_size=4)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=2))
def test_the_variance_of_independent_coordinates_is_that_of_every_combination(coordinates: list) -> None:
    """Each coordinate of q and k takes one of a few values, all combinations equally likely."""
    axes = [values for pair in coordinates for values in pair]
    sums = [sum(x[0::2][c] * x[1::2][c] for c in range(len(coordinates))) for x in itertools.product(*axes)]
    parts = [[moments(np.array(values)) for values in side] for side in zip(*coordinates, strict=True)]
    expected = sum(float(independent_variance(*map(_one, pair))) for pair in zip(*parts, strict=True))
    assert expected == pytest.approx(np.var(sums), rel=1e-9, abs=1e-9)


def _one(m):
    return Moments(m.count, m.mean[None], m.m2[None])


@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6), min_size=1, max_size=4))
def test_moments_of_parts_add_up_to_those_of_the_whole(parts: list) -> None:
    first, *rest = (moments(np.array(part)) for part in parts)
    for part in rest:
        first = first + part
    whole = np.concatenate(parts)
    assert first.count == len(whole)
    assert float(first.mean) == pytest.approx(whole.mean(), rel=1e-9, abs=1e-9)
    assert float(first.variance) == pytest.approx(whole.var(), rel=1e-9, abs=1e-6)


# Saturation


def test_slopes_are_automatic_differentiations_of_the_scaled_scores(reading: Reading) -> None:
    aim = aim_at(reading)
    found, seen = saturation(reading, aim, layer=0, scales=(0.5, 1, 3)), watch(reading)
    S = torch.from_numpy(seen["blocks.0.attn.S"][:, aim.row])
    logits = torch.from_numpy(seen["head.logits"][aim.row])
    for k, c in enumerate((0.5, 1, 3)):
        for h, scores in enumerate(S):
            scores = c * scores[torch.isfinite(scores)]
            J = torch.autograd.functional.jacobian(lambda s: torch.softmax(s, -1), scores)
            assert found.jacobian[h, k] == pytest.approx(J.norm().item(), rel=1e-9, abs=1e-15)
            assert found.slope[h, k] == pytest.approx(J[scores.argmax(), scores.argmax()].item(), rel=1e-9, abs=1e-15)
        for y, curve in ((found.likely, found.right), (found.unlikely, found.wrong), (aim.target, found.target)):
            z = (c * logits).requires_grad_()
            torch.nn.functional.cross_entropy(z, torch.tensor(y)).backward()
            assert z.grad is not None
            assert curve[k] == pytest.approx(z.grad[y].item(), rel=1e-9, abs=1e-12)


def test_certain_attention_passes_nothing_back_and_a_certain_mistake_does() -> None:
    reading = reading_of(toy24_model(), [0, 1])
    found = saturation(reading, aim_at(reading, target=2))
    c = np.array(SCALES)
    np.testing.assert_allclose(found.two, 1 / (4 * np.cosh(c / 2) ** 2), rtol=1e-12)
    # The toy's two scores are 1 and 0, so its curve is that of two scores, down to where 1 - a has no digit left.
    np.testing.assert_allclose(found.slope[0], found.two, rtol=1e-12)
    np.testing.assert_allclose(found.jacobian[0], 2 * found.two, rtol=1e-12)
    assert found.slope[0, -1] < 1e-50
    assert found.wrong[-1] == -1
    assert abs(found.right[-1]) < 1e-25


def test_scales_that_are_none_are_refused() -> None:
    reading = reading_of(toy24_model(), [0, 1])
    for scales in ((), (0.0,), (-1.0,), (math.inf,)):
        with pytest.raises(UserError, match="positive numbers"):
            saturation(reading, aim_at(reading), scales=scales)


# Linearity


def test_with_its_coefficients_held_fixed_attention_is_linear(reading: Reading) -> None:
    other = reading.of([(t + 3) % 7 for t in reading.tokens])
    for layer in range(reading.model.config.blocks):
        found = linearity(reading, other, layer)
        assert found.additivity_fixed <= 1e-14
        assert (found.homogeneity_fixed <= 1e-14).all()
        # A row that reads itself alone has the coefficient 1 whatever the input: then attention is linear.
        alone = reading.model.config.layers[layer].attention.window == 1
        assert (found.additivity > 1e-3) != alone
        # With QK-norm the coefficients do not see the size of the rows, up to the eps of its root mean square.
        normed = reading.model.config.layers[layer].attention.qk_norm
        assert (found.homogeneity > (1e-9 if normed else 1e-3)).all() != alone
        assert (found.moved == 0) == alone


def test_departures_are_those_of_the_formula_by_hand() -> None:
    """One head, no positions: f(X) = softmax(X W_Q W_K^T X^T / sqrt(d_k) + M) X W_V W_O."""
    model = random_decoder(bare_config())
    first, second = reading_of(model, [0, 1, 2, 3]), reading_of(model, [4, 5, 6])
    W_Q, W_K, W_V = (model.get_parameter(f"blocks.0.attn.{n}")[:, 0].detach().numpy() for n in ("W_Q", "W_K", "W_V"))
    W_O, E = model.get_parameter("blocks.0.attn.W_O")[0].detach().numpy(), model.embed.E.detach().numpy()

    def f(X):
        S = X @ W_Q @ W_K.T @ X.T / math.sqrt(3)
        e = np.exp(S) * np.tri(len(X))
        return e / e.sum(1, keepdims=True) @ X @ W_V @ W_O

    x, y = E[[0, 1, 2]], E[[4, 5, 6]]
    found = linearity(first, second)
    assert found.first.n == 3
    expected = math.dist(f(x + y).ravel(), (f(x) + f(y)).ravel()) / math.hypot(*(f(x) + f(y)).ravel())
    assert found.additivity == pytest.approx(expected, rel=1e-9)
    for c, departure in zip(FACTORS, found.homogeneity, strict=True):
        expected = math.dist(f(c * x).ravel(), (c * f(x)).ravel()) / math.hypot(*(c * f(x)).ravel())
        assert departure == pytest.approx(expected, rel=1e-9)


def test_where_there_are_no_biases_the_tried_map_is_the_models_own_output() -> None:
    for config in OPTION_CONFIGS.values():
        if config.layers[0].attention.bias:
            continue
        reading = reading_of(random_decoder(config), [3, 1, 4, 1, 5])
        seen = watch(reading)
        X = seen[read_rows(config, 0)]
        O = mixed(reading, 0, coefficients(reading, 0, X), X)  # noqa: E741
        np.testing.assert_allclose(O, seen["blocks.0.attn.O"], rtol=1e-12, atol=1e-12)
