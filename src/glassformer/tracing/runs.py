"""A text through a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import torch

from ..errors import UserError
from ..model import Decoder
from ..text import prompt_ids, visible
from ..training import load_run
from ..training.checkpoint import latest, load_checkpoint
from ..training.loading import read_parts
from ..training.run_files import CHECKPOINTS
from .optimizers import Update, next_update
from .settings import set_cells
from .trace import SAMPLED_CELLS, Text, Trace, chosen, sample_of, trace_sample


def trace_run(
    path: str | Path,
    text: str,
    *,
    update: Update | Literal["run"] | None = None,
    eta: float | None = None,
    cells: Mapping[str, float] | None = None,
    witness_cells: int | None = SAMPLED_CELLS,
) -> Trace:
    """Trace ``text`` through the run saved at ``path``: every position but the last is scored against the next token.

    ``update`` and ``eta`` as for ``trace``; "run" is the next step that the run's own optimizer would make. ``cells``
    sets single parameters first. Raises ``UserError`` for a folder that is not a run, a text the tokenizer does not know,
    or one too short or too long for the model.
    """
    model, tokenizer, _, begin = load_run(Path(path))
    step = chosen(run_update(Path(path), model) if update == "run" else update, eta)
    tokens = prompt_ids(tokenizer, text, begin and bool(text))
    if len(tokens) < 2:
        raise UserError(
            "The text is too short to trace." if tokens else "The text is empty.",
            "Each token predicts the next one, so at least two are needed.",
            'Give a longer text, for example: glassformer trace RUN "To be"',
        )
    if len(tokens) > model.config.context:
        raise UserError(
            f"The text has {len(tokens)} tokens, more than the model reads at once.",
            f"Its context is {model.config.context} tokens.",
            f"Shorten the text to {model.config.context} tokens.",
        )
    set_cells(model.double(), cells or {})
    # The last row predicts a token that is not in the text: its target is a placeholder, and it is not scored.
    targets = [*tokens[1:], tokens[-1]]
    scored = [True] * (len(tokens) - 1) + [False]
    shown = visible(text, keep="")
    title = {"en": f"“{shown}” through {Path(path).name}", "zh": f"“{shown}” 通过 {Path(path).name}"}
    words = Text(tokenizer.texts, title, "run", "measured")
    return trace_sample(model, sample_of(tokens, targets, scored), words, step, witness_cells=witness_cells)


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
