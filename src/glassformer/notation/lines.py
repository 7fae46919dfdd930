"""The arithmetic of a cell as lines: plain text for terminals, LaTeX for pages.

``spec.md`` (section "Arithmetic of a cell") states the layout; the page prints the same plain lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .arithmetic import Arithmetic, Condition, Formula, Series, reads_a_comparison
from .latex import added_latex, condition_latex, expr_latex
from .numerals import number_latex, number_text
from .plain import Frame, added, plain
from .symbols import Style
from .tree import Expr, Scalar


@dataclass(frozen=True, slots=True)
class Words:
    """The words of the plain text; the formulas have none. Pairs are for one and for several."""

    where: str
    via: str
    yes: str
    no: str
    given: str
    recorded: str
    difference: str
    no_terms: str
    smaller: tuple[str, str]
    vanish: tuple[str, str]


WORDS: Mapping[str, Words] = MappingProxyType(
    {
        "en": Words(
            "where", "via", "yes", "no", "given", "recorded", "difference", "no terms",
            ("{} smaller term", "{} smaller terms"), ("{} term is {}", "{} terms are {}"),
        ),
        "zh": Words(
            "其中", "经由", "是", "否", "已给定", "记录值", "相差", "没有项",
            ("另外 {} 个较小的项", "另外 {} 个较小的项"), ("{} 项为 {}", "{} 项为 {}"),
        ),
    }
)  # fmt: skip


def chain(*parts: str) -> list[str]:
    """``parts`` without those that only repeat the one before."""
    return [part for k, part in enumerate(parts) if k == 0 or part != parts[k - 1]]


def positions(s: Series, first: int) -> tuple[str, list[str]]:
    """The letters of a sum and the positions of the terms shown, counted from ``first``: ``i``, ``["0", "2"]``.

    No positions where every term there is has its place in the sum: without a filter, and with nothing folded away.
    """
    letters = [letter for letter, _ in s.of.loops]
    if s.of.where is None and not s.others:
        return "", []
    places = [",".join(str(term.at[letter] + first) for letter in letters) for term in s.terms]
    if len(letters) == 1:
        return letters[0], places
    return f"({','.join(letters)})", [f"({place})" for place in places]


@dataclass(frozen=True, slots=True)
class TextWriter:
    """Writes arithmetic as plain text: ``names`` shortens ids, ``digits`` is how exact numbers are (``numerals.py``)."""

    names: Mapping[str, str]
    words: Words
    digits: int

    def number(self, x: float) -> str:
        return number_text(x, self.digits)

    def symbolic(self, formula: Formula) -> str:
        return plain(formula.expr, Frame(formula.at), self.names)

    def numeric(self, formula: Formula) -> str:
        return plain(formula.expr, self.frame(formula), self.names)

    def frame(self, formula: Formula) -> Frame:
        return Frame(formula.at, formula.numbers, self.digits)

    def arithmetic(self, a: Arithmetic, lead: str, indent: str = "", notes: Iterable[str] = ()) -> list[str]:
        """``lead`` and the formula; the numbers and the result; one ``where`` line per sum inside the formula."""
        remarks = "".join(f"   [{note}]" for note in (*notes, *self.notes(a)))
        numbers, zeros = self.series(a.whole) if a.whole else (self.numeric(a.formula), "")
        steps = chain(self.symbolic(a.formula), numbers, self.number(a.value))
        if len(steps) <= 2:
            lines = [f"{indent}{lead}{' = '.join(steps)}{zeros}{remarks}"]
        else:
            lines = [f"{indent}{lead}{steps[0]}{remarks}", f"{indent}  = {' = '.join(steps[1:])}{zeros}"]
        for series in () if a.whole else a.series:
            numbers, zeros = self.series(series)
            steps = chain(plain(series.of, Frame(series.at), self.names), numbers, self.number(series.value))
            lines.append(f"{indent}  {self.words.where} {' = '.join(steps)}{zeros}")
        return lines

    def notes(self, a: Arithmetic) -> list[str]:
        """Conditions, lookups and maxima, each settled before the arithmetic begins."""
        notes = [self.condition(c) for c in a.conditions]
        notes += [f"{self.symbolic(t)} = {self.number(t.value)}" for t in a.tables]
        for m in a.maxima:
            notes.append(f"{m.name} = {plain(m.of, Frame(m.at), self.names)} = {self.number(m.value)}")
        return notes

    def condition(self, c: Condition) -> str:
        symbolic, numeric = self.symbolic(c.test), self.numeric(c.test)
        worth_showing = reads_a_comparison(c.test.expr) and numeric != symbolic
        answer = self.words.yes if c.holds else self.words.no
        return f"{symbolic}: {numeric}, {answer}" if worth_showing else f"{symbolic}: {answer}"

    def series(self, s: Series) -> tuple[str, str]:
        """The terms with their numbers, and the remark on those that vanish."""
        if s.of.op == "max":
            shown = [self.numeric(t) for t in s.terms]
            shown += [f"[{self.counted(self.words.smaller, s.others)}]"] if s.others else []
            text = f"max({', '.join(shown)})" if shown else self.number(s.value)
            return text, self.remark(s, self.number(float("-inf")))
        text = added([(t.expr, self.frame(t)) for t in s.terms], self.names) if s.terms else "0"
        if s.others:
            text += f" + [{self.counted(self.words.smaller, s.others)}: {self.number(s.rest)}]"
        if s.of.op == "mean" and s.terms:
            text = f"({text}) / {s.count}"
        return text, self.remark(s, "0")

    def remark(self, s: Series, what: str) -> str:
        """Where the terms shown stand, when they are not all there are; and how many are ``what`` and not shown."""
        letters, places = positions(s, 0)
        parts = [f"{letters} = {', '.join(places)}"] if places else []
        if s.zeros:
            parts.append(self.counted(self.words.vanish, s.zeros, what))
        if not parts and not s.terms:
            parts.append(self.words.no_terms)
        return f"   ({'; '.join(parts)})" if parts else ""

    def counted(self, forms: tuple[str, str], count: int, *more: str) -> str:
        return forms[0 if count == 1 else 1].format(count, *more)


@dataclass(frozen=True, slots=True)
class LatexWriter:
    """Writes arithmetic as LaTeX, free of words."""

    style: Style
    digits: int

    def number(self, x: float) -> str:
        return number_latex(x, self.digits)

    def frame(self, formula: Formula) -> Frame:
        return Frame(formula.at, formula.numbers, self.digits)

    def arithmetic(self, a: Arithmetic, lead: str) -> list[str]:
        """``lead`` and the formula with its conditions; the numbers; one line per sum inside the formula."""
        numbers = self.series(a.whole) if a.whole else expr_latex(a.formula.expr, self.style, self.frame(a.formula))
        steps = chain(expr_latex(a.formula.expr, self.style, Frame(a.formula.at)), numbers, self.number(a.value))
        remarks = "".join(rf"\qquad {note}" for note in self.notes(a))
        places = self.places(a.whole) if a.whole else ""
        if len(steps) <= 2:
            lines = [f"{lead}{' = '.join(steps)}{places}{remarks}"]
        else:
            lines = [f"{lead}{steps[0]}{remarks}", f"= {' = '.join(steps[1:])}{places}"]
        for series in () if a.whole else a.series:
            left = expr_latex(series.of, self.style, Frame(series.at))
            steps = chain(left, self.series(series), self.number(series.value))
            lines.append(" = ".join(steps) + self.places(series))
        return lines

    def places(self, s: Series) -> str:
        r"""Where the terms shown stand: ``\qquad i = 1, 3``."""
        letters, places = positions(s, 1)
        return rf"\qquad {letters} = {', '.join(places)}" if places else ""

    def notes(self, a: Arithmetic) -> list[str]:
        notes = [condition_latex(c.test.expr, self.style, Frame(c.test.at), c.holds) for c in a.conditions]
        # A table's entry is a position, which readers count from 1.
        notes += [f"{expr_latex(t.expr, self.style, Frame(t.at))} = {int(t.value) + 1}" for t in a.tables]
        for m in a.maxima:
            of = expr_latex(m.of, self.style, Frame(m.at))
            notes.append(f"{expr_latex(Scalar(m.name), self.style)} = {of} = {self.number(m.value)}")
        return notes

    def series(self, s: Series) -> str:
        if s.of.op == "max":
            shown = [expr_latex(t.expr, self.style, self.frame(t)) for t in s.terms] + ([r"\ldots"] if s.others else [])
            return rf"\max({', '.join(shown)})" if shown else self.number(s.value)
        parts: list[tuple[Expr, Frame]] = [(t.expr, self.frame(t)) for t in s.terms]
        text = added_latex(parts, self.style) if parts else "0"
        if s.others:
            text += rf" + \underbrace{{{self.number(s.rest)}}}_{{\cdots\,{s.others}}}"
        return rf"\frac{{{text}}}{{{s.count}}}" if s.of.op == "mean" and s.terms else text
