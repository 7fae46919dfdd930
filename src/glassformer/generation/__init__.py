"""Text out of a model, one token at a time.

| file | what |
|---|---|
| ``rules.py`` | from scores to a token: temperature, top-k, top-p, the draw |
| ``sample.py`` | token after token, keys and values kept |
| ``decoding.py`` | the rules as definitions; one choice explained |
| ``streaming.py`` | whole characters out of tokens |
| ``stopping.py`` | when a text ends |
| ``continuation.py`` | all of it: prompt in, text out |
"""

from .continuation import Continuation, Request
from .decoding import DecodingStep, decoding_step, explain_decoding
from .rules import Rule, Stages, draw, next_probabilities, ranks, stages, uniform
from .sample import Choice, Decision, choices, decisions, generate
from .stopping import Reason, StopStrings
from .streaming import TextStream

__all__ = [
    "Choice",
    "Continuation",
    "Decision",
    "DecodingStep",
    "Reason",
    "Request",
    "Rule",
    "Stages",
    "StopStrings",
    "TextStream",
    "choices",
    "decisions",
    "decoding_step",
    "draw",
    "explain_decoding",
    "generate",
    "next_probabilities",
    "ranks",
    "stages",
    "uniform",
]
