"""The recipe of a run: written and read as TOML, set key by key, refused in words, and the decoder it describes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.model import DecoderConfig
from glassformer.training.recipe import (
    ModelRecipe,
    merged,
    read_recipe,
    read_settings_file,
    settings,
)
from recipes import nested, recipes

# Where annotations are executed, which item of a list is checked is drawn by chance, also inside a strategy.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")

STEPS = {"training": {"steps": 1}}


def message(values: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    with pytest.raises(UserError) as caught:
        read_recipe(merged(STEPS, values), names)
    found = str(caught.value)
    assert "\n" not in found
    assert "Input should" not in found
    assert "Value error" not in found
    return found


# --- TOML -------------------------------------------------------------------------------------------------------------


@given(recipes())
def test_a_recipe_written_and_read_is_the_same(values: dict[str, Any]) -> None:
    recipe = read_recipe(values)
    again = read_recipe(tomllib.loads(recipe.toml()))
    assert again == recipe
    assert again.toml() == recipe.toml()


@given(recipes())
def test_every_key_that_was_given_is_in_the_file_with_its_value(values: dict[str, Any]) -> None:
    written = tomllib.loads(read_recipe(values).toml())

    def compare(given: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        for key, value in given.items():
            if isinstance(value, dict):
                compare(value, found[key])
            else:
                assert found[key] == value

    compare(values, written)


@given(recipes(), st.sampled_from(["data", "model", "training", "training.optimizer"]))
def test_an_unknown_key_is_refused_with_the_nearest(values: dict[str, Any], section: str) -> None:
    wrong = merged(values, nested(f"{section}.no_such_key", 1))
    found = message(wrong)
    assert f'There is no setting "{section}.no_such_key"' in found or "has no effect" in found


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("model.positons", "model.positions"),
        ("model.D", "model.d"),
        ("training.learning_rate", "training.optimizer.learning_rate"),
        ("training.optimiser", "training.optimizer"),
        ("data.tokeniser", "data.tokenizer"),
        ("modle", "model"),
    ],
)
def test_a_misspelled_key_is_answered_with_the_right_one(key: str, near: str) -> None:
    found = message(nested(key, 1))
    assert f'There is no setting "{key}".' in found
    assert f'"{near}"' in found.partition("Did you mean")[2]


# --- refusals in words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "parts"),
    [
        ("model.d", 0, ["model.d cannot be 0.", "at least 1."]),
        ("model.d", 2**31, ["less than 2,147,483,648."]),
        ("model.d", 1.5, ["cannot be 1.5.", "a whole number."]),
        ("model.d", "8", ["cannot be 8.", "a whole number."]),
        ("model.d", True, ["cannot be true.", "a whole number."]),
        ("model.dropout", 1, ["less than 1."]),
        ("model.dropout", "a", ["a number."]),
        ("model.position_base", 1, ["model.position_base cannot be 1.", "more than 1."]),
        ("model.qk_norm", 1, ["true or false."]),
        ("model.activation", "tanh", ["gelu, gelu_tanh, silu, relu or relu2.", 'Did you mean "gelu_tanh"']),
        ("model.activation", 3, ["gelu, gelu_tanh, silu, relu or relu2."]),
        ("data.vocab_size", 10**7, ["at most 1,000,000."]),
        ("data.field", 3, ["a text in quotation marks."]),
        ("data.clinic", "fr", ["zh or en."]),
        ("training.optimizer.learning_rate", float("inf"), ["cannot be inf.", "a finite number."]),
        ("training.checkpoint.every_seconds", float("inf"), ["a finite number."]),
        ("training.steps", True, ["a whole number."]),
        ("training.batch", "many", ["training.batch cannot be many."]),
        ("training.batch", [1], ["cannot be [1].", "a whole number."]),
        ("training.batch", "\x1b[31m" + "x" * 99, ["␛[31mxxx", "…"]),
        ("training.optimizer", 3, ["training.optimizer is no single setting.", "training.optimizer.kind"]),
        ("model", 3, ["model is no single setting.", "model.d"]),
        ("training.seconds", 3, ["training: give exactly one of steps and seconds."]),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_words(key: str, value: object, parts: list[str]) -> None:
    found = message(nested(key, value))
    assert [part for part in parts if part not in found] == []
    assert "\x1b" not in found


def test_a_key_is_called_what_the_person_called_it() -> None:
    assert "--d cannot be 0." in message(nested("model.d", 0), {"model.d": "--d"})
    names = {"data.vocab_size": "--vocab-size"}
    assert "--vocab-size has no effect: each character is a token." in message(nested("data.vocab_size", 300), names)


@pytest.mark.parametrize(
    ("assignments", "part"),
    [
        (["data.vocab_size=300"], "data.vocab_size has no effect: each character is a token."),
        (["data.clinic=zh", "data.tokenizer=bytes"], "data.tokenizer has no effect: the clinic language has its own"),
        (["data.clinic=zh", "model.context=8"], "model.context has no effect: it is the longest sentence"),
        (["model.norm=none", "model.eps=0.1"], "model.eps has no effect: there is no norm."),
        (["model.norm=none", "model.qk_norm=true", "model.eps=0.1"], "model.eps has no effect: there is no norm."),
        (["model.norm=none", "model.final_norm=true"], "model.final_norm has no effect"),
        (["model.d_ff=0", "model.gated=true"], "model.gated has no effect: there is no feed-forward network."),
        (["model.position_base=5"], "model.position_base has no effect: positions are learned."),
        (["model.windowed=alternate"], "model.windowed has no effect: there is no window."),
        (["training.optimizer.kind=gradient_descent", "training.optimizer.beta_2=0.9"], "belongs to adamw;"),
        (["training.schedule.decay=0.3"], "training.schedule.decay belongs to trapezoid; cosine has none."),
    ],
)
def test_a_setting_without_effect_is_refused_and_never_ignored(assignments: list[str], part: str) -> None:
    assert part in message(settings(assignments))


# --- where settings come from -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("128", 128),
        ("0.5", 0.5),
        ("true", True),
        ('"a b"', "a b"),
        ("rope", "rope"),
        ("a=b", "a=b"),
        ("[1, 2]", [1, 2]),
        ("1\nw = 2", "1\nw = 2"),
        ("9" * 5000, "9" * 5000),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_a_value_is_toml_or_else_a_word(text: str, value: object) -> None:
    assert settings([f" a.b = {text} "]) == {"a": {"b": value}}


@pytest.mark.parametrize("text", ["", "model.d", "model.d=", "=3", "model..d=3", ".d=3", "model.=3"])
def test_what_sets_nothing_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="does not set anything"):
        settings([text])


def test_the_last_of_several_assignments_counts() -> None:
    assert settings(["a.b=1", "a.c=2", "a.b=3"]) == {"a": {"b": 3, "c": 2}}


NESTED = st.dictionaries(st.sampled_from("abc"), st.integers() | st.dictionaries(st.sampled_from("de"), st.integers()))


def flat(values: Mapping[str, Any]) -> dict[str, int]:
    return {
        f"{key}.{name}" if name else key: number
        for key, part in values.items()
        for name, number in (part.items() if isinstance(part, dict) else [("", part)])
    }


@given(NESTED, NESTED)
def test_of_two_settings_of_one_key_the_second_counts_and_no_other_is_lost(
    a: dict[str, Any], b: dict[str, Any]
) -> None:
    assert merged(a, {}) == merged({}, a) == a
    found, first, second = flat(merged(a, b)), flat(a), flat(b)
    assert second.items() <= found.items()
    kept = {key: number for key, number in first.items() if key not in second}
    replaced = {key for key in kept if key in b or not isinstance(b.get(key.split(".")[0], {}), dict)}
    assert found == {key: number for key, number in kept.items() if key not in replaced} | second


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"d = ", "is not TOML"),
        (b"[model]\nd = 1\nd = 2\n", "is not TOML"),
        (b"\xff\xfe", "cannot be read"),
        (b"d = " + b"9" * 5000, "is not TOML"),
        (b"d = " + b"[" * 5000, "is not TOML"),
        (b"a\x1b = 1", "is not TOML"),
    ],
)
def test_a_settings_file_that_cannot_be_read_is_one_message(tmp_path: Path, content: bytes, part: str) -> None:
    (tmp_path / "a.toml").write_bytes(content)
    for path in (tmp_path / "a.toml",):
        with pytest.raises(UserError, match=part) as caught:
            read_settings_file(path)
        assert "\x1b" not in str(caught.value)
    with pytest.raises(UserError, match="There is no file"):
        read_settings_file(tmp_path / "b.toml")
    with pytest.raises(UserError, match="cannot be read"):
        read_settings_file(tmp_path)


# --- the decoder it describes -----------------------------------------------------------------------------------------


def decoder(*assignments: str) -> DecoderConfig:
    return read_recipe(merged(STEPS, settings([f"model.{text}" for text in assignments]))).model.config(20)


def test_without_any_setting_the_decoder_is_the_one_that_is_documented() -> None:
    config = decoder()
    (first, second) = config.layers
    assert first == second
    assert (config.vocab_size, config.context, config.d, config.blocks) == (20, 64, 64, 2)
    assert (first.attention.heads, first.attention.d_k, first.attention.d_v, config.d_ff) == (4, 16, 16, 256)
    assert config.window is None


@pytest.mark.parametrize(
    ("assignments", "found"),
    [
        (["d=32"], lambda c: (c.d, c.layers[0].attention.d_k, c.d_ff) == (32, 8, 128)),
        (["blocks=3"], lambda c: c.blocks == 3),
        (["context=9"], lambda c: c.context == 9),
        (["heads=8"], lambda c: (c.layers[0].attention.heads, c.layers[0].attention.d_v) == (8, 8)),
        (["kv_heads=2"], lambda c: c.layers[0].attention.kv_heads == 2),
        (["d_k=6"], lambda c: (c.layers[0].attention.d_k, c.layers[0].attention.d_v) == (6, 16)),
        (["d_v=6"], lambda c: (c.layers[0].attention.d_k, c.layers[0].attention.d_v) == (16, 6)),
        (["heads=3", "d_k=6", "d_v=5"], lambda c: c.layers[0].attention.heads == 3),
        (["qk_norm=true"], lambda c: c.layers[1].attention.qk_norm),
        (["window=5"], lambda c: [x.attention.window for x in c.layers] == [5, 5]),
        (["window=5", "windowed=alternate", "blocks=3"], lambda c: [x.attention.window for x in c.layers] == [5, None, 5]),
        (["d_ff=7"], lambda c: c.d_ff == 7),
        (["d_ff=0"], lambda c: [x.ffn for x in c.layers] == [None, None]),
        (["gated=true"], lambda c: (c.layers[0].ffn.gated, c.d_ff) == (True, 170)),
        (["gated=true", "d_ff=9"], lambda c: c.d_ff == 9),
        (["norm=none"], lambda c: c.norm is None),
        (["norm=rmsnorm"], lambda c: c.norm.kind == "rmsnorm"),
        (["norm_position=post"], lambda c: c.norm.position == "post"),
        (["final_norm=false"], lambda c: c.norm.final is False),
        (["eps=0.5"], lambda c: c.norm.eps == c.eps == 0.5),
        *(([f"activation={kind}"], lambda c, k=kind: c.layers[1].ffn.activation == k)
          for kind in ("gelu", "gelu_tanh", "silu", "relu", "relu2")),
        *(([f"positions={kind}"], lambda c, k=kind: c.position.kind == k)
          for kind in ("learned", "sinusoidal", "rope", "none")),
        (["positions=rope", "position_base=500"], lambda c: c.position.base == 500),
        (["attention_bias=true"], lambda c: c.layers[0].attention.bias),
        (["ffn_bias=false"], lambda c: not c.layers[0].ffn.bias),
        (["head_bias=true"], lambda c: c.head.bias),
        (["tied_head=true"], lambda c: c.head.tied),
        (["dropout=0.5"], lambda c: set(c.dropout.model_dump().values()) == {0.5}),
    ],
)  # fmt: skip
def test_an_option_reaches_the_decoder(assignments: list[str], found: Any) -> None:
    assert found(decoder(*assignments))
    # the option is the only difference
    names = {text.partition("=")[0] for text in assignments}
    assert names <= set(ModelRecipe.model_fields)


def test_every_option_of_the_model_is_tested_above() -> None:
    (mark,) = test_an_option_reaches_the_decoder.pytestmark  # pyright: ignore
    assert {text.partition("=")[0] for case in mark.args[1] for text in case[0]} == set(ModelRecipe.model_fields)


def test_heads_that_do_not_divide_d_are_answered_with_those_that_do() -> None:
    with pytest.raises(UserError, match=r"5 heads do not divide d = 64.*Use 2 or 4 or 8 heads"):
        decoder("heads=5")
