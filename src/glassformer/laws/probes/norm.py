"""Norms: what a norm computes is its definition, with the epsilon that was asked for, position by position."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..losses import evaluate
from ..place import at_module
from ..program import opening
from ..runs import Inputs
from ..verdict import Finding, NotSupported

SCALES = (3.0, 1.0, 0.3, 0.1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5)
"""Sizes of what norms are given, down to where only epsilon is left under the root."""

FITS = 1e-4
"""A norm is of a kind when its outputs are off by no more than this share of the largest."""

EPSILON = 2e-2
"""What the epsilon of a fit may be off."""


def _population(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt()


def _rms(x: Tensor, eps: float) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


def _outside(x: Tensor, eps: float) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True).sqrt() + eps)


def _rms_outside(x: Tensor, eps: float) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True).sqrt() + eps)


Form = Callable[[Tensor, float], Tensor]

RIGHT: Mapping[str, Form] = {"LayerNorm": _population, "RMSNorm": _rms}
WRONG: Mapping[str, Form] = {
    "epsilon outside the root": _outside,
    "RMSNorm with epsilon outside the root": _rms_outside,
}


@dataclass(slots=True, eq=False)
class Seen:
    """What one norm was given, flattened to ``(k, d)``, and what it made of it; ``alone`` without other tensors."""

    module: nn.Module
    given: Tensor
    made: Tensor
    mixed: float
    alone: bool


class Listening:
    """Gives each norm of a model random numbers of many sizes in the place of its input, and keeps what it returns.

    Every second row along the first axis repeats the one before, but for its first position.
    """

    def __init__(self, module: nn.Module, seed: int) -> None:
        self.seen: dict[str, Seen] = {}
        self._given: dict[str, Tensor] = {}
        self._generator = torch.Generator().manual_seed(seed)
        self._handles = []
        for name, part in module.named_modules():
            if "norm" in type(part).__name__.lower() and not list(part.children()):
                self._handles.append(part.register_forward_pre_hook(self._put(name)))
                self._handles.append(part.register_forward_hook(self._keep(name)))

    def _put(self, name: str) -> Callable[..., Any]:
        def hook(_: nn.Module, args: tuple[Any, ...]) -> Any:
            if not args or not isinstance(args[0], Tensor) or not args[0].is_floating_point() or args[0].ndim < 3:
                return None
            x = args[0]
            drawn = torch.randn(x.shape, generator=self._generator, dtype=torch.float64) + 0.3
            sizes = torch.tensor(SCALES, dtype=torch.float64)
            places = torch.arange(x[..., 0].numel()).reshape(x.shape[:-1]) % len(SCALES)
            drawn = drawn * sizes[places][..., None]
            drawn[1::2] = drawn[::2][: drawn[1::2].shape[0]]
            drawn[1::2, 0] = drawn[1::2, 0] * 2 + 1
            self._given[name] = drawn.to(x.dtype)
            return (self._given[name], *args[1:])

        return hook

    def _keep(self, name: str) -> Callable[..., Any]:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            given = self._given.get(name)
            made = output[0] if isinstance(output, tuple) else output
            if given is None or name in self.seen or not isinstance(made, Tensor) or made.shape != given.shape:
                return
            d, x, y = given.shape[-1], given.double(), made.detach().double()
            mixed = float((y[1::2, 1:] - y[::2, 1:][: y[1::2].shape[0]]).abs().max()) if y.shape[1] > 1 else 0.0
            alone = not any(isinstance(arg, Tensor) for arg in args[1:])
            self.seen[name] = Seen(module, x.reshape(-1, d), y.reshape(-1, d), mixed, alone)

        return hook

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


@dataclass(slots=True, eq=False)
class Fit:
    """How well ``gain z + shift`` fits, with ``z`` a form at ``eps``; ``off`` in units of the largest output."""

    form: str
    eps: float
    off: float
    gain: Tensor


def fitted(seen: Seen, name: str, form: Form, eps: float) -> Fit:
    """The least-squares gain and shift of each channel at ``eps``."""
    z, y = form(seen.given, eps), seen.made
    center = z - z.mean(0)
    gain = (center * (y - y.mean(0))).sum(0) / center.square().sum(0).clamp(min=1e-300)
    off = float((y - y.mean(0) - gain * center).abs().max() / y.abs().max().clamp(min=1e-300))
    return Fit(name, eps, off, gain)


def best(seen: Seen, name: str, form: Form) -> Fit:
    """The fit at the epsilon that fits best, found on a grid that becomes finer."""
    low, high = -14.0, 0.0
    found = fitted(seen, name, form, 0.0)
    for _ in range(5):
        grid = torch.linspace(low, high, 15).tolist()
        fits = [fitted(seen, name, form, 10**power) for power in grid]
        at = min(range(len(fits)), key=lambda k: fits[k].off)
        if fits[at].off < found.off:
            found = fits[at]
        low, high = grid[max(0, at - 1)], grid[min(len(grid) - 1, at + 1)]
    return found


def norms(bench: Bench) -> dict[str, tuple[Seen, Fit, Fit | None]]:
    """Every norm that a known form fits, right or wrong, by its name in the model."""
    if found := bench.known("norms", lambda: _norms(bench)):
        return found
    raise NotSupported("no norm of a known kind was found", "没有找到已知类型的归一化")


def _heard(bench: Bench) -> dict[str, Seen]:
    listening = Listening(bench.module, bench.seed)
    try:
        evaluate(bench, Inputs(ids=bench.texts(4)))
    finally:
        listening.remove()
    return listening.seen


def _lost(bench: Bench) -> str:
    """The first norm that makes no number of small ones; empty where there is none."""
    heard = bench.known("norms heard", lambda: _heard(bench))
    return next((name for name, seen in heard.items() if seen.alone and not seen.made.isfinite().all()), "")


def _norms(bench: Bench) -> dict[str, tuple[Seen, Fit, Fit | None]]:
    found = {}
    for name, seen in bench.known("norms heard", lambda: _heard(bench)).items():
        right = min((best(seen, form, RIGHT[form]) for form in RIGHT), key=lambda fit: fit.off)
        wrong = None
        if right.off > FITS:
            wrong = min((best(seen, form, WRONG[form]) for form in WRONG), key=lambda fit: fit.off)
        if right.off <= FITS or (wrong is not None and wrong.off <= FITS):
            found[name] = (seen, right, wrong)
    return found


def definition(bench: Bench) -> Finding:
    """Epsilon inside the root, variance over all d channels."""
    if lost := _lost(bench):
        witness = {"norm": lost, "as_if": "epsilon subtracted"}
        return Finding(measured=math.inf, bound=FITS, unit="share of the largest output", witness=witness,
                       place=at_module(bench, lost))  # fmt: skip
    worst, facts, found = 0.0, {}, norms(bench)
    at, eps, own_gain = "", 0.0, False
    for name, (seen, right, wrong) in found.items():
        off, like = (right.off, wrong.form) if wrong is not None else (0.0, "")
        factor = _sample(seen, right) if not off else 0.0
        if factor:
            off, like = factor, "variance over d - 1"
        if off > worst:
            worst, facts = off, {"norm": name, "as_if": like}
            at, eps, own_gain = name, right.eps, bool(factor)
    witness = {"norms": len(found), **facts}
    if not facts:
        return Finding(measured=worst, bound=FITS, unit="share of the largest output", witness=witness)
    shown = partial(_program, name=at, form=found[at][1].form, eps=eps, own_gain=own_gain)
    return Finding(
        measured=worst, bound=FITS, unit="share of the largest output", witness=witness, place=at_module(bench, at),
        shown=shown,
    )  # fmt: skip


def _program(bench: Bench, name: str, form: str, eps: float, *, own_gain: bool = False) -> str:
    """A norm by itself, given numbers of many sizes, against its definition with the gain and shift that fit best."""
    d = norms(bench)[name][0].given.shape[-1]
    centred = " - x.mean(-1, keepdim=True)" if form == "LayerNorm" else ""
    gain = "part.weight" if own_gain else "((z - z.mean(0)) * (y - y.mean(0))).sum(0) / (z - z.mean(0)).square().sum(0)"
    return "\n".join((
        *opening(bench, dtype=torch.float64),
        f"part = model.get_submodule({name!r})",
        "sizes = torch.logspace(-5, 0.5, 400, dtype=torch.float64)[:, None]",
        f"x = sizes * (torch.randn(400, {d}, dtype=torch.float64) + 0.3)",
        "with torch.no_grad():",
        "    y = part(x[None])[0]",
        f"    z = x{centred}",
        f"    z = z / (z.square().mean(-1, keepdim=True) + {eps:g}).sqrt()",
        f"    gain = {gain}",
        "    shift = (y - gain * z).mean(0)",
        'print("largest difference:", float((y - gain * z - shift).abs().max()), "; largest output:", float(y.abs().max()))',
        "",
    ))  # fmt: skip


def _sample(seen: Seen, fit: Fit) -> float:
    """How far the gain is off if it is the module's own times that of a variance over d - 1; else 0.

    A fit absorbs that factor into the gain, so the module's own weight must say what the gain is.
    """
    d = seen.given.shape[-1]
    ratio = ((d - 1) / d) ** 0.5
    weights = [p.detach().double() for p in seen.module.parameters() if p.shape == fit.gain.shape]
    for weight in (each for p in weights for each in (p, 1 + p)):
        size = float(weight.abs().max())
        if float((fit.gain - weight).abs().max()) <= 1e-3 * (1 - ratio) * size + FITS * size:
            return 0.0
    for weight in weights if fit.form == "LayerNorm" else ():
        size = float(weight.abs().max())
        if float((fit.gain - ratio * weight).abs().max()) <= FITS * size:
            return 1 - ratio
    return 0.0


def epsilon(bench: Bench) -> Finding:
    """The epsilon in effect is the one that was configured."""
    told = bench.subject.facts.settings.get("eps")
    if not isinstance(told, float) or told <= 0:
        raise NotSupported("no epsilon is known from the configuration", "配置中没有已知的 epsilon")
    named = _settings(bench)
    rms_alone = bool(named) and all("rms" in name for name in named)  # then nothing is said of a LayerNorm
    effective = {
        name: right.eps
        for name, (_, right, _) in norms(bench).items()
        if right.off <= FITS and right.eps > 0 and not _inside_attention(bench, name)
        and not (rms_alone and right.form != "RMSNorm")
    }  # fmt: skip
    if not effective:
        raise NotSupported("no norm of a known kind with an epsilon was found", "没有找到带 epsilon 的已知类型归一化")
    known = {told, *named.values()}  # some models have several, for norms of different kinds
    effective = {n: eps for n, eps in effective.items() if not any(abs(eps / k - 1) < EPSILON for k in known)} or {
        next(iter(effective)): told
    }
    name = max(effective, key=lambda each: abs(effective[each] / told - 1))
    facts = {"norm": name, "configured": told, "in_effect": effective[name]}
    shown = partial(_program, name=name, form=norms(bench)[name][1].form, eps=told)
    return Finding(
        measured=abs(effective[name] / told - 1), bound=EPSILON, unit="relative", witness=facts,
        place=at_module(bench, name), shown=shown,
    )  # fmt: skip


def _inside_attention(bench: Bench, name: str) -> bool:
    """Whether a norm is a part of an attention or its like: those have epsilons of their own."""
    path = name.rpartition(".")[0]
    called = next((part for part in reversed(path.split(".")) if not part.isdigit()), "")
    parent = f"{called} {type(bench.module.get_submodule(path)).__name__}".lower()
    return any(word in parent for word in ("attention", "attn", "mixer", "mamba"))


def _settings(bench: Bench) -> dict[str, float]:
    """Every number of the configuration that is called an epsilon, by its name."""
    config = getattr(bench.subject.module, "config", None)
    values = {} if config is None else dict(getattr(config, "__dict__", {}))
    return {name: value for name, value in values.items() if "eps" in name and isinstance(value, float) and value > 0}


def positions(bench: Bench) -> Finding:
    """Changing what a norm is given at one position changes no other."""
    found = {name: seen.mixed for name, (seen, _, _) in norms(bench).items()}
    name = max(found, key=lambda each: found[each])
    return Finding(
        measured=found[name],
        bound=1e-9 if bench.dtype is torch.float64 else 1e-5,
        unit="output",
        witness={"norm": name},
        place=at_module(bench, name),
        shown=partial(_mixing, name=name),
    )


def _mixing(bench: Bench, name: str) -> str:
    """A norm by itself, with what it is given at the first position changed."""
    d = norms(bench)[name][0].given.shape[-1]
    return "\n".join((
        *opening(bench, dtype=torch.float64),
        f"part = model.get_submodule({name!r})",
        f"x = torch.randn(1, 6, {d}, dtype=torch.float64)",
        "changed = x.clone()",
        "changed[:, 0] += 1",
        "with torch.no_grad():",
        "    y, other = part(x), part(changed)",
        'print("largest difference:", float((y - other)[:, 1:].abs().max()), "; largest output:", float(y.abs().max()))',
        "",
    ))  # fmt: skip


NORM = Law(
    id="norm",
    statement=words(
        "A norm is its definition: variance over all channels, epsilon inside the root and as configured, per position.",
        "归一化符合定义：对所有通道取总体方差，epsilon 在根号内且与配置一致，逐位置进行。",
    ),
    formula=r"y = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta",
    conditions=words(
        "Norms of a known kind: LayerNorm, RMSNorm, with or without gain and shift.",
        "已知类型的归一化：LayerNorm、RMSNorm，可带或不带增益与偏移。",
    ),
    why=words(
        "Weights trained under one epsilon or variance are used under another, and every layer is a little off.",
        "在一种 epsilon 或方差下训练的权重用于另一种，每层都略有偏差。",
    ),
    chapter="8.4",
    probes=(
        Probe(
            id="norm.definition", does=words("variance and place of epsilon", "方差与 epsilon 的位置"), run=definition
        ),
        Probe(id="norm.epsilon", does=words("the configured epsilon", "配置的 epsilon"), run=epsilon),
        Probe(id="norm.positions", does=words("position by position", "逐位置"), run=positions),
    ),
)
