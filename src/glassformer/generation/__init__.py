"""Text out of a model, one token at a time."""

from .sample import generate, next_probabilities

__all__ = ["generate", "next_probabilities"]
