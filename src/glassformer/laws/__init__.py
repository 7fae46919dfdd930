"""Laws that every correct Transformer keeps, and a checker for anybody's.

| file | what it holds |
|---|---|
| ``law.py``, ``table.py`` | a law: statement, conditions, probes; the table of all |
| ``runs.py`` | runs of a model, and claims about two of them |
| ``verdict.py``, ``report.py`` | how a probe ends; what a check found |
| ``weights.py``, ``bench.py`` | a copy on which faults show; texts, runs, bounds, claims put to the test |
| ``checking.py`` | every probe on a subject |
| ``subjects/`` | what can be checked |
| ``probes/`` | one file per law |
"""

from __future__ import annotations

from .checking import check_subject
from .law import Family, Law, Probe
from .report import Report, Violation
from .table import LAWS
from .verdict import Finding, Result, Verdict

__all__ = ["LAWS", "Family", "Finding", "Law", "Probe", "Report", "Result", "Verdict", "Violation", "check_subject"]
