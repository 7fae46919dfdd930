"""From what a person typed to the recipe of a run: defaults, then the settings file, then options, then ``--set``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..errors import UserError

if TYPE_CHECKING:
    from ..training.recipe import ModelRecipe, Recipe

TEXT: Mapping[str, Any] = MappingProxyType({"training": {"seconds": 20.0, "batch": 16}})
"""Where a text needs other values than the recipe's own defaults."""

CLINIC: Mapping[str, Any] = MappingProxyType(
    {
        "data": {"clinic": "zh"},
        "training": {
            "steps": 240,
            # Sentences. Of every beginning a batch has its share, up to one sentence, so the error of single
            # probabilities falls with the size of the batch: with 128 and more steps the loss was as good, but they
            # ended up to 0.018 beside the truth.
            "batch": 256,
            # The last steps are as small as can be: with a floor single probabilities ended 0.01 to 0.03 off.
            "optimizer": {"learning_rate": 4e-3},
            "schedule": {"floor": 0.0},
        },
    }
)
"""The same for the clinic language."""

OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "--steps": "training.steps", "--seconds": "training.seconds", "--batch": "training.batch",
        "--seed": "training.seed", "--threads": "training.threads",
        "--learning-rate": "training.optimizer.learning_rate",
        "--d": "model.d", "--blocks": "model.blocks", "--heads": "model.heads", "--context": "model.context",
        "--tokenizer": "data.tokenizer", "--vocab-size": "data.vocab_size", "--isolated": "data.isolated",
        "--field": "data.field", "--lang": "data.clinic",
    }
)  # fmt: skip
"""The options of ``train`` that stand for a key of the recipe."""

_CELL_BYTES = 4  # float32
_ID_BYTES = 17  # of a position: token, target, whether it is scored
_BLOCK_BYTES = 20_000  # of the objects of one block, however small it is; measured: 50,000
_TRAINED_BYTES = 16  # of one parameter: float32 itself, its gradient, two moments of AdamW


def recipe_of(
    given: Mapping[str, Any], file: Path | None, assignments: Sequence[str], defaults: Mapping[str, Any]
) -> Recipe:
    """The recipe of a run from the options ``given`` (those not None count), a settings file and ``--set``.

    Raises ``UserError`` for a key that does not exist, a value that does not fit, or both bounds of a run at once.
    """
    from ..training.recipe import merged, read_recipe, read_settings_file, settings

    options: dict[str, Any] = {}
    for option, value in given.items():
        if value is not None:
            options = merged(options, settings_of(OPTIONS[option], value))
    if {"steps", "seconds"} <= options.get("training", {}).keys():
        raise UserError("Both --seconds and --steps were given.", "Either one bounds the run.", "Give one of them.")
    values: dict[str, Any] = {}
    for layer in (defaults, {} if file is None else read_settings_file(file), options, settings(assignments)):
        values = merged(_without_what_it_replaces(values, layer), layer)
    names = {key: option for option, key in OPTIONS.items() if given.get(option) is not None}
    return read_recipe(values, names)


def settings_of(key: str, value: Any) -> dict[str, Any]:
    """``{"model": {"d": 128}}`` for ``model.d`` and 128."""
    head, _, rest = key.partition(".")
    return {head: settings_of(rest, value) if rest else value}


def _without_what_it_replaces(values: dict[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` without the bound of the run, or the schedule, of another kind that ``layer`` puts in their place."""
    new = _mapping(layer.get("training"))
    replaced = {"steps", "seconds"} - new.keys() if {"steps", "seconds"} & new.keys() else set()
    if "kind" in _mapping(new.get("schedule")):
        replaced = {*replaced, "schedule"}
    training = {key: value for key, value in _mapping(values.get("training")).items() if key not in replaced}
    return {**values, "training": training} if "training" in values else values


def _mapping(part: Any) -> Mapping[str, Any]:
    return part if isinstance(part, Mapping) else {}


def refuse_too_large(recipe: Recipe, vocab_size: int) -> None:
    """Raise ``UserError`` before a model is built that this machine's memory cannot train, or cannot give its batch."""
    if sys.platform == "win32":
        return
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    parameters, model = size_of(recipe.model, vocab_size)
    if model > memory:
        raise UserError(
            f"A decoder with {parameters:,} parameters does not fit into this machine.",
            f"Training needs about {model // 10**9:,} GB for them; the machine has {memory // 10**9:,} GB.",
            "Use a smaller --d, fewer --blocks or a shorter --context.",
        )
    batch = bytes_of_batch(recipe, vocab_size)
    if batch + model > memory:
        raise UserError(
            f"A batch of {recipe.training.batch:,} rows does not fit into this machine.",
            f"A step needs {batch // 10**9:,} GB for it, or more; the machine has {memory // 10**9:,} GB.",
            "Use a smaller --batch, or a shorter --context.",
        )


def size_of(model: ModelRecipe, vocab_size: int) -> tuple[int, int]:
    """How many weights its matrices have (all but gains and biases), and at least how many bytes training takes them."""
    d, heads, share = model.d, model.heads, model.d // model.heads
    d_k, d_v, kv_heads = model.d_k or share, model.d_v or share, model.kv_heads or heads
    d_ff = (8 * d // 3 if model.gated else 4 * d) if model.d_ff is None else model.d_ff
    block = d * (heads * (d_k + d_v) + kv_heads * (d_k + d_v) + (2 + model.gated) * d_ff)
    table = model.context if model.positions == "learned" else 0
    parameters = (vocab_size * (2 - model.tied_head) + table) * d + model.blocks * block
    return parameters, _TRAINED_BYTES * parameters + _BLOCK_BYTES * model.blocks


def bytes_of_batch(recipe: Recipe, vocab_size: int) -> int:
    """At least so many bytes a step takes beside the parameters."""
    model, training = recipe.model, recipe.training
    ids = _ID_BYTES * training.batch * training.accumulation
    # Of each position there remain until the way back: scores and their gradient; stream, queries, values and mixture.
    cells = training.batch * (2 * vocab_size + 4 * model.d * model.blocks)
    return model.context * (ids + _CELL_BYTES * cells)
