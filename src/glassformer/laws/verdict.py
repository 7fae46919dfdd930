"""How a probe ends: a verdict, never silence; and what a maintainer needs to believe it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ..bilingual import Words, words

if TYPE_CHECKING:
    from .runs import Claim


class Verdict(StrEnum):
    """The five ways in which a probe can end."""

    HOLDS = "holds"
    VIOLATED = "violated"
    NOT_APPLICABLE = "not applicable"
    NOT_SUPPORTED = "not supported"
    DOCUMENTED = "documented limit"


LOST = "number that is not finite"
"""The unit of findings that count infinities and NaN."""


class Undecided(Exception):
    """A probe that could not measure; ``reason`` says why in both languages."""

    verdict = Verdict.NOT_SUPPORTED

    def __init__(self, en: str, zh: str) -> None:
        self.reason: Words = words(en, zh)
        super().__init__(en)


class NotSupported(Undecided):
    """The subject offers no way to test this, or what it offers has no effect."""


class NotApplicable(Undecided):
    """The condition of the law is not met by this subject."""

    verdict = Verdict.NOT_APPLICABLE


class DocumentedLimit(Undecided):
    """The subject breaks the law in a way that its documentation says it does; ``reason`` names the documentation."""

    verdict = Verdict.DOCUMENTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one probe measured at one precision.

    ``measured`` must be at most ``bound``, or with ``at_least`` at least that (a dual: what must have an effect); NaN
    never is. ``unit`` says what it counts. ``witness`` holds strict JSON: length, position, control, ... ``claim`` is the
    pair of runs behind it, from which the place and a program are made. A finding without one may say its ``place``
    itself, and ``shown`` makes its program from the bench.
    """

    measured: float
    bound: float
    unit: str = "logit"
    at_least: bool = False
    witness: Mapping[str, Any] = field(default_factory=dict)
    claim: Claim | None = None
    place: Place | None = None
    shown: Callable[[Any], str] | None = None

    @property
    def kept(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    @property
    def severity(self) -> float:
        """How many times too large (or too small) the measurement is; above 1 is a violation, NaN counts as infinite."""
        above, below = (self.bound, self.measured) if self.at_least else (self.measured, self.bound)
        if math.isnan(self.measured):
            return math.inf
        if below == 0:
            return 0.0 if above == 0 else math.inf
        return above / below


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The first part of a model whose output breaks a law although what it was given keeps it.

    ``module`` is its qualified name, ``kind`` its class, ``file`` and ``line`` where its ``forward`` is written, or for
    a part that is no module (a cache, a decoding loop) the method that was at work.
    ``mask`` shows who read whom (``.`` no, ``#`` yes) where attention was seen in it.
    """

    module: str
    kind: str
    file: str | None = None
    line: int | None = None
    mask: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        return {
            "module": self.module,
            "class": self.kind,
            "file": self.file,
            "line": self.line,
            "mask": list(self.mask),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The verdict of one probe. ``reason`` says why there is no measurement, or which documentation states the limit."""

    law: str
    probe: str
    verdict: Verdict
    reason: Words | None = None
    findings: Mapping[str, Finding] = field(default_factory=dict)
    place: Place | None = None
    program: str | None = None

    @property
    def finding(self) -> Finding | None:
        """The measurement that decided: the one furthest on the wrong side, of all precisions."""
        return max(self.findings.values(), key=lambda finding: finding.severity, default=None)

    def plain(self) -> dict[str, Any]:
        """Strict JSON; a number that JSON cannot spell is null."""
        finding = self.finding
        data: dict[str, Any] = {"law": self.law, "probe": self.probe, "verdict": self.verdict.value}
        if self.reason is not None:
            data["reason"] = dict(self.reason)
        if finding is not None:
            data |= {"measured": _number(finding.measured), "bound": _number(finding.bound), "unit": finding.unit}
            data |= {"relation": "at least" if finding.at_least else "at most", "witness": _plain(finding.witness)}
            data["precisions"] = {
                name: {"measured": _number(each.measured), "bound": _number(each.bound), "kept": each.kept}
                for name, each in self.findings.items()
            }
        if self.place is not None:
            data["place"] = self.place.plain()
        if self.program is not None:
            data["program"] = self.program
        return data


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return _number(value) if isinstance(value, float) else value
