"""Text out of a model, one token at a time."""

from .sample import generate, next_probabilities, next_token

__all__ = ["generate", "next_probabilities", "next_token"]
