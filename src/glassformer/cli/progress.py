"""How training shows that it is alive: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .console import write

if TYPE_CHECKING:
    from ..training import Step
    from ..training.loop import Steps

PLAIN_EVERY = 5.0  # seconds between two lines when there is no terminal


def shown(steps: Steps) -> Steps:
    """Pass ``steps`` on, showing each: a bar on standard error when it is a terminal, else lines on standard output."""
    from rich.console import Console

    console = Console(stderr=True)
    return _bar(steps, console) if console.is_terminal else _lines(steps)


def _bar(steps: Steps, console: object) -> Steps:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    assert isinstance(console, Console)
    columns = (BarColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=1.0)
        validation: float | None = None
        for step in steps:
            validation = validation if step.validation is None else step.validation
            whole = step.elapsed + step.left
            progress.update(task, completed=step.elapsed / whole if whole else 1.0, description=_line(step, validation))
            yield step


def _lines(steps: Steps) -> Steps:
    printed = 0.0
    for step in steps:
        if step.step == 1 or step.validation is not None or step.elapsed - printed >= PLAIN_EVERY:
            printed = step.elapsed
            write([_line(step, step.validation)])
        yield step


def _line(step: Step, validation: float | None) -> str:
    measured = "" if validation is None else f"  validation {validation:.3f}"
    return (
        f"step {step.step:,}  loss {step.loss:.3f}{measured}  {step.tokens_per_second:,.0f} tokens/s  "
        f"{step.elapsed:.0f} s, {step.left:.0f} s left"
    )
