"""From what a person typed to the recipe: which of several settings counts, and whether the machine can hold it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given

from glassformer.cli.settings import CLINIC, OPTIONS, TEXT, recipe_of, size_of
from glassformer.errors import UserError
from glassformer.model import Decoder
from glassformer.training.recipe import read_recipe
from recipes import recipes

FILE = "[model]\nd = 32\nheads = 2\nblocks = 3\n[training]\nsteps = 7\nseed = 1\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(FILE)
    return path


def test_defaults_yield_to_the_file_the_file_to_options_and_options_to_set(file: Path) -> None:
    given = {"--blocks": 4, "--seed": 2, "--heads": None}
    recipe = recipe_of(given, file, ["training.seed=3"], TEXT)
    assert (recipe.training.batch, recipe.model.context) == (16, 64)
    assert (recipe.model.d, recipe.model.heads, recipe.training.steps) == (32, 2, 7)
    assert recipe.model.blocks == 4
    assert recipe.training.seed == 3


@pytest.mark.parametrize(
    ("given", "assignments", "bound"),
    [
        ({}, [], (7, None)),
        ({"--seconds": 2.0}, [], (None, 2.0)),
        ({"--steps": 5}, [], (5, None)),
        ({"--seconds": 2.0}, ["training.steps=9"], (9, None)),
        ({}, ["training.seconds=9"], (None, 9.0)),
    ],
)
def test_a_bound_of_the_run_replaces_the_one_before_it(
    file: Path, given: dict[str, Any], assignments: list[str], bound: tuple[int | None, float | None]
) -> None:
    recipe = recipe_of(given, file, assignments, TEXT)
    assert (recipe.training.steps, recipe.training.seconds) == bound


def test_both_bounds_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Both --seconds and --steps"):
        recipe_of({"--seconds": 2.0, "--steps": 3}, None, [], TEXT)
    with pytest.raises(UserError, match="exactly one of steps and seconds"):
        recipe_of({}, None, ["training.steps=3", "training.seconds=4"], TEXT)


def test_another_kind_of_schedule_replaces_the_whole_schedule() -> None:
    assert recipe_of({}, None, [], CLINIC).training.schedule.floor == 0
    recipe = recipe_of({}, None, ["training.schedule.kind=constant"], CLINIC)
    assert recipe.training.schedule.model_dump() == {"kind": "constant", "warmup": 0.1}


def test_every_option_stands_for_a_key_that_exists() -> None:
    values = {"--tokenizer": "bytes", "--vocab-size": 300, "--isolated": True, "--field": "a", "--learning-rate": 0.1,
              "--steps": None, "--seconds": 1.0, "--lang": None}  # fmt: skip
    given = {option: values.get(option, 4) for option in OPTIONS}
    written = tomllib.loads(recipe_of(given, None, [], TEXT).toml())
    for option, value in given.items():
        part: Any = written
        for name in OPTIONS[option].split("."):
            part = part.get(name) if value is None else part[name]
        assert part == value, option


@given(recipes())
def test_the_size_that_is_compared_with_the_memory_is_that_of_the_matrices(values: dict[str, Any]) -> None:
    recipe = read_recipe(values)
    try:
        config = recipe.model.config(20)
    except UserError:
        return
    model = Decoder(config, torch.Generator().manual_seed(0))
    matrices = sum(p.numel() for name, p in model.named_parameters() if re.match(r"W_|[EPU]$", name.rpartition(".")[2]))
    assert size_of(recipe.model, 20)[0] == matrices
