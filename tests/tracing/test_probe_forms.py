"""Prefixes, matching forms, gradient norms and reports: each against the definitions, NumPy by hand or autograd."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from decoders import decoder_config, random_decoder
from glassformer.errors import UserError
from glassformer.model import NormConfig, toy24_model
from glassformer.model.decoder import Decoder
from glassformer.notation.tree import refs
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
    watch,
)
from glassformer.tracing.probes.places import read_rows, streams
from glassformer.tracing.probes.prefixes import last_common
from glassformer.tracing.probes.reading import next_tokens
from probe_oracle import SOME_CONFIGS, bare_config, by_definition, random_reading


@pytest.fixture(scope="module", params=SOME_CONFIGS)
def reading(request: pytest.FixtureRequest) -> Reading:
    return random_reading(request.param)


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
    model = random_decoder(bare_config())
    with torch.no_grad():
        model.blocks[0].attn.W_K.copy_(model.blocks[0].attn.W_Q)
    found = bilinear_forms(reading_of(model, [0]))
    assert found.asymmetry[0, 0] == pytest.approx(0, abs=1e-15)
    assert found.eigenvalues[0, 0, 0] >= -1e-14
    assert found.eigenvalues[0, 0, 1] > 0.1


def test_an_antisymmetric_form_has_no_bound_and_none_in_json() -> None:
    model = random_decoder(bare_config(d_k=2))
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
        sums = watch(reading, loss=next_tokens(reading))
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


def test_a_branch_that_takes_everything_back_loses_the_gradient() -> None:
    """F(x) = -x: with W_V W_O = -I and rows that read themselves alone, the stream is zero and so is its gradient."""
    model = random_decoder(bare_config(d_v=10, window=1))
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
