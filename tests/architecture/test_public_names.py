"""The public names are few, frozen and described."""

from __future__ import annotations

import inspect

import pytest

import glassformer

FROZEN = {
    "SGD",
    "AdamW",
    "AttentionConfig",
    "Decoder",
    "DecoderConfig",
    "DropoutConfig",
    "FeedForwardConfig",
    "HeadConfig",
    "LayerConfig",
    "NormConfig",
    "PositionConfig",
    "ToySettings",
    "Trace",
    "TrainingConfig",
    "UserError",
    "definitions",
    "generate",
    "load_run",
    "load_trace",
    "save_trace",
    "trace",
    "trace_run",
    "trace_toy24",
    "train",
}
"""Adding or removing a name is a decision: change it here, and say so in CHANGELOG.md."""


def test_the_public_names_are_the_frozen_ones() -> None:
    assert set(glassformer.__all__) == FROZEN


def test_there_are_at_most_twenty_five_public_names_in_order() -> None:
    assert len(glassformer.__all__) <= 25
    # As the linter sorts: names in capitals, then classes, then functions.
    in_order = sorted(glassformer.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert list(glassformer.__all__) == in_order


def test_the_table_of_homes_names_exactly_the_public_names() -> None:
    assert set(glassformer.PUBLIC) == set(glassformer.__all__)


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_a_public_name_can_be_fetched_from_its_home(name: str) -> None:
    assert getattr(glassformer, name) is not None


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_a_public_name_and_its_public_methods_are_described(name: str) -> None:
    thing = getattr(glassformer, name)
    assert inspect.getdoc(thing), name
    if inspect.isclass(thing):
        own = [(n, m) for n, m in vars(thing).items() if not n.startswith("_") and inspect.isfunction(m)]
        assert not [n for n, method in own if not inspect.getdoc(method)]


def test_an_unknown_name_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="it offers SGD, AdamW, AttentionConfig"):
        glassformer.no_such_thing  # noqa: B018 - reading the attribute is the test


def test_dir_lists_the_public_names() -> None:
    assert set(glassformer.__all__) <= set(dir(glassformer))
