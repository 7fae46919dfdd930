"""Two small readers that compute what a printed formula says, by the rules of written mathematics.

They know nothing of the printers: a product binds tighter than a sum sign, a sum sign tighter than plus and minus, a power
tighter than a product. So a formula whose parentheses are wrong reads as another number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

FUNCTIONS: dict[str, Callable[..., float]] = {
    "exp": lambda x: float(np.exp(x)),
    "ln": lambda x: float(np.log(x)),
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "erf": math.erf,
    "abs": abs,
    "min": min,
    "max": max,
}
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b, "≤": lambda a, b: a <= b, ">": lambda a, b: a > b, "≥": lambda a, b: a >= b,
    "=": lambda a, b: a == b, "≠": lambda a, b: a != b,
}  # fmt: skip
Lookup = Callable[[str, tuple[int, ...]], float]


class Reader:
    """Common ground: tokens, positions of letters, sizes. ``start`` is the first position of a sum."""

    tokens: list[str]

    def __init__(self, text: str, cell: Lookup, sizes: Mapping[str, float], letters: Mapping[str, str]) -> None:
        self.tokens = self.split(text)
        self.here = 0
        self.cell = cell
        self.sizes = sizes
        self.letters = letters
        self.at: dict[str, int] = {}

    def split(self, text: str) -> list[str]:
        raise NotImplementedError

    @property
    def next(self) -> str:
        return self.tokens[self.here] if self.here < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.next
        assert token, "the formula ends too early"
        assert not expected or token == expected, f"{token!r} where {expected!r} belongs: {self.tokens}"
        self.here += 1
        return token

    def maybe(self, token: str) -> bool:
        if self.next == token:
            self.here += 1
            return True
        return False

    def over(
        self, letters: list[str], body: Callable[[], float], test: Callable[[], bool] | None, start: int
    ) -> list[float]:
        """The values of ``body`` for all positions of ``letters``, where ``test`` holds; both are read anew each time."""
        begin, found = self.here, []
        shape = [int(self.sizes[self.letters[letter]]) for letter in letters]
        for where in np.ndindex(*shape):
            self.here = begin
            self.at.update(zip(letters, (k + start for k in where), strict=True))
            passes = test() if test else True
            value = body()
            if passes:
                found.append(value)
        for letter in letters:
            del self.at[letter]
        return found

    def whole(self) -> float:
        value = self.choice()
        assert not self.next, f"left over: {self.tokens[self.here :]}"
        return value

    def choice(self) -> float:
        raise NotImplementedError


class PlainReader(Reader):
    """Reads plain text; positions count from 0."""

    def split(self, text: str) -> list[str]:
        number = r"[0-9]+(?:\.[0-9]+)?(?:e−?[0-9]+)?"
        pieces = rf"{number}|(?:Σ|mean_|max_|_)|[A-Za-z]+(?=\()|[A-Za-z][A-Za-z_]*|[²³√π∞()\[\]{{}}:,+·/^−<≤>≥=≠ηε]"
        return re.findall(pieces, text)

    def choice(self) -> float:
        value = self.either()
        if self.maybe("if"):
            test = self.either() != 0
            assert self.take("else")
            other = self.choice()
            return value if test else other
        return value

    def either(self) -> float:
        value = self.both()
        while self.maybe("or"):
            other = self.both()
            value = float(value != 0 or other != 0)
        return value

    def both(self) -> float:
        value = self.denial()
        while self.maybe("and"):
            other = self.denial()
            value = float(value != 0 and other != 0)
        return value

    def denial(self) -> float:
        return float(self.denial() == 0) if self.maybe("not") else self.comparison()

    def comparison(self) -> float:
        value = self.sum()
        if self.next in COMPARE:
            compare = COMPARE[self.take()]
            return float(compare(value, self.sum()))
        return value

    def sum(self) -> float:
        value = -self.series() if self.maybe("−") else self.series()
        while self.next in ("+", "−"):
            value = value + self.series() if self.take() == "+" else value - self.series()
        return value

    def series(self) -> float:
        if not self.maybe("Σ"):
            return self.product()
        self.take("_")
        letters, test = self.under()
        return math.fsum(
            self.over(letters, lambda: (self.skip_under(test), self.series())[1], test and self.filter(test), 0)
        )

    def under(self) -> tuple[list[str], int | None]:
        """The letters below a sign, and where its filter begins. Leaves the position after the letters."""
        if not self.maybe("{"):
            return [self.take()], None
        letters = [self.take()]
        while self.maybe(","):
            letters.append(self.take())
        if self.maybe("}"):
            return letters, None
        self.take(":")
        return letters, self.here

    def filter(self, test: int) -> Callable[[], bool]:
        def holds() -> bool:
            self.here = test
            return self.choice() != 0

        return holds

    def skip_under(self, test: int | None) -> None:
        if test is not None:
            self.take("}")

    def product(self) -> float:
        value = self.power()
        while self.next in ("·", "/"):
            value = value * self.power() if self.take() == "·" else value / self.power()
        return value

    def power(self) -> float:
        value = self.atom()
        if self.next in ("²", "³"):
            return value ** (2 if self.take() == "²" else 3)
        return value ** self.atom() if self.maybe("^") else value

    def atom(self) -> float:
        token = self.take()
        if token == "(":
            value = self.choice()
            self.take(")")
            return value
        if token == "[":
            value = self.choice()
            self.take("]")
            return float(value != 0)
        if token == "√":
            return math.sqrt(self.atom())
        if token in ("mean_", "max_"):
            return self.aggregate(token)
        if token in FUNCTIONS:
            return FUNCTIONS[token](*self.arguments())
        if token in ("π", "∞"):
            return math.pi if token == "π" else math.inf
        if token[0].isdigit():
            return float(token.replace("−", "-"))
        if token in self.at:
            return float(self.at[token])
        return self.named(token)

    def arguments(self) -> list[float]:
        self.take("(")
        values = [self.choice()]
        while self.maybe(","):
            values.append(self.choice())
        self.take(")")
        return values

    def aggregate(self, token: str) -> float:
        letters, test = self.under()

        def body() -> float:
            self.skip_under(test)
            return self.arguments()[0]

        values = self.over(letters, body, test and self.filter(test), 0)
        if token == "max_":
            return max(values, default=-math.inf)
        return math.fsum(values) / math.prod(int(self.sizes[self.letters[letter]]) for letter in letters)

    def named(self, token: str) -> float:
        if token in self.sizes:
            return float(self.sizes[token])
        if not self.maybe("["):
            return self.cell(token, ())
        index = [int(self.choice())]
        while self.maybe(","):
            index.append(int(self.choice()))
        self.take("]")
        return self.cell(token, tuple(index))


def read_plain(
    text: str, cell: Lookup, sizes: Mapping[str, float], letters: Mapping[str, str], at: Mapping[str, int]
) -> Any:
    """The number that the plain formula ``text`` denotes, letters standing at ``at`` (from 0)."""
    reader = PlainReader(text, cell, sizes, letters)
    reader.at.update(at)
    return reader.whole()
