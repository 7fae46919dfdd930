"""The training loop: a generator, so that whoever asks for the next step may also stop asking."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from ..errors import UserError
from ..model import Decoder
from ..text.batches import Batch, Data, first_scored
from .config import OptimizerConfig, TrainingConfig, default_threads

Clock = Callable[[], float]

_SCORING_TOKENS = 4096  # tokens in one batch of validation: enough to keep the CPU busy, little memory


@dataclass(frozen=True, slots=True)
class Step:
    """What one step reports.

    ``loss`` (nats per token) is that of the batch before the update; ``validation`` (nats per token, on the fixed prefix)
    that of the model after it, None where it was not taken. ``elapsed`` and ``left`` are seconds, ``left`` an estimate.
    """

    step: int
    loss: float
    validation: float | None
    learning_rate: float
    tokens_per_second: float
    elapsed: float
    left: float


def train(model: Decoder, data: Data, config: TrainingConfig, *, clock: Clock = time.perf_counter) -> Iterator[Step]:
    """Train ``model`` in place and yield one ``Step`` after each update.

    Batches are drawn from ``data`` by ``config.seed`` alone (random windows of a ``Corpus``). Torch uses
    ``config.threads`` threads while a step runs, and as many as before whenever the caller has the word. With ``seconds``
    no step is begun that would probably end after the budget (one step is always made); the time the caller spends
    between steps counts. With ``steps`` the last step has a validation loss.
    Raises ``UserError`` when the training text is shorter than one window or the loss is no longer a number.
    """
    generator = np.random.default_rng(config.seed)
    optimizer = _adamw(model, config.optimizer)
    watch = _Watch(config, clock)
    context = model.config.context
    threads = config.threads or default_threads(model.config.d)
    model.train()
    while (share := watch.share()) < 1:
        with torch_threads(threads):
            rate = config.optimizer.rate(share)
            batch = data.batch(context, config.batch, generator)
            loss = _update(model, optimizer, batch, rate, config.optimizer.clip)
            if not math.isfinite(loss):
                raise UserError(
                    f"The loss is {loss} at step {watch.steps + 1}: training has diverged.",
                    f"The learning rate was {rate:.2g}.",
                    "Use a smaller learning rate.",
                )
            watch.step_done(batch.tokens.size)
            measured = None
            if watch.validation_due():
                started = clock()
                measured = validation_loss(model, first_scored(held_out(data, context), config.validation.prefix))
                watch.validated(clock() - started)
        yield watch.report(loss, measured, rate)


def held_out(data: Data, context: int) -> Iterator[Batch]:
    """The validation text of ``data`` in batches of a size that keeps the CPU busy and needs little memory."""
    return data.validation(context, max(1, _SCORING_TOKENS // context))


def validation_loss(model: Decoder, batches: Iterable[Batch]) -> float | None:
    """Mean loss (nats per token) over the scored positions of ``batches``; None where there are none.

    The sum is taken in float64 and no gradient is kept.
    """
    total, count = 0.0, 0
    was_training = model.training
    model.eval()
    with torch.no_grad():
        for tokens, targets, scored, _ in batches:
            loss = model(torch.from_numpy(tokens), torch.from_numpy(targets), torch.from_numpy(scored)).loss
            total += float(loss) * int(scored.sum())
            count += int(scored.sum())
    model.train(was_training)
    return total / count if count else None


@contextlib.contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Inside, torch computes with ``threads`` threads; afterwards with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _update(model: Decoder, optimizer: torch.optim.Optimizer, batch: Batch, rate: float, clip: float) -> float:
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)
    loss = model(torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets), torch.from_numpy(batch.scored)).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    value = float(loss.detach())
    if math.isfinite(value):
        optimizer.step()
    return value


def _adamw(model: Decoder, config: OptimizerConfig) -> torch.optim.AdamW:
    """Weight decay for the matrices that multiply (``W_*``, ``U``), none for tables, gains and biases."""
    decayed, free = [], []
    for name, parameter in model.named_parameters():
        last = name.rsplit(".", 1)[-1]
        (decayed if last.startswith("W_") or last == "U" else free).append(parameter)
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": free, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.0, betas=(config.beta_1, config.beta_2), fused=True)


class _Watch:
    """Counts steps and seconds, and answers when to stop, when to validate, how long is left."""

    def __init__(self, config: TrainingConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._start = clock()
        self._step_start = self._start
        self._step_takes = 0.0  # seconds, a little pessimistic: decays slowly from the longest
        self._tokens = 0
        self._validations = 0
        self._validating = 0.0
        self.steps = 0

    def share(self) -> float:
        """How much of the run is over, 0 to 1; 1 when no further step fits."""
        self._step_start = self._clock()
        if self._config.seconds is None:
            return self._progress()
        left = self._config.seconds - (self._step_start - self._start)
        if self.steps and left < self._step_takes:
            return 1.0
        return min(self._progress(), 0.999)

    def step_done(self, tokens: int) -> None:
        took = self._clock() - self._step_start
        self.steps += 1
        self._tokens += tokens
        if self.steps > 1:  # the first step also sets everything up and tells nothing about the next
            self._step_takes = max(took, 0.9 * self._step_takes)

    def validation_due(self) -> bool:
        """Whether the next of the evenly spread measurements is reached and, with a time budget, still affordable."""
        times = self._config.validation.times
        due = times > 0 and self._progress() * times >= self._validations + 1 - 1e-9
        if not due or self._config.seconds is None:
            return due
        one = self._validating / max(self._validations, 1)
        return self._validating + one <= 0.1 * self._config.seconds and self._progress() < 1

    def validated(self, seconds: float) -> None:
        self._validating += seconds
        self._validations += 1

    def report(self, loss: float, validation: float | None, rate: float) -> Step:
        elapsed = self._clock() - self._start
        left = elapsed / self._progress() - elapsed if elapsed else 0.0
        return Step(self.steps, loss, validation, rate, self._tokens / max(elapsed, 1e-9), elapsed, max(0.0, left))

    def _progress(self) -> float:
        if self._config.seconds is not None:
            return (self._clock() - self._start) / self._config.seconds
        assert self._config.steps is not None
        return self.steps / self._config.steps
