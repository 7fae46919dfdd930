"""How one recorded number came about, for people: terminal text, LaTeX, Markdown, CSV, and notebooks.

    run.quantity("A").explain(0, 1, 0)

prints the formula, the same with this run's numbers and the texts of its tokens, the recorded value and the difference,
and three witnesses where the number is a gradient. Positions are counted from 0 (``A[0,1,0]``) and, beside it, as the
notes count (``a_21``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..notation import Kind, Statement, key
from ..notation.arithmetic import KEEP, Operand
from ..notation.cell import CellExplanation, explain_cell, latex_lines, text_lines
from ..notation.latex import index_latex
from ..notation.matrix import matrix_face
from ..notation.matrix_numbers import mask_latex, numbers_latex
from ..notation.numerals import number_text
from ..notation.plain import index_text
from ..notation.symbols import Style, entry_text, short_names, style_of
from ..text.visible import visible

if TYPE_CHECKING:
    from .trace import Trace

OPERANDS = 16
"""How many operands are listed in text and Markdown; CSV has every one."""

EVERY_TERM = 2**31
"""More terms than any sum has: nothing is folded."""

WORDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "en": MappingProxyType(
            {
                "formula": "formula", "operands": "operands", "operand": "operand", "value": "value", "token": "tokens",
                "result": "result", "recorded": "recorded", "difference": "difference", "witnesses": "three witnesses",
                "definition": "definition", "autograd": "automatic differentiation", "central": "central difference",
                "not sampled": "this cell was not sampled", "zero": "zero up to rounding", "given": "given",
                "more": "… {} more (CSV lists every one)", "grad": "gradient of ", "new": "after the update: ",
                "after": "in the forward pass after the update: ", "notes": "in the notes",
            }
        ),
        "zh": MappingProxyType(
            {
                "formula": "公式", "operands": "操作数", "operand": "操作数", "value": "值", "token": "词元",
                "result": "结果", "recorded": "记录值", "difference": "相差", "witnesses": "三个见证",
                "definition": "定义", "autograd": "自动微分", "central": "中心差分",
                "not sampled": "此元素未抽样", "zero": "舍入误差内为零", "given": "已给定",
                "more": "……另外 {} 个（CSV 列出全部）", "grad": "梯度：", "new": "更新后：",
                "after": "更新后的前向：", "notes": "讲义中",
            }
        ),
    }
)  # fmt: skip
"""The words of an explanation; its formulas have none."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """How ``id.face[index]`` of ``trace`` came about; ``index`` counts from 0. ``cell`` is the arithmetic as data.

    ``print`` it for a terminal; ``latex()``, ``markdown()`` and ``csv()`` give the same in other forms; ``path()`` walks
    on to the loss, the parameters and the tokens.
    """

    trace: Trace
    cell: CellExplanation

    @property
    def id(self) -> str:
        """The quantity's id."""
        return self.cell.id

    @property
    def face(self) -> str:
        """``""``, ``grad``, ``new`` or ``after``."""
        return self.cell.face

    @property
    def index(self) -> tuple[int, ...]:
        """The cell, counted from 0."""
        return self.cell.index

    @property
    def value(self) -> float:
        """The number, from its definition and this run's operands."""
        return self.cell.value

    @property
    def recorded(self) -> float | None:
        """What the run holds there; None where it was not recorded."""
        return self.cell.recorded

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The cells that are shown, in the order of reading."""
        return self.cell.operands

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What computes it: one definition, a gradient's contributions, an update; nothing for a given number."""
        program = self.trace.program
        if self.face == "grad":
            return program.contributions(self.id)
        updated = tuple(s for s in self.trace.update if s.target == self.id)
        if self.face == "new" or (self.face == "after" and updated):
            return updated
        definition = program.definition(self.id)
        return () if definition is None else (definition,)

    def heading(self, lang: str = "en", name: str | None = None) -> str:
        """What it is: ``gradient of queries  [gradient]  blocks.0.attn.Q.grad``; ``name`` replaces the quantity's."""
        quantity = self.trace.program.quantities[self.id].quantity
        kind = Kind.GRADIENT if self.face == "grad" else quantity.kind
        of = WORDS[lang][self.face] if self.face else ""
        return f"{of}{name or getattr(quantity, lang)}  [{kind.value}]  {key(self.id, self.face)}"

    def lines(self, lang: str = "en", *, whole_id: bool = False) -> list[str]:
        """The arithmetic alone: the cell with its tokens, the formula there, numbers and result, record and difference.

        ``whole_id`` says which quantity it is where no heading does.
        """
        first, *rest = text_lines(self.cell, lang=lang)
        tokens = positions(self.trace, self.id, self.index, self.cell.value, self.face, lang)
        notes = ([key(self.id, self.face)] if whole_id else []) + ([tokens] if tokens else [])
        return ["   ".join([first, *notes]), *rest]

    def text(self, lang: str = "en", name: str | None = None) -> list[str]:
        """Everything, as lines for a terminal; ``lang`` is ``en`` or ``zh``."""
        return [
            self.heading(lang, name),
            *(f"{WORDS[lang]['formula']}: {line}" for line in formulas(self.trace, self.statements)),
            *self.lines(lang),
            *self._operand_lines(lang),
            *witness_lines(self.trace, self.id, self.face, self.index, lang),
        ]

    def _operand_lines(self, lang: str) -> Iterator[str]:
        if not self.operands:
            return
        yield f"{WORDS[lang]['operands']}:"
        for operand in self.operands[:OPERANDS]:
            tokens = positions(self.trace, operand.id, operand.index, operand.value, operand.face, lang)
            yield f"  {self.title(operand)} = {number_text(operand.value)}" + (f"   {tokens}" if tokens else "")
        if len(self.operands) > OPERANDS:
            yield "  " + WORDS[lang]["more"].format(len(self.operands) - OPERANDS)

    def title(self, operand: Operand) -> str:
        """A cell as Python writes it, its id shortened as in the formula: ``S[0,1,0]``."""
        name = key(self.cell.names.get(operand.id, operand.id), operand.face)
        return name + (f"[{','.join(map(str, operand.index))}]" if operand.index else "")

    def __str__(self) -> str:
        return "\n".join(self.text())

    __repr__ = __str__

    def latex_formulas(self) -> list[str]:
        r"""Formulas as LaTeX, in reading order; no text of a user or of a tokenizer enters.

        The matrix formula where there is one, the same with this run's numbers as ``bmatrix``, what its mask stands for,
        the index formula, and the cell: symbolic, with numbers, result. Positions count from 1.
        """
        program, style = self.trace.program, self.style
        values = after_values(self.trace.values) if self.face == "after" else self.trace.values
        found: list[str] = []
        for statement in self.statements:
            face = matrix_face(statement, program)
            if face is not None:
                mask = mask_latex(face, style)
                found += [face.latex(program, style), *([mask] if mask else [])]
                numbers = numbers_latex(face, program, values, self.index, style, self.face)
                found += [numbers] if numbers else []
            found.append(index_latex(statement, program, style))
        return [*found, *latex_lines(self.cell)]

    @property
    def error(self) -> float | None:
        """How far the recorded number is from the value; None where nothing was recorded or the number is given."""
        if self.recorded is None or not self.cell.parts:
            return None
        return 0.0 if self.recorded == self.value else abs(self.value - self.recorded)

    @property
    def style(self) -> Style:
        """How the symbols of the run print."""
        return self.cell.style or style_of(self.trace.program)

    def latex(self) -> str:
        r"""``latex_formulas`` one below the other, for display mode: an ``aligned`` block (needs ``amsmath``)."""
        return aligned(self.latex_formulas())

    def markdown(self, lang: str = "en") -> str:
        """The same as Markdown with a table of operands; token texts are escaped and stay data."""
        from .formats import markdown

        return markdown(self, lang)

    def csv(self) -> str:
        """The result and every operand, a row each (RFC 4180): ids, indices, values in full, token texts.

        Long sums are not folded; terms that are exactly zero have no row. A text that a spreadsheet would take for a
        formula begins with an apostrophe.
        """
        from .formats import csv_text

        return csv_text([self])

    def unfolded(self) -> Explanation:
        """The same with every term of every sum shown."""
        return explain(self.trace, self.id, self.face, self.index, keep=EVERY_TERM)

    def path(self) -> Any:
        """The way on from here: to the loss, and down to parameters and tokens (``walk.Path``)."""
        from .walk import path_of

        return path_of(self)

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"


def explain(trace: Trace, id: str, face: str, index: Sequence[int], *, keep: int = KEEP) -> Explanation:
    """How the cell ``index`` (from 0) of ``id.face`` came about. Raises ``UserError`` for a cell that is not there."""
    return Explanation(
        trace, explain_cell(trace.program, id, face, index, trace.values, updates=trace.update, keep=keep)
    )


def aligned(formulas: Sequence[str]) -> str:
    r"""Formulas one below the other as one LaTeX block."""
    # The ampersand also keeps a formula that begins with a bracket from being read as the argument of `\\`.
    return "\\begin{aligned}\n" + " \\\\\n".join(f"& {formula}" for formula in formulas) + "\n\\end{aligned}"


def after_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` in which every id stands for what it is after the update."""
    plain = {name: array for name, array in values.items() if not name.endswith((".new", ".after"))}
    for face in (".after", ".new"):
        plain |= {name.removesuffix(face): array for name, array in values.items() if name.endswith(face)}
    return plain


def formulas(trace: Trace, statements: Sequence[Statement]) -> list[str]:
    """The index formulas of ``statements`` as plain text, ids shortened as seen from the quantity that they compute."""
    if not statements:
        return []
    names = short_names(trace.program, trace.program.quantities[statements[0].target].path)
    several = len(statements) > 1
    return [
        index_text(s, names, partly=several) + (f"   [{names[s.consumer]}]" if s.face == "grad" else "")
        for s in statements
    ]


def token_texts(trace: Trace, lang: str = "en") -> Sequence[str]:
    """The texts of the vocabulary for readers of ``lang``; the small model in Chinese reads as its sentence."""
    return trace.text.labels[-1]["texts"] if lang == "zh" and trace.text.labels else trace.text.vocabulary


def positions(
    trace: Trace, id: str, index: Sequence[int], value: float, face: str, lang: str = "en", quote: Any = None
) -> str:
    """Which tokens a cell's positions and vocabulary entries are: ``i = 1 “B”, w = 2 “C”``; nothing for other axes.

    A cell that holds a token id is followed by that token. ``quote`` writes a token's text (safe for a terminal).
    """
    texts, quote = token_texts(trace, lang), quote or quoted
    tokens, notes = trace.values["embed.t"], []
    for (letter, dim), at in zip(trace.program.quantities[id].axes, index, strict=True):
        if dim in ("n", "n_k") and at < len(tokens):
            notes.append(f"{letter} = {at} {quote(texts[int(tokens[at])])}")
        elif dim == "N":
            notes.append(f"{letter} = {at} {quote(texts[at])}")
    if id in ("embed.t", "loss.y") and not face and 0 <= value < len(texts):
        notes.append(f"→ {quote(texts[int(value)])}")
    return ", ".join(notes)


def quoted(text: str) -> str:
    """A token's text in quotation marks, every character of it visible."""
    return f"“{visible(text, keep='')}”"


def witness_lines(trace: Trace, id: str, face: str, index: tuple[int, ...], lang: str) -> list[str]:
    """The three witnesses of one cell of a gradient, as lines; none for anything else."""
    if face != "grad" or id not in trace.witnesses:
        return []
    from .witnesses import gradients_by_definition

    words, witness = WORDS[lang], trace.witnesses[id]
    defined = gradients_by_definition(trace.program, trace.values)[f"{id}.grad"]
    flat = int(np.ravel_multi_index(index, defined.shape)) if index else 0
    sampled = dict(witness.central.cells)
    measured = number_text(sampled[flat], 12) if flat in sampled else words["not sampled"]
    zero = f"  ({words['zero']})" if witness.zero_in_theory else ""
    return [
        f"{words['witnesses']}:{zero}",
        f"  {words['definition']}  {number_text(float(defined[index]), 12)}",
        f"  {words['autograd']}  {number_text(float(trace.values[f'{id}.grad'][index]), 12)}",
        f"  {words['central']}  {measured}",
    ]


def entry(explanation: Explanation, operand: Operand) -> str:
    """A cell as the notes write it, counted from 1: ``a_21``."""
    return entry_text(explanation.style, operand.id, operand.face, operand.index)
