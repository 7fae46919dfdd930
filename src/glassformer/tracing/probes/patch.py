"""Patching: put other numbers in a quantity's place and see what becomes of the logits.

A patched quantity is marked and not compared with its definition, which it no longer follows. Everything else still
must: what was computed before it has not changed, what comes after is computed from it, and both are replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike

from ...bilingual import same, words
from ...errors import UserError
from ...notation import REPLAY_FACTOR, Kind, Program
from ...notation.tree import refs
from ..replay import Replay, replay
from .reading import Array, Change, Reading, watch
from .report import Note, Report, Table, cell
from .saturation import softmax

SHOWN = 10
"""How many tokens the table of a patched run lists."""


@dataclass(frozen=True, slots=True, eq=False)
class PatchedRun:
    """``before`` and ``values``: every number by id of the run as it is and of the run with patches.

    ``patched`` are the ids whose numbers were put there; ``replay`` compares every other quantity of the patched run
    with its definition, and leaves these out.
    """

    reading: Reading
    patched: tuple[str, ...]
    before: Mapping[str, Array]
    values: Mapping[str, Array]
    replay: Replay

    @property
    def changed(self) -> tuple[str, ...]:
        """The ids whose numbers differ from those of the run as it is, in the order in which they are computed."""
        return tuple(id for id, array in self.values.items() if not np.array_equal(array, self.before[id]))

    @property
    def effect(self) -> Array:
        """``(i, w)``: the logits with the patch minus those without."""
        return self.values["head.logits"] - self.before["head.logits"]

    def report(self, row: int = -1) -> Report:
        """The tokens whose logits changed most at ``row``, and how the rest of the run replays."""
        row %= self.reading.n
        before, after = (x["head.logits"][row] for x in (self.before, self.values))
        p, q = softmax(before), softmax(after)
        order = np.argsort(-np.abs(after - before), kind="stable")[:SHOWN]
        logits = tuple(
            (self.reading.vocabulary[w], cell(before[w]), cell(after[w]), cell(after[w] - before[w]), cell(p[w]), cell(q[w]))
            for w in map(int, order)
        )  # fmt: skip
        columns = (
            words("token", "词元"), words("logit before", "原分数"), words("patched", "替换后"), words("change", "变化"),
            words("p before", "原概率"), words("p patched", "替换后概率"),
        )  # fmt: skip
        names = (self.reading.program.quantities[id].quantity for id in self.patched)
        marked = tuple(
            (id, words(name.en, name.zh), float(np.abs(self._difference(id)).max()))
            for id, name in zip(self.patched, names, strict=True)
        )
        law = (("replay", self.replay.largest, float(REPLAY_FACTOR), self.replay.cells),)
        law_columns = (
            words("law", "定律"), words("worst, in roundings", "最大差（舍入单位）"), words("allowed", "允许"),
            words("cells", "元素"),
        )  # fmt: skip
        provenance = self.reading.provenance
        tables = (
            Table(
                words("Patched, exempt from replay", "被替换，免于重放"),
                (same("id"), words("name", "名称"), words("largest change", "最大变化")), marked, provenance,
            ),
            Table(words(f"Logits of row {row}", f"第 {row} 行的分数"), columns, logits, provenance),
            Table(
                words("Every other number equals its definition", "其余各数都等于其定义"),
                law_columns, law, "computed",
            ),
        )  # fmt: skip
        values = {
            "patched": self.patched, "changed": self.changed, "effect": self.effect,
            "replay": {"worst": self.replay.largest, "allowed": REPLAY_FACTOR, "cells": self.replay.cells},
        }  # fmt: skip
        asked = {"row": row, "token": self.reading.text(row), "patched": self.patched}
        return Report("patch", words("A patched run", "替换一个量"), provenance, tables, _NOTES, asked, values)

    def _difference(self, id: str) -> Array:
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(self.values[id] - self.before[id])


_NOTES = (
    Note("definition", words(
        "The model computes everything after a patched quantity from the numbers put there; everything before it is as it was.",
        "被替换的量之后的一切都由新数算出；之前的一切不变。",
    )),
)  # fmt: skip


def patch(reading: Reading, patches: Mapping[str, ArrayLike | Change]) -> PatchedRun:
    """Run the model with quantities replaced: ``patches`` maps a name to numbers or to a function of the tensor.

    Numbers have the shape of the quantity (no batch axis), or are a single one for every cell; those of another run's
    ``watch`` make this activation patching. A function gets the tensor with its batch axis. Names are ids, or any
    unambiguous end of one. Raises ``UserError`` for an unknown name, an input, a parameter or a whole-number table, a
    wrong shape, numbers that are not finite (minus infinity is allowed in scores, though not in all of a row).

    >>> from glassformer.model import toy24_model
    >>> from glassformer.tracing.probes import patch, reading_of
    >>> run = patch(reading_of(toy24_model(), [0, 1]), {"A": [[[1, 0], [0, 1]]]})
    >>> run.values["blocks.0.R"][1].tolist(), run.patched, run.replay.holds
    ([0.0, 2.0], ('blocks.0.attn.A',), True)
    """
    program = reading.program
    before = watch(reading)
    asked = {program.resolve(name): value for name, value in patches.items()}
    changes = {id: _change(program, id, value) for id, value in asked.items() if _may(program, id, before)}
    values = watch(reading, changes)
    for id in changes:
        _check_values(id, values[id])
    # Nothing is left out but the patched quantities' own definitions; definitions that read them stay. (There is no
    # target, so no loss was computed.)
    computed = tuple(s for s in program.forward if s.target in values and s.target not in changes)
    others = replace(program, forward=computed)
    return PatchedRun(reading, tuple(changes), before, values, replay(others, (), values))


def downstream(program: Program, id: str) -> tuple[str, ...]:
    """The ids whose definitions read ``id``, directly or through others."""
    reached = {id}
    for statement in program.forward:
        if any(ref.name in reached for ref in refs(statement.expr)):
            reached.add(statement.target)
    return tuple(s.target for s in program.forward if s.target in reached - {id})


def _may(program: Program, id: str, before: Mapping[str, Array]) -> bool:
    """True, or ``UserError`` for what cannot be patched."""
    kind = program.quantities[id].quantity.kind
    if kind is Kind.PARAMETER:
        raise UserError(f"{id} is a parameter.", "A patch stands in for what is computed.", "Change the model instead.")
    if program.definition(id) is None or id not in before or before[id].dtype.kind != "f":
        raise UserError(
            f"{id} cannot be patched.", "A patch stands in for numbers that lead from the text to the logits.", ""
        )
    return True


def _change(program: Program, id: str, value: ArrayLike | Change) -> Change:
    if callable(value):
        return value
    numbers, shape = np.asarray(value, dtype=np.float64), program.shape(id)
    if numbers.shape not in (shape, ()):
        raise UserError(
            f"The patch for {id} has shape {numbers.shape}.", f"Its shape is {shape}.", "Give all its cells."
        )
    _check_values(id, numbers)
    given = torch.from_numpy(np.broadcast_to(numbers, shape).copy())
    return lambda tensor: given.expand(tensor.shape).clone()


def _check_values(id: str, numbers: Array) -> None:
    masked = np.isneginf(numbers) if id.endswith(".attn.S") else np.zeros(numbers.shape, dtype=bool)
    if not (np.isfinite(numbers) | masked).all():
        raise UserError(f"The patch for {id} holds a number that is not finite.", "", "Give finite numbers.")
    if masked.ndim and masked.all(-1).any():
        raise UserError(
            f"The patch for {id} leaves a row without any position to read.", "A softmax needs one finite score.", ""
        )
