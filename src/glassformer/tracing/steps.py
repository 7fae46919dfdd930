"""Training with a look at any step: ``for step in train(...): step.trace()``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ..errors import UserError
from ..model import Decoder
from ..text.batches import Data
from ..training.config import TrainingConfig
from ..training.loop import Step
from ..training.loop import train as train_steps
from ..training.state import TrainingState
from .optimizers import Update, next_update
from .trace import SAMPLED_CELLS, Trace, trace


@dataclass(frozen=True, slots=True)
class TracedStep(Step):
    """A ``Step`` that can be looked into as long as the next one has not been asked for.

    ``latest`` holds the number of the last step that was made, for all steps of a run.
    """

    model: Decoder
    vocabulary: tuple[str, ...] | None
    latest: list[int]
    config: TrainingConfig

    def next_update(self) -> Update:
        """What the run's own optimizer does next, as it stands after this step: its moments, its clipping, its rate.

        Raises ``UserError`` once the next step has begun.
        """
        self._require_latest()
        return next_update(self.config, self.state())

    def trace(
        self,
        row: int = 0,
        *,
        update: Update | None = None,
        dropout: bool = False,
        witness_cells: int | None = SAMPLED_CELLS,
    ) -> Trace:
        """Trace row ``row`` of this step's batch through the model as it stands after the step.

        The step in the trace is one that has not happened: the next one of the run's own optimizer (``next_update``), if
        this row were its whole batch. ``update`` is any other. Raises ``UserError`` for a row that the batch does not
        have, one in which nothing is scored, or once the next step has begun.
        """
        self._require_latest()
        tokens, targets, scored, segments = self.batch
        if not 0 <= row < len(tokens):
            raise UserError(f"The batch has no row {row}.", f"Its rows are 0 to {len(tokens) - 1}.", "")
        return trace(
            self.model,
            tokens[row].tolist(),
            targets[row].tolist(),
            scored[row].tolist(),
            segments=None if segments is None else segments[row].tolist(),
            update=self.next_update() if update is None else update,
            vocabulary=self.vocabulary,
            witness_cells=witness_cells,
            dropout=dropout,
        )

    def _require_latest(self) -> None:
        if self.latest[-1] != self.step:
            raise UserError(
                f"Step {self.step} is over.", "The model has changed since.", "Trace a step before asking for the next."
            )


def train(
    model: Decoder,
    data: Data,
    config: TrainingConfig,
    *,
    resume: TrainingState | None = None,
    vocabulary: Sequence[str] | None = None,
) -> Iterator[TracedStep]:
    """Train ``model`` in place and yield a step after each update, which can be traced: ``training.train``, and ``trace``.

    ``vocabulary`` gives the traces token texts. Errors as ``training.train``.
    """
    words, latest = None if vocabulary is None else tuple(vocabulary), [0]
    for step in train_steps(model, data, config, resume=resume):
        latest[-1] = step.step
        known: dict[str, Any] = {field.name: getattr(step, field.name) for field in fields(Step)}
        yield TracedStep(**known, model=model, vocabulary=words, latest=latest, config=config)
