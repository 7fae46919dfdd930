"""What a command looks at: the small model, a trained run with a text, or a trace file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError

if TYPE_CHECKING:
    from ..tracing import Trace
    from ..tracing.optimizers import Update
    from ..tracing.request import Command

TOY = "toy24"


class Language(StrEnum):
    """The language of names and texts."""

    en = "en"
    zh = "zh"


class Optimizer(StrEnum):
    """Whose step is traced; ``run`` goes on from the state of a run's own."""

    gradient_descent = "gradient_descent"
    adamw = "adamw"
    run = "run"


@dataclass(frozen=True, slots=True)
class Request:
    """A subject and what is asked for: single cells, tokens and target of the small model, learning rate, optimizer,
    whether the probes are recorded too (None: nobody said), training mode.
    """

    subject: str
    text: str | None = None
    cells: Sequence[str] = ()
    tokens: str | None = None
    target: str | None = None
    eta: float | None = None
    optimizer: Optimizer | None = None
    probes: bool | None = None
    dropout: bool = False

    @property
    def command(self) -> Command:
        """The same request as words. A folder given from the root keeps only its name: a page is for others to read."""
        from ..tracing.request import Command

        options = [
            *(("--set", cell) for cell in self.cells),
            ("--tokens", self.tokens),
            ("--target", self.target),
            ("--eta", None if self.eta is None else str(self.eta)),
            ("--optimizer", None if self.optimizer is None else str(self.optimizer)),
        ]
        given = [word for option, value in options if value is not None for word in (option, value)]
        if self.dropout:
            given.append("--dropout")
        path = Path(self.subject)
        return Command(path.name if path.is_absolute() else self.subject, self.text, tuple(given))


def open_subject(request: Request) -> Trace:
    """The trace of what ``request`` names. Raises ``UserError`` for anything that cannot be carried out.

    An option that does not apply to the subject is refused, never ignored.
    """
    path = Path(request.subject)
    if request.subject == TOY:
        return _toy(request).told(request.command)
    if path.is_dir():
        return _run(request).told(request.command)
    if path.is_file():
        return _file(request)
    if path.name == request.subject and not path.suffix:
        raise UserError(
            f'There is no model "{request.subject}".', "", "Give toy24, the folder of a run, or a trace file."
        )
    raise UserError(f"There is nothing at {request.subject}.", "", "Give toy24, the folder of a run, or a trace file.")


def _toy(request: Request) -> Trace:
    from ..tracing import ToySettings, trace_toy24
    from ..tracing.toy import token_of

    if request.text is not None:
        raise UserError(
            "toy24 takes tokens, not a text.",
            "Its vocabulary is A, B and C.",
            "Give for example --tokens A,B --target C.",
        )
    if request.dropout:
        raise UserError("toy24 has no dropout.", "Training mode draws no masks for it.", "Leave --dropout out.")
    defaults = ToySettings()
    tokens = (
        defaults.tokens if request.tokens is None else [token_of(word.strip()) for word in request.tokens.split(",")]
    )
    target = defaults.target if request.target is None else token_of(request.target.strip())
    if request.optimizer is Optimizer.run:
        raise UserError(
            "toy24 was never trained.", "It has no optimizer whose state could go on.", "Give --optimizer adamw."
        )
    eta = defaults.eta if request.eta is None else request.eta
    settings = ToySettings(tokens, target, eta, assignments(request.cells), _update(request), bool(request.probes))
    return trace_toy24(settings)


def _update(request: Request) -> Update | None:
    """The step asked for where it is not the run's own; None leaves gradient descent at its usual rate."""
    from ..tracing import SGD, AdamW

    if request.optimizer is Optimizer.adamw:
        return AdamW() if request.eta is None else AdamW(lr=request.eta)
    return None if request.eta is None else SGD(lr=request.eta)


def _run(request: Request) -> Trace:
    from ..tracing import trace_run

    for option, value in (("--tokens", request.tokens), ("--target", request.target)):
        if value is not None:
            raise UserError(
                f"{option} belongs to toy24.",
                "A trained model reads a text, and each token predicts the next.",
                "Give the text instead.",
            )
    if request.text is None:
        raise UserError(
            "A trained model needs a text to look at.", "", f'Give one: glassformer trace {request.subject} "some text"'
        )
    if request.optimizer is Optimizer.run and request.eta is not None:
        raise UserError(
            "--eta does not go with --optimizer run.",
            "The rate is the one that the run's schedule has reached.",
            "Leave --eta out, or give --optimizer adamw.",
        )
    update = "run" if request.optimizer is Optimizer.run else _update(request)
    cells, probes = assignments(request.cells), bool(request.probes)
    return trace_run(request.subject, request.text, update=update, cells=cells, probes=probes, dropout=request.dropout)


def _file(request: Request) -> Trace:
    from ..tracing import load_trace

    given = {
        "a text": request.text,
        "--set": request.cells or None,
        "--tokens": request.tokens,
        "--target": request.target,
        "--eta": request.eta,
        "--optimizer": request.optimizer,
        "--probes" if request.probes else "--no-probes": request.probes,
        "--dropout": request.dropout or None,
    }
    for option, value in given.items():
        if value is not None:
            raise UserError(
                f"{option} does not apply to a trace file.",
                "A recorded run cannot be changed.",
                "Trace the model again with it.",
            )
    return load_trace(request.subject)


def assignments(texts: Sequence[str]) -> dict[str, float]:
    """``["W_Q[1,0]=0.7"]`` as a mapping. Raises ``UserError`` for a text that is not ``CELL=NUMBER``."""
    cells: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UserError(f'"{text}" does not set anything.', "", 'Write for example --set "W_Q[1,0]=0.7".')
        cells[name.strip()] = number_of(value, name.strip())
    return cells


def number_of(text: str, what: str) -> float:
    """A finite number. Raises ``UserError`` naming ``what`` otherwise."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(
            f'"{text.strip()}" is not a number that {what} can be.', "", "Give a finite number, such as 0.7."
        )
    return value
