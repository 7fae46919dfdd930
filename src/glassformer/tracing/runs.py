"""A text through a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from ..errors import UserError
from ..model import Decoder
from ..model.dropout import dropout_rates
from ..training import load_run
from ..training.checkpoint import latest, load_checkpoint
from ..training.loading import read_parts
from ..training.run_files import CHECKPOINTS
from .optimizers import Update, next_update
from .request import Token, asked
from .settings import set_cells
from .trace import SAMPLED_CELLS, Trace, chosen, trace_sample


def trace_run(
    path: str | Path,
    text: str,
    *,
    update: Update | Literal["run"] | None = None,
    target: Token | None = None,
    cells: Mapping[str, float] | None = None,
    witness_cells: int | None = SAMPLED_CELLS,
    probes: bool = False,
    dropout: bool = False,
) -> Trace:
    """Trace ``text`` through the run saved at ``path``: every position but the last is scored against the next token.

    ``update``, ``target`` and ``witness_cells`` as for ``trace``; the update "run" is the next step that the run's own
    optimizer would make. ``cells`` sets single parameters first. With ``probes`` the trace is one ``with_probes``. With
    ``dropout`` the step is one of training mode, with masks drawn once from torch's generator. Raises ``UserError`` for a
    folder that is not a run, a text the tokenizer does not know, or one too short or too long for the model, and for
    ``dropout`` where the model has none.
    """
    path = Path(path)
    run = load_run(path)
    if dropout and not dropout_rates(run.model.config.dropout):
        raise UserError(
            "This model has no dropout.", "Training mode draws no masks for it.", "Trace it without dropout."
        )
    step = chosen(run_update(path, run.model) if update == "run" else update)
    set_cells(run.model.double(), cells or {})
    model, sample, words = asked(run, text, target)
    shown = words.title["en"]
    title = {"en": f"{shown} through {path.name}", "zh": f"{shown} 通过 {path.name}"}
    words = replace(words, title=title)
    traced = trace_sample(model, sample, words, step, witness_cells=witness_cells, dropout=dropout)
    return traced.with_probes(model) if probes else traced


def run_update(path: Path, model: Decoder) -> Update:
    """What the optimizer of the run saved at ``path`` would do next to ``model``, from its last checkpoint.

    Raises ``UserError`` where no checkpoint is left or the last one belongs to other parameters.
    """
    parts = read_parts(path)
    found = latest(path / CHECKPOINTS)
    if found.path is None:
        raise UserError(
            "The run has no checkpoint.",
            "Its optimizer's state is lost.",
            "Trace it with a fresh one: --optimizer adamw.",
        )
    state = load_checkpoint(found.path, parts.model)
    theirs = dict(parts.model.named_parameters())
    if not all(torch.equal(p, theirs[id]) for id, p in model.named_parameters()):
        raise UserError(
            f"The last checkpoint ({found.path.name}) holds other parameters than the finished model.",
            "Its optimizer's state belongs to those.",
            "Trace it with a fresh one: --optimizer adamw.",
        )
    return next_update(parts.training, state)
