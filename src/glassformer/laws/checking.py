"""Run the laws on a subject: every probe ends in a verdict, and the subject is left as it was."""

from __future__ import annotations

import gc
import math
import platform
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..bilingual import Words, words
from ..errors import UserError, did_you_mean
from .bench import Bench, Seen, Spent
from .documented import documented
from .explaining import explained, placed
from .law import Family, Law, Probe
from .probes.quick import QUICK
from .report import Report
from .subjects.base import ModelSubject
from .subjects.told import Told, subject_of
from .table import LAWS
from .verdict import LOST, Finding, Result, Undecided, Verdict

PRECISIONS = (torch.float64, torch.float32)
"""Rounding shrinks by eight orders of magnitude from the second to the first; a fault keeps its size."""

Watch = Callable[[str, str], None]
"""Told the probe and the precision before each is tried."""


@contextmanager
def left_alone() -> Iterator[None]:
    """Random numbers of torch, NumPy and Python, grad mode and threads: afterwards as before, whatever happens."""
    own, numpys, grad, threads = (
        random.getstate(),
        np.random.get_state(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
    )
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            random.setstate(own)
            np.random.set_state(numpys)
            torch.set_grad_enabled(grad)
            torch.set_num_threads(threads)


def chosen(
    laws: Iterable[Law], family: Family, *, fast: bool = False, only: Iterable[str] = (), without: Iterable[str] = ()
) -> Iterator[tuple[Law, Probe]]:
    """The probes for a family; with ``only`` those of the given laws or probes, ``without`` not these probes."""
    wanted, unwanted = set(only), set(without)
    for law in laws:
        for probe in law.probes:
            named = not wanted or law.id in wanted or probe.id in wanted
            if probe.family is family and named and (probe.fast or not fast) and probe.id not in unwanted:
                yield law, probe


def refuse_unknown(only: Iterable[str], laws: Iterable[Law] = LAWS) -> None:
    """Raise ``UserError``, with the nearest names, for one that is neither a law nor a probe."""
    laws = tuple(laws)
    names = [*(law.id for law in laws), *(probe.id for law in laws for probe in law.probes)]
    for name in only:
        if name not in names:
            raise UserError(f'There is no law "{name}".', "", did_you_mean(name, names))


def check(model: object, *, fast: bool = False, only: Iterable[str] = (), seed: int = 0, **told: Any) -> Report:
    """Try every law that applies to ``model``: an ``nn.Module`` that maps token ids to logits, or an adapter.

    How it is called is found out; ``told`` may say ``vocab_size``, ``context``, ``kind`` ("causal", "masked",
    "sequence-to-sequence"), ``batch_first``, ``extra`` (arguments of every call), ``name``, and for torch's own parts
    ``mask``. ``fast`` tries few probes, ``only`` names laws or probes. The model is left as it was. Raises ``UserError``
    for what cannot be checked at all.
    """
    only = (only,) if isinstance(only, str) else tuple(only)
    refuse_unknown(only)
    with left_alone():
        subject = subject_of(model, Told(told))
    return check_subject(subject, fast=fast, only=only, seed=seed)


def check_subject(
    subject: Any, *, fast: bool = False, only: Iterable[str] = (), seed: int = 0, laws: Iterable[Law] = LAWS,
    without: Iterable[str] = (), watch: Watch | None = None,
) -> Report:  # fmt: skip
    """The report on one subject. A probe that raises ends in a verdict that says so; the others still run.

    ``without`` leaves probes out; ``watch`` is told what is tried next.
    """
    spent = Spent()
    probes = list(chosen(laws, subject.family, fast=fast, only=only, without=without))
    watching = watch or (lambda *_: None)
    with left_alone():
        if isinstance(subject, ModelSubject):
            results = tuple(_on_model(subject, probes, seed, spent, fast=fast, watch=watching))
            kind, facts = subject.kind.value, _facts(subject)
            spent.forwards += subject.trials
        else:
            results = tuple(placed(_result(law, probe, {"": lambda: subject}, watching)) for law, probe in probes)
            kind, facts = subject.family.value, {}
    results = tuple(documented(result, subject) for result in results)
    versions = {"python": platform.python_version(), "torch": str(torch.__version__), "numpy": np.__version__}
    return Report(
        subject=subject.name, kind=kind, results=results, forwards=spent.forwards, placing=spent.placing,
        versions=versions, facts=facts,
    )  # fmt: skip


def _on_model(
    subject: ModelSubject, probes: list[tuple[Law, Probe]], seed: int, spent: Spent, *, fast: bool, watch: Watch
) -> Iterator[Result]:
    benches: dict[torch.dtype, Bench | Undecided] = {}

    def bench(dtype: torch.dtype) -> Callable[[], Bench]:
        def made() -> Bench:
            if dtype not in benches:
                before = next((each.seen for each in benches.values() if isinstance(each, Bench)), None)
                # One copy at a time: a model of 100M parameters takes 800 MB in double precision.
                benches.clear()
                gc.collect()
                benches[dtype] = _bench(subject, dtype, seed, spent, before, frugal=fast)
            found = benches[dtype]
            if isinstance(found, Undecided):
                raise found
            return found

        return made

    # Every model runs in single precision, and a fast check allows for its rounding anyway.
    first, second = reversed(PRECISIONS) if fast else PRECISIONS
    names = {dtype: str(dtype).removeprefix("torch.") for dtype in PRECISIONS}
    run = _quickly if fast else _fully
    results = [_result(law, probe, {names[first]: bench(first)}, watch, run) for law, probe in probes]
    # Where the first precision cannot run, or says that a law is broken, the other is asked too.
    unable = isinstance(benches.get(first), Undecided)
    for (law, probe), result in zip(probes, results, strict=True):
        again = (result.verdict is Verdict.VIOLATED and not probe.exact) or (
            unable if fast else result.verdict is Verdict.NOT_SUPPORTED or probe.repeated
        )
        if again:
            other = _result(law, probe, {names[second]: bench(second)}, watch, run)
            # Where the first cannot be run at all, what the other says is all that is known.
            result = other if unable else _both(other, result) if fast else _both(result, other)
        standing = next((made for made in benches.values() if isinstance(made, Bench)), None)
        if result.verdict is Verdict.VIOLATED and standing is not None:
            begun = spent.forwards
            result = explained(result, standing, bench(torch.float64))
            spent.forwards, spent.placing = begun, spent.placing + spent.forwards - begun
        yield result


def _bench(
    subject: ModelSubject, dtype: torch.dtype, seed: int, spent: Spent, before: Seen | None, *, frugal: bool
) -> Bench | Undecided:
    try:
        return Bench(subject, dtype, seed, spent, before, frugal=frugal)
    except Undecided as undecided:
        return undecided
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything; the verdict says what
        return _raised(error, f"the model cannot be run in {str(dtype).removeprefix('torch.')}")


def _raised(error: Exception, doing: str = "the call raised") -> Undecided:
    said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return Undecided(f"{doing}: {said}", f"调用出错：{said}")


def _fully(probe: Probe, subject: Any) -> Finding:
    return probe.run(subject)


def _quickly(probe: Probe, subject: Any) -> Finding:
    """What the quick way finds to hold, else what the probe itself says."""
    quick = QUICK.get(probe.id)
    return (quick(subject) if quick else None) or probe.run(subject)


def _result(
    law: Law, probe: Probe, subjects: Mapping[str, Callable[[], Any]], watch: Watch,
    run: Callable[[Probe, Any], Finding] = _fully,
) -> Result:  # fmt: skip
    findings: dict[str, Finding] = {}
    try:
        for precision, subject in subjects.items():
            watch(probe.id, precision)
            findings[precision] = run(probe, subject())
    except Undecided as undecided:
        return Result(law=law.id, probe=probe.id, verdict=undecided.verdict, reason=undecided.reason)
    except Exception as error:  # noqa: BLE001 - as above
        return Result(law=law.id, probe=probe.id, verdict=Verdict.NOT_SUPPORTED, reason=_raised(error).reason)
    kept = all(finding.kept for finding in findings.values())
    return Result(law=law.id, probe=probe.id, verdict=Verdict.HOLDS if kept else Verdict.VIOLATED, findings=findings)


def _both(double: Result, single: Result) -> Result:
    """The verdict of two precisions; where they differ the result says which saw the fault."""
    if not double.findings or not single.findings:
        decided = bool(single.findings) or single.verdict is Verdict.NOT_APPLICABLE
        return single if decided and double.verdict is Verdict.NOT_SUPPORTED else double
    findings = {**double.findings, **single.findings}
    verdict = Verdict.VIOLATED if Verdict.VIOLATED in (double.verdict, single.verdict) else double.verdict
    reason = None
    if said := _single_parts(double, single):
        return replace(single, reason=said)
    if double.verdict is not single.verdict:
        where = "float64" if double.verdict is Verdict.VIOLATED else "float32"
        reason = words(f"in {where} alone", f"仅在 {where} 下")
    return replace(double, verdict=verdict, findings=findings, reason=reason)


def _single_parts(double: Result, single: Result) -> Words | None:
    """What parts that compute in single precision do in double precision alone; None where it is not they.

    Rounding that single precision allows is theirs: a fault would keep its size in both. So is a number that is not
    finite: the least double is minus infinity to a softmax that converts it, and a row without keys becomes 0/0.
    """
    left, right = double.finding, single.finding
    alone = double.verdict is Verdict.VIOLATED and single.verdict is Verdict.HOLDS
    if left is None or right is None or not alone or left.at_least or left.unit != right.unit:
        return None
    if math.isnan(left.measured) or left.unit == LOST:
        return words(
            "in float32; in float64 parts that convert to float32 give numbers that are not finite",
            "在 float32 下；在 float64 下，转换为 float32 的部分给出非有限数",
        )
    if left.measured <= right.bound:
        return words("parts of the model compute in float32 always", "模型中有部分始终以 float32 计算")
    return None


def _facts(subject: ModelSubject) -> dict[str, Any]:
    facts = subject.facts
    settings = {name: value for name, value in facts.settings.items() if isinstance(value, int | float | str | bool)}
    return {
        "class": type(subject.module).__name__,
        "parameters": sum(p.numel() for p in subject.module.parameters()),
        "vocabulary": facts.vocab_size,
        "context": facts.context,
        "offers": {offer.value: argument for offer, argument in subject.offers.items()},
        **settings,
    }
