"""Random slips of one token in the small correct pieces, and whether any law of the table says so."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from glassformer.laws import Report, check_subject
from glassformer.laws.subjects.module import CallableSubject
from glassformer.laws.subjects.sampling import Sampler
from source_mutation import Mutant, sample
from test_decoding import subject_of as generator_of
from test_training_laws import PIECES, part

HERE = Path(__file__).parent
FILES = ("small_decoder.py", "small_seq2seq.py", "small_trainer.py", "small_sampler.py", "small_generator.py")

CONFIGS: Sequence[Mapping[str, Any]] = (
    {"tied": True, "smoothing": 0.1},
    {"positions": "learned", "dropout": 0.0},
    {"positions": "alibi", "window": 3},
    {"chunk": 5, "packed": True, "checkpointing": True},
)
"""Between them every line of the small decoder runs."""

QUICK = ("causality", "prefix", "cache", "heads", "norm", "alignment", "gradient")
"""Laws that catch most: what is caught early costs little."""

Stage = Callable[[], Report]


def slips(count: int, seed: int) -> list[Mutant]:
    """``count`` mutants of the small pieces, as many of each kind."""
    return sample({name: (HERE / name).read_text(encoding="utf-8") for name in FILES}, count, seed)


def executed(mutant: Mutant) -> ModuleType:
    """The mutant as a module, under a name that begins as its file's does."""
    module = ModuleType(f"{Path(mutant.file).stem}_slip_{abs(hash(mutant.key))}")
    module.__file__ = mutant.file
    sys.modules[module.__name__] = module
    exec(compile(mutant.source, mutant.file, "exec"), module.__dict__)
    return module


def stages(module: ModuleType, file: str) -> Iterator[Stage]:
    """Checks of all that the piece is, the quick ones first."""
    match file:
        case "small_decoder.py":
            yield lambda: check_subject(decoder(module, CONFIGS[0]), only=QUICK)
            for config in CONFIGS:
                yield lambda config=config: check_subject(decoder(module, config))
        case "small_seq2seq.py":
            torch.manual_seed(0)
            yield lambda: check_subject(module.SmallSubject(module.SmallSeq2Seq()))
        case "small_trainer.py":
            for name in PIECES:
                yield lambda name=name: check_subject(part(module, name))
        case "small_sampler.py":
            order = ("temperature", "top_k", "top_p", "min_p")
            parts = {"distribution": module.distribution, "draw": module.draw, "scores": module.scores}
            yield lambda: check_subject(Sampler(name="small", order=order, **parts))
        case _:
            yield lambda: check_subject(generator_of(module))


def decoder(module: ModuleType, config: Mapping[str, Any]) -> CallableSubject:
    torch.manual_seed(0)
    s = module.SmallConfig(**config)
    told = {"window": s.window, "positions": s.positions, "chunk": s.chunk, "eps": s.eps, "tied": s.tied}
    subject = CallableSubject(module.SmallDecoder(s), **told, eos=1, kv_heads=s.kv_heads)
    subject.facts.pad = s.pad
    return subject


RAISED = ("the call raised", "the model cannot be run", "every logit is NaN", "forward returned", "the loss has")


def raised(report: Report) -> dict[str, str]:
    """What each probe says that met an error, or nothing that it could read."""
    said = {result.probe: (result.reason or {}).get("en", "") for result in report}
    return {probe: reason for probe, reason in said.items() if reason.startswith(RAISED)}


@functools.cache
def usually_raised(file: str, stage: int) -> frozenset[str]:
    """The probes that meet an error in the unchanged piece: not every setting goes with every other."""
    source = (HERE / file).read_text(encoding="utf-8")
    found = list(stages(executed(Mutant(file, "", "", source)), file))[stage]()
    assert not found.violations, found.violations
    return frozenset(raised(found))


def caught(mutant: Mutant) -> str:
    """The probe that is violated, or what was raised; empty where the slip survives."""
    try:
        module = executed(mutant)
        for at, stage in enumerate(stages(module, mutant.file)):
            report = stage()
            if report.violations:
                return report.violations[0].probe
            for probe, said in raised(report).items():
                if probe not in usually_raised(mutant.file, at):
                    return f"{probe}: {said}"
    except Exception as error:  # noqa: BLE001 - a slip may raise anything
        return f"{type(error).__name__}: {error}"
    return ""
