"""A report as JUnit XML, which build servers read: one case a probe."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from . import reading
from .reading import Plain

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold, escaped or not."""

SKIPPED = ("not applicable", "not supported", "documented limit")


def junit(reports: Sequence[Plain]) -> str:
    """One suite a report; violations are failures, and what was not decided is skipped with its reason."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for report in reports:
        entries = report["laws"]
        failed = sum(entry["verdict"] == "violated" for entry in entries)
        skipped = sum(entry["verdict"] in SKIPPED for entry in entries)
        name = _attribute(str(report["subject"]))
        lines.append(
            f'<testsuite name={name} tests="{len(entries)}" failures="{failed}" errors="0" skipped="{skipped}">'
        )
        for entry in entries:
            lines += _case(entry, name)
        lines.append("</testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _case(entry: Plain, suite: str) -> list[str]:
    head = f"<testcase classname={suite} name={_attribute(entry['probe'])}"
    if entry["verdict"] == "holds":
        return [f"{head}/>"]
    if entry["verdict"] != "violated":
        said = f"{entry['verdict']}: {reading.reason(entry, 'en')}"
        return [f"{head}><skipped message={_attribute(said)}/></testcase>"]
    body = [reading.witness(entry, "en"), reading.place(entry, "en"), *reading.mask(entry), entry.get("program") or ""]
    text = escape(_clean("\n".join(line for line in body if line)))
    message = _attribute(reading.measured(entry, "en"))
    return [f"{head}><failure message={message}>{text}</failure></testcase>"]


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
