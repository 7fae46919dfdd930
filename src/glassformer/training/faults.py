"""What is wrong with a setting, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UserError, did_you_mean
from ..text.visible import visible
from .settings import WithoutEffect

_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "a text in quotation marks",
}
_SHOWN = 40  # characters of a value


def setting_fault(
    fault: Mapping[str, Any], names: Mapping[str, str], known: Sequence[str], sections: Sequence[str]
) -> UserError:
    """What to say of ``fault`` (as of pydantic's ``errors()``) in a recipe.

    ``names`` is what keys are called to the person who gave them; ``known`` are all keys that can be set, ``sections`` the
    groups that they are in.
    """
    key, kind, context = ".".join(map(str, fault["loc"])), fault["type"], fault.get("ctx", {})
    said = visible(names.get(key, key), keep="")
    if kind == "extra_forbidden":
        return UserError(f'There is no setting "{said}".', "", did_you_mean(key, [*sections, *known]))
    if kind == "value_error":  # said of a whole section, or of the recipe, by a rule of its own
        broken = context["error"]
        if isinstance(broken, WithoutEffect):
            own = f"{key}.{broken.name}".lstrip(".")
            return UserError(f"{names.get(own, own)} {broken.why}.", "", "Leave it out, or change the other.")
        message = str(broken)
        return UserError(f"{said}: {message}." if said else f"{message}.", "", _HELP)
    if kind == "missing":
        return UserError(f"{said or 'A recipe'} is missing.", "", _HELP)
    if key in sections or not key:
        inside = [name for name in known if name.startswith(f"{key}.")] or list(known)
        return UserError(
            f"{said or 'A recipe'} is no single setting.",
            f"It holds {', '.join(inside[:4])}{', …' if len(inside) > 4 else ''}.",
            f"Set one of them, for example {inside[0]}.",
        )
    advice = did_you_mean(str(fault["input"]), _choices(context)) if kind == "literal_error" else _HELP
    return UserError(f"{said} cannot be {_value(fault['input'])}.", f"It must be {_wanted(kind, context)}.", advice)


_HELP = "See glassformer train --help."


def _wanted(kind: str, context: Mapping[str, Any]) -> str:
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        bound = context[name]
        return f"{words} {bound:,}" if isinstance(bound, int) else f"{words} {bound:g}"
    if kind == "literal_error":
        *others, last = _choices(context)
        return f"{', '.join(others)} or {last}"
    return _KINDS.get(kind.partition("_")[0], "of another kind")


def _choices(context: Mapping[str, Any]) -> list[str]:
    """Of ``'a', 'b' or 'c'``: a, b and c."""
    return [word.strip().strip("'") for word in str(context["expected"]).replace(" or ", ",").split(",")]


def _value(value: object) -> str:
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return visible(shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…", keep="")
