"""What no committed file may say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from source_tree import ROOT, committed_files

BINARY = {".trace", ".png", ".jpg", ".woff2", ".safetensors", ".npz", ".glassformer", ".gz", ".whl"}

# Written in pieces, so that this file does not say them either.
MACHINE_PATHS = "|".join(("/wo" + "rk/", "/ro" + "ot/", "/ho" + r"me/\w", "/Us" + "ers/", "bash_" + "jobs"))
REGISTRY_HOSTS = "|".join(("py" + r"pi\.org", "python" + r"hosted\.org", "npm" + r"js\.org", "debian" + r"\.org"))
UNFINISHED = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X"))
TRACKER = r"\b[Ii]ssues? #?\d+\b|(?<![\w&#/'\"])#\d+\b(?![\w;-])"


def lines() -> list[tuple[Path, int, str]]:
    """Every line of every committed text file but the licence texts and the lock file's integrity lines."""
    found = []
    for path in committed_files():
        if path.suffix in BINARY or path.name == "LICENSE" or "licenses" in path.parts:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if '"integrity": ' not in line:
                found.append((path, number, line))
    return found


def hits(pattern: str, *, skip: tuple[str, ...] = ()) -> list[str]:
    compiled = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path, number, line in lines()
        if path.suffix not in skip and compiled.search(line)
    ]


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    assert not hits(MACHINE_PATHS)


def test_no_file_names_the_host_of_a_package_registry() -> None:
    assert not hits(REGISTRY_HOSTS)


def test_no_file_holds_a_mark_of_unfinished_work() -> None:
    assert not hits(rf"\b({UNFINISHED})\b")


def test_no_file_points_at_a_numbered_issue() -> None:
    # In a style sheet or a program of the page a number after the sign is a colour.
    assert not hits(TRACKER, skip=(".css", ".ts", ".tsx", ".html", ".svg"))


# A placeholder or a piece of code keeps its English name inside a Chinese text.
CODE = re.compile(r"\{[^{}]*\}|`[^`]*`|--[a-z-]+|\btokens?\.\w+")
HAN = re.compile("[\u4e00-\u9fff]")
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def chinese_texts() -> Iterator[tuple[Path, str]]:
    """Every string with Chinese in the programs, and every line with Chinese in what is read as it is."""
    for path in committed_files():
        parts = path.relative_to(ROOT).parts
        if path.suffix == ".py" and parts[0] == "src":
            nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
            # Docstrings are English, whatever they quote.
            said = {x.value for x in nodes if isinstance(x, ast.Expr)}
            texts = [
                x.value for x in nodes if isinstance(x, ast.Constant) and x not in said and isinstance(x.value, str)
            ]
        elif path.suffix in (".ts", ".tsx") and parts[:2] == ("web", "src"):
            texts = LITERAL.findall(path.read_text("utf-8"))
        elif path.name == "README.zh.md" or parts[-3:-1] == ("chapters", "zh"):
            texts = path.read_text("utf-8").splitlines()
        else:
            continue
        # The key of a table of words may be English; a text that is the one word alone is the Chinese face of a name.
        yield from ((path, text) for text in texts if HAN.search(text) or text == "Token")


def test_chinese_texts_say_词元_and_give_the_english_word_once() -> None:
    """The first chapter introduces the word as 词元（Token）; everywhere else a reader of Chinese reads Chinese."""
    found = [
        f"{path.relative_to(ROOT)}: {text.strip()[:60]}"
        for path, text in chinese_texts()
        if re.search(r"\btokens?\b", CODE.sub("", text), re.IGNORECASE)
    ]
    assert len(found) == 1, found
    assert found[0].startswith("src/glassformer/book/chapters/zh/01.md")
