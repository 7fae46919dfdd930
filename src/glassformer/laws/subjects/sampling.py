"""Rules that choose the next token, as a subject: the probabilities they leave, what they draw, what they report."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..law import Family
from ..verdict import NotSupported

RULES = ("temperature", "top_k", "top_p", "min_p")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Decoding rules under test. Which rules there are is read from the signatures; ``**kwargs`` promises none.

    ``distribution(logits (N,), *, temperature, top_k, top_p, min_p)`` gives the probabilities ``(N,)`` that are drawn from;
    ``draw(logits (N,), *, count, seed, ...)`` gives ``count`` ids, drawn one after another from the random numbers of
    ``seed``; ``scores(logits (N,), ...)`` gives the log-probabilities ``(N,)`` that are reported for sampled tokens.
    ``order`` names the rules in the order in which they are documented to act; None where nothing says so.
    """

    family: ClassVar[Family] = Family.SAMPLER
    name: str
    distribution: Callable[..., Tensor | Sequence[float]] | None = None
    draw: Callable[..., Sequence[int]] | None = None
    scores: Callable[..., Tensor | Sequence[float]] | None = None
    order: tuple[str, ...] | None = None

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that ``distribution`` takes."""
        return tuple(rule for rule in RULES if self.distribution is not None and takes(self.distribution, rule))

    def probabilities(self, logits: Tensor, **rules: Any) -> Tensor:
        """``(N,)`` float64; raises ``NotSupported`` where a rule is not offered."""
        return numbers(self.distribution, logits, rules, "distribution", "分布")

    def reported(self, logits: Tensor, **rules: Any) -> Tensor:
        """``(N,)`` float64 log-probabilities; raises ``NotSupported`` as above."""
        return numbers(self.scores, logits, rules, "scores", "得分")

    def drawn(self, logits: Tensor, count: int, seed: int, **rules: Any) -> Tensor:
        """``(count,)`` ids; raises ``NotSupported`` as above."""
        function = offered(self.draw, rules, "draw", "抽样")
        return torch.as_tensor(function(logits.clone(), count=count, seed=seed, **rules)).reshape(-1).long()


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether ``name`` is an argument of ``function`` by its signature."""
    return name in inspect.signature(function).parameters


def offered(function: Callable[..., Any] | None, rules: dict[str, Any], en: str, zh: str) -> Callable[..., Any]:
    """``function``, if it is there and takes each of ``rules``; raises ``NotSupported`` otherwise."""
    if function is None:
        raise NotSupported(f"no {en} was told", f"未给出{zh}")
    for rule in rules:
        if not takes(function, rule):
            raise NotSupported(f"there is no {rule}", f"没有 {rule}")
    return function


def numbers(function: Callable[..., Any] | None, logits: Tensor, rules: dict[str, Any], en: str, zh: str) -> Tensor:
    """What ``function`` gives for ``logits (N,)``, as ``(N,)`` float64."""
    found = offered(function, rules, en, zh)(logits.clone(), **rules)
    return torch.as_tensor(found).detach().double().reshape(-1)
