"""One training from its beginning, or from a checkpoint, to the saved run: the same path for every subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .. import __version__
from .console import write
from .progress import progress
from .stopping import Stop

if TYPE_CHECKING:
    from ..model import Decoder
    from ..text.batches import Data
    from ..text.tokenizer import Tokenizer
    from ..training import Outcome, RunFolder
    from ..training.recipe import Recipe

PRECISE = 3  # digits of seconds in the facts


@dataclass(frozen=True, slots=True)
class Measured:
    """How a run ended, in three forms: ``facts`` for the manifest, ``samples`` for its file, ``lines`` for the reader."""

    facts: dict[str, Any]
    samples: str
    lines: Sequence[str]


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


def finish(
    subject: Subject, model: Decoder, recipe: Recipe, folder: RunFolder, stop: Stop, resumed: Any = None
) -> None:
    """Train to the end (or until somebody stops it), measure, save, and print what came out. Raises ``UserError``."""
    from ..training import run
    from ..training.config import default_threads
    from ..training.loop import torch_threads

    write(subject.opening(model))
    with progress() as heard, torch_threads(recipe.training.threads or default_threads(model.config.d)):
        outcome = run(
            model, subject.data, recipe.training, folder, stop=lambda: stop.wanted, heard=heard, resumed=resumed
        )
        measured = subject.measure(model, outcome, folder.path)
    facts = {
        "version": __version__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "steps": outcome.steps,
        "seconds": round(outcome.seconds, PRECISE),
        "stopped_early": outcome.stopped,
        **measured.facts,
    }
    folder.save(model, meta=facts, samples=measured.samples)
    write(["", *measured.lines])
