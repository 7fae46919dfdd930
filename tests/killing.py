"""Processes that are killed at a chosen moment of writing, or whenever their parent likes.

Children are forked from a server that has imported torch, so one costs a fraction of a second. In a child the primitives
that the product writes with (opening, flushing, renaming, removing) are wrapped: each call has a moment before it, one
after it, and for content one in the middle. Nothing in the product knows of it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

WAIT = 120  # seconds until a child that should long have ended is given up
_HIDDEN = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.partial")


class Moments:
    """Counts the moments of this process by kind, and kills it at the chosen one."""

    def __init__(self, chosen: str | None, occurrence: int) -> None:
        self.seen: dict[str, int] = {}
        self._chosen = chosen
        self._occurrence = occurrence

    def reach(self, moment: str) -> None:
        """This moment has come."""
        self.seen[moment] = self.seen.get(moment, 0) + 1
        if moment == self._chosen and self.seen[moment] == self._occurrence:
            os.kill(os.getpid(), signal.SIGKILL)

    def is_next(self, moment: str) -> bool:
        """Whether the process dies when ``moment`` comes the next time."""
        return moment == self._chosen and self.seen.get(moment, 0) + 1 == self._occurrence


def kind(path: str | Path) -> str:
    """What a path is, whatever the step and the hidden name: ``checkpoint/state.json``, ``metrics.jsonl``."""
    names = []
    for part in Path(path).parts[-3:]:
        hidden = _HIDDEN.fullmatch(part)
        name = hidden["name"] if hidden else part
        names.append("checkpoint" if name.startswith("step-") else name)
    if "checkpoint" in names:
        return "/".join(names[names.index("checkpoint") :])
    return names[-1] if "." in names[-1] or names[-1] == "checkpoints" else "folder"


class _Torn:
    """A file of which half of the next content arrives before the process dies."""

    def __init__(self, file: Any, moments: Moments, moment: str) -> None:
        self._file, self._moments, self._moment = file, moments, moment

    def __enter__(self) -> _Torn:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, content: Any) -> None:
        self._file.write(content[: len(content) // 2])
        self._file.flush()
        self._moments.reach(self._moment)


def instrument(moments: Moments) -> None:
    """Wrap what this process writes with; only for a process that is not needed afterwards."""
    real_open, real_fsync, real_unlink = Path.open, os.fsync, os.unlink

    def open_(self: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        file = real_open(self, mode, *args, **kwargs)
        if not set(mode) & set("wxa") or mode == "ab":  # "ab" only flushes
            return file
        moment = f"in the middle of writing {kind(self)}"
        if moments.is_next(moment):
            return _Torn(file, moments, moment)
        moments.seen[moment] = moments.seen.get(moment, 0) + 1
        return file

    def fsync(number: int) -> None:
        name = kind(Path(f"/proc/self/fd/{number}").readlink())
        moments.reach(f"before flushing {name}")
        real_fsync(number)
        moments.reach(f"after flushing {name}")

    def renaming(real: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
        def rename(self: Path, target: Path) -> Path:
            verb = "setting aside" if _HIDDEN.fullmatch(Path(target).name) else "naming"
            moments.reach(f"before {verb} {kind(target)}")
            result = real(self, target)
            moments.reach(f"after {verb} {kind(target)}")
            return result

        return rename

    def unlink(path: Any, *args: Any, **kwargs: Any) -> None:
        moments.reach(f"before removing {kind(path)}")
        real_unlink(path, *args, **kwargs)
        moments.reach(f"after removing {kind(path)}")

    Path.open, Path.rename, Path.replace = open_, renaming(Path.rename), renaming(Path.replace)  # pyright: ignore
    os.fsync, os.unlink = fsync, unlink  # pyright: ignore


def go_on_in_child(path: Path, chosen: str | None, occurrence: int, lives: int, report: Connection) -> None:
    """What a child does: go on with the run in ``path``; after ``lives`` steps it only waits to be killed."""
    from resuming import go_on

    moments = Moments(chosen, occurrence)
    instrument(moments)
    made = 0

    def stop() -> bool:
        nonlocal made
        made += 1
        if made == lives:
            time.sleep(2 * WAIT)
        return False

    report.send("go")
    go_on(path, stop)
    report.send(json.dumps(moments.seen))


def begin_in_child(path: Path, chosen: str | None, occurrence: int, lives: int, report: Connection) -> None:
    """What a child does: write all that comes before the first step."""
    from resuming import begin

    moments = Moments(chosen, occurrence)
    instrument(moments)
    report.send("go")
    begin(path)
    report.send(json.dumps(moments.seen))


def child(
    path: Path,
    *,
    chosen: str | None = None,
    occurrence: int = 1,
    lives: int = -1,
    after: float | None = None,
    target: Callable[[Path, str | None, int, int, Connection], None] = go_on_in_child,
) -> dict[str, int] | None:
    """Run ``target``; the moments it saw, or None when it was killed: at its chosen moment, or ``after`` seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "glassformer.training", "glassformer.generation"])
    here, there = context.Pipe(duplex=False)
    process: BaseProcess = context.Process(target=target, args=(path, chosen, occurrence, lives, there))
    process.start()
    there.close()
    seen = None
    try:
        assert here.poll(WAIT), "the child did not start"
        assert here.recv() == "go"
        if after is not None:
            time.sleep(after)
            process.kill()
        if here.poll(WAIT):
            seen = json.loads(here.recv())
    except EOFError:
        seen = None
    finally:
        process.join(WAIT)
        here.close()
    assert process.exitcode == (0 if seen is not None else -signal.SIGKILL), f"the child ended with {process.exitcode}"
    return seen
