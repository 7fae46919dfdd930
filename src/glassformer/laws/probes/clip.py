"""Clipping: the gradient of all parameters together is shortened, its direction kept."""

from __future__ import annotations

import torch

from ...bilingual import words
from ..law import Family, Law, Probe
from ..losses import Gradients
from ..subjects.training import Trainer, part
from ..verdict import Finding
from .accumulation import numbers

FACTORS = (0.1, 0.9, 1.5, 30.0)
"""Largest norms to try, in units of the norm there is."""

ROUNDING = 1e-4


def drawn(seed: int = 0) -> dict[str, torch.Tensor]:
    """Gradients of unequal shapes and sizes, in float32 as trainers have them."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {"embed": (11, 4), "weight": (4, 6), "bias": (6,), "gain": ()}
    return {
        name: 10 ** float(k - 1) * torch.randn(shape, generator=generator)
        for k, (name, shape) in enumerate(shapes.items())
    }


def _norm(gradients: Gradients) -> float:
    return sum(float(g.double().square().sum()) for g in gradients.values()) ** 0.5


def norm(trainer: Trainer) -> Finding:
    """The norm afterwards is min(norm, max); every parameter is shortened by one factor."""
    clip = part(trainer.clip, "clip")
    worst: Finding | None = None
    for factor in FACTORS:
        given = drawn()
        before = _norm(given)
        after = numbers(clip({name: g.clone() for name, g in given.items()}, factor * before))
        share = min(1.0, factor)
        off = max(
            float((after[name] - share * g.double()).abs().max()) / (share * float(g.abs().max()))
            for name, g in given.items()
        )
        facts = {"norm": before, "max": factor * before, "norm_afterwards": _norm(after)}
        finding = Finding(measured=off, bound=ROUNDING, unit="relative", witness=facts)
        if worst is None or finding.severity > worst.severity:
            worst = finding
    assert worst is not None
    return worst


CLIP = Law(
    id="clip",
    statement=words(
        "After clipping the norm of the whole gradient is min(norm, max), and its direction is unchanged.",
        "裁剪后整个梯度的范数为 min(范数, 上限)，方向不变。",
    ),
    formula=r"\hat g = g \cdot \min(1, c / \lVert g \rVert)",
    conditions=words(
        "A trainer that clips by the norm of all parameters together.", "按所有参数的总范数裁剪的训练器。"
    ),
    why=words(
        "A norm over a part of the parameters lets the rest through, or shortens every step.",
        "只对部分参数取范数，会放过其余部分，或缩短每一步。",
    ),
    chapter="10.1",
    probes=(Probe(id="clip.norm", does=words("norm and direction", "范数与方向"), run=norm, family=Family.TRAINER),),
)
