"""What a model says about every sentence of a language that can be listed."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import UserError
from ..model import Decoder
from ..text.language import Language

_ROWS = 512  # sentences read at a time: little memory


def log_probabilities(model: Decoder, language: Language) -> NDArray[np.float64]:
    """``ln q`` (m, n, N): the model's next-word distribution after each beginning of each of the ``m`` sentences.

    For ``language.divergence`` and ``language.loss``. The model is left in the mode it was in. Raises ``UserError`` for a
    model of another vocabulary or a context shorter than the longest sentence.
    """
    if model.config.vocab_size != language.tokenizer.vocab_size:
        raise UserError(
            f"The model has {model.config.vocab_size} words, the language {language.tokenizer.vocab_size}.",
            "",
            "Use a model that was trained on this language.",
        )
    inputs = torch.from_numpy(language.rows[:, :-1])
    was_training = model.training
    model.eval()
    with torch.no_grad():
        parts = [torch.log_softmax(model(part).logits.double(), -1) for part in inputs.split(_ROWS)]
    model.train(was_training)
    return torch.cat(parts).numpy()
