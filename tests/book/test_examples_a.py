"""The live examples of chapters 1 to 7: what NumPy says by another way, and what the text says will happen."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from book_pieces import moved
from glassformer.book.example import Example
from glassformer.book.examples import EXAMPLES

Array = np.ndarray[Any, Any]


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def causal(x: Array) -> Array:
    return np.where(np.tri(len(x)) > 0, x, -np.inf)


def distribution(g: dict[str, Array]) -> dict[str, Array]:
    return {"p": softmax(g["logits"]), "total": np.array(1)}


def lookup(g: dict[str, Array]) -> dict[str, Array]:
    onehot = np.eye(7)[g["t"]]
    return {"onehot": onehot, "copied": g["E"][g["t"]], "product": onehot @ g["E"]}


def scatter(g: dict[str, Array]) -> dict[str, Array]:
    back = np.zeros((7, 2))
    np.add.at(back, g["t"], g["X_back"])
    return {"back": back}


def factor(g: dict[str, Array]) -> dict[str, Array]:
    return {"scores": np.array(400), "terms": np.array(64), "root": np.array(8)}


def onehead(g: dict[str, Array]) -> dict[str, Array]:
    Q, K, V = (g["X"] @ g[w] for w in ("W_Q", "W_K", "W_V"))
    S = causal(Q @ K.T / 2)
    return {"Q": Q, "K": K, "V": V, "S": S, "A": softmax(S), "Z": softmax(S) @ V, "allowed": np.tri(3)}


def asymmetric(g: dict[str, Array]) -> dict[str, Array]:
    S = np.array([[0, 1], [0, 0]])
    B = g["W_Q"] @ g["W_K"].T
    return {"direct": np.eye(2), "Q": g["W_Q"], "K": g["W_K"], "S": S, "B": B, "through": g["X"] @ B @ g["X"].T}


def symmetric(g: dict[str, Array]) -> dict[str, Any]:
    B = g["W"] @ g["W"].T
    return {"B": B, "form": g["X"] @ B @ g["X"], "Q": g["X"] @ g["W"], "square": np.linalg.norm(g["X"] @ g["W"]) ** 2}


def doubled(g: dict[str, Array]) -> dict[str, Array]:
    Z = np.array([0.8, 0.2])
    return {"A": Z, "V": np.eye(2), "Z": Z, "V_new": 2 * np.eye(2), "Z_new": 2 * Z}


def dot(g: dict[str, Array]) -> dict[str, Array]:
    return {"Y": np.array([2, -4, -3]), "D": np.array(-5), "lengths": np.sqrt(np.array(14.0 * 18))}


def shift(g: dict[str, Array]) -> dict[str, Array]:
    A = softmax(g["S"])
    ratio = np.exp(g["S"][:, None] - g["S"][None, :])
    return {"A": A, "ratio": ratio, "A_plus": A, "A_times": softmax(100 * g["S"])}


def entrywise(g: dict[str, Array]) -> dict[str, Array]:
    parts = g["A"][2][:, None] * g["V"]
    return {"Z": g["A"] @ g["V"], "parts": parts, "total": parts[0] + parts[1] + parts[2]}


def prefixes(g: dict[str, Array]) -> dict[str, Array]:
    found = {}
    for name in ("ate", "bought"):
        rows = g["E"][g[f"t_{name}"]]
        S = rows @ g["E"][4]
        found |= {f"S_{name}": S, f"A_{name}": softmax(S), f"Z_{name}": softmax(S) @ rows}
    return found


def signs(g: dict[str, Array]) -> dict[str, Array]:
    sums = [sum(four) for four in itertools.product((-1, 1), repeat=4)]
    chance = [float(Fraction(sums.count(2 * k - 4), 16)) for k in range(7)]
    D = g["Y"][:, :4].sum(1)
    return {
        "D": D, "reached": np.arange(-4, 9, 2), "chance": np.array(chance), "average": np.array(0), "var": np.array(4),
        "sd": np.array(2), "by_root": np.array(1), "by_width": np.array(0.25),
    }  # fmt: skip


def own(g: dict[str, Array]) -> dict[str, Array]:
    D = g["Q"] @ g["K"].T
    return {"D": D, "average": D.mean(), "var": D.var(), "scaled": (D / 2).var()}


def sums(g: dict[str, Array]) -> dict[str, Any]:
    X, Y = g["X"], g["free"]
    whole = np.var(X + Y)
    return {
        "Y": Y, "var_X": np.var(X), "var_Y": np.var(Y), "cov": np.cov(X, Y, bias=True)[0, 1], "whole": whole,
        "identity": whole, "square": np.mean((X + Y) ** 2),
    }  # fmt: skip


def saturation(g: dict[str, Array]) -> dict[str, Array]:
    s, h = 6.0 * g["raw"], 1e-6
    J = np.stack([(softmax(s + h * row) - softmax(s - h * row)) / (2 * h) for row in np.eye(3)], 1)
    return {"A": softmax(s), "J": J, "largest": np.abs(J).max()}


def confident(g: dict[str, Array]) -> dict[str, Array]:
    s, h = 6.0 * g["raw"], 1e-6
    back = [-(np.log(softmax(s + h * row)[2]) - np.log(softmax(s - h * row)[2])) / (2 * h) for row in np.eye(3)]
    p = softmax(s)
    return {"p": p, "back": np.array(back), "own": p[2] * (p[0] + p[1])}


def mask(g: dict[str, Array]) -> dict[str, Array]:
    S = causal(g["S_0"])
    return {"allowed": np.tri(7), "S": S, "A": softmax(S)}


def spread(g: dict[str, Array]) -> dict[str, Array]:
    powers = [np.linalg.matrix_power(np.eye(7) + g["reads"], k) > 0 for k in range(4)]
    return {**{f"dep_{k}": power.astype(float) for k, power in enumerate(powers)}, "leaks": np.array(0)}


BY_HAND: dict[str, Callable[[dict[str, Array]], dict[str, Any]]] = {
    "distribution": distribution, "lookup": lookup, "scatter": scatter, "factor": factor, "onehead": onehead,
    "asymmetric": asymmetric, "symmetric": symmetric, "doubled": doubled, "dot": dot, "shift": shift,
    "entrywise": entrywise, "prefixes": prefixes, "signs": signs, "own": own, "sums": sums, "saturation": saturation,
    "confident": confident, "mask": mask, "spread": spread,
    "places": lambda g: {"X": np.array([[1, 0], [0.5, 1], [1, 0.5]])},
    "targets": lambda g: {"following": np.arange(1, 7), "y": np.arange(1, 7)},
    "alone": lambda g: {"F": g["X"] * g["X"], "Z": np.array([[4, 0], [2.5, 1]])},
    "hull": lambda g: {"A": np.array([0.5, 0.25, 0.25]), "Z": np.array([1, 1])},
    "underflow": lambda g: {"A": np.array([1, np.exp(-8), 0]) / (1 + np.exp(-8))},
}  # fmt: skip


@pytest.mark.parametrize("id", sorted(BY_HAND))
def test_an_example_says_what_numpy_says_by_hand(id: str) -> None:
    values = {name.removeprefix("ex."): x for name, x in EXAMPLES[id].values().items()}
    given = {name.removeprefix("ex."): np.asarray(x) for name, x in EXAMPLES[id].inputs.items()}
    expected = BY_HAND[id](given)
    assert set(expected) == set(values) - set(given)
    for name, x in expected.items():
        np.testing.assert_allclose(values[name], x, rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("example", [EXAMPLES[id] for id in BY_HAND], ids=lambda e: e.id)
def test_an_example_can_travel_and_draws_only_what_it_has(example: Example) -> None:
    plain = example.plain()
    ids = {q["id"] for q in plain["quantities"]}
    assert set(plain["show"]) <= ids
    assert set(plain["inputs"]) | {s["target"] for s in plain["statements"]} == ids
    values = example.values()
    for slider in plain["sliders"]:
        assert slider["id"] in plain["inputs"]
        start = float(values[slider["id"]][tuple(slider["index"])])
        assert slider["low"] <= start <= slider["high"]
    for curve in plain["curves"]:
        assert 0 <= curve["slider"] < len(plain["sliders"])
        assert all(np.isfinite(values[y["id"]][tuple(y["index"])]) for y in curve["ys"])
    sizes = plain["scalars"]
    assert all(len(texts) == sizes[dimension] for dimension, texts in plain["labels"].items())
    assert set(plain["notes"]) <= set(plain["show"])
    assert len(json.dumps(plain)) < 20_000


def test_examples_keep_what_the_chapters_say_of_them_under_edits() -> None:
    """What readers are told to try: each sentence of the text beside an example, at other numbers."""
    rng = np.random.default_rng(0)
    later = np.array([[1, 0], [0, 1], [9, -9]])
    np.testing.assert_array_equal(moved("onehead", X=later)["Z"][:2], EXAMPLES["onehead"].values()["ex.Z"][:2])
    first = moved("alone", X=[[7, 7], [1, 2]])
    assert first["F"][1].tolist() == [1, 4]
    assert first["Z"][1].tolist() == [4, 4.5]
    for _ in range(20):
        points = moved("hull", S=rng.normal(size=3) * 3)["Z"]
        assert points.min() > 0
        assert points.sum() < 4
        other = moved("symmetric", X=rng.normal(size=2))
        np.testing.assert_allclose(other["form"], other["square"], atol=1e-12)
        tied = moved("sums", tie=rng.uniform(-1, 1), lift=rng.normal())
        np.testing.assert_allclose(tied["whole"], tied["identity"], atol=1e-12)
        assert tied["square"] > tied["whole"]
    assert moved("sums", lift=1.0)["whole"] == 2
    assert [float(moved("signs", width=k)["var"]) for k in range(1, 7)] == [1, 2, 3, 4, 5, 6]
    assert moved("own", lift=2.0)["var"] > 2 * moved("own")["var"]
    sharp, flat = (moved("saturation", times=k)["largest"] for k in (12, 1))
    assert sharp < 1e-5 < 0.2 < flat
    assert moved("confident", times=12)["back"][2] == pytest.approx(-1, abs=1e-9)


def test_one_allowed_cell_ahead_is_enough_for_a_leak() -> None:
    reads = np.array(EXAMPLES["spread"].inputs["ex.reads"])
    reads[2, 6] = 1
    found = moved("spread", reads=reads)
    assert found["leaks"] > 1
    assert [found["dep_1"][2, 6], found["dep_1"][3, 6], found["dep_2"][3, 6]] == [1, 0, 1]
