"""What a training run is told: frozen, validated where it is built."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from .settings import Count, Settings, of_other_kinds

Precision = Literal["float32", "bfloat16"]

NONE = "none"
"""How a settings file says that there is no limit."""


class OptimizerConfig(Settings):
    """How a gradient becomes a step.

    ``adamw`` (Loshchilov and Hutter 2019) keeps two moments of each gradient; ``weight_decay`` is applied to the
    matrices that multiply (``W_*``, ``U``) alone. ``gradient_descent`` steps against the gradient and has neither.
    ``learning_rate`` is the largest of the schedule. ``clip`` is the largest norm that the gradient of all parameters
    together may have; a longer one is shortened. None leaves it as it is; TOML, which has no None, says ``"none"``.
    """

    kind: Literal["adamw", "gradient_descent"] = "adamw"
    learning_rate: float = Field(default=1e-2, gt=0, allow_inf_nan=False)
    beta_1: float = Field(default=0.9, ge=0, lt=1)
    beta_2: float = Field(default=0.98, ge=0, lt=1)
    eps: float = Field(default=1e-8, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(default=0.01, ge=0, allow_inf_nan=False)
    clip: float | None = Field(default=1.0, gt=0, allow_inf_nan=False)

    @field_validator("clip", mode="before")
    @classmethod
    def _none_in_toml(cls, clip: Any) -> Any:
        return None if clip == NONE else clip

    def idle(self) -> Mapping[str, str]:
        return of_other_kinds(self.kind, {"adamw": ("beta_1", "beta_2", "eps", "weight_decay"), "gradient_descent": ()})


class ScheduleConfig(Settings):
    """The learning rate over a run, as a factor of the largest; all lengths are shares of the run.

    It rises linearly from 0 over the first ``warmup``. Then ``cosine`` follows half a cosine down to ``floor``,
    ``trapezoid`` stays and goes down to ``floor`` in a straight line over the last ``decay``, ``constant`` stays.
    """

    kind: Literal["cosine", "trapezoid", "constant"] = "cosine"
    warmup: float = Field(default=0.1, ge=0, lt=1)
    floor: float = Field(default=0.05, ge=0, le=1)
    decay: float = Field(default=0.2, gt=0, le=1)

    @model_validator(mode="after")
    def _the_parts_fit(self) -> ScheduleConfig:
        if self.kind == "trapezoid" and self.warmup + self.decay > 1:
            raise ValueError(
                f"warmup {self.warmup:g} and decay {self.decay:g} are shares of one run and add up to more than 1"
            )
        return self

    def factor(self, share: float) -> float:
        """What the largest learning rate is multiplied with when ``share`` (0 to 1) of the run is over."""
        if share < self.warmup:
            return share / self.warmup
        if self.kind == "constant":
            return 1.0
        if self.kind == "trapezoid":
            left = min(1.0, max(0.0, 1 - share) / self.decay)
            return self.floor + (1 - self.floor) * left
        over = min(1.0, (share - self.warmup) / (1 - self.warmup))
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * over)) / 2

    def idle(self) -> Mapping[str, str]:
        return of_other_kinds(self.kind, {"cosine": ("floor",), "trapezoid": ("floor", "decay"), "constant": ()})


class ValidationConfig(Settings):
    """How often the validation loss is taken during training, and on how much of the validation text.

    ``times`` measurements, evenly spread; with a time budget fewer, so that they take at most a tenth of it. Each scores
    the first ``prefix`` tokens of the validation text, always the same ones.
    """

    times: int = Field(default=10, ge=0, le=1_000_000)
    prefix: Count = 8_192


class CheckpointConfig(Settings):
    """How often everything that going on needs is written, and how many of the last checkpoints are kept."""

    every_seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    keep: Count = 2


class TrainingConfig(Settings):
    """Exactly one of ``steps`` and ``seconds`` bounds the run.

    With ``steps`` two runs of one seed, thread count and machine are equal bit by bit. With ``seconds`` the schedule
    follows the clock, so the number of steps, and with it the result, differs from run to run.

    A step reads ``accumulation`` times ``batch`` rows, ``batch`` at a time, and is the same step, up to rounding, as one
    with all rows at once. ``precision`` is that of the matrix products; parameters, optimizer and loss are float32.
    ``auto`` takes bfloat16 where the processor has it and ``d`` is at least 384. ``threads`` None means
    ``default_threads(d)``.
    """

    steps: Count | None = None
    seconds: float | None = Field(default=None, gt=0, le=1e9, allow_inf_nan=False)
    batch: Count = 32
    accumulation: Count = 1
    precision: Literal["float32", "bfloat16", "auto"] = "float32"
    seed: int = Field(default=0, ge=0, lt=2**63)
    threads: int | None = Field(default=None, ge=1, le=256)
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    validation: ValidationConfig = ValidationConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()

    @model_validator(mode="after")
    def _one_bound(self) -> TrainingConfig:
        if (self.steps is None) == (self.seconds is None):
            raise ValueError("give exactly one of steps and seconds")
        return self

    def rate(self, share: float) -> float:
        """The learning rate when ``share`` (0 to 1) of the run is over."""
        return self.optimizer.learning_rate * self.schedule.factor(share)


def default_threads(d: int) -> int:
    """How many threads pay for a model of dimension ``d``: one below 128, else the CPUs of this process, at most 4.

    Below 128 the matrices are so small that a second thread gained at most 1.4 times on a quiet machine, while beside
    any other busy process the two waited for each other and a step took 70 times as long.
    """
    if d < 128:
        return 1
    available = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(available, 4)
