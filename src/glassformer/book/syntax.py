"""How a chapter is written: Markdown whose every statement has a status, with directives for whatever is computed.

    # 6 From scores to a convex combination

    ## 6.2 Softmax

    ::: definition
    For finite scores …
    [[formula attn.A]]
    :::

A *block* is fenced by ``:::`` and a status: ``question``, ``definition``, ``derivation``, ``intuition``, ``example``,
``boundary`` (where the statement stops holding) or ``note`` (how to read the book; makes no claim). Every sentence stands
in one. ``covers=6.2,6.3`` on a block says which promises it keeps. A *directive* on a line of its own, ``[[name arguments]]``,
is a formula, a chain, an example, an exercise, a figure; inside a line ``{name arguments}`` is a number, a symbol, a place, a
source. What a directive means is the builder's business (``resolve.py``); here is only how it is written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UserError

STATUSES = ("question", "definition", "derivation", "intuition", "example", "boundary", "note")
"""What a block may be; the book shows it, in the reader's language."""

_HEADING = re.compile(r"(#{1,2}) (\d+(?:\.\d+)?) (.+)")
_FENCE = re.compile(r"::: ?([a-z]+)((?: +[a-z]+=\S+)*) *")
_DIRECTIVE = re.compile(r"\[\[([a-z]+)((?: [^\]]*)?)\]\]")
INLINE = re.compile(r"\{([a-z]+)((?: [^{}]*)?)\}")
MATH = re.compile(r"\$([^$\n]+)\$")
_TYPED = re.compile(r"\d[.．]\d|[≈≃]|\d+ ?%")
_MATH_TYPED = re.compile(r"=|\\approx|\\le|\\ge|<|>|\d\.\d")


class ChapterError(UserError):
    """A chapter that cannot become a part of the book: file, line, what was expected."""

    def __init__(self, where: Where, fact: str, expected: str) -> None:
        super().__init__(f"{where.file}:{where.line}: {fact}", expected, "Mend the chapter and build again.")


@dataclass(frozen=True, slots=True)
class Where:
    """A line of a chapter's file."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Directive:
    """``name`` with its arguments: words in order, and ``key=value`` pairs."""

    name: str
    words: tuple[str, ...]
    options: Mapping[str, str]
    where: Where


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph, list or table in Markdown, not yet resolved."""

    text: str
    where: Where


@dataclass(frozen=True, slots=True)
class Block:
    """Prose and directives of one status."""

    status: str
    covers: tuple[str, ...]
    parts: tuple[Prose | Directive, ...]
    where: Where


@dataclass(frozen=True, slots=True)
class Section:
    """``number`` as in the first edition of the notes: ``6.2``, or ``6`` for what stands before the first section."""

    number: str
    title: str
    blocks: tuple[Block, ...]
    where: Where


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter in one language."""

    number: int
    title: str
    lang: str
    sections: tuple[Section, ...]
    where: Where

    def blocks(self) -> Iterator[tuple[Section, Block]]:
        for section in self.sections:
            for block in section.blocks:
                yield section, block

    def skeleton(self) -> list[tuple[str, ...]]:
        """What both languages must have alike: sections, statuses, promises kept, directives with their arguments."""
        lines: list[tuple[str, ...]] = []
        for section in self.sections:
            lines.append(("section", section.number))
            for block in section.blocks:
                lines.append(("block", block.status, *block.covers))
                lines += [("directive", p.name, *p.words) for p in block.parts if isinstance(p, Directive)]
        return lines


@dataclass(slots=True)
class _Reader:
    """Walks the lines of one file."""

    file: str
    lang: str
    title: str = ""
    number: int = 0
    sections: list[Section] = field(default_factory=list)
    _open: tuple[str, str, Where] | None = None
    _blocks: list[Block] = field(default_factory=list)

    def begin(self, number: str, title: str, where: Where) -> None:
        self.end()
        if self.number and not number.startswith(f"{self.number}."):
            raise ChapterError(where, f"section {number} stands in chapter {self.number}", "A number of this chapter.")
        self._open = (number, title, where)

    def end(self) -> None:
        if self._open is not None:
            number, title, where = self._open
            self.sections.append(Section(number, title, tuple(self._blocks), where))
            self._blocks = []


def read_chapter(path: Path, lang: str) -> Chapter:
    """The chapter in ``path``. Raises ``ChapterError`` with file and line for anything it cannot read."""
    lines = path.read_text(encoding="utf-8").split("\n")
    reader = _Reader(f"{path.parent.name}/{path.name}", lang)
    k = 0
    while k < len(lines):
        line, where = lines[k], Where(reader.file, k + 1)
        if not line.strip():
            k += 1
        elif heading := _HEADING.fullmatch(line):
            _heading(reader, heading, where)
            k += 1
        elif fence := _FENCE.fullmatch(line):
            k = _block(reader, lines, k, fence)
        else:
            raise ChapterError(where, "a statement without status", f"Put it into one of ::: {', '.join(STATUSES)}.")
    reader.end()
    if not reader.number:
        raise ChapterError(Where(reader.file, 1), "no chapter heading", "Begin with `# NUMBER TITLE`.")
    return Chapter(reader.number, reader.title, lang, tuple(reader.sections), Where(reader.file, 1))


def _heading(reader: _Reader, heading: re.Match[str], where: Where) -> None:
    marks, number, title = heading.groups()
    if (marks == "#") == ("." in number):
        raise ChapterError(where, f"{marks} {number}", "`# 6 TITLE` for a chapter, `## 6.2 TITLE` for a section.")
    if marks == "#":
        if reader.number:
            raise ChapterError(where, "a second chapter in one file", "One `# NUMBER TITLE` per file.")
        reader.begin(number, title, where)
        reader.number, reader.title = int(number), title
    else:
        reader.begin(number, title, where)


def _block(reader: _Reader, lines: list[str], k: int, fence: re.Match[str]) -> int:
    """Read the block that begins at line ``k``; returns the line after it."""
    where = Where(reader.file, k + 1)
    status, options = fence[1], dict(pair.split("=", 1) for pair in fence[2].split())
    if status not in STATUSES:
        raise ChapterError(where, f"no status {status!r}", f"One of {', '.join(STATUSES)}.")
    if stray := set(options) - {"covers"}:
        raise ChapterError(where, f"no option {min(stray)!r} of a block", "covers=SECTION,SECTION is the only one.")
    end = next((at for at in range(k + 1, len(lines)) if lines[at].strip() == ":::"), None)
    if end is None:
        raise ChapterError(where, "a block that never ends", "Close it with ::: on a line of its own.")
    parts = tuple(_parts(reader.file, lines, k + 1, end))
    if not parts:
        raise ChapterError(where, "an empty block", "A statement, or no block.")
    covers = tuple(c for c in options.get("covers", "").split(",") if c)
    if reader._open is None:
        raise ChapterError(where, "a block before the chapter's heading", "Begin with `# NUMBER TITLE`.")
    reader._blocks.append(Block(status, covers, parts, where))
    return end + 1


def _parts(file: str, lines: list[str], start: int, end: int) -> Iterator[Prose | Directive]:
    text: list[str] = []
    first = start
    for at in [*range(start, end), end]:
        line = lines[at] if at < end else ""
        directive = _DIRECTIVE.fullmatch(line.strip())
        if directive or not line.strip():
            if text:
                yield _prose("\n".join(text), Where(file, first + 1))
                text = []
            if directive:
                yield directive_of(directive[1], directive[2], Where(file, at + 1))
        else:
            first = at if not text else first
            text.append(line)


def _prose(text: str, where: Where) -> Prose:
    bare = INLINE.sub("", MATH.sub("", text))
    if typed := _TYPED.search(bare):
        raise ChapterError(where, f"a number typed by hand: {typed[0]!r}", "Compute it: {num RUN NAME[I,J]}.")
    for math in MATH.findall(text):
        if claim := _MATH_TYPED.search(math):
            raise ChapterError(
                where, f"typed mathematics that claims something ({claim[0]}): ${math}$", "[[formula …]] or {num …}."
            )
    return Prose(text, where)


def directive_of(name: str, arguments: str, where: Where) -> Directive:
    """The directive ``name`` with its arguments as written."""
    try:
        pieces = shlex.split(arguments)
    except ValueError as error:
        raise ChapterError(where, f"arguments of {name} that cannot be read ({error})", "Close every quote.") from None
    words = tuple(piece for piece in pieces if "=" not in piece)
    options = dict(piece.split("=", 1) for piece in pieces if "=" in piece)
    return Directive(name, words, options, where)
