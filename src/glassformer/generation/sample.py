"""Token after token out of a model: the same forward pass as in training, each new token read once.

While the text fits the context ``n_ctx``, keys and values of earlier positions are kept (section 12.4). When it outgrows
the context the window slides: every token then has another position and another past, nothing kept would be right, and
the window is computed anew for each token.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from ..errors import UserError
from ..model import Decoder, KeyValueCache
from .rules import Rule, draw, next_probabilities, uniform


class Choice(NamedTuple):
    """A chosen ``token``, the ``probability`` the rule gave it, and that of the model itself (temperature 1, all kept)."""

    token: int
    probability: float
    model_probability: float


def choices(
    model: Decoder, prompt: Sequence[int], count: int, rule: Rule, seed: int, excluded: Sequence[int] = ()
) -> Iterator[Choice]:
    """Yield ``count`` tokens that continue the token ids ``prompt``, each chosen by ``rule`` after all before it.

    None of the ids ``excluded`` is chosen (BOS and PAD, say). The same seed gives the same tokens. Raises ``UserError``
    at the call for an empty prompt (the model predicts what follows something), an id outside the vocabulary, a negative
    count, or a seed that is none.
    """
    size = model.config.vocab_size
    if not prompt:
        raise UserError("The prompt is empty.", "The model predicts what follows at least one token.", "Give a prompt.")
    for token in (*prompt, *excluded):
        if not 0 <= token < size:
            raise UserError(f"There is no token {token}.", f"The vocabulary has the ids 0 to {size - 1}.", "")
    if count < 0:
        raise UserError(f"{count} tokens cannot be written.", "", "Use a whole number from 0 up.")
    if not 0 <= seed < 2**63:
        raise UserError(f"The seed cannot be {seed}.", "", "Use a whole number from 0 to 2^63 - 1.")
    return _choices(model, list(prompt), count, rule, seed, excluded)


def generate(
    model: Decoder,
    prompt: Sequence[int],
    count: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
    excluded: Sequence[int] = (),
) -> Iterator[int]:
    """Yield ``count`` tokens that continue the token ids ``prompt``, chosen by the rules of ``rules.py``.

    The model sees the last ``n_ctx`` tokens. None of the ids ``excluded`` is chosen (BOS and PAD, say). The same seed
    gives the same tokens. Raises ``UserError`` at the call for a prompt it cannot read or a number that is impossible.
    """
    chosen = choices(model, prompt, count, Rule(temperature, top_k, top_p), seed, excluded)
    return (choice.token for choice in chosen)


def _choices(
    model: Decoder, tokens: list[int], count: int, rule: Rule, seed: int, excluded: Sequence[int]
) -> Iterator[Choice]:
    generator = torch.Generator().manual_seed(seed)
    reader = Reader(model)
    for _ in range(count):
        logits = reader.logits(tokens)
        p = next_probabilities(logits, rule, excluded)
        token = draw(p, uniform(rule, generator))
        tokens.append(token)
        yield Choice(token, float(p[token]), float(torch.softmax(logits.double(), -1)[token]))


class Reader:
    """Reads a growing text with a model, each token once while the text fits the context."""

    def __init__(self, model: Decoder) -> None:
        self._model = model
        self._cache: KeyValueCache = model.new_cache()

    def logits(self, tokens: Sequence[int]) -> torch.Tensor:
        """Scores (N,) of the token after ``tokens``, which start with those of the last call."""
        fits = len(tokens) <= self._model.config.context
        new = tokens[self._cache.length :] if fits else tokens[-self._model.config.context :]
        with torch.no_grad(), _evaluation_mode(self._model):
            return self._model(torch.tensor([list(new)]), cache=self._cache if fits else None).logits[0, -1]


@contextlib.contextmanager
def _evaluation_mode(model: Decoder) -> Iterator[None]:
    """Inside, ``model`` leaves nothing out by chance; afterwards it is in the mode it was in."""
    if not model.training:
        yield
        return
    model.eval()
    try:
        yield
    finally:
        model.train()
