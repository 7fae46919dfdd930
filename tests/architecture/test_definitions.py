"""A quantity is defined once: one declaration, one definition, and no formula written a second time by hand."""

from __future__ import annotations

import ast
import re
from collections import Counter

from source_tree import ROOT, Module, calls, committed_files, modules

HAND_WRITTEN = re.compile(r"\\(?:frac|sum|sqrt|softmax|cdot|partial)\b")


def declarations() -> list[tuple[Module, str, str]]:
    """(module, name, text) of every `quantity(...)` call of the package."""
    found = []
    for module in modules():
        for name, call in calls(module):
            if name == "quantity" and call.args and isinstance(call.args[0], ast.Constant):
                texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                found.append((module, texts[0], texts[-1]))
    return found


def statements(text: str) -> list[str]:
    """The lines of a declaration that define something, without spaces."""
    return [re.sub(r"\s+", "", line) for line in text.splitlines() if re.search(r"\]\s*(\+?=)(?!=)", line)]


def test_there_are_declarations_to_look_at() -> None:
    assert len(declarations()) > 40


def test_each_statement_is_written_in_exactly_one_place() -> None:
    written = Counter(line for _, _, text in declarations() for line in statements(text))
    assert not [line for line, times in written.items() if times > 1]


def test_no_source_file_repeats_a_statement() -> None:
    """One grep hit per definition, in Python and in the page's source."""
    wanted = {line: module.name for module, _, text in declarations() for line in statements(text)}
    sources = [p for p in committed_files() if p.suffix in {".py", ".ts", ".tsx"} and ROOT / "tests" not in p.parents]
    hits = Counter()
    for path in sources:
        squeezed = [re.sub(r"\s+", "", line) for line in path.read_text(encoding="utf-8").splitlines()]
        hits.update(line for line in squeezed if line in wanted)
    assert not [(line, wanted[line], times) for line, times in hits.items() if times > 1]


def test_formulas_in_latex_are_printed_not_written() -> None:
    """Only the printers of `notation` know how LaTeX looks; elsewhere a symbol is a letter with its marks.

    A law's own formula states a property of a model and defines no quantity: it is written with the law.
    """
    assert not [
        f"{module.name}:{number}"
        for module in modules()
        if module.package not in {"", "notation"} and not module.name.startswith("laws/probes/")
        for number, line in enumerate(module.text.splitlines(), 1)
        if HAND_WRITTEN.search(line)
    ]
