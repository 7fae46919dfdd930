"""How one number came about: a cell of a quantity, of a gradient, or of a parameter after its update.

>>> text_lines(explain_cell(program, "A", "", (0, 1, 0), values))
['A[0,1,0]  (a_21)',
 'A[0,1,0] = exp(S[0,1,0]) / (Σ_m exp(S[0,1,m]))',
 '  = exp(1) / 3.718282 = 0.731059',
 '  where Σ_m exp(S[0,1,m]) = exp(1) + exp(0) = 3.718282', ...]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import UserError
from .arithmetic import KEEP, Arithmetic, Operand, added_up, arithmetic
from .evaluate import EvaluationError, Values, key
from .latex import braced_path
from .lines import WORDS, LatexWriter, TextWriter
from .numerals import DIGITS, number_latex, number_text
from .plain import SUM, Frame, plain
from .program import Program, Statement
from .quantity import Kind
from .scalar import ScalarEvaluator
from .symbols import Style, entry_text, short_names, style_of
from .tree import Add, Expr, Num, Ref, transform


@dataclass(frozen=True, slots=True)
class CellExplanation:
    """How ``id.face[index]`` came about; ``index`` counts from 0.

    ``parts`` holds one arithmetic, or one per consumer for a gradient, which is their sum; none for a number that is
    given. ``recorded`` is what the run holds there (None: not recorded). ``names`` shortens ids in plain text and
    ``style`` gives the symbols (None: the cell is printed without them).
    """

    id: str
    face: str
    index: tuple[int, ...]
    parts: tuple[Arithmetic, ...]
    value: float
    recorded: float | None = None
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    style: Style | None = field(default=None, repr=False)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Every cell that the explanation shows, in the order of reading, each once."""
        found: dict[Operand, None] = {}
        for part in self.parts:
            formulas = (*(c.test for c in part.conditions), *part.tables, part.formula)
            for formula in (*formulas, *(term for series in part.series for term in series.terms)):
                found.update(dict.fromkeys(formula.operands))
        return tuple(found)


def explain_cell(
    program: Program,
    name: str,
    face: str,
    cell: Sequence[int],
    values: Values,
    *,
    updates: Sequence[Statement] = (),
    keep: int = KEEP,
) -> CellExplanation:
    """How the cell of ``name`` (an id, an alias or a short name) came about in a run that holds ``values``.

    ``face`` is ``""``, ``grad``, ``new`` (then ``updates`` holds the update statements) or ``after``; ``cell`` counts
    from 0; ``keep`` is how many terms of a long sum are shown. Raises ``UserError`` for a name, face or cell that does
    not exist and for operands that were not recorded.
    """
    id = program.resolve(name)
    index = _checked(program, id, cell)
    placed = program.quantities[id]
    recorded = values.get(key(id, face))
    names, style = short_names(program, placed.path), style_of(program)
    evaluator = ScalarEvaluator(values, program.scalars)
    try:
        parts = tuple(
            arithmetic(s.expr, _at(s, index), evaluator, s.consumer if s.face == "grad" else None, keep)
            for s in _statements(program, id, face, values, updates)
        )
    except EvaluationError as error:
        raise UserError(
            f"{_title(id, face, index)} cannot be worked out: {error}.", "", "Trace again to record it."
        ) from None
    if not parts and recorded is None:
        raise UserError(f"Nothing computes {key(id, face)}, and it is not recorded.", _why(placed.quantity.kind, face))
    given = None if recorded is None else float(recorded[index])
    value = added_up(p.value for p in parts) if parts else given
    assert value is not None
    return CellExplanation(id, face, index, parts, value, given, names, style)


def _checked(program: Program, id: str, cell: Sequence[int]) -> tuple[int, ...]:
    text = ",".join(map(str, cell))
    _, _, index = program.reference(f"{id}[{text}]")
    assert index is not None
    return index


def _at(statement: Statement, index: tuple[int, ...]) -> dict[str, int]:
    return {letter: k for (letter, _), k in zip(statement.letters, index, strict=True)}


def _statements(
    program: Program, id: str, face: str, values: Values, updates: Sequence[Statement]
) -> tuple[Statement, ...]:
    """What computes ``id.face``: nothing for a number that is given."""
    if face == "grad":
        return program.contributions(id)
    updated = tuple(s for s in updates if s.target == id and s.face == "new")
    if face == "new" or (face == "after" and updated):
        return updated
    # A line of the optimizer is defined beside the model, not in it.
    statement = program.definition(id) or next((s for s in updates if s.target == id and not s.face), None)
    if statement is None:
        return ()
    return (_after(statement, values),) if face == "after" else (statement,)


def _after(statement: Statement, values: Values) -> Statement:
    """The definition as it is read after the update: new parameters, and what follows from them."""

    def change(node: Expr) -> Expr:
        if not isinstance(node, Ref):
            return node
        face = next((face for face in ("new", "after") if key(node.name, face) in values), "")
        return Ref(node.name, face, node.indices)

    return replace(statement, expr=transform(statement.expr, change), face="after")


def _why(kind: Kind, face: str) -> str:
    if face == "grad":
        return "No gradient reaches it."
    return "Only parameters are updated." if face == "new" else f"It is of kind {kind.value}."


def _title(id: str, face: str, index: Sequence[int], names: Mapping[str, str] | None = None) -> str:
    return plain(Ref(id, face, tuple(Num(float(k)) for k in index)), Frame(), names)


def text_lines(
    explanation: CellExplanation, *, digits: int = DIGITS, lang: str = "en", header: bool = True
) -> list[str]:
    """The explanation as plain Unicode lines; indices count from 0, as in Python.

    The first line names the cell twice, as Python and the notes count (``A[0,1,0]  (a_21)``); ``header=False`` leaves it
    out. ``lang`` is ``en`` or ``zh``.
    """
    x, words = explanation, WORDS[lang]
    writer = TextWriter(x.names, words, digits)
    title = _title(x.id, x.face, x.index, x.names)
    lines: list[str] = []
    if header and x.style is not None:
        lines.append(f"{title}  ({entry_text(x.style, x.id, x.face, x.index)})")
    if not x.parts:
        return [*lines, f"{title} = {number_text(x.value, digits)}   ({words.given})"]
    via = [f"{words.via} {x.names.get(p.consumer, p.consumer)}" for p in x.parts if p.consumer is not None]
    if len(x.parts) == 1:
        lines += writer.arithmetic(x.parts[0], f"{title} = ", notes=via)
    else:
        lines.append(f"{title} = {' + '.join(via)}")
        for part, path in zip(x.parts, via, strict=True):
            lines += writer.arithmetic(part, f"{path}: ", "  ")
        lines.append(f"  = {_total(x, digits)} = {number_text(x.value, digits)}")
    if x.recorded is not None:
        difference = 0.0 if x.recorded == x.value else abs(x.value - x.recorded)
        recorded = number_text(x.recorded, digits)
        lines.append(f"  {words.recorded} {recorded}   {words.difference} {number_text(difference, 2)}")
    return lines


def _total(x: CellExplanation, digits: int) -> str:
    """The shares of a gradient, added."""
    return plain(Add(tuple(Ref(f"{k}", "", ()) for k in range(len(x.parts)))), _shares(x, digits), None, SUM)


def _shares(x: CellExplanation, digits: int) -> Frame:
    return Frame({}, {Ref(f"{k}", "", ()): part.value for k, part in enumerate(x.parts)}, digits)


def latex_lines(explanation: CellExplanation, *, digits: int = DIGITS) -> list[str]:
    """The explanation as LaTeX lines, each a formula of its own; indices count from 1, as in the notes."""
    x, style = explanation, explanation.style or Style()
    writer = LatexWriter(style, digits)
    left, _ = style.cell(x.id, x.face, [str(k + 1) for k in x.index])
    if not x.parts:
        return [f"{left} = {number_latex(x.value, digits)}"]
    if len(x.parts) == 1:
        return writer.arithmetic(x.parts[0], f"{left} = ")
    shares = [braced_path(number_latex(p.value, digits), p.consumer or "", style) for p in x.parts]
    lines = [f"{left} = {' + '.join(shares)} = {number_latex(x.value, digits)}"]
    for part in x.parts:
        lines += writer.arithmetic(part, rf"{style.name(part.consumer or '')}:\quad ")
    return lines
