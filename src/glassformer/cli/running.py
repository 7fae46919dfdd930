"""One training from its beginning, or from a checkpoint, to the saved run: the same path for every subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .. import __version__
from .console import write
from .progress import shown
from .stopping import Stop

if TYPE_CHECKING:
    from ..model import Decoder
    from ..text.batches import Data
    from ..text.tokenizer import Tokenizer
    from ..training import Outcome, RunFolder, TrainingConfig, TrainingState

_DIGITS = 3  # of seconds in the facts


@dataclass(frozen=True, slots=True)
class Measured:
    """How a run ended, in three forms: ``facts`` for the manifest, ``samples`` for its file, ``lines`` for the reader."""

    facts: dict[str, Any]
    samples: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Begun:
    """A run whose folder can be resumed; ``state`` is where it stands, None before the first step."""

    model: Decoder
    training: TrainingConfig
    folder: RunFolder
    state: TrainingState | None = None


class Subject(Protocol):
    """What a run learns: a text, or the clinic language."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def data(self) -> Data: ...

    def opening(self, model: Decoder) -> list[str]:
        """What is printed before the first step."""
        ...

    def measure(self, model: Decoder, outcome: Outcome, out: Path) -> Measured:
        """How good the trained ``model`` is; ``out`` is the folder that the next commands name."""
        ...


def finish(subject: Subject, run_of: Begun, stop: Stop) -> None:
    """Train to the end (or until somebody stops it), measure, save, and print what came out. Raises ``UserError``."""
    from ..training import run
    from ..training.loop import torch_threads

    model, folder = run_of.model, run_of.folder
    write(subject.opening(model))
    with torch_threads(run_of.training.threads or 1):
        outcome = run(
            model, subject.data, run_of.training, folder,
            stop=lambda: stop.wanted, through=shown, resumed=run_of.state,
        )  # fmt: skip
        measured = subject.measure(model, outcome, folder.path)
    facts = {
        "version": __version__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "steps": outcome.step,
        "seconds": round(outcome.elapsed, _DIGITS),
        "stopped_early": outcome.stopped,
        **measured.facts,
    }
    folder.save(model, meta=facts, samples=measured.samples, finished=not outcome.stopped)
    write(["", *measured.lines])
