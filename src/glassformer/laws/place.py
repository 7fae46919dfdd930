"""Where a law is broken: the first module whose output breaks a claim although everything it was given keeps it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from .bench import Bench
from .runs import Cells, Claim, Run
from .spy import SeenAttention, drawn, spying
from .verdict import Place

Key: TypeAlias = tuple[str, int]

DRAWN = 32
"""Longer masks are not drawn."""


@dataclass(slots=True)
class _Passage:
    """One module in one run: what it was given and what it gave, each list joined along the positions over all calls."""

    given: dict[str, list[Tensor]] = field(default_factory=dict)
    gave: dict[str, list[Tensor]] = field(default_factory=dict)


class _Recorder:
    """Hooks on every module of a copy; tensors that have the rows and positions of the current call are kept."""

    def __init__(self, module: nn.Module) -> None:
        self.passages: dict[Key, _Passage] = {}
        self.rows = self.positions = 0
        self._times: dict[str, int] = {}
        self._open: list[tuple[Key, dict[str, Tensor]]] = []
        self._hooks = []
        for name, part in module.named_modules():
            before = lambda _, args, kwargs, name=name: self._enter(name, (args, kwargs))  # noqa: E731
            after = lambda _, __, ___, result: self._leave(result)  # noqa: E731
            self._hooks.append(part.register_forward_pre_hook(before, with_kwargs=True))
            self._hooks.append(part.register_forward_hook(after, with_kwargs=True))

    def begin(self, rows: int, positions: int) -> None:
        self.rows, self.positions = rows, positions
        self._times = {}
        self._open = []

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def _enter(self, name: str, given: Any) -> None:
        times = self._times.get(name, 0)
        self._times[name] = times + 1
        self._open.append(((name, times), dict(self._found(given))))

    def _leave(self, result: Any) -> None:
        key, given = self._open.pop()
        # Insertion here keeps the order in which modules end: inner ones before those they are part of.
        passage = self.passages.setdefault(key, _Passage())
        for into, found in ((passage.given, given), (passage.gave, dict(self._found(result)))):
            for path, tensor in found.items():
                into.setdefault(path, []).append(tensor)

    def _found(self, value: Any, path: str = "") -> Iterator[tuple[str, Tensor]]:
        """Tensors inside ``value`` with rows on the first axis, their positions moved to the second."""
        match value:
            case Tensor():
                axis = self._axis(value)
                if axis is not None:
                    yield path, value.detach().movedim(axis, 1).clone()
            case Mapping():
                for key, each in value.items():
                    yield from self._found(each, f"{path}.{key}")
            case tuple() | list():
                for k, each in enumerate(value):
                    yield from self._found(each, f"{path}.{k}")
            case _ if is_dataclass(value):
                yield from self._found({each.name: getattr(value, each.name) for each in fields(value)}, path)
            case _:
                return

    def _axis(self, x: Tensor) -> int | None:
        if x.ndim < 2 or x.shape[0] != self.rows:
            return None
        # (b, h, i, c) is commoner than four axes with the positions second
        order = (2, 1) if x.ndim == 4 else range(1, x.ndim)
        return next((axis for axis in order if x.shape[axis] == self.positions), None)


def localised(bench: Bench, claim: Claim) -> Place | None:
    """The place where ``claim`` breaks; None where hooks do not show it, and for duals, which have no place."""
    if claim.differ:
        return None
    left = _passages(bench, claim.left)
    right = left if claim.right is claim.left else _passages(bench, claim.right)
    right_at = claim.left_at if claim.right_at is None else claim.right_at
    unknown: str | None = None
    for key, passage in left.items():
        other = right.get(key)
        if other is None or not _differ(bench, passage.gave, other.gave, claim.left_at, right_at):
            continue
        given = _differ(bench, passage.given, other.given, claim.left_at, right_at)
        if given is False:
            return _place(bench, key[0], claim)
        unknown = key[0] if given is None and unknown is None else unknown
    return None if unknown is None else _place(bench, unknown, claim)


def _passages(bench: Bench, run: Run) -> Mapping[Key, _Passage]:
    recorder = _Recorder(bench.module)
    try:
        outputs = bench.outputs(run)
        for call in run.calls:
            recorder.begin(*call.ids.shape)
            next(outputs)
        outputs.close()
    finally:
        recorder.remove()
    return recorder.passages


def _differ(
    bench: Bench, left: Mapping[str, list[Tensor]], right: Mapping[str, list[Tensor]], left_at: Cells, right_at: Cells
) -> bool | None:
    """Whether any tensor of both differs at the cells; None where nothing can be compared."""
    compared = None
    for path in left.keys() & right.keys():
        a, b = _joined(left[path]), _joined(right[path])
        if a is None or b is None or a.shape[2:] != b.shape[2:] or not _holds(a, left_at) or not _holds(b, right_at):
            continue
        x, y = left_at.of(a).double(), right_at.of(b).double()
        apart = torch.where(x == y, 0.0, (x - y).abs())
        size = float(x[x.isfinite()].abs().max()) if x.isfinite().any() else 1.0
        if not bool((apart <= bench.tolerance * max(size, 1e-300)).all()):
            return True
        compared = False
    return compared


def _joined(parts: list[Tensor]) -> Tensor | None:
    alike = all(part.shape[:1] + part.shape[2:] == parts[0].shape[:1] + parts[0].shape[2:] for part in parts)
    return torch.cat(parts, 1) if alike else None


def _holds(x: Tensor, at: Cells) -> bool:
    return int(at.rows.max()) < x.shape[0] and int(at.positions.max()) < x.shape[1]


def _place(bench: Bench, name: str, claim: Claim) -> Place:
    module = bench.module.get_submodule(name)
    code = getattr(type(module).forward, "__code__", None)
    file, line = (None, None) if code is None else (shortened(code.co_filename), code.co_firstlineno)
    kind = type(module).__name__
    return Place(module=name or "(the model)", kind=kind, file=file, line=line, mask=_mask(bench, name, claim))


def shortened(path: str) -> str:
    """``path`` below the folder from which Python would import it, or as it is."""
    roots = sorted((Path(entry) for entry in sys.path if entry), key=lambda root: -len(str(root)))
    return next((str(Path(path).relative_to(root)) for root in roots if Path(path).is_relative_to(root)), path)


def _mask(bench: Bench, name: str, claim: Claim) -> tuple[str, ...]:
    """Who read whom in the last call of the first run, in the attention inside module ``name``."""
    ids = claim.left.calls[-1].ids
    if ids.shape[1] > DRAWN:
        return ()
    run = replace(claim.left, gain=1.0)  # larger weights leave few readers
    with spying(bench.module, ids.shape[1]) as spy:
        for _ in bench.outputs(run):
            pass
    inside = [seen for seen in spy.seen if _inside(seen, name)]
    return drawn(inside[-1].reads()) if inside else ()


def _inside(seen: SeenAttention, name: str) -> bool:
    return not name or seen.module == name or seen.module.startswith(f"{name}.")
