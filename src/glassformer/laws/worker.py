"""A check in a process of its own: one JSON request on standard input, JSON lines on standard output.

Lines are ``{"at": probe, "precision": ...}`` before each probe, and at the end ``{"report": ...}`` or ``{"error": [fact,
context, next step]}``. What foreign code prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import UserError


def main() -> None:
    """Read the request, check, write the report."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")

    def say(line: Mapping[str, Any]) -> None:
        own.write(json.dumps(line, allow_nan=False) + "\n")
        own.flush()

    say({"at": "", "precision": ""})
    request = json.loads(sys.stdin.buffer.read())
    try:
        answer: Mapping[str, Any] = {"report": checked(request, lambda at, how: say({"at": at, "precision": how}))}
    except UserError as error:
        answer = {"error": [error.fact, error.context, error.next_step]}
    except MemoryError:
        answer = {"error": ["There was not enough memory.", "", "Check a smaller model."]}
    say(answer)
    own.close()
    os._exit(0)  # threads of foreign code would keep the process alive


def checked(request: Mapping[str, Any], watch: Callable[[str, str], None]) -> dict[str, Any]:
    """The report on what ``request`` names, as strict JSON; for a ``listing`` only the probes. Raises ``UserError``."""
    limit_memory(request.get("memory"))
    from .checking import check_subject, chosen, refuse_unknown
    from .law import Family
    from .subjects.resolve import subjects_from
    from .subjects.told import Told
    from .table import LAWS

    only, seed = request.get("only", ()), int(request.get("seed", 0))
    refuse_unknown(only)
    subjects = subjects_from(request["subject"], Told(request.get("told", {})), seed)
    chosen_so = {"fast": bool(request.get("fast")), "only": only, "without": request.get("without", ())}
    if request.get("listing"):
        return {"laws": [
            {"law": law.id, "probe": probe.id}
            for subject in subjects for law, probe in chosen(LAWS, subject.family, **chosen_so)
        ]}  # fmt: skip
    # A few probes are for the model: beside it the loop and its rules would cost more than they all.
    if request.get("fast") and subjects[0].family is Family.MODEL:
        subjects = [each for each in subjects if each.family not in (Family.GENERATOR, Family.SAMPLER)]
    reports = [check_subject(subject, seed=seed, watch=watch, **chosen_so).plain() for subject in subjects]
    return {**merged(request["subject"], reports), "statements": {law.id: dict(law.statement) for law in LAWS}}


def merged(name: str, reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One report of several: the first is the model's, the others what belongs to it."""
    first = dict(reports[0])
    for report in reports[1:]:
        for count in ("forwards", "placing"):
            first[count] += report[count]
        first["verdicts"] = {key: first["verdicts"][key] + count for key, count in report["verdicts"].items()}
        first["laws"] = [*first["laws"], *report["laws"]]
    return {**first, "subject": name}


def limit_memory(megabytes: int | None) -> None:
    """Let the process have no more address space than that, where the system can say so."""
    if megabytes is None:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


if __name__ == "__main__":
    main()
