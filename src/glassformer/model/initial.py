"""The values that parameters start from.

Every parameter is found by the last part of its name, so a new part of the model must say how it starts:

| parameters | start |
|---|---|
| ``gamma`` | 1 |
| ``beta``, ``b_*`` | 0 |
| ``E``, ``P``, ``W_Q``, ``W_K``, ``W_V``, ``W_1``, ``U`` | normal, mean 0, deviation 0.02 |
| ``W_O``, ``W_2`` | normal, mean 0, deviation ``0.02/sqrt(2*blocks)`` |

The last row holds the projections that write to the residual stream. Each of the two parts of a block adds to it, so
after ``blocks`` blocks the stream is a sum of ``2*blocks`` outputs, whose variance this divisor keeps independent of
depth. Source of both rules: Radford et al. 2019, Language Models are Unsupervised Multitask Learners, section 2.3.
"""

from __future__ import annotations

import math

import torch
from torch import nn

DEVIATION = 0.02

_ONES = frozenset({"gamma"})
_ZEROS = frozenset({"beta", "b_Q", "b_K", "b_V", "b_O", "b_1", "b_2", "b_U"})
_READING = frozenset({"E", "P", "W_Q", "W_K", "W_V", "W_1", "U"})
_WRITING = frozenset({"W_O", "W_2"})


@torch.no_grad()
def initialise(model: nn.Module, blocks: int, generator: torch.Generator | None = None) -> None:
    """Set every parameter of ``model`` to its start, drawing from ``generator`` (torch's own when None).

    Raises ``ValueError`` for a parameter without a rule.
    """
    for name, parameter in model.named_parameters():
        kind = name.rpartition(".")[2]
        if kind in _ONES:
            parameter.fill_(1.0)
        elif kind in _ZEROS:
            parameter.zero_()
        elif kind in _READING:
            parameter.normal_(0.0, DEVIATION, generator=generator)
        elif kind in _WRITING:
            parameter.normal_(0.0, DEVIATION / math.sqrt(2 * blocks), generator=generator)
        else:
            raise ValueError(f"no rule says how {name} starts")
