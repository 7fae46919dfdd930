"""In which precision the matrix products of a step are taken, and whether this processor can."""

from __future__ import annotations

import contextlib
from pathlib import Path

import torch

from ..errors import UserError
from .config import Precision, TrainingConfig, default_threads

_CPU_FACTS = Path("/proc/cpuinfo")
_HAS_BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # two of x86, one of ARM

BFLOAT16_FROM = 384
"""The dimension from which ``auto`` uses bfloat16: below it, converting costs about what the products gain."""


def resolved(config: TrainingConfig, d: int) -> TrainingConfig:
    """``config`` for a model of dimension ``d`` on this machine, with nothing left to chance: threads and precision set.

    Raises ``UserError`` for bfloat16 on a processor without it.
    """
    able = has_bfloat16()
    if config.precision == "bfloat16" and not able:
        raise UserError(
            "This processor has no bfloat16 arithmetic.",
            "Its flags name none of avx512_bf16, amx_bf16 and bf16; emulated, it would be slower than float32.",
            "Use precision float32, or auto.",
        )
    precision = config.precision
    if precision == "auto":
        precision = "bfloat16" if able and d >= BFLOAT16_FROM else "float32"
    return config.model_copy(update={"precision": precision, "threads": config.threads or default_threads(d)})


def has_bfloat16(facts: Path = _CPU_FACTS) -> bool:
    """Whether the processor multiplies bfloat16 matrices itself, by what Linux says of it; False where nobody says."""
    try:
        lines = facts.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.partition(":")[0].strip() in ("flags", "Features")), "")
    return not _HAS_BFLOAT16.isdisjoint(flags.partition(":")[2].split())


def products_in(precision: Precision) -> contextlib.AbstractContextManager[object]:
    """Inside, matrix products are taken in ``precision``; parameters and what needs the bits stay as they are."""
    return torch.autocast("cpu", torch.bfloat16) if precision == "bfloat16" else contextlib.nullcontext()
