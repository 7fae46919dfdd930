"""Ctrl-C once: finish the step and save. Twice: stop at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class StoppedAtOnce(Exception):
    """What becomes of a KeyboardInterrupt on its way through Typer, which would drop its notes."""


class Stop:
    """``wanted`` becomes true when somebody asked the run to end."""

    def __init__(self) -> None:
        self.wanted = False

    def before_work(self, *_: object) -> None:
        """To be called while nothing is done yet that could be kept: the first request already ends it."""
        if self.wanted:
            raise KeyboardInterrupt


@contextlib.contextmanager
def stop_on_signal() -> Iterator[Stop]:
    """While inside, the first interrupt (Ctrl-C) or termination request is remembered, the second raises.

    An exception in the middle of an update would leave parameters half old and half new; a remembered wish leaves the
    model as it was after a whole step. Signals can only be caught in the main thread; elsewhere nothing changes.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def remember(number: int, frame: FrameType | None) -> None:
        if stop.wanted:
            raise KeyboardInterrupt
        stop.wanted = True

    before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
