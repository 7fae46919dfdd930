"""Laws of the forward pass: each catches the faults of its kind, and none is raised against a correct model."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from decoders import random_decoder
from glassformer.laws import Report, Verdict, check_subject
from glassformer.laws.subjects.base import ModelSubject
from glassformer.laws.subjects.module import CallableSubject
from glassformer.laws.subjects.own import DecoderSubject
from options import OPTION_CONFIGS

from .mutants import mutated
from .mutants_forward import DECODER, MUTANTS, NOT_EXPRESSED, SEQ2SEQ

OWN = (
    "padding", "batch", "packing", "positions", "flags", "determinism", "masked-rows", "cross-attention", "window",
)  # fmt: skip
ENTRIES = {10, *range(14, 26), *range(27, 35), 60, 61, 62, 84, 85}


def subject_of(file: str, config: dict[str, Any], old: str | None = None, new: str = "") -> ModelSubject:
    module = mutated(file, old, new)
    torch.manual_seed(0)
    if file == SEQ2SEQ:
        return module.SmallSubject(module.SmallSeq2Seq(module.SmallConfig(**config)))
    settings = module.SmallConfig(**config)
    told = {"window": settings.window, "positions": settings.positions, "chunk": settings.chunk}
    return CallableSubject(module.SmallDecoder(settings), **told)


def violated(report: Report) -> list[str]:
    return [result.probe for result in report.violations]


UNCHANGED = {(m.file, json.dumps(m.config, sort_keys=True)) for m in MUTANTS}


@pytest.mark.parametrize(("file", "config"), sorted(UNCHANGED))
def test_the_unchanged_model_breaks_none(file: str, config: str) -> None:
    laws = {mutant.law for mutant in MUTANTS} | set(OWN)
    report = check_subject(subject_of(file, json.loads(config)), only=laws)
    assert not violated(report)
    assert any(result.verdict is Verdict.HOLDS for result in report)


def test_every_entry_is_a_mutant_or_named_as_one_that_cannot_be() -> None:
    expressed = {mutant.entry for mutant in MUTANTS}
    assert ENTRIES - expressed == set(NOT_EXPRESSED)
    assert not expressed & set(NOT_EXPRESSED)


@pytest.mark.parametrize("probe", ["padding.segments", "packing.segments", "window.forward", "window.cached"])
def test_laws_reach_our_own_decoder(probe: str) -> None:
    name = next(name for name, config in OPTION_CONFIGS.items() if config.window == 3 and config.blocks == 2)
    report = check_subject(DecoderSubject(random_decoder(OPTION_CONFIGS[name])), only=[probe])
    assert report[probe].verdict is Verdict.HOLDS, report[probe].reason


@pytest.mark.parametrize("name", list(OPTION_CONFIGS)[::6])
def test_no_option_of_our_own_decoder_breaks_a_law(name: str) -> None:
    report = check_subject(DecoderSubject(random_decoder(OPTION_CONFIGS[name])), only=OWN)
    assert not violated(report)


@pytest.mark.full
@pytest.mark.parametrize("name", OPTION_CONFIGS)
def test_no_option_at_all_breaks_a_law(name: str) -> None:
    report = check_subject(DecoderSubject(random_decoder(OPTION_CONFIGS[name])), only=OWN)
    assert not violated(report)


def test_the_laws_of_the_forward_pass_leave_room_in_the_budget_of_a_check() -> None:
    report = check_subject(subject_of(DECODER, {}), only=OWN)
    assert report.forwards <= 200
