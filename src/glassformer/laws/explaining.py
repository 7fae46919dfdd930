"""What stands beside a violation: its place and a program that shows it. Nothing here changes a verdict."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import torch
from torch import Tensor

from .bench import Bench
from .place import first_lost, localised, maker_of_loss
from .program import program, program_of_loss
from .runs import Inputs
from .subjects.base import Offer
from .verdict import LOST, Finding, Place, Result, Verdict

OF_THE_LOSS = ("alignment", "loss-mask", "gradient.loss", "distribution.large", "initial-loss")
"""Laws and probes of a loss that the model reports itself."""


def explained(result: Result, standing: Bench, double: Callable[[], Bench]) -> Result:
    """``result``, a violation, explained on the bench that stands, or on one in double precision.

    The other is made only where the first shows no place: what is small in the stream drowns in single precision.
    """
    finding = result.finding
    if finding is None:
        return result
    found = _on(standing, result, finding)
    claim = finding.claim
    if found.place is None and claim is not None and not claim.differ and standing.dtype is not torch.float64:
        try:
            again = double()
        except Exception:  # noqa: BLE001 - the model may not run in double precision at all
            return found
        found = _on(again, found, finding)
    return found


def placed(result: Result) -> Result:
    """``result`` of a subject that is no model, with the place that its violation says itself."""
    finding = result.finding
    if result.verdict is not Verdict.VIOLATED or finding is None:
        return result
    return replace(result, place=finding.place)


def _on(bench: Bench, result: Result, finding: Finding) -> Result:
    with suppress(Exception):  # the verdict stands without its place
        result = replace(result, place=_place(bench, result, finding))
    with suppress(Exception):  # and without its program
        result = replace(result, program=_program(bench, result, finding) or result.program)
    return result


def _place(bench: Bench, result: Result, finding: Finding) -> Place | None:
    if finding.place is not None:
        return finding.place
    if finding.claim is not None:
        if finding.unit == LOST:
            return first_lost(bench, finding.claim.left)
        return localised(bench, finding.claim)
    if _of_the_loss(bench, result):
        return maker_of_loss(bench, Inputs(ids=bench.texts(2), labels=bench.texts(2)))
    return None


def _of_the_loss(bench: Bench, result: Result) -> bool:
    return bool({result.law, result.probe} & set(OF_THE_LOSS)) and Offer.LABELS in bench.subject.offers


def _program(bench: Bench, result: Result, finding: Finding) -> str | None:
    if finding.claim is not None:
        return program(bench, finding.claim)
    if finding.shown is not None:
        return finding.shown(bench)
    if not _of_the_loss(bench, result):
        return None
    return program_of_loss(bench, _labels(bench, result), float(finding.witness.get("gain", 1.0)))


def _labels(bench: Bench, result: Result) -> Tensor:
    """A text with its end in it, scored but for half of a row, or nowhere where that is what the probe asks."""
    labels = bench.texts(2)
    end = bench.subject.facts.settings.get("eos")
    if isinstance(end, int):
        labels[:, 1] = end
    if result.probe.endswith("nothing"):
        labels[:] = -100
    else:
        labels[1, : labels.shape[1] // 2] = -100
    return labels
