"""Who catches a mutant of the model: run as a script that forks one child for each, with torch loaded once.

    python mutant_runner.py FOLDER-OF-THE-PACKAGE LIMIT-IN-SECONDS TEST-FILE...  <  mutants  >  verdicts

Both streams are lines of JSON: a mutant is ``[module, source]``, a verdict the name of what caught it, or null. First
come the laws of a trace on every option, which catch most mutants within seconds, then the tests given.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


class Mutated(SourceFileLoader):
    """Loads other source than the file's for one module."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self.source = source

    def get_code(self, fullname: str) -> Any:
        return compile(self.source, self.path, "exec", dont_inherit=True)


class Finder:
    """Finds ``name`` before anyone else."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.source = name, str(path), source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=Mutated(name, self.path, self.source))


def laws() -> Iterator[str]:
    """The names of the laws that are broken on some option (see tests/tracing/test_options.py)."""
    from decoders import err, random_decoder, random_inputs
    from glassformer.model import definitions
    from glassformer.notation import silent
    from glassformer.tracing.audit import audit
    from glassformer.tracing.record import Sample, forward, record
    from glassformer.tracing.replay import replay
    from glassformer.tracing.witnesses import gradients_by_definition
    from options import OPTION_CONFIGS

    for number, config in enumerate(OPTION_CONFIGS.values()):
        torch.manual_seed(number)
        inputs, packed = random_inputs(config, n=6), number % 2 == 1
        segments = torch.tensor((3, 3, 3, 0, 1, 1)) if packed else None
        sample = Sample(inputs.tokens[0], inputs.targets[0], inputs.scored[0], segments)
        program = definitions(config, 6, packed=packed, dropout=True)
        model = random_decoder(config)
        recorded = record(model.train(), sample, program)
        if not replay(program, (), recorded).holds:
            yield "replay"
        if audit(model, sample, 0.1).uncovered:
            yield "completeness"
        for name, gradient in gradients_by_definition(program, recorded).items():
            if np.abs(recorded[name]).max(initial=0.0) > 1e-9 and err(gradient, recorded[name]) > 1e-9:
                yield "gradients"
        seen: list[torch.Tensor] = []
        model.eval()
        with torch.no_grad():
            forward(model, sample, lambda q, x, at, seen=seen: (seen.append(x), x)[1] if q.name == "logits" else x)
            if (forward(model, sample, silent).logits - seen[0]).abs().max() > 1e-9:
                yield "looking changes nothing"


class FirstFailure:
    """A pytest plugin that remembers the first test, or file, that failed."""

    def __init__(self) -> None:
        self.name: str | None = None

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.name = self.name or report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.name = self.name or report.nodeid


def verdict(tests: Sequence[str]) -> str | None:
    """What catches the mutant that this process will import."""
    try:
        broken = next(laws(), None)
    except Exception as error:  # noqa: BLE001 - whatever a mutant raises is how it is caught
        return f"{type(error).__name__}"
    if broken is not None or not tests:
        return broken
    first = FirstFailure()
    code = pytest.main(
        [*tests, "-x", "-q", "-m", "not full", "-p", "no:cacheprovider", "--assert=plain"], plugins=[first]
    )
    return first.name or (None if code == pytest.ExitCode.OK else f"pytest ended with {code}")


def in_a_child(module: str, source: str, package: Path, limit: int, tests: Sequence[str]) -> str | None:
    """The verdict on one mutant, from a fork of this process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(limit)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.meta_path.insert(0, Finder(f"glassformer.model.{module}", package / "model" / f"{module}.py", source))
        try:
            os.write(write, json.dumps(verdict(tests)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    if not answer:
        raise RuntimeError(f"no verdict on a mutant of {module}")
    return json.loads(answer)


def main() -> None:
    """Answer every mutant on standard input."""
    package, limit, tests = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    torch.set_num_threads(1)
    # Everything but the model is loaded once, for all children.
    importlib.import_module("glassformer.notation")
    assert not any(name.startswith("glassformer.model") for name in sys.modules)
    for line in sys.stdin:
        module, source = json.loads(line)
        sys.stdout.write(json.dumps(in_a_child(module, source, package, limit, tests)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
