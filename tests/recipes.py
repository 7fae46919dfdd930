"""Recipes in which everything that is given has an effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from hypothesis import strategies as st
from pydantic import BaseModel

from glassformer.errors import UserError
from glassformer.training.recipe import DataRecipe, ModelRecipe, Recipe, read_recipe


def nested(key: str, value: Any) -> dict[str, Any]:
    """``{"model": {"d": 3}}`` for ``model.d`` and 3."""
    head, _, rest = key.partition(".")
    return {head: nested(rest, value) if rest else value}


RATES = st.floats(1e-6, 10)
FREE: Mapping[str, st.SearchStrategy[Any]] = {
    "field": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    "vocab_size": st.integers(260, 10**6),
    "clinic": st.sampled_from(["zh", "en"]),
    "d": st.sampled_from([8, 16]),
    "heads": st.sampled_from([1, 2, 4]),
    "kv_heads": st.just(1),
    "d_k": st.sampled_from([2, 6]),
    "d_v": st.integers(1, 5),
    "d_ff": st.integers(0, 9),
    "blocks": st.integers(1, 3),
    "context": st.integers(1, 9),
    "window": st.integers(1, 9),
    "eps": st.floats(1e-9, 1),
    "position_base": st.floats(1.5, 1e6),
    "dropout": st.floats(0, 0.9),
    "learning_rate": RATES, "beta_1": st.floats(0, 0.99), "beta_2": st.floats(0, 0.99), "weight_decay": st.floats(0, 1),
    "clip": RATES | st.just("none"),
    "warmup": st.floats(0, 0.5), "floor": st.floats(0, 1), "decay": st.floats(0.01, 0.5),
    "batch": st.integers(1, 99), "accumulation": st.integers(1, 3), "seed": st.integers(0, 2**63 - 1),
    "threads": st.integers(1, 4),
    "times": st.integers(0, 99), "prefix": st.integers(1, 10**6), "every_seconds": RATES, "keep": st.integers(1, 9),
}  # fmt: skip


def settable(section: type[BaseModel]) -> dict[str, st.SearchStrategy[Any]]:
    """A strategy for every setting of ``section`` but groups and the bounds of the run."""
    found = {}
    for name, field in section.model_fields.items():
        choices = [word for part in (field.annotation, *get_args(field.annotation)) for word in get_args(part)]
        words = [word for word in choices if isinstance(word, str)]
        if name in FREE:
            found[name] = FREE[name]
        elif field.annotation is bool:
            found[name] = st.booleans()
        elif words:
            found[name] = st.sampled_from(words)
    return found


@st.composite
def recipes(draw: st.DrawFn) -> dict[str, Any]:
    """Nested values of a recipe in which everything given has an effect."""
    training = Recipe.model_fields["training"].annotation
    assert isinstance(training, type)
    groups = {name: field.annotation for name, field in training.model_fields.items()}  # pyright: ignore
    values: dict[str, Any] = {}
    for name, section in (("data", DataRecipe), ("model", ModelRecipe)):
        values[name] = draw(st.fixed_dictionaries({}, optional=settable(section)))
    values["training"] = draw(st.fixed_dictionaries({}, optional=settable(training)))
    for name, group in groups.items():
        if isinstance(group, type) and issubclass(group, BaseModel):
            values["training"][name] = draw(st.fixed_dictionaries({}, optional=settable(group)))
    values["training"]["steps" if draw(st.booleans()) else "seconds"] = draw(st.integers(1, 1000))
    return without_idle(values)


def without_idle(values: dict[str, Any]) -> dict[str, Any]:
    """``values`` without what would be refused for having no effect, one after the other."""
    for _ in range(40):
        try:
            read_recipe(values)
            return values
        except UserError as problem:
            if "has no effect" not in problem.fact and "belongs to" not in problem.fact:
                raise
            key = problem.fact.split(" ")[0]
            *path, name = key.split(".")
            part = values
            for step in path:
                part = part[step]
            del part[name]
    raise AssertionError("never accepted")
