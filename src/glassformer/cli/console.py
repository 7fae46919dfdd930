"""Printing for people: plain lines that any terminal can show, or one clear error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

import numpy as np
import typer

from ..errors import UserError
from ..notation.numerals import number_text
from ..notation.quantity import Quantity
from ..text.visible import visible

# What a terminal without Unicode prints instead; anything else it cannot show is an error, never a wrong letter.
_PLAIN = str.maketrans(
    {
        "−": "-", "√": "sqrt ", "Σ": "sum ", "·": "*", "∂": "d", "η": "eta", "∞": "inf", "→": "->", "≤": "<=", "…": "...",
        "“": '"', "”": '"', "—": "-", "–": "-", "×": "x", "ε": "eps", "≈": "~", "π": "pi", "γ": "gamma", "β": "beta",
        "μ": "mu", "Λ": "Lambda", "θ": "theta", "σ": "sigma", "∈": "in", "∉": "not in", "⟨": "<", "⟩": ">", "ℓ": "l",
        "²": "^2", "⊤": "T", "ℒ": "L", "─": "-", "Δ": "delta ", "δ": "delta", "‖": "|", "ᵀ": "T", "’": "'",
    }
)  # fmt: skip
_COMBINING = dict.fromkeys(range(0x300, 0x370))


def write(lines: Iterable[str]) -> None:
    """Print ``lines`` to standard output.

    A terminal that lacks a mathematical sign gets it spelled out; one that cannot show a letter (Chinese in an ASCII
    terminal) raises ``UserError`` before anything is printed.
    """
    encoding = _output().encoding or "utf-8"
    write_text("".join(f"{_fit(visible(line, keep=''), encoding)}\n" for line in lines))


def write_text(text: str) -> None:
    """Print ``text`` as it is (of strangers only what is JSON already). Raises ``UserError`` without an output."""
    output = _output()
    try:
        output.write(text)
        output.flush()
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is wrong. Left alone, Typer would exit with 1, and Python complain
        # when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        raise typer.Exit(0) from None


def stream(text: str) -> None:
    """Print a part of a stranger's text now: line breaks stay, what the terminal cannot show becomes ``<U+836F>``."""
    write_text(_shown(visible(text), _output().encoding or "utf-8"))


def aside(line: str) -> None:
    """Print a note to standard error, if there is one, so that it does not mix with the output."""
    if sys.stderr is not None:
        sys.stderr.write(_shown(visible(line, keep=""), sys.stderr.encoding or "utf-8") + "\n")
        sys.stderr.flush()


def help_if_alone(context: typer.Context) -> None:
    """Show the help of a command whose verb was left out, on standard error, and exit with 2."""
    if context.invoked_subcommand is None:
        for line in context.get_help().splitlines():
            aside(line)
        raise typer.Exit(2)


def _output() -> TextIO:
    if sys.stdout is None:
        raise UserError(
            "There is no standard output to print to.",
            "It was closed.",
            "Write to a file with --json FILE or --html FILE.",
        )
    return sys.stdout


def _shown(text: str, encoding: str) -> str:
    try:
        text.encode(encoding)
        return text
    except UnicodeEncodeError:
        return "".join(c if c.encode(encoding, "ignore") else f"<U+{ord(c):04X}>" for c in text)


def _fit(line: str, encoding: str) -> str:
    try:
        line.encode(encoding)
        return line
    except UnicodeEncodeError:
        spelled = line.translate(_PLAIN).translate(_COMBINING)
    try:
        spelled.encode(encoding)
        return spelled
    except UnicodeEncodeError as error:
        letter = spelled[error.start]
        raise UserError(
            f"This terminal cannot show U+{ord(letter):04X}.",
            f"Its encoding is {encoding}.",
            "Set PYTHONIOENCODING=utf-8, or write to a file with --out FILE, --json FILE or --html FILE.",
        ) from None


def both_names(quantity: Quantity, lang: str) -> str:
    """The quantity's names, ``lang`` first; the other one only where the terminal can show it."""
    first, second = (quantity.en, quantity.zh) if lang == "en" else (quantity.zh, quantity.en)
    encoding = (sys.stdout.encoding if sys.stdout is not None else None) or "utf-8"
    try:
        second.encode(encoding)
    except UnicodeEncodeError:
        return first
    return f"{first} · {second}"


def number(x: float, digits: int = 6) -> str:
    """A number for a table: what explanations print (``number_text``), with zeros up to ``digits`` decimals.

    ``0.731059``, ``−0.500000``, ``−∞``, ``1.3e−12``; true zeros print as ``0``.
    """
    text = number_text(x, digits)
    if x == 0 or not np.isfinite(x) or "e" in text:
        return text
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals:0<{digits}}"


def matrix(array: Any, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None) -> list[str]:
    """A small table, right-aligned: vectors are one row; ``rows`` and ``columns`` label the two axes."""
    grid = np.atleast_2d(np.asarray(array, dtype=np.float64))
    cells = [[number(float(x)) for x in row] for row in grid]
    if columns is not None:
        cells.insert(0, [visible(c, keep="") for c in columns])
    if rows is not None:
        names = [visible(r, keep="") for r in rows]
        cells = [[name, *row] for name, row in zip([""] * (columns is not None) + names, cells, strict=True)]
    return aligned(cells)


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """The rows of ``cells``, all of one length, as lines with right-aligned columns."""
    widths = [max(_width(row[k]) for row in cells) for k in range(len(cells[0]))]
    return ["  ".join(" " * (w - _width(c)) + c for c, w in zip(row, widths, strict=True)) for row in cells]


def _width(text: str) -> int:
    """How many columns ``text`` takes: Chinese characters take two."""
    from rich.cells import cell_len

    return cell_len(text)


def columns(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """The rows as lines: the first two columns to the left, all others to the right."""
    from rich.cells import cell_len

    widths = [max(cell_len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        padded = [
            text + " " * (w - cell_len(text)) if k < 2 else " " * (w - cell_len(text)) + text
            for k, (text, w) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(padded).rstrip()
