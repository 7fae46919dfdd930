"""Precision: numbers of fewer bits give the same logits, as far as rounding allows."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..losses import evaluate
from ..place import first_coarse
from ..runs import Inputs
from ..verdict import Finding, NotSupported
from ..weights import jitter, shaken_by, unsettle

UNIT = {torch.float32: 2.0**-23, torch.bfloat16: 2.0**-8}
"""The relative distance of neighbouring numbers."""

SLACK = 30.0
"""How many times the effect of rounding every parameter once a model may be off: it rounds after every operation too."""

BLURRED = 0.2
"""Where that effect is larger than this, in standard deviations of the logits, nothing can be said."""

SMALL = 1e-4
"""A relative change of the parameters, small for a smooth model, and of the size of a rounding to eight bits."""

UNEVEN = 0.1
"""How unequal the effects of two opposite changes may be."""


def _plain(bench: Bench, dtype: torch.dtype) -> nn.Module:
    """A copy whose matrices are as the user made them, all of its numbers exact in ``dtype``, in float64."""
    if bench.dtype is not torch.float64:
        raise NotSupported("compared with float64", "以 float64 为准")
    module = bench.subject.copied().double()
    unsettle(module, torch.Generator().manual_seed(bench.seed))
    return module.to(dtype).double()


def _logits(bench: Bench, module: nn.Module, ids: Tensor) -> Tensor:
    return evaluate(bench, Inputs(ids=ids), module=module).logits.detach().double()


def _random(bench: Bench, module: nn.Module, ids: Tensor, logits: Tensor) -> bool:
    """Whether other random numbers give other ``logits``."""
    return not torch.equal(logits, evaluate(bench, Inputs(ids=ids), module=module, seed=1).logits.detach().double())


def _moved(bench: Bench, module: nn.Module, ids: Tensor, size: float, seed: int = 0) -> Tensor:
    with shaken_by(module, size, torch.Generator().manual_seed(seed)):
        return _logits(bench, module, ids)


def _shaken(module: nn.Module, size: float) -> nn.Module:
    shaken = copy.deepcopy(module)
    jitter(shaken, size, torch.Generator().manual_seed(0))
    return shaken


def _distance(bench: Bench, dtype: torch.dtype) -> Finding:
    module, ids = _plain(bench, dtype), bench.texts(2)
    exact = _logits(bench, module, ids)
    spread = float(exact.std())
    if bench.known("random", lambda: _random(bench, module, ids, exact)):
        raise NotSupported("the logits depend on random numbers", "logits 依赖随机数")
    effect = float((_moved(bench, module, ids, UNIT[dtype]) - exact).abs().max()) / spread
    if not effect <= BLURRED:
        raise NotSupported(
            f"rounding the parameters moves the logits by {effect:.2g} of their deviation",
            f"参数舍入即使 logits 移动其标准差的 {effect:.2g}",
        )
    low = _logits(bench, module.to(dtype), ids)
    measured = float((low - exact).abs().max()) / spread
    bound = SLACK * max(effect, UNIT[dtype])
    facts = {
        "precision": str(dtype).removeprefix("torch."),
        "effect_of_rounding_parameters": effect,
        "seed": bench.seed,
    }
    return Finding(measured=measured, bound=bound, unit="standard deviations of the logits", witness=facts)


def single(bench: Bench) -> Finding:
    """float32 against float64."""
    return _distance(bench, torch.float32)


def half(bench: Bench) -> Finding:
    """bfloat16 against float64."""
    return _distance(bench, torch.bfloat16)


def resolution(bench: Bench) -> Finding:
    """A small change and its opposite have opposite effects: no step is computed in fewer bits."""
    module, ids = _plain(bench, torch.float64), bench.texts(4)
    if any(not p.is_floating_point() for p in module.parameters()):
        raise NotSupported("the parameters are quantised", "参数已量化")
    exact = _logits(bench, module, ids)
    found = []
    for seed in range(2):  # the smaller: a step that one change happens to cross is none of precision
        there, back = (_moved(bench, module, ids, size, seed) - exact for size in (SMALL, -SMALL))
        found.append(_unevenness(there, back))
        if found[-1] <= UNEVEN:
            break
    if not all(ratio == ratio for ratio in found):
        raise NotSupported("the parameters have no effect", "参数没有影响")
    facts = {"relative_change": SMALL, "seed": bench.seed}
    place = None
    if min(found) > UNEVEN:
        copies = [module, *(_shaken(module, size) for size in (SMALL, -SMALL))]
        place = first_coarse(bench, copies, Inputs(ids=ids), _unevenness, UNEVEN)
    return Finding(measured=min(found), bound=UNEVEN, unit="share of the effect", witness=facts, place=place)


def _unevenness(there: Tensor, back: Tensor) -> float:
    """How unequal two effects are that should be opposite: 0 for a smooth step, about 1 for one of few bits."""
    return float((there + back).square().mean().sqrt() / (there - back).square().mean().sqrt())


PRECISION = Law(
    id="precision",
    statement=words(
        "float32 and bfloat16 stay within a stated distance of float64, and no step is computed in fewer bits than asked.",
        "float32 与 bfloat16 与 float64 的差距在给定界内，且没有一步以低于所要求的精度计算。",
    ),
    formula=r"\lvert \ell_{u} - \ell \rvert \le 30\, \lvert \ell(\theta(1 + u)) - \ell \rvert",
    conditions=words(
        "Rounding the parameters alone moves the logits by less than a fifth of their deviation.",
        "仅对参数舍入时，logits 的移动小于其标准差的五分之一。",
    ),
    why=words(
        "Sums, norms or tables in too few bits cost quality that no test of shapes will show.",
        "求和、归一化或查表位数不足会损害质量，形状测试看不出来。",
    ),
    chapter="8.4",
    probes=(
        Probe(id="precision.float32", does=words("float32 against float64", "float32 对 float64"), run=single),
        Probe(id="precision.bfloat16", does=words("bfloat16 against float64", "bfloat16 对 float64"), run=half),
        Probe(id="precision.resolution", does=words("no coarse step inside", "内部没有粗糙的一步"), run=resolution),
    ),
)  # fmt: skip
