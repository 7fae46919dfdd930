"""Explanations as Markdown and CSV. Token texts are anybody's text: in both they stay data, whatever they hold."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..notation import key
from ..notation.arithmetic import Operand
from ..notation.cell import latex_lines
from ..notation.numerals import number_text
from ..text.visible import visible
from .explanation import OPERANDS, WORDS, aligned, entry, positions, quoted

if TYPE_CHECKING:
    from .explanation import Explanation

COLUMNS = ("part", "id", "face", "index", "entry", "value", "tokens")
"""``index`` counts from 0, ``entry`` (the notes' symbol) from 1."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""With these a spreadsheet begins to compute."""

_PUNCTUATION = {ord(sign): f"&#{ord(sign)};" for sign in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"}
_MARKUP = {sign: text for sign, text in _PUNCTUATION.items() if chr(sign) in "\\`*_{}<>#$|&~!"}


def code(text: str) -> str:
    """A stranger's text as inline code: every sign that Markdown, HTML or a formula could obey is a character reference.

    Code elements are also what the formula renderers of notebooks pass over.
    """
    return f"<code>{visible(text, keep='').translate(_PUNCTUATION)}</code>"


def inline(name: str) -> str:
    """A name of the run as inline code. It comes from a file that anybody may have written."""
    return code(name) if set(name) & set("`|$\\<&\n") else f"`{name}`"


def markdown(x: Explanation, lang: str) -> str:
    """Heading, formulas in display mode, a table of operands, result, record and difference."""
    words = WORDS[lang]
    # One formula a block: renderers break lines between blocks, never inside one that is too wide.
    parts = [_head(x, lang), *(f"$$\n{formula}\n$$" for formula in x.latex_formulas())]
    if x.operands:
        rows = [
            f"| {words['operand']} | {words['notes']} | {words['value']} | {words['token']} |",
            "|---|---|---:|---|",
        ]
        rows += [_row(x, operand, lang) for operand in x.operands[:OPERANDS]]
        parts.append("\n".join(rows))
    if len(x.operands) > OPERANDS:
        parts.append(words["more"].format(len(x.operands) - OPERANDS))
    return "\n\n".join([*parts, _foot(x, lang)]) + "\n"


def section(x: Explanation, lang: str) -> str:
    """Heading, arithmetic, result, record and difference: one step of a longer way."""
    return "\n\n".join([_head(x, lang), f"$$\n{aligned(latex_lines(x.cell))}\n$$", _foot(x, lang)]) + "\n"


def _head(x: Explanation, lang: str) -> str:
    cell = Operand(x.id, x.face, x.index, x.value)
    tokens = positions(x.trace, x.id, x.index, x.value, x.face, lang, code)
    symbol = f"{inline(x.title(cell))} ({WORDS[lang]['notes']}: {inline(entry(x, cell))})"
    return f"### {x.heading(lang).translate(_MARKUP)}\n\n{symbol}" + (f", {tokens}" if tokens else "")


def _foot(x: Explanation, lang: str) -> str:
    words = WORDS[lang]
    told = f"{words['result']}: {number_text(x.value)}"
    if x.recorded is None or x.error is None:
        return f"{told} ({words['given']})"
    return f"{told}; {words['recorded']}: {number_text(x.recorded)}; {words['difference']}: {number_text(x.error, 2)}"


def _row(x: Explanation, operand: Operand, lang: str) -> str:
    tokens = positions(x.trace, operand.id, operand.index, operand.value, operand.face, lang, code)
    return f"| {inline(x.title(operand))} | {inline(entry(x, operand))} | {number_text(operand.value)} | {tokens} |"


def csv_text(explanations: Sequence[Explanation]) -> str:
    """A header, then for each explanation its result and all its operands."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for x in explanations:
        writer.writerow(csv_row(x, "result", Operand(x.id, x.face, x.index, x.value)))
        for operand in x.unfolded().operands:
            writer.writerow(csv_row(x, "operand", operand))
    return file.getvalue()


def csv_row(x: Explanation, part: str, cell: Operand) -> list[str]:
    """One cell of a run as a row of ``COLUMNS``; the value is the shortest numeral that reads back."""
    tokens = positions(x.trace, cell.id, cell.index, cell.value, cell.face, quote=quoted)
    index = " ".join(map(str, cell.index))
    texts = (part, key(cell.id), cell.face, index, entry(x, cell))
    return [*map(harmless, texts), repr(float(cell.value)), harmless(tokens)]


def harmless(text: str) -> str:
    """``text`` for a cell of a spreadsheet: one that would be computed begins with an apostrophe."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
