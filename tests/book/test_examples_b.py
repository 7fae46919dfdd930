"""The live examples of chapters 8 to 13: what NumPy says by another way, and what the text says will happen."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from book_pieces import moved
from glassformer.book.example import Example
from glassformer.book.examples import parts, training, use, writing

Array = np.ndarray[Any, Any]
OURS = (*parts.EXAMPLES, *training.EXAMPLES, *writing.EXAMPLES, *use.EXAMPLES)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def turned(x: Array, angle: float) -> Array:
    """A pair of coordinates turned as a complex number."""
    z = complex(*x) * np.exp(1j * angle)
    return np.array([z.real, z.imag])


def merged(g: dict[str, Array]) -> dict[str, Any]:
    B = g["x"] @ g["W_1"]
    y = np.einsum("r,rf,fe->e", g["x"], g["W_1"], g["W_2"])
    return {"product": g["W_1"] @ g["W_2"], "inside": B, "plain": y, "once": y, "relu": np.clip(B, 0, None) @ g["W_2"]}


def layernorm(g: dict[str, Array]) -> dict[str, Any]:
    x = g["x"]
    xhat = (x - np.mean(x)) / np.sqrt(np.var(x) + 1e-3)
    return {
        "mu": np.mean(x), "var": np.var(x), "xhat": xhat, "Y": xhat * g["gamma"] + g["beta"], "average": 0,
        "square": np.var(x) / (np.var(x) + 1e-3),
    }  # fmt: skip


def rotation(g: dict[str, Array]) -> dict[str, Any]:
    q, k = turned(g["Q"], 0.5), turned(g["K"], 1.0)
    return {"turned_q": q, "turned_k": k, "score": g["Q"] @ turned(g["K"], 0.5)}


def cross(g: dict[str, Array]) -> dict[str, Any]:
    S = g["Q"] @ g["K"].T / np.sqrt(2)
    return {"S": S, "A": softmax(S), "Z": softmax(S) @ g["V"]}


def sequence(g: dict[str, Array]) -> dict[str, Any]:
    p = g["given"]
    return {"nll": -np.log(p), "total": -np.log(0.1), "whole": np.prod(p), "mean": -np.log(np.prod(p)) / 3}


def descent(g: dict[str, Array]) -> dict[str, Any]:
    return {"L": 4, "slope": [2, 4], "moved": [1.8, 0.6], "later": (1.8**2 + 4 * 0.6**2) / 2, "promised": 4 - 0.1 * 20}


def decode(g: dict[str, Array]) -> dict[str, Any]:
    p = softmax(g["logits"])
    final = np.append(p[:4] / p[:4].sum(), 0)
    return {
        "warm": g["logits"], "p": p, "rank": np.arange(5), "before": np.cumsum(p) - p, "kept": [1, 1, 1, 1, 0],
        "final": final, "up_to": np.cumsum(final), "drawn": [0, 1, 0, 0, 0],
    }  # fmt: skip


def cached(g: dict[str, Array]) -> dict[str, Any]:
    fresh = np.zeros((5, 5))
    fresh[4] = 1
    return {"reads": np.tri(5), "fresh": fresh, "all_cells": 15, "new_cells": 5}


def nonlinear(g: dict[str, Array]) -> dict[str, Any]:
    def parts_of(X: Array, name: str) -> dict[str, Array]:
        return {f"S_{name}": X @ X.T, f"A_{name}": softmax(X @ X.T), f"Z_{name}": softmax(X @ X.T) @ X}

    X = g["X"]
    of_x, of_y = parts_of(X, "X"), parts_of(2 * X, "Y")
    apart = np.linalg.norm(of_y["Z_Y"] - 2 * of_x["Z_X"])
    return {"Y": 2 * X, **of_x, **of_y, "wanted": 2 * of_x["Z_X"], "apart": apart}


def shortcut(g: dict[str, Array]) -> dict[str, Any]:
    margin = g["answer"] * (g["clue"] + g["mark"])
    return {
        "margin": margin, "pair": np.stack([0 * margin, -margin], 1), "L": np.mean(np.log1p(np.exp(-margin))),
        "right": 1, "later": 4 / 6,
    }  # fmt: skip


BY_HAND: dict[str, Callable[[dict[str, Array]], dict[str, Any]]] = {
    f.__name__: f for f in (merged, layernorm, rotation, cross, sequence, descent, decode, cached, nonlinear, shortcut)
}


@pytest.mark.parametrize("example", OURS, ids=lambda e: e.id)
def test_an_example_says_what_numpy_says_by_hand(example: Example) -> None:
    values = {name.removeprefix("ex."): x for name, x in example.values().items()}
    given = {name.removeprefix("ex."): np.asarray(x, np.float64) for name, x in example.inputs.items()}
    expected = BY_HAND[example.id](given)
    assert set(expected) == set(values) - set(given)
    for name, x in expected.items():
        np.testing.assert_allclose(values[name], x, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("example", OURS, ids=lambda e: e.id)
def test_an_example_can_travel_and_draws_only_what_it_has(example: Example) -> None:
    plain = example.plain()
    ids = {q["id"] for q in plain["quantities"]}
    assert set(plain["show"]) <= ids
    assert set(plain["inputs"]) | {s["target"] for s in plain["statements"]} == ids
    values = example.values()
    for slider in plain["sliders"]:
        assert slider["id"] in plain["inputs"]
        assert slider["low"] <= float(values[slider["id"]][tuple(slider["index"])]) <= slider["high"]
    for curve in plain["curves"]:
        assert 0 <= curve["slider"] < len(plain["sliders"])
        assert all(np.isfinite(values[y["id"]][tuple(y["index"])]) for y in curve["ys"])
    assert all(len(texts) == plain["scalars"][dimension] for dimension, texts in plain["labels"].items())
    json.dumps(plain, allow_nan=False)


def test_two_products_are_one_and_an_activation_parts_them_only_where_it_cuts() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        found = moved("merged", x=rng.normal(size=2), W_1=rng.normal(size=(2, 3)))
        np.testing.assert_allclose(found["plain"], found["once"], atol=1e-12)
        cut = bool((found["inside"] < 0).any())
        assert cut != np.allclose(found["relu"], found["plain"])
    np.testing.assert_array_equal(moved("merged", x=[1, 1])["relu"], moved("merged", x=[1, 1])["plain"])


def test_equal_numbers_are_normalised_to_zeros_and_not_to_nan() -> None:
    found = moved("layernorm", x=[5, 5, 5, 5])
    np.testing.assert_array_equal(found["xhat"], np.zeros(4))
    np.testing.assert_array_equal(found["Y"], [0, 0, 0, 0.5])


def test_a_rotated_score_changes_with_one_position_and_not_with_both() -> None:
    score = moved("rotation")["score"]
    others = [float(moved("rotation", at_k=k)["score"]) for k in (0, 1, 3, 4, 5, 6, 7, 8)]
    assert min(abs(x - score) for x in others) > 1e-3
    for k in range(8):
        np.testing.assert_allclose(moved("rotation", at_q=k, at_k=k + 1)["score"], score, atol=1e-12)


def test_the_real_loss_falls_turns_and_rises_above_its_start_while_the_promise_sinks() -> None:
    steps = [moved("descent", length=k / 100) for k in range(61)]
    later, promised = (np.array([float(s[name]) for s in steps]) for name in ("later", "promised"))
    lowest = int(later.argmin())
    assert 0 < lowest < 60
    assert (np.diff(later[: lowest + 1]) < 0).all()
    assert (np.diff(later[lowest:]) > 0).all()
    assert later[-1] > later[0] == 4
    assert (np.diff(promised) < 0).all()
    assert promised[-1] < 0
    # First order: the two part by less than any multiple of the step.
    apart = [float(x["later"] - x["promised"]) / s for s in (1e-2, 1e-4) for x in [moved("descent", length=s)]]
    assert apart[1] < apart[0] / 50


def test_temperature_sharpens_and_flattens_and_a_draw_falls_on_one_candidate() -> None:
    largest = [float(moved("decode", T=T)["p"].max()) for T in (0.1, 1, 3)]
    assert largest == sorted(largest, reverse=True)
    assert largest[0] > 0.999
    for u in np.arange(0, 1, 0.01):
        assert moved("decode", u=u)["drawn"].sum() == 1
    assert moved("decode", top_k=1)["final"].tolist() == [1, 0, 0, 0, 0]
    assert moved("decode", top_k=5, top_p=1)["kept"].sum() == 5
    assert moved("decode", top_k=5, top_p=0.5)["kept"].sum() == 1


def test_a_cache_saves_every_row_that_it_holds() -> None:
    for held in range(5):
        assert moved("cached", held=held)["new_cells"] == 15 - held * (held + 1) / 2


def test_attention_is_linear_at_a_factor_of_one_and_not_at_others() -> None:
    assert moved("nonlinear", scale=1)["apart"] == 0
    assert all(moved("nonlinear", scale=c)["apart"] > 0.05 for c in (0.5, 2, 3, 4))


def test_more_weight_on_the_mark_lowers_the_loss_and_the_share_right_later_but_never_the_share_right() -> None:
    found = [moved("shortcut", weight=k / 10) for k in range(10, 41)]
    loss, later = (np.array([float(f[name]) for f in found]) for name in ("L", "later"))
    assert (np.diff(loss) < 0).all()
    assert (np.diff(later) <= 0).all()
    assert later[-1] < later[0] == pytest.approx(2 / 3)
    assert all(f["right"] == 1 for f in found)
