"""What a check costs in forward passes, and what is still caught where few are made."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import foreign
import mutants_core
from glassformer.laws import LAWS, Family, Verdict, check, check_subject
from glassformer.laws.bench import Bench
from glassformer.laws.kept import KeptLogits
from glassformer.laws.runs import Run, once
from glassformer.laws.subjects.base import ModelSubject
from glassformer.laws.subjects.module import CallableSubject
from mutants import Mutant, mutated

from . import mutants_forward
from .test_forward import subject_of

FAST = 15
"""Forward passes of ``--fast``, those that find out how to call a module included."""

WHOLE = 400

FIVE = {"causality", "prefix", "padding", "cache", "alignment"}

BEYOND = {
    "no triangle inside a chunk after 64 tokens": "the texts have 20 tokens",
    "history hidden from a continuation of several tokens": "the cache is read on token by token",
    "tokens with the pad's id are hidden": "no text holds such an id",
    "the mask of a step is that of its own column": "pads and a cache are not tried together",
    "the mask is dropped once there is a cache": "pads and a cache are not tried together",
    "a step stands at its slot": "pads and a cache are not tried together",
    "pads of their own document are read": "documents are not tried",
}
"""Faults of the five laws that are left to the whole check."""


def small(mutant: Mutant | None = None, **config: Any) -> ModelSubject:
    torch.manual_seed(0)
    if mutant is not None and mutant.file != "small_decoder.py":
        return subject_of(mutant.file, mutant.config, mutant.old, mutant.new)
    old, new = (None, "") if mutant is None else (mutant.old, mutant.new)
    module = mutated("small_decoder.py", old, new)
    settings = module.SmallConfig(**(config if mutant is None else mutant.config))
    told = {"window": settings.window, "positions": settings.positions, "chunk": settings.chunk}
    return CallableSubject(module.SmallDecoder(settings), **told)


OF_THE_FIVE = [m for m in (*mutants_core.MUTANTS, *mutants_forward.MUTANTS) if m.law.split(".")[0] in FIVE]


def test_the_fast_laws_of_a_model_are_five() -> None:
    assert {law.id for law in LAWS for probe in law.probes if probe.fast and probe.family is Family.MODEL} == FIVE


@pytest.mark.parametrize("config", [{}, {"window": 3}, {"positions": "learned"}, {"context": 6}], ids=str)
def test_a_fast_check_of_a_correct_decoder_holds_within_its_passes(config: dict[str, Any]) -> None:
    report = check_subject(small(**config), fast=True)
    assert report.forwards <= FAST
    assert {result.law for result in report if result.verdict is Verdict.HOLDS} == FIVE
    assert not report.violations


@pytest.mark.parametrize("name", ["NanoGPT", "MinGPT", "GPTModel", "KeepMask", "AddedMask", "WholeMask"])
def test_a_fast_check_of_a_foreign_module_keeps_to_its_passes(name: str) -> None:
    torch.manual_seed(0)
    report = check(getattr(foreign, name)(), fast=True)
    assert report.forwards <= FAST
    assert not report.violations


@pytest.mark.parametrize("name", ["llama", "gpt2", "bert", "mamba", "t5"])
def test_a_fast_check_of_an_architecture_keeps_to_its_passes(name: str) -> None:
    pytest.importorskip("transformers")
    from glassformer.laws.subjects.architectures import tiny_subject

    report = check_subject(tiny_subject(name), fast=True)
    assert report.forwards <= FAST
    assert not report.violations


@pytest.mark.parametrize("mutant", OF_THE_FIVE, ids=str)
def test_a_fast_check_catches_the_faults_of_its_laws_but_those_named_beyond_it(mutant: Mutant) -> None:
    assert bool(check_subject(small(mutant), fast=True).violations) is (mutant.name not in BEYOND)


def test_a_fast_check_does_not_pass_over_rows_that_read_each_other() -> None:
    (mutant,) = (m for m in mutants_forward.MUTANTS if m.name == "attention reads another row")
    assert "prefix.lengths" in [result.probe for result in check_subject(small(mutant), fast=True).violations]


@pytest.mark.parametrize("name", ["llama", "t5"])
def test_a_whole_check_of_an_architecture_costs_at_most_400_passes(name: str) -> None:
    pytest.importorskip("transformers")
    from glassformer.laws.subjects.architectures import tiny_subject

    assert 100 < check_subject(tiny_subject(name)).forwards <= WHOLE


def test_looking_for_places_is_counted_apart() -> None:
    fault = next(m for m in mutants_core.MUTANTS if m.law == "cache.one-by-one")
    found, clean = (check_subject(small(m), only=["cache.one-by-one"]) for m in (fault, None))
    assert found.placing > 0 == clean.placing
    assert found.plain()["placing"] == found.placing


def test_larger_weights_are_gone_after_a_run_with_them() -> None:
    bench = Bench(small(), torch.float32)
    before = {name: p.detach().clone() for name, p in bench.module.named_parameters()}
    bench.logits(Run(calls=once(bench.texts(1)).calls, gain=512.0))
    assert bench.noise > 0
    assert all(torch.equal(p, before[name]) for name, p in bench.module.named_parameters())


def test_logits_are_kept_only_while_there_is_room() -> None:
    kept, runs = KeptLogits(room=4000), [once(torch.zeros(1, 1, dtype=torch.int64)) for _ in range(6)]
    for k, run in enumerate(runs):
        kept.keep(run, torch.full((100,), k, dtype=torch.float64), lasting=k < 3)
    assert [kept.of(run) is not None for run in runs] == [True, True, False, False, True, True]
    kept.forget()
    assert not any(kept.of(run) is not None for run in runs)
