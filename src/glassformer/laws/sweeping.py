"""Every architecture of the installed ``transformers``, one process each; what is done already is not done again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..files import write_atomically
from .supervising import Order, supervised

MEMORY = 10_000
"""MB of address space for one architecture, where nothing else is said; libraries alone take half of it."""

LIMIT = 400.0
"""Seconds for one architecture."""

Tell = Callable[[str], None]


def swept(order: Order, folder: Path, jobs: int, tell: Tell) -> list[dict[str, Any]]:
    """The report on each architecture, also written to ``folder``; one that could not be checked has an ``error``.

    ``tell`` gets a line for each. A second call with the same order goes on where the first ended. Raises ``UserError``
    where ``folder`` cannot be made, or holds the reports of another order.
    """
    from .subjects.architectures import architectures, library

    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "transformers": str(library().__version__), "fast": order.fast, "only": list(order.only), "seed": order.seed,
    }  # fmt: skip
    _claim(folder, about)
    names = sorted({each.cls for each in architectures()})

    def one(name: str) -> dict[str, Any]:
        path = folder / f"{name}.json"
        known = _read(path)
        if known is not None:
            return known
        own = replace(order, subject=f"transformers:{name}", memory=order.memory or MEMORY, limit=LIMIT)
        try:
            report = supervised(own)
        except UserError as error:
            report = not_run(own.subject, error)
        write_atomically(path, (json.dumps(report, allow_nan=False, indent=1) + "\n").encode("ascii"))
        tell(f"{name}: {_said(report)}")
        return report

    with ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(one, names))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def not_run(subject: str, error: UserError) -> dict[str, Any]:
    """A report without a verdict: what could not be built or run, and why."""
    return {
        "schema": 1, "subject": subject, "kind": "", "facts": {}, "versions": {}, "forwards": 0, "placing": 0,
        "verdicts": {}, "laws": [], "error": [error.fact, error.context, error.next_step],
    }  # fmt: skip


def _said(report: Mapping[str, Any]) -> str:
    if "error" in report:
        return " ".join(report["error"][:2])
    violated = [entry["probe"] for entry in report["laws"] if entry["verdict"] == "violated"]
    return ("violates " + ", ".join(violated)) if violated else "nothing violated"


def _claim(folder: Path, about: Mapping[str, Any]) -> None:
    path = folder / "about.json"
    known = _read(path)
    if known is not None and known != about:
        raise UserError(
            f"{folder} holds the reports of another sweep.",
            f"There: {json.dumps(known)}; now: {json.dumps(dict(about))}.",
            "Give another folder.",
        )
    write_atomically(path, (json.dumps(about) + "\n").encode("ascii"))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # not there, or cut short: it is made anew
    return found if isinstance(found, dict) else None
