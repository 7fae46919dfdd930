"""The Typer app: one command per verb."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from .book import book_command, worksheet_command
from .check import EPILOG, check_command
from .console import help_if_alone, write
from .data import data_app
from .explain import explain_command
from .formula import formula_command
from .generate import generate_command
from .laws import laws_command
from .probe import probe_command
from .stopping import StoppedAtOnce
from .trace import trace_command
from .train import train_command


class _Verbs(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise StoppedAtOnce from stop


app = typer.Typer(
    name="glassformer",
    cls=_Verbs,
    help="A Transformer you can see through: train one, run one, and ask any number how it came about.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("trace")(trace_command)
app.command("explain")(explain_command)
app.command("formula")(formula_command)
app.command("train")(train_command)
app.command("generate")(generate_command)
app.add_typer(data_app)
app.command("probe")(probe_command)
app.command("book")(book_command)
app.command("worksheet")(worksheet_command)
app.command("check", epilog=EPILOG)(check_command)
app.command("laws")(laws_command)


@app.callback(invoke_without_command=True)
def _verbs(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """A Transformer you can see through: train one, run one, and ask any number how it came about."""
    if version:
        write([f"glassformer {__version__}"])
        raise typer.Exit(0)
    help_if_alone(context)
