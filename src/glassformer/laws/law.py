"""A law: declared once, with its statement, its conditions, why it matters, and the probes that test it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..bilingual import Words
from .verdict import Finding


class Family(StrEnum):
    """What a probe can be run on."""

    MODEL = "model"
    TOKENIZER = "tokenizer"
    SAMPLER = "sampler"
    GENERATOR = "generator"
    TRAINER = "trainer"
    LOSS = "loss"
    COLLATOR = "collator"
    LOADER = "loader"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One way of testing a law, with a verdict of its own.

    ``run`` takes a bench (for a model) or the subject itself (for the other families) and returns a ``Finding``; it
    raises ``NotSupported`` or ``NotApplicable`` where there is nothing to measure. ``fast`` probes are those of ``--fast``.
    ``repeated`` probes are tried in single precision too, whatever double precision says,
    ``exact`` ones in one alone: what they count does not hang on rounding.
    """

    id: str
    does: Words
    run: Callable[[Any], Finding]
    family: Family = Family.MODEL
    fast: bool = False
    repeated: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A property of every correct subject. ``formula`` is LaTeX; ``chapter`` names the section of the notes it is from."""

    id: str
    statement: Words
    formula: str
    conditions: Words
    why: Words
    chapter: str
    probes: tuple[Probe, ...]

    def __post_init__(self) -> None:
        if stray := [probe.id for probe in self.probes if not probe.id.startswith(f"{self.id}.")]:
            raise ValueError(f"{stray[0]} is not a probe of {self.id}")
