"""Run a check in another process, see that it goes on, and make something of it when it does not.

Nothing here loads torch: reports are JSON.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from ..bilingual import Words, words
from ..errors import UserError

MOST_LOST = 3
"""After so many probes that hung or ended the process, what is left is not tried."""

START = 120.0
"""Seconds that loading libraries may take beside the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to check, as the command line says it.

    ``timeout`` is in seconds for each probe, ``limit`` for the whole check, ``memory`` in MB. ``listing`` asks for the
    probes alone.
    """

    subject: str
    told: Mapping[str, Any] = field(default_factory=dict)
    fast: bool = False
    only: tuple[str, ...] = ()
    seed: int = 0
    timeout: float = 120.0
    memory: int | None = None
    limit: float | None = None
    listing: bool = False

    def request(self, without: list[str]) -> bytes:
        wanted = {
            "subject": self.subject, "told": dict(self.told), "fast": self.fast, "only": list(self.only),
            "seed": self.seed, "memory": self.memory, "without": without, "listing": self.listing,
        }  # fmt: skip
        return json.dumps(wanted).encode()


@dataclass(frozen=True, slots=True)
class _Lost:
    """Where a process was when it hung or died, and what is to be said of it."""

    probe: str
    reason: Words


Progress = Callable[[str], None]


def supervised(order: Order, progress: Progress | None = None) -> dict[str, Any]:
    """The report on ``order``, as strict JSON. Raises ``UserError`` for what cannot be checked at all.

    A probe that hangs or ends the process is ``not supported`` with that as the reason; the others are tried anew.
    """
    lost: list[_Lost] = []
    while True:
        without = [each.probe for each in lost]
        answer = _attempt(order, without, progress)
        if isinstance(answer, Mapping):
            return _with(answer, lost) if lost else dict(answer)
        if not answer.probe:
            raise UserError(f"{order.subject} could not be checked.", answer.reason["en"], "Nothing was tried.")
        if len(lost) == MOST_LOST:
            raise UserError(
                f"{order.subject} could not be checked.",
                f"{len(lost) + 1} probes did not end; the last was {answer.probe}: {answer.reason['en']}.",
                "Choose laws with --only, or give more time with --timeout.",
            )
        lost.append(answer)


def _with(report: Mapping[str, Any], lost: list[_Lost]) -> dict[str, Any]:
    laws = [
        *report["laws"],
        *(
            {"law": each.probe.split(".")[0], "probe": each.probe, "verdict": "not supported", "reason": each.reason}
            for each in lost
        ),
    ]
    order = {law: k for k, law in reversed(list(enumerate(entry["law"] for entry in laws)))}
    verdicts = dict(report["verdicts"])
    verdicts["not supported"] = verdicts.get("not supported", 0) + len(lost)
    return {**report, "laws": sorted(laws, key=lambda entry: order[entry["law"]]), "verdicts": verdicts}


def _attempt(order: Order, without: list[str], progress: Progress | None) -> dict[str, Any] | _Lost:
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "glassformer.laws.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=said, env=_environment(), start_new_session=True,
        )  # fmt: skip
        try:
            return _followed(process, order, without, progress, said)
        finally:
            _end(process)


def _environment() -> dict[str, str]:
    # The child finds what this process finds, wherever that came from.
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}  # fmt: skip


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (OSError, AttributeError):
            process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _followed(
    process: subprocess.Popen[bytes], order: Order, without: list[str], progress: Progress | None, said: IO[bytes]
) -> dict[str, Any] | _Lost:
    lines: queue.Queue[bytes | None] = queue.Queue()
    assert process.stdin is not None
    try:
        process.stdin.write(order.request(without))
        process.stdin.close()
    except BrokenPipeError:
        pass  # it died already: what it said is told below
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    probe, patience = "", order.timeout + START
    began = time.monotonic()
    while True:
        try:
            line = lines.get(timeout=patience if order.timeout > 0 else None)
        except queue.Empty:
            where = _where(probe)
            return _Lost(probe, words(f"{where} did not end in {order.timeout:g} s", f"{order.timeout:g} 秒内没有结束"))
        if line is None:
            return _Lost(probe, _death(process, said))
        if order.limit is not None and time.monotonic() - began > order.limit:
            raise UserError(f"{order.subject} could not be checked.", f"It took more than {order.limit:g} s.", "")
        news = json.loads(line)
        if "report" in news:
            return news["report"]
        if "error" in news:
            raise UserError(*news["error"])
        if news["at"]:
            probe, patience = news["at"], order.timeout
            if progress is not None:
                progress(f"{news['at']} {news['precision']}".strip())


def _where(probe: str) -> str:
    return "this probe" if probe else "building the model"


def _read(process: subprocess.Popen[bytes], lines: queue.Queue[bytes | None]) -> None:
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.put(line)
    except ValueError:
        pass  # closed while reading: the process was ended
    lines.put(None)


def _death(process: subprocess.Popen[bytes], said: IO[bytes]) -> Words:
    code = process.wait()
    said.seek(0)
    text = said.read().decode("utf-8", "replace") if code > 0 else ""  # a signal leaves no last words
    last = [line for line in text.splitlines() if line.strip()][-1:]
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    words_ = f": {last[0].strip()[:200]}" if last else ""
    return words(f"the process ended ({how}){words_}", f"进程终止（{how}）{words_}")
