"""One changed line in a small correct piece of code, and the law that must catch it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """``old`` stands once in ``file`` and becomes ``new``. ``law`` (or ``law.probe``) must be violated by it.

    ``entry`` is the fault's number in the list of public faults, ``source`` where it was reported; ``place`` is the class
    that the fault sits in, where the law is local; ``config`` holds the settings under which it shows.
    """

    name: str
    entry: int | None
    source: str
    file: str
    old: str
    new: str
    law: str
    place: str | None = None
    config: dict[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.name


def mutated(file: str, old: str | None = None, new: str = "") -> ModuleType:
    """The module of ``file`` beside this one, with ``old`` made ``new``; it exists under a name of its own."""
    path = Path(__file__).parent / file
    source = path.read_text(encoding="utf-8")
    if old is not None:
        assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {file}"
        source = source.replace(old, new)
    module = ModuleType(f"{path.stem}_{abs(hash((old, new)))}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module
