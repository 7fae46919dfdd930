"""Text out of a model, one token at a time.

| file | what |
|---|---|
| ``rules.py`` | from scores to a token: temperature, top-k, top-p, the draw |
| ``sample.py`` | token after token, keys and values kept |
| ``streaming.py`` | whole characters out of tokens |
| ``stopping.py`` | when a text ends |
| ``continuation.py`` | all of it: prompt in, text out |
"""

from .continuation import Continuation, Request
from .rules import Rule, draw, next_probabilities, ranks, uniform
from .sample import Choice, choices, generate
from .stopping import Reason, StopStrings
from .streaming import TextStream

__all__ = [
    "Choice",
    "Continuation",
    "Reason",
    "Request",
    "Rule",
    "StopStrings",
    "TextStream",
    "choices",
    "draw",
    "generate",
    "next_probabilities",
    "ranks",
    "uniform",
]
