"""One run from wherever it stands to its end: trained, logged, saved as it goes; new or resumed is the same code."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..model import Decoder
from ..text.batches import Data
from .config import TrainingConfig
from .loop import Clock, Step, Steps, train
from .run_folder import RunFolder
from .state import TrainingState, first_state

LOG_EVERY = 10
"""A line of metrics for every tenth step from the first on, and for each step with a validation loss."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a run stands when ``run`` returns: all of its steps made, or ``stopped`` before.

    ``step`` updates and ``tokens`` read in all, ``elapsed`` seconds of training (those before an interruption included).
    """

    step: int
    tokens: int
    elapsed: float
    stopped: bool


def run(
    model: Decoder,
    data: Data,
    config: TrainingConfig,
    folder: RunFolder,
    *,
    stop: Callable[[], bool] = lambda: False,
    through: Callable[[Steps], Steps] = lambda steps: steps,
    resumed: TrainingState | None = None,
    clock: Clock = time.perf_counter,
) -> Outcome:
    """Train ``model`` on ``data`` into ``folder``, which was begun or resumed; ``model`` is then in evaluation mode.

    Checkpoints are written every ``config.checkpoint.every_seconds``, and when the run ends or is stopped. ``stop`` is
    asked after each step. ``through`` may look at the steps on their way (a progress bar) or replace their validation
    loss; it is closed at the end. A process killed at any moment leaves a folder from which ``RunFolder.resume`` goes on.
    Raises ``UserError`` as ``train`` does, and when a file cannot be written.
    """
    state = resumed or first_state(model, config)
    saved, saved_at, stopped = state.step, clock(), False
    step: Step | None = None
    with contextlib.closing(through(train(model, data, config, resume=state, clock=clock))) as steps:
        for step in steps:
            if step.validation is not None or step.step % LOG_EVERY == 1:
                log(folder, step)
            if stop():
                stopped = True
                break
            if clock() - saved_at >= config.checkpoint.every_seconds:
                folder.checkpoint(model, step.state(), keep=config.checkpoint.keep)
                saved, saved_at = step.step, clock()
        if step is not None:
            state = step.state()
        if state.step != saved:
            folder.checkpoint(model, state, keep=config.checkpoint.keep)
    model.eval()
    return Outcome(state.step, state.tokens, state.elapsed, stopped)


def log(folder: RunFolder, step: Step) -> None:
    """One line of metrics: losses in nats per token, the gradient's norm before clipping, seconds."""
    folder.log(
        step=step.step,
        loss=step.loss,
        validation=step.validation,
        learning_rate=step.learning_rate,
        grad_norm=step.grad_norm,
        tokens_per_second=round(step.tokens_per_second),
        elapsed=round(step.elapsed, 3),
    )
