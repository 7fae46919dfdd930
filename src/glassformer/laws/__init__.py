"""Laws that every correct Transformer keeps, and a checker for anybody's.

    from glassformer.laws import check
    check(model).raise_for_violations()

| file | what it holds |
|---|---|
| ``law.py``, ``table.py`` | a law: statement, conditions, probes; the table of all |
| ``runs.py`` | runs of a model, and claims about two of them |
| ``verdict.py``, ``report.py`` | how a probe ends; what a check found |
| ``weights.py``, ``bench.py``, ``kept.py`` | a copy on which faults show; texts, runs, bounds, claims put to the test |
| ``checking.py``, ``documented.py`` | every probe on a subject; what a library documents as a limit |
| ``explaining.py``, ``place.py``, ``program.py`` | what stands beside a violation: the part at fault, a program that shows it |
| ``subjects/`` | what can be checked, and how it is found |
| ``probes/`` | one file per law; ``quick.py``: what ``--fast`` asks first |
| ``worker.py``, ``supervising.py``, ``sweeping.py`` | checks in a process of their own, with a time limit; many of them |
| ``junit.py``, ``page.py`` | a report as JUnit XML and as a page |
| ``pytest_plugin.py`` | one test per probe |

Loading the package is light: each name is fetched from its home when it is first used, so that the pytest plugin costs
nothing in suites that do not use it.
"""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .checking import check, check_subject
    from .law import Family, Law, Probe
    from .report import Report, Violation
    from .table import LAWS
    from .verdict import Finding, Result, Verdict

__all__ = [
    "LAWS",
    "Family",
    "Finding",
    "Law",
    "Probe",
    "Report",
    "Result",
    "Verdict",
    "Violation",
    "check",
    "check_subject",
]

HOMES = MappingProxyType(
    {
        "LAWS": "table",
        "Family": "law",
        "Finding": "verdict",
        "Law": "law",
        "Probe": "law",
        "Report": "report",
        "Result": "verdict",
        "Verdict": "verdict",
        "Violation": "report",
        "check": "checking",
        "check_subject": "checking",
    }
)
"""The file of each public name."""


def __getattr__(name: str) -> object:
    """Fetch a public name from its home; raises ``AttributeError`` for any other."""
    if name not in HOMES:
        raise AttributeError(f"module 'glassformer.laws' has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(importlib.import_module(f".{HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return list(__all__)
