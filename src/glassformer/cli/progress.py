"""How training shows that it is alive: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .console import write

if TYPE_CHECKING:
    from rich.console import Console

    from ..training import Step

    Heard = Callable[[Step], None]

PLAIN_EVERY = 5.0  # seconds between two lines when there is no terminal


@contextlib.contextmanager
def progress() -> Iterator[Heard]:
    """Inside, show each step that is told: a bar on standard error when it is a terminal, else lines on standard output."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines().heard
        return
    with _bar(console) as heard:
        yield heard


@contextlib.contextmanager
def _bar(console: Console) -> Iterator[Heard]:
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        validation: float | None = None

        def heard(step: Step) -> None:
            nonlocal validation
            validation = validation if step.validation is None else step.validation
            whole = step.elapsed + step.left
            bar.update(task, completed=step.elapsed / whole if whole else 1.0, description=_line(step, validation))

        yield heard


class _Lines:
    """Prints the first step, each with a validation loss, and one now and then."""

    def __init__(self) -> None:
        self._printed: float | None = None

    def heard(self, step: Step) -> None:
        if self._printed is None or step.validation is not None or step.elapsed - self._printed >= PLAIN_EVERY:
            self._printed = step.elapsed
            write([_line(step, step.validation)])


def _line(step: Step, validation: float | None) -> str:
    measured = "" if validation is None else f"  validation {validation:.3f}"
    return (
        f"step {step.step:,}  loss {step.loss:.3f}{measured}  {step.tokens_per_second:,.0f} tokens/s  "
        f"{step.elapsed:.0f} s, {step.left:.0f} s left"
    )
