"""The optimizer of a traced step: gradient descent or AdamW, with clipping and schedule, line by line.

``SGD`` and ``AdamW`` are values that say which step is made; ``stepped`` is the program of a model with the lines of that
step beside it, and ``take`` computes them. Every line is a quantity of kind ``optimizer state``: ``W_Q.moment1`` before the
step and ``W_Q.moment1.new`` after it, ``W_Q.direction``, ``optimizer.norm``, ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import UserError
from ..notation import Kind, Placed, Program, Statement, key
from ..training.adamw import adamw_statements, is_decayed
from ..training.clipping import KEPT_ID, NORM_ID, clipped, clipping_statements
from ..training.config import OptimizerConfig, ScheduleConfig, TrainingConfig
from ..training.descent import update_statements
from ..training.optimizer import MOMENTS, Moved, Numbers, adamw_lines
from ..training.rate import RATE_ID, rate_scalars, rate_statement
from ..training.state import TrainingState

Array = np.ndarray[Any, np.dtype[Any]]
Hear = Callable[[str, Tensor], None]


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """What AdamW kept from its ``steps`` steps: ``moment1.ID`` and ``moment2.ID`` of every parameter, in its shape.

    ``TrainingState.step`` and ``TrainingState.optimizer`` are these two; ``Trace.moments`` has those after its step.
    """

    steps: int
    tensors: Mapping[str, Tensor | Array] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A learning rate that is the factor of ``config`` of the largest one when ``share`` (0 to 1) of a run is over."""

    config: ScheduleConfig
    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise UserError(
                f"{self.share} is no share of a run.", "A run goes from 0 to 1.", "Give a number in between."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SGD:
    """Gradient descent: ``theta - lr*g``. ``clip`` is the largest norm of the whole gradient (None: any).

    With a ``schedule`` the rate is ``lr`` times its factor. Raises ``UserError`` for numbers that make no step.
    """

    lr: float = 0.1
    clip: float | None = None
    schedule: Scheduled | None = None

    def __post_init__(self) -> None:
        _check_rate(self.lr)
        _check_clip(self.clip)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamW:
    """One step of AdamW; the defaults are those of ``OptimizerConfig``. ``state`` is None before the first step.

    ``weight_decay`` acts on the matrices that multiply (``W_*``, ``U``) alone. ``clip`` and ``schedule`` as for ``SGD``.
    Raises ``UserError`` for numbers that make no step.
    """

    lr: float = OptimizerConfig().learning_rate
    beta_1: float = OptimizerConfig().beta_1
    beta_2: float = OptimizerConfig().beta_2
    eps: float = OptimizerConfig().eps
    weight_decay: float = OptimizerConfig().weight_decay
    clip: float | None = OptimizerConfig().clip
    state: Moments | None = None
    schedule: Scheduled | None = None

    def __post_init__(self) -> None:
        _check_rate(self.lr)
        _check_clip(self.clip)
        for name, value in (("beta_1", self.beta_1), ("beta_2", self.beta_2)):
            if not 0 <= value < 1:
                raise UserError(
                    f"{name} cannot be {value}.", "It is the share of a moment that is kept.", "Use 0 to 1."
                )
        if not 0 < self.eps < math.inf or not 0 <= self.weight_decay < math.inf:
            raise UserError(
                f"eps = {self.eps} with weight_decay = {self.weight_decay} makes no step.",
                "eps is above 0, weight_decay is 0 or above, and both are finite.",
                f"Leave them out for {OptimizerConfig().eps:g} and {OptimizerConfig().weight_decay:g}.",
            )


Update = SGD | AdamW


def update_of(config: OptimizerConfig, state: Moments | None = None, schedule: Scheduled | None = None) -> Update:
    """The step that a training with ``config`` makes from ``state``."""
    if config.kind == "gradient_descent":
        return SGD(lr=config.learning_rate, clip=config.clip, schedule=schedule)
    return AdamW(
        lr=config.learning_rate,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        eps=config.eps,
        weight_decay=config.weight_decay,
        clip=config.clip,
        state=state,
        schedule=schedule,
    )


def next_update(config: TrainingConfig, state: TrainingState) -> Update:
    """The step that a training with ``config`` that stands at ``state`` would make next.

    With a budget of seconds its rate is the one of the time that has passed; after the last step it is that of the end.
    """
    passed = state.elapsed / config.seconds if config.seconds is not None else state.step / (config.steps or 1)
    scheduled = Scheduled(config.schedule, min(1.0, passed))
    return update_of(config.optimizer, Moments(state.step, state.optimizer), scheduled)


def rate_of(update: Update) -> float:
    """The learning rate of this step."""
    return update.lr * (1.0 if update.schedule is None else update.schedule.config.factor(update.schedule.share))


def stepped(program: Program, update: Update) -> tuple[Program, tuple[Statement, ...]]:
    """``program`` with the quantities and scalars of one step of ``update``, and the statements of the step in order."""
    cuts = update.clip is not None
    statements: list[Statement] = [] if update.schedule is None else [rate_statement(update.schedule.config)]
    statements += clipping_statements(program) if cuts else ()
    rule = adamw_statements if isinstance(update, AdamW) else update_statements
    statements += rule(program, clipped=cuts)
    known = {**program.quantities}
    for s in statements:
        if s.target not in known:
            known[s.target] = _placed(s, program)
    return replace(program, quantities=known).with_scalars(**_scalars(update)), tuple(statements)


def _placed(s: Statement, program: Program) -> Placed:
    """The place of an optimizer's quantity: beside its parameter, whose name and symbol it takes up."""
    parameter = program.quantities.get(s.consumer)
    if parameter is None:
        return Placed(s.target, s.quantity, (), None, "optimizer")
    q = parameter.quantity
    named = replace(s.quantity, name=f"{q.name}.{s.quantity.name}", symbol=f"{s.quantity.symbol}_{{{q.symbol}}}")
    return Placed(s.target, named, s.letters, parameter.layer, parameter.path)


def _scalars(update: Update) -> dict[str, float]:
    scalars = {"eta": float(rate_of(update))}
    if update.clip is not None:
        scalars["clip"] = float(update.clip)
    if update.schedule is not None:
        scalars |= rate_scalars(update.schedule.config, update.lr, update.schedule.share)
    if isinstance(update, AdamW):
        scalars |= {"beta_1": update.beta_1, "beta_2": update.beta_2, "eps_step": update.eps}
        scalars |= {"weight_decay": update.weight_decay, "step": float(_steps(update) + 1)}
    return scalars


@torch.no_grad()
def take(
    update: Update, parameters: Mapping[str, Tensor], gradients: Mapping[str, Tensor], hear: Hear
) -> dict[str, Tensor]:
    """The parameters, by id, after one step of ``update``. ``hear`` gets every line under its key; nothing is changed.

    Raises ``UserError`` when the moments are not those of these parameters.
    """
    if update.schedule is not None:
        hear(RATE_ID, torch.tensor(rate_of(update), dtype=torch.float64))
    if update.clip is not None:
        cut = clipped(gradients, update.clip)
        for id, squares in cut.squares.items():
            hear(f"{id}.squares", squares)
        hear(NORM_ID, cut.norm)
        hear(KEPT_ID, cut.kept)
        for id, g in cut.gradients.items():
            hear(f"{id}.clipped", g)
        gradients = cut.gradients
    moments = _moments(update, parameters) if isinstance(update, AdamW) else {}
    new = {}
    for id, theta in parameters.items():
        if isinstance(update, AdamW):
            new[id] = _adamw(update, id, Moved(theta, gradients[id], *moments[id]), hear)
        else:
            new[id] = theta - rate_of(update) * gradients[id]
        hear(key(id, "new"), new[id])
    return new


def _adamw(update: AdamW, id: str, moved: Moved, hear: Hear) -> Tensor:
    decay = update.weight_decay if is_decayed(id) else 0.0
    numbers = Numbers(rate_of(update), _steps(update) + 1, update.beta_1, update.beta_2, update.eps, decay)
    lines = adamw_lines(moved, numbers)
    hear(f"{id}.moment1", moved.m)
    hear(f"{id}.moment2", moved.v)
    hear(f"{id}.moment1.new", lines.m_new)
    hear(f"{id}.moment2.new", lines.v_new)
    hear(f"{id}.moment1_hat", lines.m_hat)
    hear(f"{id}.moment2_hat", lines.v_hat)
    hear(f"{id}.direction", lines.direction)
    return lines.theta_new


def _moments(update: AdamW, parameters: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """Both moments of each parameter, in its precision; zeros before the first step."""
    if update.state is None:
        return {id: (torch.zeros_like(theta), torch.zeros_like(theta)) for id, theta in parameters.items()}
    kept = {name: torch.as_tensor(x) for name, x in update.state.tensors.items()}
    wanted = {f"{moment}.{id}": theta.shape for moment in MOMENTS for id, theta in parameters.items()}
    wrong = [name for name in {**wanted, **kept} if name not in kept or wanted.get(name) != kept[name].shape]
    if wrong:
        raise UserError(
            "The optimizer's moments are not those of this model.",
            f"{wrong[0]} is missing, left over or of another shape.",
            "Give the state of this model's own training, or none for a first step.",
        )
    return {id: tuple(kept[f"{m}.{id}"].to(theta.dtype) for m in MOMENTS) for id, theta in parameters.items()}  # type: ignore[misc]


def moments_after(program: Program, parameters: Sequence[str], values: Mapping[str, Array]) -> Moments | None:
    """What AdamW has kept after the recorded step; None after gradient descent."""
    if "step" not in program.scalars:
        return None
    names = {f"{moment}.{id}": f"{id}.{moment}.new" for moment in MOMENTS for id in parameters}
    return Moments(int(program.scalars["step"]), {name: values[own] for name, own in names.items()})


def of_optimizer(program: Program, s: Statement) -> bool:
    """Whether ``s`` is a line of the update and not of the model."""
    return s.face == "new" or program.quantities[s.target].quantity.kind is Kind.OPTIMIZER_STATE


def targets_of(program: Program, update: Sequence[Statement]) -> Iterator[str]:
    """The parameters that ``update`` moves, in order."""
    return (
        s.target for s in update if s.face == "new" and program.quantities[s.target].quantity.kind is Kind.PARAMETER
    )


def _steps(update: AdamW) -> int:
    return 0 if update.state is None else update.state.steps


def _check_rate(lr: float) -> None:
    if not math.isfinite(lr) or lr < 0:
        raise UserError(
            f"The learning rate cannot be {lr}.",
            "It is the size of the step against the gradient.",
            "Use a number from 0 up, such as 0.1.",
        )


def _check_clip(clip: float | None) -> None:
    if clip is not None and not 0 < clip < math.inf:
        raise UserError(
            f"The gradient cannot be clipped to {clip}.", "clip is the largest norm it may have.", "Use 1, or None."
        )
