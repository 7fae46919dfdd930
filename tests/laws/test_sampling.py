"""Laws of decoding rules catch each fault in small ones, and find none in correct ones of either habit."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
from scipy.stats import chi2
from torch import Tensor

from glassformer.laws import Report, Verdict, check_subject
from glassformer.laws.probes.rules import quantile
from glassformer.laws.subjects.sampling import Sampler
from mutants import Mutant, mutated
from mutants_sampling import FILE, MUTANTS


def subject_of(module: ModuleType, **changes: Any) -> Sampler:
    return Sampler(
        name="small", distribution=module.distribution, draw=module.draw, scores=module.scores,
        **{"order": ("temperature", "top_k", "top_p", "min_p"), **changes},
    )  # fmt: skip


def kept_of_three_equal(report: Report) -> int:
    finding = report["rules.top-k"].finding
    assert finding is not None
    return finding.witness["kept_of_three_equal_for_2"]


def test_small_rules_break_no_law_and_every_probe_measures() -> None:
    report = check_subject(subject_of(mutated(FILE)))
    assert {result.verdict for result in report} == {Verdict.HOLDS}
    assert kept_of_three_equal(report) == 2


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_fault_is_caught_by_the_law_it_breaks(mutant: Mutant) -> None:
    report = check_subject(subject_of(mutated(mutant.file, mutant.old, mutant.new)), only=(mutant.law,))
    assert report[mutant.law].verdict is Verdict.VIOLATED, [(r.probe, r.verdict, r.reason) for r in report]


def library(logits: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0) -> Tensor:
    """As in ``transformers``: equal scores are all kept by top-k, the sum is taken from below, single precision."""
    if temperature <= 0:
        raise ValueError("temperature has to be positive")
    scores = logits / temperature
    if top_k is not None:
        scores = scores.masked_fill(scores < torch.topk(scores, top_k).values[-1], -torch.inf)
    if top_p < 1:
        ordered, indices = torch.sort(scores, descending=False)
        remove = ordered.softmax(-1).cumsum(-1) <= 1 - top_p
        remove[-1:] = False
        scores = scores.masked_fill(remove.scatter(0, indices, remove), -torch.inf)
    return scores.softmax(-1)


def last_temperature(
    logits: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0
) -> Tensor:
    """Temperature after the filters, as others do."""
    if temperature <= 0:
        raise ValueError("temperature has to be positive")
    p = library(logits, top_k=top_k, top_p=top_p)
    return torch.softmax(p.log() / temperature, -1)


@pytest.mark.parametrize("rules", [library, last_temperature])
def test_habits_that_differ_break_no_law(rules: Any) -> None:
    report = check_subject(Sampler(name="other", distribution=rules))
    assert not report.violations, [(r.probe, r.finding) for r in report.violations]
    assert kept_of_three_equal(report) == 3
    assert report["rules.min-p"].verdict is Verdict.NOT_SUPPORTED


def test_an_order_that_is_stated_is_held_to() -> None:
    stated = Sampler(name="other", distribution=last_temperature, order=("temperature", "top_k", "top_p"))
    assert check_subject(stated)["rules.order"].verdict is Verdict.VIOLATED


def test_an_argument_that_kwargs_swallow_is_no_offer() -> None:
    report = check_subject(Sampler(name="any", distribution=lambda logits, **rules: torch.softmax(logits, -1)))
    assert report["rules.top-k"].verdict is Verdict.NOT_SUPPORTED
    assert report["rules.distribution"].verdict is Verdict.HOLDS


@pytest.mark.parametrize("freedom", [1, 3, 5, 11])
def test_the_bound_on_chi_square_is_passed_by_chance_almost_never(freedom: int) -> None:
    assert 1e-12 < chi2.sf(quantile(freedom), freedom) < 1e-8
