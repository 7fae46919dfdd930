"""Prefixes, matching forms, gradient norms, variance, saturation, linearity: each against something outside itself."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoders import decoder_config, random_decoder
from glassformer.errors import UserError
from glassformer.model import AttentionConfig, DecoderConfig, NormConfig, PositionConfig, toy24_model
from glassformer.model.decoder import Decoder
from glassformer.tracing.probes import (
    Reading,
    activation_patching,
    aim_at,
    attention_effect,
    bilinear_forms,
    gradient_norms,
    linearity,
    patch,
    reading_of,
    same_token,
    saturation,
    score_variance,
    sign_sums,
    watch,
)
from glassformer.tracing.probes.linearity import FACTORS
from glassformer.tracing.probes.places import read_rows, streams
from glassformer.tracing.probes.prefixes import last_common
from glassformer.tracing.probes.saturation import SCALES
from glassformer.tracing.probes.variance import independent_variance, moments
from options import OPTION_CONFIGS
from probe_oracle import SOME_CONFIGS, by_definition, random_reading

NO_POSITIONS = PositionConfig(kind="none")


@pytest.fixture(scope="module", params=SOME_CONFIGS)
def reading(request: pytest.FixtureRequest) -> Reading:
    return random_reading(request.param)


def bare(**changes) -> DecoderConfig:
    """One head that nothing stands beside: no norm, no feed-forward network, no positions, no biases."""
    attention = AttentionConfig(**{"heads": 1, "d_k": 3, "d_v": 5, **changes})
    return decoder_config(blocks=1, attention=attention, norm=None, ffn=None, position=NO_POSITIONS)


# The same token under two prefixes


def test_distances_are_those_of_the_rows_that_the_definitions_give(reading: Reading) -> None:
    first, second = reading.of([1, 2, 3, 5, 4]), reading.of([6, 3, 0, 5, 2])
    found = same_token(first, second)
    assert found.rows == (3, 3)
    a, b = (by_definition(x.until(3)) for x in (first, second))
    for s, id in enumerate(streams(reading.model.config)):
        u, v = a[id][3], b[id][3]
        assert found.hidden_distance[s] == pytest.approx(math.dist(u, v), rel=1e-9, abs=1e-9)
        assert found.cosine[s] == pytest.approx(u @ v / math.hypot(*u) / math.hypot(*v), rel=1e-9, abs=1e-9)
    for layer in range(reading.model.config.blocks):
        for h, (u, v) in enumerate(zip(*(x[f"blocks.{layer}.attn.Z"][:, 3] for x in (a, b)), strict=True)):
            assert found.z_distance[layer, h] == pytest.approx(math.dist(u, v), rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(found.coefficients[1][0], b["blocks.0.attn.A"][:, 3], rtol=1e-9, atol=1e-9)


def test_the_same_prefix_gives_the_same_rows_whatever_follows(reading: Reading) -> None:
    found = same_token(reading.of([1, 2, 5, 0]), reading.of([1, 2, 5, 6, 4, 3]))
    assert found.rows == (2, 2)
    assert not found.hidden_distance.any()
    assert not found.z_distance.any()
    assert found.probability_distance == 0


def test_another_prefix_gives_another_row_unless_the_token_reads_itself_alone(reading: Reading) -> None:
    found = same_token(reading.of([1, 2, 5]), reading.of([1, 3, 5]))
    windows = [layer.attention.window for layer in reading.model.config.layers]
    assert found.hidden_distance[0] == 0
    assert (found.z_distance[0] > 0).all() == (windows[0] != 1)
    assert (found.hidden_distance[-1] > 0) == (set(windows) != {1})


def test_the_last_common_token_is_taken_at_its_last_place() -> None:
    assert last_common([0, 1, 2, 1, 9], [1, 5, 1, 7]) == (3, 2)
    with pytest.raises(UserError, match="no token in common"):
        last_common([0, 1], [2, 3])


# Rank and asymmetry


def test_the_example_of_the_notes_matches_one_way_and_not_the_other() -> None:
    """W_Q = (1,0), W_K = (0,1): x_a B x_b = 1 and x_b B x_a = 0; the toy has the two exchanged."""
    found = bilinear_forms(reading_of(toy24_model(), [0, 1]))
    assert found.singular_values[0, 0].tolist() == pytest.approx([1, 0])
    assert (found.rank[0, 0], found.asymmetry[0, 0]) == (1, pytest.approx(1))
    assert found.eigenvalues[0, 0].tolist() == pytest.approx([-0.5, 0.5])


def test_rank_is_at_most_d_k_and_singular_values_are_those_of_the_product(reading: Reading) -> None:
    found, config = bilinear_forms(reading), reading.model.config
    for layer, h in np.ndindex(*found.rank.shape):
        attention = config.layers[layer].attention
        share = attention.heads // (attention.kv_heads or attention.heads)
        W_Q, W_K = (reading.model.get_parameter(f"blocks.{layer}.attn.{x}").detach().numpy() for x in ("W_Q", "W_K"))
        B = W_Q[:, h] @ W_K[:, h // share].T
        assert found.rank[layer, h] == np.linalg.matrix_rank(B) == attention.d_k
        # The squares of singular values are the eigenvalues of B B^T; their sum is the squared norm of B.
        squares = np.sort(np.linalg.eigvals(B @ B.T).real)[::-1]
        np.testing.assert_allclose(found.singular_values[layer, h] ** 2, squares, atol=1e-12)
        ratio = math.dist(B.ravel(), B.T.ravel()) / math.dist(B.ravel(), -B.T.ravel())
        assert found.asymmetry[layer, h] == pytest.approx(ratio, rel=1e-12)


def test_equal_projections_make_the_form_symmetric_and_positive() -> None:
    model = random_decoder(bare())
    with torch.no_grad():
        model.blocks[0].attn.W_K.copy_(model.blocks[0].attn.W_Q)
    found = bilinear_forms(reading_of(model, [0]))
    assert found.asymmetry[0, 0] == pytest.approx(0, abs=1e-15)
    assert found.eigenvalues[0, 0, 0] >= -1e-14
    assert found.eigenvalues[0, 0, 1] > 0.1


def test_an_antisymmetric_form_has_no_bound_and_none_in_json() -> None:
    model = random_decoder(bare(d_k=2))
    with torch.no_grad():
        W_Q, W_K = model.blocks[0].attn.W_Q, model.blocks[0].attn.W_K
        W_K[:, 0, 0], W_K[:, 0, 1] = W_Q[:, 0, 1], -W_Q[:, 0, 0]
    found = bilinear_forms(reading_of(model, [0]))
    assert found.asymmetry[0, 0] > 1e15
    json.dumps(found.report().plain(), allow_nan=False)


# Gradient norms


def test_gradient_norms_are_those_of_automatic_differentiation(reading: Reading) -> None:
    found = gradient_norms(reading)
    tokens, said = torch.tensor([reading.tokens]), {}

    def say(quantity, tensor, at):
        said[".".join([*map(str, at), quantity.name])] = tensor
        return tensor

    logits = reading.model(tokens, say=say).logits
    loss = torch.nn.functional.cross_entropy(logits[0, :-1], tokens[0, 1:])
    assert found.loss == pytest.approx(loss.item(), rel=1e-12)
    wanted = [*(said[id] for id in found.ids), *reading.model.parameters()]
    grads = [g.norm().item() for g in torch.autograd.grad(loss, wanted)]
    np.testing.assert_allclose(found.total, grads[: len(found.ids)], rtol=1e-9)
    names = [name for name, _ in reading.model.named_parameters()]
    np.testing.assert_allclose([found.by_parameter[n] for n in names], grads[len(found.ids) :], rtol=1e-9, atol=1e-14)
    assert set(streams(reading.model.config)) <= set(found.ids)
    for layer, whole in enumerate(found.parameters):
        own = [g for n, g in zip(names, grads[len(found.ids) :], strict=True) if n.startswith(f"blocks.{layer}.")]
        assert whole == pytest.approx(math.sqrt(sum(g * g for g in own)), rel=1e-9)


def test_along_the_residual_comes_what_the_sum_receives(reading: Reading) -> None:
    """y = x + F(x): the direct part at x is the whole gradient at y."""
    found, post = gradient_norms(reading), reading.model.config.norm
    totals = dict(zip(found.ids, found.total, strict=True))
    if post is not None and post.position == "post":
        sums = watch(reading, loss=_mean_loss(reading))
        totals = {id: float(np.linalg.norm(sums[f"{id}.grad"])) for id in sums if f"{id}.grad" in sums}
    after = [
        f"blocks.{k}.{x}"
        for k, layer in enumerate(reading.model.config.layers)
        for x in "RX"[: 2 - (layer.ffn is None)]
    ]
    direct = found.direct[: len(after)]
    np.testing.assert_allclose(direct, [totals[id] for id in after], rtol=1e-12)
    assert np.isnan(found.direct[len(after) :]).all()
    whole, branch = found.total[: len(after)], found.branch[: len(after)]
    assert (whole <= (direct + branch) * (1 + 1e-12)).all()
    assert (whole >= abs(direct - branch) * (1 - 1e-9) - 1e-12).all()


def _mean_loss(reading: Reading):
    from glassformer.tracing.probes.reading import next_tokens

    return next_tokens(reading)


def test_a_branch_that_takes_everything_back_loses_the_gradient() -> None:
    """F(x) = -x: with W_V W_O = -I and rows that read themselves alone, the stream is zero and so is its gradient."""
    model = random_decoder(bare(d_v=10, window=1))
    with torch.no_grad():
        model.blocks[0].attn.W_V[:, 0].copy_(torch.eye(10))
        model.blocks[0].attn.W_O[0].copy_(-torch.eye(10))
    found = gradient_norms(reading_of(model, [0, 1, 2]))
    assert found.ids == ("embed.X", "blocks.0.R")
    assert found.total[1] > 0.1
    assert found.direct[0] == pytest.approx(found.branch[0], rel=1e-15)
    assert found.total[0] <= 1e-15


def test_a_single_token_has_no_loss() -> None:
    with pytest.raises(UserError, match="one token"):
        gradient_norms(reading_of(toy24_model(), [0]))


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
    from glassformer.tracing.probes.variance import Moments

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
        assert (found.homogeneity > 1e-3).all() != alone
        assert (found.moved == 0) == alone


def test_departures_are_those_of_the_formula_by_hand() -> None:
    """One head, no positions: f(X) = softmax(X W_Q W_K^T X^T / sqrt(d_k) + M) X W_V W_O."""
    model = random_decoder(bare())
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
    from glassformer.tracing.probes.linearity import coefficients, mixed

    for config in OPTION_CONFIGS.values():
        if config.layers[0].attention.bias:
            continue
        reading = reading_of(random_decoder(config), [3, 1, 4, 1, 5])
        seen = watch(reading)
        X = seen[read_rows(config, 0)]
        O = mixed(reading, 0, coefficients(reading, 0, X), X)  # noqa: E741
        np.testing.assert_allclose(O, seen["blocks.0.attn.O"], rtol=1e-12, atol=1e-12)


# Reports


def test_every_report_is_strict_json_in_both_languages(reading: Reading) -> None:
    aim, other = aim_at(reading), reading.of([(t + 3) % 7 for t in reading.tokens])
    results = (
        attention_effect(reading, aim), same_token(reading, other), bilinear_forms(reading), gradient_norms(reading),
        score_variance(reading), saturation(reading, aim), linearity(reading, other),
        patch(reading, {"blocks.0.attn.Z": 0.0}), activation_patching(reading, other, aim),
    )  # fmt: skip
    for result in results:
        plain = result.report().plain()
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        assert plain["provenance"] == "measured"
        assert plain["tables"]
        shown = [plain["title"], *(n["text"] for n in plain["notes"]), *(t["title"] for t in plain["tables"])]
        for text in [*shown, *(column for t in plain["tables"] for column in t["columns"])]:
            assert set(text) == {"en", "zh"}
            assert all(text.values())


def test_the_streams_are_what_the_additions_read(reading: Reading) -> None:
    from glassformer.notation.tree import refs

    config, program = reading.model.config, reading.program
    for layer, id in enumerate(streams(config)[:-1]):
        definition = program.definition(f"blocks.{layer}.R")
        assert definition is not None
        assert [ref.name for ref in refs(definition.expr)] == [id, f"blocks.{layer}.attn.O"]
    assert isinstance(reading.model, Decoder)
    final = config.norm is not None and config.norm.final
    assert (program.aliases["h"] == streams(config)[-1]) != final


def test_pre_norm_attention_reads_normed_rows_and_others_the_stream() -> None:
    assert read_rows(decoder_config(), 1) == "blocks.1.norm1.Y"
    assert read_rows(decoder_config(norm=NormConfig(position="post")), 1) == "blocks.0.norm2.Y"
    assert read_rows(decoder_config(norm=None, ffn=None), 1) == "blocks.0.R"
