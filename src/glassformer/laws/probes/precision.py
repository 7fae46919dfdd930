"""Precision: numbers of fewer bits give the same logits, as far as rounding allows."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..losses import evaluate
from ..runs import Inputs
from ..verdict import Finding, NotSupported
from ..weights import jitter, unsettle

UNIT = {torch.float32: 2.0**-23, torch.bfloat16: 2.0**-8}
"""The relative distance of neighbouring numbers."""

SLACK = 30.0
"""How many times the effect of rounding every parameter once a model may be off: it rounds after every operation too."""

BLURRED = 0.2
"""Where that effect is larger than this, in standard deviations of the logits, nothing can be said."""

FINE, COARSE = 1e-6, 1e-3
"""Two sizes of a change of the parameters, for the steps in which a model answers."""

STEPS = 30.0


def _plain(bench: Bench, dtype: torch.dtype) -> nn.Module:
    """A copy whose matrices are as the user made them, all of its numbers exact in ``dtype``, in float64."""
    if bench.dtype is not torch.float64:
        raise NotSupported("compared with float64", "以 float64 为准")
    module = bench.subject.copied().double()
    unsettle(module, torch.Generator().manual_seed(bench.seed))
    return module.to(dtype).double()


def _logits(bench: Bench, module: nn.Module, ids: Tensor) -> Tensor:
    return evaluate(bench, Inputs(ids=ids), module=module).logits.detach().double()


def _moved(bench: Bench, module: nn.Module, ids: Tensor, size: float, seed: int = 0) -> Tensor:
    shaken = copy.deepcopy(module)
    jitter(shaken, size, torch.Generator().manual_seed(seed))
    return _logits(bench, shaken, ids)


def _distance(bench: Bench, dtype: torch.dtype) -> Finding:
    module, ids = _plain(bench, dtype), bench.texts(2)
    exact = _logits(bench, module, ids)
    spread = float(exact.std())
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
    """A change a thousand times smaller has an effect about that much smaller: no step is computed in fewer bits."""
    module, ids = _plain(bench, torch.float64), bench.texts(2)
    if any(not p.is_floating_point() for p in module.parameters()):
        raise NotSupported("the parameters are quantised", "参数已量化")
    exact = _logits(bench, module, ids)
    fine, coarse = (_moved(bench, module, ids, size) - exact for size in (FINE, COARSE))
    measured = float(fine.square().mean().sqrt() / coarse.square().mean().sqrt()) * COARSE / FINE
    facts = {"sizes": [FINE, COARSE], "seed": bench.seed}
    return Finding(measured=measured, bound=STEPS, unit="times the effect in proportion", witness=facts)


PRECISION = Law(
    id="precision",
    statement=words(
        "float32 and bfloat16 stay within a stated distance of float64, and no step is computed in fewer bits than asked.",
        "float32 与 bfloat16 与 float64 的差距在给定界内，且没有一步以低于所要求的精度计算。",
    ),
    formula=r"\lvert \mathrm{logits}_{u} - \mathrm{logits} \rvert \le 30\, \lvert \mathrm{logits}(\theta(1 + u)) - \mathrm{logits} \rvert",
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
