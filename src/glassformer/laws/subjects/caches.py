"""What can be done with a cache beside going on with it, found by the names under which public code offers it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..verdict import NotSupported

REORDER = ("reorder_cache", "batch_select_indices", "select_rows", "reorder")
REPEAT = ("batch_repeat_interleave", "repeat_rows", "repeat")
CROP = ("crop", "truncate", "rollback")
JOIN = ("join", "concatenate", "cat")


def recording(cache: Any) -> None:
    """Tell ``cache`` that it will be cropped, where it wants to be told: windows throw away what was read long ago."""
    tell = getattr(cache, "activate_past_recording", None)
    if callable(tell):
        tell()


def cropped(cache: Any, length: int, removed: int) -> Any:
    """``cache`` with its first ``length`` positions, the last ``removed`` taken away."""
    # Some can put back only a part of what they hold, and say so.
    layers = getattr(cache, "layers", None)
    parts = (cache, *layers) if isinstance(layers, list | tuple) else (cache,)
    if any(getattr(part, "is_croppable", None) is False for part in parts):
        raise NotSupported("the cache says that it cannot be cropped", "缓存声明自己不能裁剪")
    name, method = _found(cache, CROP)
    return _after(cache, method(crop_argument(cache, length, removed)), name)


def crop_argument(cache: Any, length: int, removed: int) -> int:
    """What a cropping method is told: how many positions stay, or below zero how many go."""
    arguments = list(inspect.signature(_found(cache, CROP)[1]).parameters)
    by_rest = bool(arguments) and "remove" in arguments[0]
    return -removed if by_rest else length


def need(cache: Any, names: Sequence[str]) -> str:
    """The method of ``cache`` that has one of ``names``; raises ``NotSupported`` where it has none."""
    return _found(cache, names)[0]


def done(cache: Any, names: Sequence[str], argument: Any) -> Any:
    """What a method of ``cache``, one of ``names``, makes of it. Raises ``NotSupported`` where there is none."""
    name, method = _found(cache, names)
    return _after(cache, method(argument), name)


def _found(cache: Any, names: Sequence[str]) -> tuple[str, Callable[..., Any]]:
    for name in names:
        method = getattr(cache, name, None)
        if callable(method):
            return name, method
    raise NotSupported(f"a {type(cache).__name__} has no {names[0]}", f"{type(cache).__name__} 没有 {names[0]}")


def _after(cache: Any, returned: Any, name: str) -> Any:
    """What ``name`` returned where that is a cache, else ``cache``, changed in place."""
    if returned is None:
        return cache
    if type(returned) is type(cache):
        return returned
    raise NotSupported(f"{name} returned a {type(returned).__name__}", f"{name} 返回了 {type(returned).__name__}")
