"""How a model wants to be told which tokens may be read: found by what a mask does, never by its name alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..verdict import NotSupported

FAR = -1e9
"""What is added to a score that may not be read, where masks are added; smaller than any score of a trial."""


@dataclass(frozen=True, slots=True)
class Convention:
    """``of`` turns ``mask (b, p + n)`` int64, 1 = may be read, and ``n`` into what the model takes.

    ``spelled`` is the same as an expression of Python over ``{mask}`` and ``{n}``.
    """

    name: str
    of: Callable[[Tensor, int], Tensor]
    spelled: str


def _whole(mask: Tensor, n: int) -> Tensor:
    """``(b, n, p + n)`` bool: may be read, and not later."""
    total = mask.shape[1]
    earlier = torch.arange(total)[None, :] <= torch.arange(total - n, total)[:, None]
    return earlier[None] & (mask[:, None, :] > 0)


def _added(read: Tensor) -> Tensor:
    return torch.where(read, 0.0, FAR).to(torch.get_default_dtype())


READ = Convention("1 = read", lambda mask, _: mask, "{mask}")
READ_BOOL = Convention("True = read", lambda mask, _: mask > 0, "{mask} > 0")
IGNORE_BOOL = Convention("True = ignore", lambda mask, _: mask == 0, "{mask} == 0")
ADDED = Convention(
    "0 or -inf, added to the scores", lambda mask, _: _added(mask > 0), f"torch.where({{mask}} > 0, 0.0, {FAR})"
)
KEYS_BOOL = Convention(
    "(b, 1, 1, n), True = read", lambda mask, _: mask[:, None, None, :] > 0, "{mask}[:, None, None, :] > 0"
)
KEYS_ADDED = Convention(
    "(b, 1, 1, n), added to the scores",
    lambda mask, _: _added(mask[:, None, None, :] > 0),
    f"torch.where({{mask}}[:, None, None, :] > 0, 0.0, {FAR})",
)
_TRIANGLE = "torch.ones({n}, {n}, dtype=torch.bool).tril()"
_ALONE = {
    "(n, n), True = read, causal": (lambda whole: whole, _TRIANGLE),
    "(n, n), True = ignore, causal": (lambda whole: ~whole, f"~{_TRIANGLE}"),
    "(n, n), added to the scores, causal": (_added, f"torch.where({_TRIANGLE}, 0.0, {FAR})"),
}
WHOLE = (
    Convention(
        "(b, 1, n, n), True = read",
        lambda mask, n: _whole(mask, n)[:, None],
        f"{_TRIANGLE} & ({{mask}}[:, None, None, :] > 0)",
    ),
    Convention("(b, n, n), True = read", _whole, f"{_TRIANGLE} & ({{mask}}[:, None, :] > 0)"),
    *(
        Convention(name, lambda mask, n, made=made: made(_whole(torch.ones_like(mask), n)[0]), spelled)
        for name, (made, spelled) in _ALONE.items()
    ),
)
"""Masks that say the whole of who reads whom: where a model requires one, it has no causal mask of its own."""

BESIDE = (READ, READ_BOOL, IGNORE_BOOL, KEYS_BOOL, ADDED, KEYS_ADDED)
IGNORING = frozenset({"key_padding_mask", "padding_mask", "pad_mask", "src_key_padding_mask"})
"""Under these names True usually says what is not to be read, as in torch."""


def conventions(argument: str, *, required: bool) -> Sequence[Convention]:
    """The conventions to try for an argument, the most usual for its name first."""
    usual = (IGNORE_BOOL, READ_BOOL, READ) if argument in IGNORING else BESIDE
    rest = tuple(each for each in BESIDE if each not in usual)
    return (*WHOLE, *usual, *rest) if required else (*usual, *rest)


def found_convention(
    argument: str, logits: Callable[[Tensor, Convention | None], Tensor], ids: Tensor, *, required: bool
) -> Convention:
    """The first convention under which a mask of ones changes nothing, and hiding a token takes away its effect alone.

    ``logits(ids, convention)`` calls the model with a mask in which a token of id -1 is hidden, or without a mask.
    Where none does what it should, the most usual one that can be called is returned: the laws will say what is
    wrong. Raises ``NotSupported`` where none can be called.
    """
    tried = conventions(argument, required=required)
    plain = None if required else logits(ids, None)
    callable_ones: list[Convention] = []
    for convention in tried:
        try:
            kept = logits(ids, convention)
            if not bool(kept.isfinite().all()) or (plain is not None and not _alike(kept, plain)):
                callable_ones += [convention] if bool(kept.isfinite().all()) else []
                continue
            callable_ones.insert(0, convention)
            if _hides(logits, ids, convention, kept):
                return convention
        except Exception:  # noqa: BLE001, S112 - a convention the model cannot be called with is not its own
            continue
    if not callable_ones:
        raise NotSupported(f"no kind of {argument} could be given", f"没有一种 {argument} 能被接受")
    return callable_ones[0]


def _hides(
    logits: Callable[[Tensor, Convention | None], Tensor], ids: Tensor, convention: Convention, kept: Tensor
) -> bool:
    """Whether hiding the second token moves the last logits: under a wrong sense it would be the only one read."""
    hidden = ids.clone()
    hidden[:, 1] = -1
    moved = logits(hidden, convention)
    if convention.name.endswith("causal"):
        return True  # it says nothing of single tokens: that all of it can be called is all there is to see
    return bool(moved.isfinite().all()) and not _alike(moved[:, -1], kept[:, -1])


def _alike(a: Tensor, b: Tensor) -> bool:
    size = float(b.abs().max()) or 1.0
    return a.shape == b.shape and float((a - b).abs().max()) <= 1e-4 * size
