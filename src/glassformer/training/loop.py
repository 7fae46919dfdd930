"""The training loop: a generator, so that whoever asks for the next step may also stop asking."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ..errors import UserError
from ..model import Decoder
from ..text.batches import Batch, Data, first_scored
from .config import Precision, TrainingConfig
from .optimizer import Optimizer
from .precision import products_in, resolved
from .state import TrainingState, bytes_of, first_state

Clock = Callable[[], float]

_SCORING_TOKENS = 4096  # tokens in one batch of validation: enough to keep the CPU busy, little memory


@dataclass(frozen=True, slots=True)
class Step:
    """What one step reports.

    ``loss`` (nats per token) is that of ``batch`` before the update; ``validation`` (nats per token, on the fixed prefix)
    that of the model after it, None where it was not taken. ``grad_norm`` is the norm of the gradient of all parameters
    together, before clipping. ``elapsed`` and ``left`` are seconds, ``left`` an estimate; times of a run that was resumed
    go on from where it was interrupted.

    ``state()`` is all that going on from here needs beside the parameters. It copies, and raises ``RuntimeError`` once the
    next step has been asked for.
    """

    step: int
    loss: float
    validation: float | None
    learning_rate: float
    grad_norm: float
    tokens_per_second: float
    elapsed: float
    left: float
    batch: Batch
    state: Callable[[], TrainingState]


Steps = Generator[Step, None, None]


def train(
    model: Decoder,
    data: Data,
    config: TrainingConfig,
    *,
    resume: TrainingState | None = None,
    clock: Clock = time.perf_counter,
) -> Steps:
    """Train ``model`` in place and yield one ``Step`` after each update.

    Batches are drawn from ``data`` by ``config.seed`` alone, dropout too; torch's own random numbers are left alone. With
    ``resume``, the ``state()`` of a step, and the parameters as they were then, the steps are bit for bit those that would
    have followed (``seconds``: what is left of the budget; the same number of threads).

    Torch uses ``config.threads`` threads while a step runs, and as many as before whenever the caller has the word. With
    ``seconds`` no step is begun that would probably end after the budget (one step is always made); the time the caller
    spends between steps counts. With ``steps`` the last step has a validation loss.

    A step is whole or has not happened: parameters change after the last of its rows is read, and not at all when loss or
    gradient is no longer a number. Raises ``UserError`` then, when the training text is shorter than one window or has
    nothing to predict, for bfloat16 on a processor without it, and for a state of another model or optimizer.
    """
    config = resolved(config, model.config.d)
    run = _Run(model, config, resume or first_state(model, config), clock)
    context = model.config.context
    assert config.threads is not None
    model.train()
    while (share := run.watch.share()) < 1:
        with torch_threads(config.threads), run.random_numbers():
            rate = config.rate(share)
            batch = data.batch(context, config.batch * config.accumulation, run.generator)
            loss, grad_norm = run.update(batch, rate)
            measured = None
            if run.watch.validation_due():
                started = clock()
                measured = validation_loss(model, first_scored(held_out(data, context), config.validation.prefix))
                run.watch.validated(clock() - started)
        yield run.report(batch, (loss, grad_norm, rate), measured)


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
        for batch in batches:
            scored = int(batch.scored.sum())
            total += float(_loss(model, batch)) * scored
            count += scored
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


def accumulate(model: Decoder, batch: Batch, rows: int, precision: Precision = "float32") -> float:
    """Add the gradient of the mean loss over all scored positions of ``batch``, read ``rows`` rows at a time.

    Returns that loss (nats per token). Each part counts by its number of scored positions, so the parts may be unequal.
    Raises ``UserError`` where nothing is scored.
    """
    total = int(batch.scored.sum())
    if not total:
        raise UserError("No position of the batch is scored.", "The loss is a mean over scored positions.", "")
    mean = 0.0
    for part in _parts(batch, rows):
        share = int(part.scored.sum()) / total
        if not share:
            continue
        with products_in(precision):
            loss = _loss(model, part)
        (loss * share).backward()
        mean += float(loss.detach()) * share
    return mean


def _parts(batch: Batch, rows: int) -> Iterator[Batch]:
    for first in range(0, len(batch.tokens), rows):
        cut = slice(first, first + rows)
        segments = None if batch.segments is None else batch.segments[cut]
        yield Batch(batch.tokens[cut], batch.targets[cut], batch.scored[cut], segments)


def _loss(model: Decoder, batch: Batch) -> Tensor:
    tokens, targets, scored = (torch.from_numpy(part) for part in batch[:3])
    segments = {} if batch.segments is None else {"segments": torch.from_numpy(batch.segments)}
    loss = model(tokens, targets, scored, **segments).loss
    assert loss is not None
    return loss


class _Run:
    """A training while it goes on: what changes from step to step beside the parameters."""

    def __init__(self, model: Decoder, config: TrainingConfig, state: TrainingState, clock: Clock) -> None:
        self._model = model
        self._config = config
        self._optimizer = Optimizer(model, config.optimizer)
        try:
            self._optimizer.restore(state.step, state.optimizer)
        except ValueError as problem:
            raise UserError(
                "The run cannot go on from this state.", f"{problem}.", "Use the state of this model's own training."
            ) from problem
        self.generator = state.data_generator()
        self._torch_random = state.torch_tensor()
        self.watch = _Watch(config, state, clock)

    @contextlib.contextmanager
    def random_numbers(self) -> Iterator[None]:
        """Inside, torch draws the random numbers of this training; afterwards those that it would have drawn before."""
        before = torch.get_rng_state()
        torch.set_rng_state(self._torch_random)
        try:
            yield
        finally:
            self._torch_random = torch.get_rng_state()
            torch.set_rng_state(before)

    def update(self, batch: Batch, rate: float) -> tuple[float, float]:
        """One step; returns loss and norm of the gradient. Raises ``UserError``, nothing changed, where one is infinite."""
        config = self._config
        assert config.precision != "auto"
        self._optimizer.clear()
        loss = accumulate(self._model, batch, config.batch, config.precision)
        grad_norm = self._optimizer.clip()
        for name, value in (("loss", loss), ("norm of the gradient", grad_norm)):
            if not math.isfinite(value):
                raise UserError(
                    f"The {name} is {value} at step {self.watch.steps + 1}: training has diverged.",
                    f"The learning rate was {rate:.2g}.",
                    "Use a smaller learning rate.",
                )
        self._optimizer.step(rate)
        self.watch.step_done(batch.tokens.size)
        return loss, grad_norm

    def report(self, batch: Batch, numbers: tuple[float, float, float], validation: float | None) -> Step:
        loss, grad_norm, rate = numbers
        elapsed, left, tokens_per_second = self.watch.times()
        return Step(
            step=self.watch.steps,
            loss=loss,
            validation=validation,
            learning_rate=rate,
            grad_norm=grad_norm,
            tokens_per_second=tokens_per_second,
            elapsed=elapsed,
            left=left,
            batch=batch,
            state=partial(self._state, self.watch.steps, elapsed),
        )

    def _state(self, step: int, elapsed: float) -> TrainingState:
        if step != self.watch.steps:
            raise RuntimeError(f"the state of step {step} is gone: the next step has begun")
        return TrainingState(
            step=step,
            tokens=self.watch.tokens,
            elapsed=elapsed,
            validations=self.watch.validations,
            validating=self.watch.validating,
            longest=self.watch.longest,
            data_random=self.generator.bit_generator.state,
            torch_random=bytes_of(self._torch_random),
            optimizer=self._optimizer.tensors(),
        )


class _Watch:
    """Counts steps and seconds, and answers when to stop, when to validate, how long is left."""

    def __init__(self, config: TrainingConfig, state: TrainingState, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._start = clock() - state.elapsed
        self._step_start = self._start
        self._first = state.step + 1
        self.steps = state.step
        self.tokens = state.tokens
        self.validations = state.validations
        self.validating = state.validating
        self.longest = state.longest  # seconds, a little pessimistic: decays slowly from the longest step

    def share(self) -> float:
        """How much of the run is over, 0 to 1; 1 when no further step fits."""
        self._step_start = self._clock()
        if self._config.seconds is None:
            return self._progress()
        left = self._config.seconds - (self._step_start - self._start)
        if self.steps and left < self.longest:
            return 1.0
        return min(self._progress(), 0.999)

    def step_done(self, tokens: int) -> None:
        took = self._clock() - self._step_start
        self.steps += 1
        self.tokens += tokens
        if self.steps > self._first:  # the first step also sets everything up and tells nothing about the next
            self.longest = max(took, 0.9 * self.longest)

    def validation_due(self) -> bool:
        """Whether the next of the evenly spread measurements is reached and, with a time budget, still affordable."""
        times = self._config.validation.times
        due = times > 0 and self._progress() * times >= self.validations + 1 - 1e-9
        if not due or self._config.seconds is None:
            return due
        one = self.validating / max(self.validations, 1)
        return self.validating + one <= 0.1 * self._config.seconds and self._progress() < 1

    def validated(self, seconds: float) -> None:
        self.validating += seconds
        self.validations += 1

    def times(self) -> tuple[float, float, float]:
        """Seconds that have passed, an estimate of those that are left, and tokens read per second."""
        elapsed = self._clock() - self._start
        left = elapsed / self._progress() - elapsed if elapsed else 0.0
        return elapsed, max(0.0, left), self.tokens / max(elapsed, 1e-9)

    def _progress(self) -> float:
        if self._config.seconds is not None:
            return (self._clock() - self._start) / self._config.seconds
        assert self._config.steps is not None
        return self.steps / self._config.steps
