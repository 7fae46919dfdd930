"""Loops that write text with a model, as a subject: prompts in, new ids and their scores out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..law import Family
from ..verdict import NotSupported
from .sampling import takes

Ids = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written after one prompt: the new ``ids``, without end and padding, their ``score``, None where not told."""

    ids: Ids
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A decoding loop under test. What it takes is read from the signature of ``generate``; ``**kwargs`` promises nothing.

    ``generate(prompts, *, count, ...)`` continues each of the ``prompts`` by at most ``count`` ids, greedily unless told
    otherwise, and gives one ``Written`` each. It may take ``temperature`` and ``seed``; ``end``, the id that ends a row;
    ``beams`` and ``length_penalty``. ``forward(ids (n,))`` gives the logits ``(n, N)`` of the model at every position.
    ``vocab_size`` is N; ``special`` ids stand in no prompt, and those that the loop ``never`` writes, whatever the model
    says, are no choice of its. A ``score`` is the sum of log-probabilities of the new ids by the model, or with
    ``scores_of_rule`` by what the temperature makes of it; with a length penalty it may be anything that depends on this
    sum and the number of new ids alone. ``stopped(parts, stop)`` gives what is shown of a text that comes in ``parts`` and
    ends before the string ``stop``. ``speculate(target (N,), draft (N,))`` gives the probability ``(N,)`` with which each
    token of the draft is accepted, and the probabilities ``(N, N)`` of what stands in the place of each refused one.
    """

    family: ClassVar[Family] = Family.GENERATOR
    name: str
    generate: Callable[..., Sequence[Written]] | None = None
    forward: Callable[[Tensor], Tensor] | None = None
    vocab_size: int = 0
    special: frozenset[int] = frozenset()
    never: frozenset[int] = frozenset()
    scores_of_rule: bool = False
    stopped: Callable[[Sequence[str], str], str] | None = None
    speculate: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None

    def write(self, prompts: Sequence[Ids], count: int, **settings: Any) -> Sequence[Written]:
        """``generate``; raises ``NotSupported`` where it does not take one of ``settings``."""
        self.need(*settings)
        assert self.generate is not None
        return self.generate([list(prompt) for prompt in prompts], count=count, **settings)

    def need(self, *arguments: str) -> None:
        """Raise ``NotSupported`` unless ``generate`` takes each of ``arguments``."""
        if self.generate is None or self.vocab_size < 2:
            raise NotSupported("no loop over a vocabulary was told", "未给出生成循环及其词表大小")
        for argument in arguments:
            if not takes(self.generate, argument):
                raise NotSupported(f"generate takes no {argument}", f"generate 不接受 {argument}")

    def logits(self, ids: Ids) -> Tensor:
        """``(n, N)`` float64 of the model alone."""
        if self.forward is None:
            raise NotSupported("no forward pass was told", "未给出前向计算")
        with torch.no_grad():
            return self.forward(torch.tensor(list(ids))).detach().double().reshape(len(ids), -1)
