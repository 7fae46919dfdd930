"""Laws of what is done with caches find no fault in correct models."""

from __future__ import annotations

from typing import Any

import pytest

from decoders import random_decoder
from glassformer.laws import Report, Verdict, check_subject
from glassformer.laws.subjects.module import CallableSubject
from glassformer.laws.subjects.own import DecoderSubject
from mutants import mutated
from mutants_cache_algebra import FILE
from options import OPTION_CONFIGS


def report_of(**settings: Any) -> Report:
    module = mutated(FILE)
    return check_subject(CallableSubject(module.SmallDecoder(module.SmallConfig(**settings))), only=("cache-algebra",))


@pytest.mark.parametrize("settings", [{}, {"positions": "alibi"}, {"positions": "learned"}, {"window": 3}], ids=str)
def test_the_small_decoder_breaks_no_law(settings: dict[str, Any]) -> None:
    report = report_of(**settings)
    assert not report.violations
    assert {r.probe for r in report if r.verdict is not Verdict.HOLDS} == {"cache-algebra.join"}
    assert report.forwards < 60


@pytest.mark.parametrize("name", list(OPTION_CONFIGS)[:6])
def test_our_decoders_break_no_law_of_caches_and_loops(name: str) -> None:
    report = check_subject(DecoderSubject(random_decoder(OPTION_CONFIGS[name])), only=("cache-algebra", "generate"))
    assert not report.violations, [(r.probe, r.finding) for r in report.violations]
    assert {report[probe].verdict for probe in ("cache-algebra.copy", "generate.greedy")} <= {
        Verdict.HOLDS,
        Verdict.NOT_SUPPORTED,
    }


def test_rows_that_read_each_other_in_cached_steps_alone_are_no_fault_of_copying() -> None:
    line = "        logits = self.head(self.norm(x))\n"
    mixed = f"        x = x + x.roll(1, 0) if past and b > 1 else x\n{line}"
    module = mutated(FILE, line, mixed)
    model = CallableSubject(module.SmallDecoder(module.SmallConfig()))
    report = check_subject(model, only=["cache-algebra.copy", "batch.cached"])
    assert report["cache-algebra.copy"].verdict is Verdict.HOLDS
    assert report["batch.cached"].verdict is Verdict.VIOLATED
