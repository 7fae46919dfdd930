"""Activation patching: which row of which layer of another run brings that run's answer along."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ...bilingual import same, words
from ...errors import UserError
from .places import streams
from .reading import NO_CHANGES, Aim, Array, Change, Reading, losses, rerun, watch
from .report import Note, Report, Table, cell


@dataclass(frozen=True, slots=True, eq=False)
class ActivationPatching:
    """``logit`` and ``loss`` ``(s, j)``: of the aim, with row ``j`` of stream ``ids[s]`` taken from ``other``'s run.

    ``ends``: (logit, loss) of the run as it is and of the other run. ``recovered (s, j)``: the share of the logit's
    difference between the two runs that the patch brings; NaN where they do not differ.
    """

    reading: Reading
    other: Reading
    aim: Aim
    ids: tuple[str, ...]
    logit: Array
    loss: Array
    ends: tuple[tuple[float, float], tuple[float, float]]
    recovered: Array

    def report(self) -> Report:
        """One row per position, one column per stream."""
        columns = (
            same("j"), words("token", "词元"), words("other token", "另一段的词元"),
            *({"en": id, "zh": id} for id in self.ids),
        )  # fmt: skip
        rows = (
            (j, self.reading.text(j), self.other.text(j), *map(cell, self.recovered[:, j]))
            for j in range(self.reading.n)
        )
        table = Table(
            words("Share of the logit's difference that row j brings", "第 j 行带来的分数差的比例"),
            columns, tuple(rows), self.reading.provenance, (0,),
        )  # fmt: skip
        (logit, loss), (other_logit, other_loss) = self.ends
        asked = {
            "row": self.aim.row, "target": self.aim.target, "target_token": self.reading.vocabulary[self.aim.target],
            "logit": logit, "loss": loss, "other_logit": other_logit, "other_loss": other_loss,
        }  # fmt: skip
        values = {"ids": self.ids, "logit": self.logit, "loss": self.loss, "recovered": self.recovered}
        title = words("Activation patching", "激活替换")
        return Report("activation", title, self.reading.provenance, (table,), _NOTES, asked, values)


_NOTES = (
    Note("definition", words(
        "0: the answer stays as it was; 1: it becomes the other text's. At the last stream only the row itself counts.",
        "0 表示答案不变；1 表示变成另一段文字的答案。在最后的残差流上只有该行自己起作用。",
    )),
)  # fmt: skip


def activation_patching(reading: Reading, other: Reading, aim: Aim) -> ActivationPatching:
    """Replace one row of the residual stream by that of ``other``'s run, and run on, for every stream and row.

    ``recovered[s,j] = (logit[s,j] - logit) / (logit of other - logit)`` for the logit of ``aim``. The texts must have the
    same number of tokens up to the aim's row. Raises ``UserError`` otherwise.
    """
    if other.n <= aim.row:
        raise UserError(
            f"The other text has {other.n} tokens and no row {aim.row}.",
            "Row by row, one run's numbers are put into the other.",
            "Give a text with the same number of tokens.",
        )
    reading, other = reading.until(aim.row), other.until(aim.row)
    ids, theirs = streams(reading.model.config), watch(other)
    alternatives = [{id: _row(j, theirs[id][j])} for id in ids for j in range(reading.n)]
    logits = rerun(reading, aim.row, [NO_CHANGES, *alternatives])
    end = rerun(other, aim.row, [NO_CHANGES])[0]
    before, after = logits[0], logits[1:].reshape(len(ids), reading.n, -1)
    apart = float(end[aim.target] - before[aim.target])
    recovered = (after[..., aim.target] - before[aim.target]) / (apart or math.nan)
    ends = [(float(x[aim.target]), float(losses(x, aim.target))) for x in (before, end)]
    return ActivationPatching(
        reading=reading, other=other, aim=aim, ids=ids, logit=after[..., aim.target], loss=losses(after, aim.target),
        ends=(ends[0], ends[1]), recovered=np.asarray(recovered),
    )  # fmt: skip


def _row(j: int, values: Array) -> Change:
    given = torch.from_numpy(values)

    def change(X: torch.Tensor) -> torch.Tensor:
        changed = X.clone()
        changed[:, j] = given
        return changed

    return change
