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
from .rules import Rule, allowed_scores, draw, stages, uniform


class Choice(NamedTuple):
    """A chosen ``token``, the ``probability`` the rule gave it, and that of the model itself (temperature 1, all kept)."""

    token: int
    probability: float
    model_probability: float


class Reading(NamedTuple):
    """``logits`` (N,) of the next token; the keys and values of ``reused`` positions were kept, ``new`` ones were read."""

    logits: torch.Tensor
    reused: int
    new: int


class Decision(NamedTuple):
    """One ``choice`` after ``tokens`` (the prompt and what was written): what the model said, and the draw ``u``.

    ``scores`` (N,) are the logits of what may be chosen, minus infinity for the rest.
    """

    choice: Choice
    reading: Reading
    scores: torch.Tensor
    u: float
    tokens: tuple[int, ...]


def choices(
    model: Decoder, prompt: Sequence[int], count: int, rule: Rule, seed: int, excluded: Sequence[int] = ()
) -> Iterator[Choice]:
    """Yield ``count`` tokens that continue the token ids ``prompt``, each chosen by ``rule`` after all before it.

    None of the ids ``excluded`` is chosen (BOS and PAD, say). The same seed gives the same tokens. Raises ``UserError``
    at the call for an empty prompt (the model predicts what follows something), an id outside the vocabulary, a negative
    count, or a seed that is none.
    """
    _check(model, prompt, excluded, count, seed)
    return (decision.choice for decision in _decisions(model, list(prompt), count, rule, seed, excluded))


def decisions(
    model: Decoder, prompt: Sequence[int], count: int, rule: Rule, seed: int, excluded: Sequence[int] = ()
) -> Iterator[Decision]:
    """The same ``choices``, each with everything that led to it."""
    _check(model, prompt, excluded, count, seed)
    return _decisions(model, list(prompt), count, rule, seed, excluded)


def _check(model: Decoder, prompt: Sequence[int], excluded: Sequence[int], count: int, seed: int) -> None:
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


def _decisions(
    model: Decoder, tokens: list[int], count: int, rule: Rule, seed: int, excluded: Sequence[int]
) -> Iterator[Decision]:
    generator = torch.Generator().manual_seed(seed)
    reader = Reader(model)
    for _ in range(count):
        reading = reader.read(tokens)
        scores = allowed_scores(reading.logits, excluded)
        p = stages(scores, rule).p
        u = uniform(rule, generator)
        token = draw(p, u)
        choice = Choice(token, float(p[token]), float(torch.softmax(reading.logits.double(), -1)[token]))
        yield Decision(choice, reading, scores, u, tuple(tokens))
        tokens.append(token)


class Reader:
    """Reads a growing text with a model, each token once while the text fits the context."""

    def __init__(self, model: Decoder) -> None:
        self._model = model
        self._cache: KeyValueCache = model.new_cache()

    def logits(self, tokens: Sequence[int]) -> torch.Tensor:
        """Scores (N,) of the token after ``tokens``, which start with those of the last call."""
        return self.read(tokens).logits

    def read(self, tokens: Sequence[int]) -> Reading:
        """The same, with which positions were read for it."""
        context = self._model.config.context
        fits = len(tokens) <= context
        reused = self._cache.length if fits else 0
        new = tokens[reused:] if fits else tokens[-context:]
        with torch.no_grad(), _evaluation_mode(self._model):
            logits = self._model(torch.tensor([list(new)]), cache=self._cache if fits else None).logits[0, -1]
        return Reading(logits, reused, len(new))


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
