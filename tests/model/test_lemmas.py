"""The model's lemmas: each holds, needs each of its assumptions, and agrees with a computation of another kind."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from decoders import CONFIGS, Recorder, random_decoder, random_inputs
from glassformer.model import definitions
from glassformer.model.derivations import LEMMAS
from glassformer.notation import Place, Quantity, evaluate, run
from glassformer.notation.lemma import Lemma, check_lemma, grant, lemma_json, place_lemma
from glassformer.notation.tree import Idx, walk

Array = np.ndarray[Any, Any]

REQUIRED_BY_CHAPTER = {
    "6.2": {"softmax-sum", "softmax-ratio", "softmax-shift"},
    "7.1": {
        "mean-of-a-product",
        "second-moment-of-a-product",
        "variance-of-a-dot-product",
        "scaled-dot-product",
        "divided-by-d_k",
    },
    "7.2": {"variance-of-a-sum", "variance-of-a-centred-sum"},
    "7.5": {"no-leak-base", "no-leak-step"},
    "8.3": {"residual-jacobian", "residual-gradient", "residual-can-lose"},
    "8.6": {"permuted-scores", "permuted-coefficients", "permutation-equivariance", "rotary-distance"},
    "9.2": {"likelihood", "loss-from-probabilities"},
}

ASSUMED = {
    "mean-of-a-product": {"independent", "zero mean of Q and K"},
    "second-moment-of-a-product": {"independent", "zero mean of Q and K", "unit variance"},
    "variance-of-a-dot-product": {
        "independent",
        "zero mean of Q and K",
        "zero mean of Y",
        "unit variance",
        "no covariance",
    },
    "scaled-dot-product": {"variance d_k"},
    "divided-by-d_k": {"variance d_k"},
    "variance-of-a-sum": {"no covariance of two"},
    "variance-of-a-centred-sum": {"zero mean of X_1 and X_2", "no covariance of two"},
    "no-leak-step": {"mask", "hypothesis"},
    "residual-can-lose": {"opposite"},
    "permuted-scores": {"no mask", "no positions"},
    "permuted-coefficients": {"permutation", "S follows"},
    "permutation-equivariance": {"permutation", "A follows", "V follows"},
    "rotary-distance": {"one after another"},
    "likelihood": {"one by one", "predicted"},
}


def lemma(id: str) -> Lemma:
    return next(lemma for lemma in LEMMAS if lemma.id == id)


def values_of(id: str, operands: dict[str, Array], **scalars: float) -> list[Array]:
    """Every line of the lemma on ``operands``, which are given by id."""
    placed = place_lemma(lemma(id))
    program = placed.program.with_scalars(**scalars)
    return [evaluate(line.expr, placed.letters, operands, program.scalars) for line in placed.lines]


def test_every_section_has_its_lemmas() -> None:
    assert {lemma.id for lemma in LEMMAS} == set().union(*REQUIRED_BY_CHAPTER.values())
    for section, ids in REQUIRED_BY_CHAPTER.items():
        assert {lemma.id for lemma in LEMMAS if lemma.source == section} == ids
    assert len({lemma.id for lemma in LEMMAS}) == len(LEMMAS)


@pytest.mark.parametrize("id", [lemma.id for lemma in LEMMAS])
def test_every_lemma_holds_and_needs_each_of_its_assumptions(id: str) -> None:
    for seed in range(5):
        assert check_lemma(lemma(id), np.random.default_rng(seed)).problems == ()


def test_the_assumptions_are_the_ones_a_reader_must_know() -> None:
    used = {
        lemma.id: {name for line in place_lemma(lemma).lines for name in line.names}
        & {premise.name for premise in lemma.premises}
        for lemma in LEMMAS
    }
    assert {id: names for id, names in used.items() if names} == ASSUMED
    for each in LEMMAS:
        named = {name for step in each.steps for name in step.relies_on}
        # The one premise that is only used by a companion: the permutation of the scores need not be one.
        assert {premise.name for premise in each.premises} - named <= {"permutation"}


@pytest.mark.parametrize(
    ("id", "right", "wrong"),
    [
        ("softmax-sum", "for j in n_k)", "for j in n_k if j > 0)"),
        ("softmax-ratio", "- S[h,i,m]", "+ S[h,i,m]"),
        ("softmax-shift", "S[h,i,m] + plus[h,i]", "S[h,i,m] + 2*plus[h,i]"),
        ("second-moment-of-a-product", "K[i,r]**2", "K[i,r]"),
        ("variance-of-a-dot-product", "for r in d for q in d", "for r in d for q in d if q == r"),
        ("scaled-dot-product", ")**2 for i in n)/d", ")**2 for i in n)/sqrt(d)"),
        ("variance-of-a-sum", "+ 2*(", "+ ("),
        ("variance-of-a-centred-sum", "2*mean", "mean"),
        ("no-leak-step", "if j <= i", "if j >= i"),
        ("no-leak-base", "m > i", "m >= i"),
        ("residual-jacobian", "(1 if r == q else 0) +", "(1 if r == q else 0) -"),
        ("permutation-equivariance", "V[h,perm[j],e]", "V[h,j,e]"),
        ("rotary-distance", "(j - i)", "(i - j)"),
        ("likelihood", "ln(prefix[here[i]])", "ln(prefix[longer[i]])"),
        ("loss-from-probabilities", "if scored[i] else 0", "if scored[i] else 1"),
    ],
)
def test_a_wrong_line_is_refused(id: str, right: str, wrong: str) -> None:
    original = lemma(id)
    assert any(right in step.text for step in original.steps)
    for at, step in enumerate(original.steps):
        if right in step.text:
            steps = (
                *original.steps[:at],
                replace(step, text=step.text.replace(right, wrong)),
                *original.steps[at + 1 :],
            )
            assert not check_lemma(replace(original, steps=steps), np.random.default_rng(1)).holds


def test_every_lemma_is_told_in_both_languages_and_can_travel() -> None:
    for each in LEMMAS:
        data = lemma_json(each)
        told = [data["title"], *data["premises"].values(), *(step["reason"] for step in data["steps"])]
        assert all(text["en"] and any("\u4e00" <= sign <= "\u9fff" for sign in text["zh"]) for text in told)
        assert all(step["latex"] for step in data["steps"])
        for line in place_lemma(each).lines:
            bound = {a for node in walk(line.expr) for a, _ in getattr(node, "loops", ())}
            free = {node.letter for node in walk(line.expr) if isinstance(node, Idx)} - bound
            assert free <= set(each.letters.split())


# ---- softmax


def test_in_a_decoder_coefficients_stand_in_the_ratio_of_their_scores_and_a_shift_of_a_row_leaves_them() -> None:
    config, inputs = CONFIGS["everything"], random_inputs(CONFIGS["everything"])
    model, plain, shifted = random_decoder(config), Recorder(), Recorder()
    model(inputs.tokens, say=plain)

    def shift(quantity: Quantity, tensor: Tensor, at: Place) -> Tensor:
        by = torch.linspace(-30, 40, tensor.shape[-2])[:, None] if quantity.name == "S" and at[1] == 0 else 0
        return shifted(quantity, tensor + by if quantity.name == "S" else tensor, at)

    logits = model(inputs.tokens, say=shift).logits
    S, A = (plain.said[f"blocks.0.attn.{name}"][0] for name in "SA")
    for i in range(S.shape[1]):
        read = slice(0, i + 1)
        ratios = A[:, i, read, None] / A[:, i, None, read]
        torch.testing.assert_close(ratios, (S[:, i, read, None] - S[:, i, None, read]).exp(), rtol=1e-12, atol=0)
    assert (shifted.said["blocks.0.attn.S"] != plain.said["blocks.0.attn.S"])[..., 0].all()
    torch.testing.assert_close(shifted.said["blocks.0.attn.A"], plain.said["blocks.0.attn.A"], rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(logits, plain.said["head.logits"], rtol=1e-11, atol=1e-13)


# ---- variance


def signs() -> Array:
    return np.array(list(itertools.product((-1.0, 1.0), repeat=4)))


def test_four_signs_have_variance_four_and_seldom_reach_their_maximum() -> None:
    sums = Counter(sum(four) for four in itertools.product((-1, 1), repeat=4))
    chance = {total: Fraction(count, 16) for total, count in sorted(sums.items())}
    assert chance == dict(zip((-4, -2, 0, 2, 4), (Fraction(k, 16) for k in (1, 4, 6, 4, 1)), strict=True))
    assert sum(total * p for total, p in chance.items()) == 0
    assert sum(total**2 * p for total, p in chance.items()) == 4


def test_every_line_of_the_variance_is_exactly_four_for_four_signs() -> None:
    """The assumptions hold together: sixteen equally likely queries of signs, and a key that is always 1 or random."""
    Q = signs()
    for key in (np.ones_like(Q), np.tile([1.0, -1.0, -1.0, 1.0], (16, 1))):
        lines = values_of("variance-of-a-dot-product", {"dot.Q": Q, "dot.K": key, "dot.Y": Q * key}, n=16)
        assert [float(value) for value in lines] == [4.0] * 6
    D = Q.sum(1)
    operands = {"dot.D": D}
    assert [float(x) for x in values_of("scaled-dot-product", operands, n=16)] == [1.0] * 3
    assert [float(x) for x in values_of("divided-by-d_k", operands, n=16)] == [0.25] * 3


def test_without_zero_mean_or_with_covariance_the_variance_is_not_d_k() -> None:
    Q, one = signs(), np.ones((16, 4))
    same = np.repeat(Q[:, :1], 4, axis=1)
    first = [float(values_of("variance-of-a-dot-product", {"dot.Q": q, "dot.K": k, "dot.Y": q * k}, n=16)[0])
             for q, k in ((Q, one), (same, one), (Q + 1, Q), (Q, Q))]  # fmt: skip
    # Independent signs; one sign four times; a query that is not centred and depends on the key; a query that is the key.
    assert first == [4.0, 16.0, 4.0, 0.0]
    shifted = values_of("variance-of-a-dot-product", {"dot.Q": Q + 1, "dot.K": one, "dot.Y": Q + 1}, n=16)
    assert (float(shifted[0]), float(shifted[3])) == (4.0, 8.0)


# ---- softmax, saturated


def gradient_through_attention(S: Array, upstream: Array) -> Array:
    program = definitions(CONFIGS["attention alone"], len(S))
    (sent,) = program.contributions("blocks.0.attn.S")
    A = np.exp(S - S.max(-1, keepdims=True))
    A /= A.sum(-1, keepdims=True)
    heads = 3
    known = {
        "blocks.0.attn.A": np.tile(A, (heads, 1, 1)),
        "blocks.0.attn.A.grad": np.tile(upstream, (heads, 1, 1)),
        "mask.allowed": np.ones_like(S),
    }
    return evaluate(sent.expr, sent.letters, known, program.scalars)[0]


def test_attention_loses_its_gradient_as_it_saturates_and_the_output_does_not() -> None:
    rng = np.random.default_rng(0)
    direction, upstream = rng.standard_normal((5, 5)), rng.standard_normal((5, 5))
    sizes = [np.abs(gradient_through_attention(t * direction, upstream)).max() for t in (1, 10, 100, 1000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 1e-12 < 0.1 < sizes[0]

    program = definitions(CONFIGS["everything"], 2)
    (sent,) = program.contributions("head.logits")
    wrong = []
    for t in (1, 10, 100):
        logits = np.zeros((2, 7))
        logits[:, 3] = t
        p = np.exp(logits - t) / np.exp(logits - t).sum(-1, keepdims=True)
        known = {"head.p": p, "loss.nll.grad": np.ones(2), "loss.y": np.array([0, 0]), "loss.scored": np.ones(2)}
        wrong.append(evaluate(sent.expr, sent.letters, known, program.scalars)[0, 0])
    assert wrong == sorted(wrong, reverse=True)
    assert wrong[-1] == pytest.approx(-1, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 60))
@settings(max_examples=60, deadline=None)
def test_no_entry_is_larger_than_a_times_one_minus_a_times_the_widest_difference(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    S, upstream = scale * rng.standard_normal((4, 4)), rng.standard_normal((4, 4))
    A = np.exp(S - S.max(-1, keepdims=True))
    A /= A.sum(-1, keepdims=True)
    width = upstream.max(-1, keepdims=True) - upstream.min(-1, keepdims=True)
    assert (np.abs(gradient_through_attention(S, upstream)) <= A * (1 - A) * width + 1e-15).all()


# ---- order


def test_permuting_the_text_permutes_the_output_unless_a_mask_or_positions_tell_the_order() -> None:
    placed = place_lemma(lemma("permuted-scores"))
    program, n = placed.program, 5
    operands = grant(placed, ("permutation", "no mask", "no positions"), np.random.default_rng(0))
    given = {k: v for k, v in operands.items() if program.definition(k) is None}
    perm = given["text.perm"]
    assert not np.array_equal(perm, np.arange(n))

    def moved_and_permuted(**changes: Array) -> tuple[Array, Array]:
        values = run(program.forward, {**given, **{f"text.{k}": v for k, v in changes.items()}}, program.scalars)
        return values["moved.Z"], values["text.Z"][:, perm]

    np.testing.assert_allclose(*moved_and_permuted(), rtol=0, atol=1e-14)
    for change in ({"allowed": np.tril(np.ones((n, n)))}, {"P": np.random.default_rng(1).standard_normal((n, 4))}):
        moved, permuted = moved_and_permuted(**change)
        assert np.abs(moved - permuted).max() > 1e-3


def test_rotated_scores_stay_when_every_position_moves_on_and_change_when_one_does() -> None:
    placed = place_lemma(lemma("rotary-distance"))
    operands = grant(placed, (), np.random.default_rng(0))
    given = {k: v for k, v in operands.items() if placed.program.definition(k) is None}

    def scores(pos: Array) -> Array:
        values = run(placed.program.forward, {**given, "attn.pos": pos}, placed.program.scalars)
        return np.einsum("hic,hjc->hij", values["attn.Q_R"], values["attn.K_R"])

    start = np.arange(6)
    np.testing.assert_allclose(scores(start + 1000), scores(start), rtol=0, atol=1e-11)
    alone = start.copy()
    alone[2] += 1
    assert np.abs(scores(alone) - scores(start)).max() > 1e-2


# ---- residual


def test_the_derivative_of_a_residual_block_is_that_of_central_differences() -> None:
    placed = place_lemma(lemma("residual-jacobian"))
    program = placed.program
    operands = grant(placed, (), np.random.default_rng(3))
    given = {k: v for k, v in operands.items() if program.definition(k) is None}
    values = run(program.forward, given, program.scalars)
    measured, h = np.zeros((3, 4, 4)), 1e-6
    for q in range(4):
        there = [run(program.forward, {**given, "in.R": given["in.R"] + s * h * np.eye(4)[q]}, program.scalars)
                 for s in (1, -1)]  # fmt: skip
        measured[:, q] = (there[0]["out.X"] - there[1]["out.X"]) / (2 * h)
    for line in placed.lines:
        np.testing.assert_allclose(evaluate(line.expr, placed.letters, values, program.scalars), measured, atol=1e-7)


def test_both_paths_of_the_residual_gradient_are_those_that_the_model_adds() -> None:
    placed = place_lemma(lemma("residual-gradient"))
    program = placed.program
    operands = grant(placed, (), np.random.default_rng(3))
    given = {k: v for k, v in operands.items() if program.definition(k) is None}
    values = run(program.statements, given, program.scalars)
    for line in placed.lines:
        found = evaluate(line.expr, placed.letters, values, program.scalars)
        np.testing.assert_allclose(found, values["in.R.grad"], rtol=1e-12)


# ---- likelihood


def test_the_likelihood_of_a_text_under_any_joint_distribution_is_its_sum_of_cross_entropies() -> None:
    """A joint table over all texts of six tokens: nothing in it is independent of anything."""
    rng = np.random.default_rng(0)
    joint = rng.random((4,) * 6) ** 3
    joint /= joint.sum()
    text = (2, 0, 3, 3, 1, 0)
    prefix = np.array([joint[text[: s + 1]].sum() for s in range(6)])
    p = np.zeros((5, 4))
    for i in range(5):
        begun = joint[text[: i + 1]]
        p[i] = begun.reshape(4, -1).sum(1) / begun.sum()
    y, steps = np.array(text[1:]), np.arange(5)
    operands: dict[str, Array] = {
        "text.prefix": prefix, "text.first": np.array(0), "text.last": np.array(5), "text.here": steps,
        "text.longer": steps + 1, "text.like": np.array(joint[text] / prefix[0]), "head.p": p, "loss.y": y,
        "text.cond": prefix[1:] / prefix[:-1], "text.onehot": np.eye(4)[y],
    }  # fmt: skip
    expected = -np.log(joint[text] / joint[text[0]].sum())
    assert [float(x) for x in values_of("likelihood", operands)] == pytest.approx([expected] * 7, rel=1e-12)
