"""Sampling with a temperature, and greedy choice as its limit.

    p(w) = exp(logits[w]/T) / sum_v exp(logits[v]/T)

Symbols: ``N`` vocabulary, ``n`` tokens seen, ``n_ctx`` the context length, ``T`` the temperature. These are rules for
choosing a token; the model and its parameters stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from ..errors import UserError
from ..model import Decoder


def next_probabilities(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """Probabilities (N,) of the next token, in float64, from ``logits`` (N,).

    Temperature 1 is softmax; towards 0 all probability goes to the largest logit, and 0 itself means that limit (the
    first of several equal largest ones). Raises ``UserError`` for a temperature that is negative or not a number.
    """
    if not (math.isfinite(temperature) and temperature >= 0):
        raise UserError(f"{temperature} is not a temperature.", "", "Use 0 (greedy) or a positive number such as 0.8.")
    logits = logits.double()
    if temperature == 0:
        return torch.zeros_like(logits).index_fill(0, _first_largest(logits), 1.0)
    # Subtracting the largest first keeps the quotient finite for any positive temperature.
    return torch.softmax((logits - logits.max()) / temperature, dim=-1)


def next_token(logits: torch.Tensor, temperature: float, generator: torch.Generator) -> int:
    """One token drawn with ``next_probabilities`` of ``logits`` (N,); at temperature 0 ``generator`` is not used."""
    probabilities = next_probabilities(logits, temperature)
    if temperature == 0:
        return int(_first_largest(probabilities))
    return int(torch.multinomial(probabilities, 1, generator=generator))


def generate(
    model: Decoder, prompt: Sequence[int], count: int, *, temperature: float = 1.0, seed: int = 0
) -> Iterator[int]:
    """Yield ``count`` tokens that continue the token ids ``prompt``, each chosen after all before it.

    The model sees the last ``n_ctx`` tokens; when the text outgrows them the window slides, and its first token takes
    position 0 again. The same seed gives the same tokens. Raises ``UserError`` for an empty prompt (the model predicts
    what follows something), an id outside the vocabulary, or a bad temperature.
    """
    size = model.config.vocab_size
    if not prompt:
        raise UserError("The prompt is empty.", "The model predicts what follows at least one token.", "Give a prompt.")
    for token in prompt:
        if not 0 <= token < size:
            raise UserError(f"There is no token {token}.", f"The vocabulary has the ids 0 to {size - 1}.", "")
    next_probabilities(torch.zeros(1), temperature)  # a bad temperature is refused at the call, not at the first token
    return _tokens(model, list(prompt), count, temperature, seed)


def _tokens(model: Decoder, tokens: list[int], count: int, temperature: float, seed: int) -> Iterator[int]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        window = torch.tensor([tokens[-model.config.context :]])
        with torch.no_grad():
            logits = model(window).logits[0, -1]
        tokens.append(next_token(logits, temperature, generator))
        yield tokens[-1]


def _first_largest(logits: torch.Tensor) -> torch.Tensor:
    """The first index () at which ``logits`` (N,) is largest."""
    return (logits == logits.max()).nonzero()[0, 0]
