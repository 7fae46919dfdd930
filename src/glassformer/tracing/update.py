"""One step of an optimizer, looked at from all sides.

What a first-order estimate predicts (for gradient descent ``-eta`` times the squared norm of the gradient; for any step,
the gradient times the step), what each parameter does when it moves alone, what all of them do together and how that is
shared out, what happens when they are (wrongly) updated one after another, and how the loss runs along the step.

Numbers that are kept come from the definitions. Where the loss alone is wanted, a hundred times over, a trace asks the
model that ran (``losses.py``); from a file, which has no model, the definitions answer.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..notation import EvaluationError, Program, Statement, evaluate, key, run
from ..notation.tree import Add, Idx, Ref
from .attribution import EXACT_GROUPS, ORDERS, Attribution, By, Change, attribute, groups_of, usual
from .losses import Losses
from .optimizers import targets_of
from .reasons import Coincidence, Watched, coincidences, watched

if TYPE_CHECKING:
    from .trace import Trace

Array = np.ndarray[Any, np.dtype[Any]]

LINE = tuple(k / 2 for k in range(41))
"""The multiples of the step at which the loss is evaluated: 0, 0.5, 1, ... 20."""


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
    """The step at learning rate ``eta``: predicted and exact change of the loss, by parameter and jointly.

    ``line`` holds (learning rate, loss) along the step; ``attribution`` is None in files of schema 1, which also lack
    what was ``watched`` and the ``coincidences``.
    """

    eta: float
    loss: float
    groups: tuple[GroupChange, ...]
    predicted: float
    exact: float
    sequential: SequentialUpdate
    line: tuple[tuple[float, float], ...]
    attribution: Attribution | None = None
    watched: tuple[Watched, ...] = ()
    coincidences: tuple[Coincidence, ...] = ()

    @property
    def missed(self) -> float:
        """The part of the change that first order does not see."""
        return self.exact - self.predicted


def analyse(
    program: Program, update: Sequence[Statement], values: Mapping[str, Array], losses: Losses
) -> UpdateAnalysis:
    """Analyse one joint step. ``values`` holds the forward values, gradients and new parameters of the run.

    ``losses`` answers what the loss is with other parameters.
    """
    eta = program.scalars["eta"]
    parameters = list(targets_of(program, update))
    loss = float(values["loss.L"])
    steps = steps_of(program, update, values)
    predicted = {id: float((values[key(id, "grad")] * steps[id]).sum()) for id in parameters}
    groups = groups_of(parameters, usual(parameters))
    change = _changes(values, losses, [*([id] for id in parameters), parameters, *_unions(groups.values())])
    line = losses({id: values[id] + k * step for id, step in steps.items()} for k in LINE)
    return UpdateAnalysis(
        eta,
        loss,
        tuple(GroupChange(id, predicted[id], change(frozenset([id]))) for id in parameters),
        sum(predicted.values()),
        change(frozenset(parameters)),
        sequential(program, update, values, losses),
        tuple((eta * k, there) for k, there in zip(LINE, line, strict=True)),
        attribute(groups, predicted, change, by=usual(parameters)),
        watched(program, values),
        coincidences(program, parameters, values, _leaves(program, values)),
    )


def _unions(groups: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """What moves when any of ``groups`` move, where there are few enough to ask for every such set."""
    groups = list(groups)
    for count in range(1, len(groups) + 1) if len(groups) <= EXACT_GROUPS else ():
        for chosen in itertools.combinations(groups, count):
            yield [id for group in chosen for id in group]


def _changes(values: Mapping[str, Array], losses: Losses, foreseen: Iterable[Iterable[str]]) -> Change:
    """The exact change of the loss when a set of parameters takes its new values. Those ``foreseen`` are asked for together.

    NaN where the loss is not finite: of a step without measure no change is left.
    """
    loss = float(values["loss.L"])

    def ask(sets: Sequence[frozenset[str]]) -> list[float]:
        found = losses({id: values[key(id, "new")] for id in moved} for moved in sets)
        return [there - loss if math.isfinite(there) else math.nan for there in found]

    sets = list(dict.fromkeys(map(frozenset, foreseen)))
    known = dict(zip(sets, ask(sets), strict=True))
    return lambda moved: known[moved] if moved in known else ask([moved])[0]


def shares_of(trace: Trace, by: By, *, orders: int = ORDERS, seed: int = 0) -> Attribution:
    """The exact change of the loss in ``trace`` shared out by ``tensor``, ``part`` or ``block`` (``attribution.py``).

    More than 8 groups take one forward pass for each group and each of ``orders`` random orders.
    """
    program, values = trace.program, trace.values
    steps = steps_of(program, trace.update, values)
    predicted = {id: float((values[key(id, "grad")] * step).sum()) for id, step in steps.items()}
    change = functools.partial(_change, program, values, loss_of(program, values, {}))
    return attribute(groups_of(trace.parameters, by), predicted, change, by=by, orders=orders, seed=seed)


def _change(program: Program, values: Mapping[str, Array], loss: float, moved: frozenset[str]) -> float:
    """The exact change of ``loss`` when the parameters ``moved`` take their new values; NaN where float64 is left."""
    try:
        return loss_of(program, values, {id: values[key(id, "new")] for id in moved}) - loss
    except EvaluationError:
        # Scores of a step without measure are all minus infinity, whatever the joint step gives.
        return math.nan


def steps_of(program: Program, update: Sequence[Statement], values: Mapping[str, Array]) -> dict[str, Array]:
    """By parameter, what the step adds to it: its rule without the old value, so nothing is lost to cancellation."""
    moved = set(targets_of(program, update))
    steps = {}
    for s in update:
        if s.target in moved:
            rule = s.expr
            if not isinstance(rule, Add) or rule.terms[0] != Ref(s.target, "", tuple(Idx(a) for a, _ in s.letters)):
                raise ValueError(f"the step of {s.target} does not begin with its old value")
            rest = rule.terms[1] if len(rule.terms) == 2 else Add(rule.terms[1:])
            steps[s.target] = evaluate(rest, s.letters, values, program.scalars)
    return steps


def loss_of(program: Program, values: Mapping[str, Array], changed: Mapping[str, Array]) -> float:
    """The loss with some parameters changed. From the logits by log-sum-exp, so it never overflows."""
    return float(run(program.forward, {**_leaves(program, values), **changed}, program.scalars)["loss.L"])


def sequential(
    program: Program, update: Sequence[Statement], values: Mapping[str, Array], losses: Losses
) -> SequentialUpdate:
    """Change every parameter the moment its last contribution is in, and let what follows read the new value.

    A clipped gradient keeps the factor of the joint step: it cannot be known before all gradients are.
    """
    rules: dict[str, list[Statement]] = {id: [] for id in targets_of(program, update)}
    for s in update:
        rules.get(s.consumer, []).append(s)
    backward = _parameters_first(program.backward, rules)
    last = {s.target: k for k, s in enumerate(backward) if s.target in rules}
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
            known = run(rules[s.target], known, program.scalars)
            known[s.target] = changed[s.target] = known[key(s.target, "new")]
    different = tuple(
        id for id in changed if not np.allclose(changed[id], values[key(id, "new")], rtol=1e-12, atol=1e-15)
    )
    return SequentialUpdate(losses([changed])[0], different)


def _parameters_first(backward: Sequence[Statement], parameters: Container[str]) -> list[Statement]:
    """The backward statements with, beside each consumer, its parameters before its other operands."""
    order = {consumer: k for k, consumer in enumerate(dict.fromkeys(s.consumer for s in backward))}
    return sorted(backward, key=lambda s: (order[s.consumer], s.target not in parameters))


def _leaves(program: Program, values: Mapping[str, Array]) -> dict[str, Array]:
    computed = {s.target for s in program.forward}
    return {id: values[id] for id in program.quantities if id not in computed and id in values}
