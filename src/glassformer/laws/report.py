"""What a check found: verdicts by law, as JSON, and as an error for whoever wants one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .verdict import Result, Verdict

SCHEMA = 1


class Violation(AssertionError):
    """A checked subject breaks a law."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of one check, in the order of the law table.

    ``subject`` is its name, ``kind`` what it was taken for, ``forwards`` the forward passes that the laws took, ``placing``
    those made beside them to find where a broken law breaks, ``versions`` what it ran on, ``facts`` what was found out
    about the subject.
    """

    subject: str
    kind: str
    results: tuple[Result, ...]
    forwards: int = 0
    placing: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, probe: str) -> Result:
        """The result of one probe, by its id; raises ``KeyError``."""
        for result in self.results:
            if result.probe == probe:
                return result
        raise KeyError(probe)

    @property
    def violations(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.verdict is Verdict.VIOLATED)

    def count(self, verdict: Verdict) -> int:
        return sum(result.verdict is verdict for result in self.results)

    def exit_code(self, *, strict: bool = False) -> int:
        """0 when nothing is violated, 1 otherwise; ``strict`` counts what is not supported too; 2 when nothing ran."""
        decided = [result for result in self.results if result.findings]
        if not decided:
            return 2
        return int(bool(self.violations) or (strict and self.count(Verdict.NOT_SUPPORTED) > 0))

    def raise_for_violations(self) -> None:
        """Raise ``Violation``, an ``AssertionError``, that names each violated probe with what was measured."""
        if self.violations:
            raise Violation(f"{self.subject} breaks {len(self.violations)} law probes:\n" + "\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        for result in self.violations:
            finding = result.finding
            measured = "" if finding is None else f": {finding.measured:.3g} {finding.unit}, bound {finding.bound:.3g}"
            where = (
                ""
                if result.place is None
                else f", first in {result.place.module} ({result.place.file}:{result.place.line})"
            )
            yield f"  {result.probe}{measured}{where}"

    def plain(self) -> dict[str, Any]:
        """Strict JSON."""
        return {
            "schema": SCHEMA,
            "subject": self.subject,
            "kind": self.kind,
            "facts": dict(self.facts),
            "versions": dict(self.versions),
            "forwards": self.forwards,
            "placing": self.placing,
            "verdicts": {verdict.value: self.count(verdict) for verdict in Verdict},
            "laws": [result.plain() for result in self.results],
        }
