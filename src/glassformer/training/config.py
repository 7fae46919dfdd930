"""What a training run is told: frozen, validated where it is built."""

from __future__ import annotations

import math
import os
import sys

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OptimizerConfig(_Frozen):
    """AdamW, its schedule and the clipping of the gradient.

    The learning rate rises linearly from 0 over the first ``warmup`` share of the run, then follows half a cosine from
    ``learning_rate`` down to ``floor * learning_rate``.
    """

    learning_rate: float = Field(default=1e-2, gt=0, allow_inf_nan=False)
    warmup: float = Field(default=0.1, ge=0, lt=1)
    floor: float = Field(default=0.05, ge=0, le=1)
    beta_1: float = Field(default=0.9, ge=0, lt=1)
    beta_2: float = Field(default=0.98, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0, allow_inf_nan=False)
    clip: float = Field(default=1.0, gt=0)

    def rate(self, share: float) -> float:
        """The learning rate when ``share`` (0 to 1) of the run is over."""
        if share < self.warmup:
            return self.learning_rate * share / self.warmup
        over = min(1.0, (share - self.warmup) / (1 - self.warmup))
        return self.learning_rate * (self.floor + (1 - self.floor) * (1 + math.cos(math.pi * over)) / 2)


class ValidationConfig(_Frozen):
    """How often the validation loss is taken during training, and on how much of the validation text.

    ``times`` measurements, evenly spread; with a time budget fewer, so that they take at most a tenth of it. Each scores
    the first ``prefix`` tokens of the validation text, always the same ones.
    """

    times: int = Field(default=10, ge=0)
    prefix: int = Field(default=8_192, ge=1)


class TrainingConfig(_Frozen):
    """Exactly one of ``steps`` and ``seconds`` bounds the run.

    With ``steps`` two runs of one seed, thread count and machine are equal bit by bit. With ``seconds`` the schedule
    follows the clock, so the number of steps, and with it the result, differs from run to run.
    ``threads`` None means ``default_threads(d)``.
    """

    steps: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    batch: int = Field(default=32, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**63)
    threads: int | None = Field(default=None, ge=1, le=256)
    optimizer: OptimizerConfig = OptimizerConfig()
    validation: ValidationConfig = ValidationConfig()

    @model_validator(mode="after")
    def _one_bound(self) -> TrainingConfig:
        if (self.steps is None) == (self.seconds is None):
            raise ValueError("give exactly one of steps and seconds")
        return self


def default_threads(d: int) -> int:
    """How many threads pay for a model of dimension ``d``: one below 128, else the CPUs of this process, at most 4.

    Below 128 the matrices are so small that a second thread gained at most 1.4 times on a quiet machine, while beside
    any other busy process the two waited for each other and a step took 70 times as long.
    """
    if d < 128:
        return 1
    available = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(available, 4)
