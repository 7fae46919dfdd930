"""Where a law is broken: the first module whose output breaks a claim although everything it was given keeps it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from .bench import Bench
from .runs import Cells, Claim, Inputs, Run, block
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
    # Where positions are told, and told otherwise, all that is made of them differs by right: the stream alone tells.
    moved = any(_told_otherwise(a, b) for a, b in zip(claim.left.calls, claim.right.calls, strict=False))
    name = _first(bench, left, right, claim.left_at, right_at, moved=moved)
    return None if name is None else replace(at_module(bench, name), mask=_mask(bench, name, claim))


def first_apart(bench: Bench, ids: Tensor, left: Callable[[], object], right: Callable[[], object]) -> Place | None:
    """The first module whose output differs between two calls on ``ids (b, n)`` although all that it was given does not."""
    found = []
    for call in (left, right):
        recorder = _Recorder(bench.module)
        try:
            recorder.begin(*ids.shape)
            call()
        finally:
            recorder.remove()
        found.append(recorder.passages)
    at = block(range(ids.shape[0]), range(ids.shape[1]))
    name = _first(bench, found[0], found[1], at, at)
    return None if name is None else at_module(bench, name)


def _first(
    bench: Bench, left: Mapping[Key, _Passage], right: Mapping[Key, _Passage], left_at: Cells, right_at: Cells, *,
    moved: bool = False,
) -> str | None:  # fmt: skip
    unknown: str | None = None
    for key, passage in left.items():
        other = right.get(key)
        if other is None or not _differ(bench, passage.gave, other.gave, left_at, right_at):
            continue
        like = _widths(passage.gave) if moved else None
        given = _differ(bench, passage.given, other.given, left_at, right_at, like)
        if given is False:
            return key[0]
        unknown = key[0] if given is None and unknown is None and not moved else unknown
    return unknown


def first_lost(bench: Bench, run: Run) -> Place | None:
    """The first module that makes NaN of what holds none, in ``run``."""
    for (name, _), passage in _passages(bench, run).items():
        if _lost(passage.gave) and not _lost(passage.given):
            return at_module(bench, name)
    return None


def at_module(bench: Bench, name: str) -> Place:
    """The module called ``name`` as a place."""
    module = bench.module.get_submodule(name)
    return Place(module=name or "(the model)", kind=type(module).__name__, **_source(type(module).forward))


def at_method(owner: object, method: str, name: str) -> Place:
    """A ``method`` of something that is no module, known to readers as ``name``."""
    return Place(module=name, kind=type(owner).__name__, **_source(getattr(type(owner), method, None)))


def at_function(function: Any, name: str) -> Place:
    """A function that belongs to no module of the model, known to readers as ``name``."""
    return Place(module=name, kind=getattr(function, "__qualname__", type(function).__name__), **_source(function))


def at_parameter(bench: Bench, name: str) -> Place:
    """The module that holds the parameter called ``name``; the one around it where torch wrote that."""
    owner = name.rpartition(".")[0]
    while owner and type(bench.module.get_submodule(owner)).__module__.startswith("torch.nn."):
        owner = owner.rpartition(".")[0]
    # A list of layers has no forward of its own.
    while owner and isinstance(bench.module.get_submodule(owner), nn.ModuleList | nn.ModuleDict):
        owner = owner.rpartition(".")[0]
    return at_module(bench, owner)


def at_table(bench: Bench, name: str) -> Place:
    """The module that holds the parameter called ``name``, even torch's own, with where the code around it is written."""
    owner = name.rpartition(".")[0]
    kind = type(bench.module.get_submodule(owner)).__name__
    return replace(at_parameter(bench, name), module=owner or "(the model)", kind=kind)


def first_coarse(
    bench: Bench, modules: Sequence[nn.Module], call: Inputs, uneven: Callable[[Tensor, Tensor], float], limit: float
) -> Place | None:
    """The first part whose output moves unevenly, beyond ``limit``, although what it was given does not.

    ``modules`` are three copies: as it is, with a small change of the parameters, and with its opposite.
    """
    passages = []
    for module in modules:
        recorder = _Recorder(module)
        try:
            recorder.begin(*call.ids.shape)
            with torch.no_grad():
                bench.spent.forwards += 1
                bench.subject.call(module, bench.fitted(call))
        finally:
            recorder.remove()
        passages.append(recorder.passages)

    def worst(key: Key, side: str) -> float:
        here, there, back = (getattr(each[key], side) for each in passages)
        moved = (
            (there[path][0].double() - part.double(), back[path][0].double() - part.double())
            for path, (part, *_) in here.items()
            if part.is_floating_point() and path in there and path in back
        )
        return max((uneven(a, b) for a, b in moved if bool((a - b).any())), default=0.0)

    for key in passages[0]:
        if worst(key, "gave") > limit and not worst(key, "given") > limit:
            return at_module(bench, key[0])
    return None


def in_order(bench: Bench, call: Inputs, names: Iterable[str]) -> list[str]:
    """Parameters in the order in which the modules that hold them were last called."""
    calls: list[str] = []
    hooks = [
        part.register_forward_pre_hook(lambda *_, name=name: calls.append(name))
        for name, part in bench.module.named_modules()
    ]
    try:
        with bench.mode(Run(calls=(call,))):
            bench.spent.forwards += 1
            bench.subject.call(bench.module, bench.fitted(call))
    finally:
        for hook in hooks:
            hook.remove()
    last = {name: at for at, name in enumerate(calls)}
    return sorted(names, key=lambda name: last.get(name.rpartition(".")[0], -1))


def maker_of_loss(bench: Bench, call: Inputs) -> Place | None:
    """The innermost module among whose outputs is the loss that the model reports for ``call``."""
    makers: list[tuple[str, list[Tensor]]] = []
    hooks = [
        part.register_forward_hook(lambda _, __, made, name=name: makers.append((name, list(_scalars(made)))))
        for name, part in bench.module.named_modules()
    ]
    try:
        with bench.mode(Run(calls=(call,))):
            bench.spent.forwards += 1
            loss = bench.subject.call(bench.module, bench.fitted(call)).loss
    finally:
        for hook in hooks:
            hook.remove()
    if loss is None:
        return None
    name = next((name for name, made in makers if any(torch.equal(x, loss.reshape(())) for x in made)), None)
    return None if name is None else at_module(bench, name)


def _scalars(value: Any) -> Iterator[Tensor]:
    match value:
        case Tensor():
            if value.numel() == 1:
                yield value.detach().reshape(())
        case Mapping():
            for each in value.values():
                yield from _scalars(each)
        case tuple() | list():
            for each in value:
                yield from _scalars(each)
        case _ if is_dataclass(value):
            for each in fields(value):
                yield from _scalars(getattr(value, each.name))
        case _:
            return


def _told_otherwise(left: Inputs, right: Inputs) -> bool:
    a, b = left.positions, right.positions
    return a is not None and b is not None and not torch.equal(a, b)


def _widths(gave: Mapping[str, list[Tensor]]) -> frozenset[tuple[int, ...]]:
    return frozenset(tuple(parts[0].shape[2:]) for parts in gave.values() if parts[0].is_floating_point())


def _lost(tensors: Mapping[str, list[Tensor]]) -> bool:
    return any(bool(part.isnan().any()) for parts in tensors.values() for part in parts)


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
    bench: Bench, left: Mapping[str, list[Tensor]], right: Mapping[str, list[Tensor]], left_at: Cells, right_at: Cells,
    like: frozenset[tuple[int, ...]] | None = None,
) -> bool | None:  # fmt: skip
    """Whether any tensor of both differs at the cells; None where nothing can be compared.

    ``like`` leaves tensors out that hold no floating-point numbers or have other axes behind rows and positions.
    """
    compared = None
    for path in left.keys() & right.keys():
        if like is not None and not (left[path][0].is_floating_point() and tuple(left[path][0].shape[2:]) in like):
            continue
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


def _source(function: Any) -> dict[str, Any]:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return {} if code is None else {"file": shortened(code.co_filename), "line": code.co_firstlineno}


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
