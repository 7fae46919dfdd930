"""One step of gradient descent, looked at from all sides.

Everything here is evaluated from the definitions: what a first-order estimate predicts, what each group of parameters
does when it moves alone, what all of them do together, what happens when they are (wrongly) updated one after another,
and how the loss runs along the negative gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..notation import Program, Statement, evaluate, key, run

Array = np.ndarray[Any, np.dtype[Any]]

LINE = tuple(k / 2 for k in range(41))
"""The multiples of the learning rate at which the loss along the negative gradient is evaluated: 0, 0.5, 1, ... 20."""


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What moving one parameter tensor does to the loss: first-order prediction, and exactly, moved alone."""

    id: str
    predicted: float
    alone: float


@dataclass(frozen=True, slots=True)
class SequentialUpdate:
    """The wrong way: each parameter is changed as soon as its gradient is known, and later gradients read the change."""

    loss: float
    different: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdateAnalysis:
    """The step at learning rate ``eta``: predicted and exact change of the loss, by group and jointly."""

    eta: float
    loss: float
    groups: tuple[GroupChange, ...]
    predicted: float
    exact: float
    sequential: SequentialUpdate
    line: tuple[tuple[float, float], ...]


def analyse(program: Program, update: Sequence[Statement], values: Mapping[str, Array]) -> UpdateAnalysis:
    """Analyse one joint step. ``values`` holds the forward values, gradients and new parameters of the run."""
    eta = program.scalars["eta"]
    parameters = [s.target for s in update]
    loss = loss_of(program, values, {})
    groups = tuple(
        GroupChange(
            id,
            -eta * float((values[key(id, "grad")] ** 2).sum()),
            loss_of(program, values, {id: values[key(id, "new")]}) - loss,
        )
        for id in parameters
    )
    joint = loss_of(program, values, {id: values[key(id, "new")] for id in parameters})
    line = tuple((eta * k, loss_along(program, parameters, values, eta * k)) for k in LINE)
    predicted = sum(g.predicted for g in groups)
    return UpdateAnalysis(eta, loss, groups, predicted, joint - loss, sequential(program, update, values), line)


def loss_of(program: Program, values: Mapping[str, Array], changed: Mapping[str, Array]) -> float:
    """The loss with some parameters changed. From the logits by log-sum-exp, so it never overflows."""
    return float(run(program.forward, {**_leaves(program, values), **changed}, program.scalars)["loss.L"])


def loss_along(program: Program, parameters: Iterable[str], values: Mapping[str, Array], step: float) -> float:
    """The loss at ``theta - step * gradient``, all parameters moved together."""
    return loss_of(program, values, {id: values[id] - step * values[key(id, "grad")] for id in parameters})


def sequential(program: Program, update: Sequence[Statement], values: Mapping[str, Array]) -> SequentialUpdate:
    """Change every parameter the moment its last contribution is in, and let what follows read the new value."""
    rule = {s.target: s for s in update}
    backward = _parameters_first(program.backward, rule)
    last = {s.target: k for k, s in enumerate(backward) if s.target in rule}
    known = {name: value for name, value in values.items() if not name.endswith((".grad", ".new", ".after"))}
    known["loss.L.grad"] = np.ones(())
    changed: dict[str, Array] = {}
    begun: set[str] = set()
    for k, s in enumerate(backward):
        name = key(s.target, "grad")
        part = evaluate(s.expr, s.letters, known, program.scalars)
        known[name] = known[name] + part if name in begun else part
        begun.add(name)
        if last.get(s.target) == k:
            rule_of = rule[s.target]
            changed[s.target] = evaluate(rule_of.expr, rule_of.letters, known, program.scalars)
            known[s.target] = changed[s.target]
    different = tuple(
        id for id in changed if not np.allclose(changed[id], values[key(id, "new")], rtol=1e-12, atol=1e-15)
    )
    return SequentialUpdate(loss_of(program, values, changed), different)


def _parameters_first(backward: Sequence[Statement], parameters: Mapping[str, Statement]) -> list[Statement]:
    """The backward statements with, beside each consumer, its parameters before its other operands."""
    order = {consumer: k for k, consumer in enumerate(dict.fromkeys(s.consumer for s in backward))}
    return sorted(backward, key=lambda s: (order[s.consumer], s.target not in parameters))


def _leaves(program: Program, values: Mapping[str, Array]) -> dict[str, Array]:
    computed = {s.target for s in program.forward}
    return {id: values[id] for id in program.quantities if id not in computed and id in values}
