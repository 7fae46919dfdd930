"""Laws of loaders, data files and resumed runs catch each fault in small ones, and find none in correct ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils.data import DistributedSampler, TensorDataset

from glassformer.laws import Verdict, check_subject
from glassformer.laws.subjects.data import Loader, Resumable
from mutants import Mutant, mutated
from mutants_data import FILE, MUTANTS


def subject_of(module: ModuleType) -> Loader:
    return Loader(
        name="small", samples=module.samples, resumed=module.resumed, size=module.SIZE, kept=module.kept,
        scored=module.scored,
    )  # fmt: skip


def test_the_small_loader_breaks_no_law_and_every_probe_measures() -> None:
    report = check_subject(subject_of(mutated(FILE)))
    assert {result.verdict for result in report} == {Verdict.HOLDS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_fault_is_caught_by_the_law_it_breaks(mutant: Mutant) -> None:
    report = check_subject(subject_of(mutated(mutant.file, mutant.old, mutant.new)), only=(mutant.law,))
    assert report[mutant.law].verdict is Verdict.VIOLATED, [(r.probe, r.verdict, r.reason) for r in report]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("size", [24, 13])
def test_the_sampler_of_torch_breaks_no_law(size: int, drop_last: bool) -> None:
    def samples(epoch: int, rank: int, ranks: int) -> list[int]:
        sampler = DistributedSampler(TensorDataset(torch.zeros(size)), ranks, rank, drop_last=drop_last)
        sampler.set_epoch(epoch)
        return list(sampler)

    report = check_subject(Loader(name="torch", samples=samples, size=size))
    assert not report.violations, [(r.probe, r.finding) for r in report.violations]
    assert report.count(Verdict.HOLDS) == 3


def test_turns_of_several_samples_are_an_order_too() -> None:
    def samples(epoch: int, rank: int, ranks: int) -> list[int]:
        order = random.Random(epoch).sample(range(24), 24)
        return [order[i] for i in range(24) if i // 3 % ranks == rank]

    report = check_subject(Loader(name="batches of three", samples=samples))
    assert report["data.ranks"].verdict is Verdict.HOLDS


class Descent:
    """Five steps of momentum; what is on disk is ``saved``."""

    def __init__(self, forgets: str = "") -> None:
        self.forgets = forgets

    def run(self, stops: Sequence[int] = ()) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(0)
        w, v, losses = torch.ones(3), torch.zeros(3), []
        for step in range(5):
            if step in stops:
                if self.forgets == "momentum":
                    v = torch.zeros(3)
                if self.forgets == "generator":
                    generator = torch.Generator().manual_seed(0)
            x = torch.randn(3, generator=generator)
            losses.append(float((w * x).sum() ** 2))
            v = 0.9 * v + 2 * (w * x).sum() * x
            w = w - 0.01 * v
        return {"w": w, "losses": losses}


@pytest.mark.parametrize("forgets", ["", "momentum", "generator"])
def test_a_run_that_forgets_something_is_caught(forgets: str) -> None:
    descent = Descent(forgets)
    report = check_subject(Resumable(name="descent", whole=descent.run, interrupted=descent.run))
    assert report["resume.again"].verdict is Verdict.HOLDS
    assert report["resume.run"].verdict is (Verdict.VIOLATED if forgets else Verdict.HOLDS)
