"""A text through a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import UserError
from ..text import prompt_ids, visible
from ..training import load_run
from .settings import set_cells
from .trace import SAMPLED_CELLS, Text, Trace, sample_of, trace_sample

DEFAULT_ETA = 0.1


def trace_run(
    path: str | Path,
    text: str,
    *,
    eta: float = DEFAULT_ETA,
    cells: Mapping[str, float] | None = None,
    witness_cells: int | None = SAMPLED_CELLS,
) -> Trace:
    """Trace ``text`` through the run saved at ``path``: every position but the last is scored against the next token.

    The step is one of plain gradient descent at ``eta``. ``cells`` sets single parameters first. Raises ``UserError`` for
    a folder that is not a run, a text the tokenizer does not know, or one too short or too long for the model.
    """
    model, tokenizer, _, begin = load_run(Path(path))
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
    return trace_sample(model, sample_of(tokens, targets, scored), words, eta, witness_cells=witness_cells)
