"""A small reader that computes what a LaTeX formula says; the rules are those of ``readers.py``, positions count from 1."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from notation.readers import COMPARE, FUNCTIONS, Lookup, Reader

SIGNS = {"<": "<", r"\le": "≤", ">": ">", r"\ge": "≥", "=": "=", r"\ne": "≠"}
ENDS = {
    "",
    "+",
    "-",
    ")",
    "]",
    "}",
    ",",
    "&",
    r"\\",
    r"\right",
    r"\land",
    r"\lor",
    r"\end",
    r"\in",
    r"\notin",
    "|",
    *SIGNS,
}
SIZES = {r"\varepsilon": "eps", r"\eta": "eta"}


class LatexReader(Reader):
    """Reads the LaTeX that the printers write. Only ``e`` is a reserved letter."""

    def split(self, text: str) -> list[str]:
        tokens = re.findall(r"[0-9]+(?:\.[0-9]+)?|\\[A-Za-z]+|\\.|[^\s]", text)
        return [token for token in tokens if token != r"\displaystyle"]

    def group(self) -> float:
        self.take("{")
        value = self.choice()
        self.take("}")
        return value

    def choice(self) -> float:
        if not self.maybe(r"\begin"):
            return self.sum()
        for token in ("{", *"cases", "}"):
            self.take(token)
        value, found = 0.0, False
        while not self.maybe(r"\end"):
            row = self.choice()
            self.take(",")
            self.take("&")
            if self.maybe(r"\text"):
                for token in ("{", *"otherwise", "}"):
                    self.take(token)
                holds = not found
            else:
                holds = self.condition()
            if holds and not found:
                value, found = row, True
            self.maybe(r"\\")
        for token in ("{", *"cases", "}"):
            self.take(token)
        assert found, "no case holds"
        return value

    def condition(self) -> bool:
        value = self.both()
        while self.maybe(r"\lor"):
            other = self.both()
            value = value or other
        return value

    def both(self) -> bool:
        value = self.statement()
        while self.maybe(r"\land"):
            other = self.statement()
            value = value and other
        return value

    def statement(self) -> bool:
        begin = self.here
        if self.maybe("("):
            try:
                value = self.condition()
                self.take(")")
            except (AssertionError, KeyError):
                self.here = begin
            else:
                if self.next in ENDS - set(SIGNS):
                    return value
                self.here = begin
        if self.tokens[begin + 1] in (r"\in", r"\notin"):
            member = self.position()
            inside = self.take() == r"\in"
            name = self.take()
            given = self.positions() if self.maybe("_") else []
            return bool(self.cell(name, (*(k - 1 for k in given), member - 1))) == inside
        a = self.sum()
        compare = COMPARE[SIGNS[self.take()]]
        return compare(a, self.sum())

    def sum(self) -> float:
        value = -self.series() if self.maybe("-") else self.series()
        while self.next in ("+", "-"):
            value = value + self.series() if self.take() == "+" else value - self.series()
        return value

    def series(self) -> float:
        if self.large_sign():
            return self.large(self.take())
        token = self.next
        if token == r"\ln" and self.tokens[self.here + 1] == r"\sum":
            self.take()
            return math.log(self.series())
        return self.product()

    def large_sign(self) -> bool:
        return self.tokens[self.here : self.here + 2] in ([r"\sum", "_"], [r"\max", "_"])

    def large(self, sign: str) -> float:
        self.take("_")
        braced = self.maybe("{")
        letters = [self.take()]
        if not braced or self.maybe("}"):
            test = None
        elif self.maybe("="):
            for token in ("1", "}", "^"):
                self.take(token)
            self.size()
            test = None
        else:
            while self.maybe(","):
                letters.append(self.take())
            test = None
            if not self.maybe("}"):
                self.take(":")
                self.take(r"\,")
                test = self.here

        def holds() -> bool:
            value = self.condition()
            self.take("}")
            return value

        values = self.over(letters, self.series, holds if test else None, 1)
        return max(values, default=-math.inf) if sign == r"\max" else math.fsum(values)

    def size(self) -> float:
        braced = self.maybe("{")
        value = self.atom()
        if braced:
            self.take("}")
        return value

    def product(self) -> float:
        value = self.power()
        while True:
            if self.large_sign():
                return value * self.series()
            if self.maybe(r"\cdot"):
                value *= self.power()
            elif self.maybe(r"\,"):
                continue
            elif self.next in ENDS:
                return value
            else:
                assert not self.next[0].isdigit(), "two numbers run together"
                value *= self.power()

    def power(self) -> float:
        if self.next == "e":
            self.take()
            self.take("^")
            return FUNCTIONS["exp"](self.group())
        value = self.atom()
        assert not (self.next == "^" and value is None)
        return value ** self.group() if self.maybe("^") else value

    def atom(self) -> float:
        token = self.take()
        match token:
            case "(" | r"\left":
                return self.enclosed(token)
            case "[":
                return self.bracket()
            case r"\frac":
                over = self.group()
                return over / self.group()
            case r"\sqrt":
                return math.sqrt(self.group())
            case r"\pi":
                return math.pi
            case r"\infty":
                return math.inf
            case r"\operatorname":
                return self.call("".join(self.take() for _ in range(5))[1:-1])
            case _ if token[1:] in FUNCTIONS:
                return self.call(token[1:])
            case _ if token in SIZES:
                return float(self.sizes[SIZES[token]])
            case _:
                return float(token) if token[0].isdigit() else self.named(token)

    def enclosed(self, token: str) -> float:
        bar = token == r"\left" and self.next == "|"
        if token == r"\left":
            self.take("|" if bar else "(")
        value = self.choice()
        if token == r"\left":
            self.take(r"\right")
        self.take("|" if bar else ")")
        return abs(value) if bar else value

    def call(self, name: str) -> float:
        closing = self.next == r"\left"
        if closing:
            self.take()
        self.take("(")
        values = [self.choice()]
        while self.maybe(","):
            values.append(self.choice())
        if closing:
            self.take(r"\right")
        self.take(")")
        assert self.next != "^", "a power after a function reads in two ways"
        return FUNCTIONS[name](*values)

    def bracket(self) -> float:
        end = self.tokens.index("]", self.here)
        if self.tokens[end + 1 : end + 2] == ["_"]:
            name = "".join(self.tokens[self.here : end])
            self.here = end + 2
            return self.cell(name, tuple(k - 1 for k in self.positions()))
        value = self.condition()
        self.take("]")
        return float(value)

    def named(self, token: str) -> float:
        if token in self.at:
            return float(self.at[token])
        if self.next != "_":
            return float(self.sizes[token]) if token in self.sizes else self.cell(token, ())
        dimension = f"{token}_{self.tokens[self.here + 1]}"
        if dimension in self.sizes:
            self.here += 2
            return float(self.sizes[dimension])
        self.take("_")
        return self.cell(token, tuple(k - 1 for k in self.positions()))

    def positions(self) -> list[int]:
        if not self.maybe("{"):
            return [self.position()]
        found = []
        while not self.maybe("}"):
            if not (self.maybe(",") or self.maybe(r"\,")):
                found.append(self.position())
        return found

    def position(self) -> int:
        token = self.take()
        if token.isdigit():
            return int(token)
        return int(self.cell(token, tuple(k - 1 for k in self.positions()))) + 1 if self.maybe("_") else self.at[token]


def read_latex(
    text: str, cell: Lookup, sizes: Mapping[str, float], letters: Mapping[str, str], at: Mapping[str, int]
) -> Any:
    """The number that the LaTeX formula ``text`` denotes, letters standing at ``at`` (from 0)."""
    reader = LatexReader(text, cell, sizes, letters)
    reader.at.update({letter: k + 1 for letter, k in at.items()})
    return reader.whole()
