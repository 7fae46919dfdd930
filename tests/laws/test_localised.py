"""A violation names the part that is at fault, and has a program that shows it, wherever the law is local."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest
import torch

from glassformer.laws import check_subject
from glassformer.laws.subjects.base import ModelSubject
from glassformer.laws.subjects.module import CallableSubject
from glassformer.laws.verdict import Result
from mutants import Mutant, mutated
from mutants_cache_algebra import MUTANTS as CACHES
from mutants_core import MUTANTS as CORE
from mutants_training import MODELS

from .mutants_forward import MUTANTS as FORWARD

HERE = Path(__file__).parent
ALL: Sequence[Mutant] = (*CORE, *FORWARD, *CACHES, *MODELS)


def subject_of(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> ModelSubject:
    """The changed model; its programs import it from ``faulty``."""
    module = mutated(mutant.file, mutant.old, mutant.new)
    monkeypatch.setitem(sys.modules, "faulty", module)
    subject = made(mutant, module)
    kind, config = type(subject.module).__name__, type(getattr(subject.module, "config", None)).__name__
    given = "" if kind == "SmallExperts" else f"faulty.{config}(**{mutant.config})"
    subject.recipe = ("import faulty", "torch.manual_seed(0)", f"model = faulty.{kind}({given})")
    return subject


def made(mutant: Mutant, module: ModuleType) -> ModelSubject:
    torch.manual_seed(0)
    if mutant.file == "small_seq2seq.py":
        return module.SmallSubject(module.SmallSeq2Seq())
    if mutant.file == "small_experts.py":
        return CallableSubject(module.SmallExperts())
    s = module.SmallConfig(**mutant.config)
    told = {"window": s.window, "positions": s.positions, "chunk": s.chunk, "eps": s.eps, "tied": s.tied}
    subject = CallableSubject(module.SmallDecoder(s), **told, eos=1, kv_heads=s.kv_heads)
    subject.facts.pad = s.pad
    return subject


def changed_in(mutant: Mutant) -> str:
    """The class or function of the file in which the changed line stands."""
    source = (HERE / mutant.file).read_text(encoding="utf-8")
    begins = source.index(mutant.old) + len(mutant.old) - len(mutant.old.lstrip())
    line = source[:begins].count("\n") + 1
    return next(
        node.name for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    )  # fmt: skip


CALLERS = {"rotate": "Attention", "slopes": "Attention", "attend": "CrossAttention"}
"""Functions are no modules: the place is the module that calls them."""

MASK = (
    "the model makes the mask, which breaks nothing until attention reads with it; the mask is drawn beside the place"
)
MEMORY = (
    "what the encoder made is cut or exchanged on its way: attention that reads it is the first whose output shows it"
)
LAYER = "the width of a layer is measured from outside: the mask that the model made, seen in the layer that uses it"
TABLE = "the table is told by its name: the class around it only makes it"

SEEN_IN: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        (
            "bidirectional mask in a decoder", "no mask where there is a cache", "triangle aligned top left",
            "no triangle inside a chunk after 64 tokens", "history hidden from a continuation of several tokens",
            "the mask of a step is that of its own column", "the window has one key more in the cache",
            "the window has one key less behind pads", "chunks are counted from the first slot",
            "the mask is dropped once there is a cache", "the mask silences queries in the place of keys",
            "what pads hold is read", "every row has the mask of the first", "a mask of ones undoes packing",
            "a cache undoes packing", "a mask of ones undoes documents", "documents begin anew and read each other",
            "pads of their own document are read",
        ),
        ("Attention", MASK),
    ),
    "the mask of the source is dropped in steps": ("CrossAttention", MASK),
    "the source is cut to the length of the target": ("CrossAttention", MEMORY),
    "rows share the source of the first": ("CrossAttention", MEMORY),
    "the window has one key more": ("Block", LAYER),
    "row of the end of text frozen as padding": ("Embedding", TABLE),
    "every row has a gradient": ("Embedding", TABLE),
}  # fmt: skip
"""Mutants that show in another module than the one that was changed, with the reason."""

NOTHING = "a dual: something has no effect at all, so that there is no first module that shows one"
WHOLE = "a law on the model as a whole: on its signature, its state or its two ways of being computed"

NOT_LOCAL: Mapping[str, str] = {
    "padding.pad-as-token": NOTHING, "positions.order": NOTHING, "cross-attention.source": NOTHING,
    "positions.low-precision": NOTHING, "arguments.mask": NOTHING, "recompute.gradients": WHOLE, "tied.flag": WHOLE,
    "arguments.unknown": WHOLE, "loading.total": WHOLE, "loading.round-trip": WHOLE,
    "auxiliary.padding": "the loss of the router is a number that the model returns; no output of a layer breaks the law",
}  # fmt: skip
"""Probes whose violations have no place, with the reason."""


NO_PROGRAM: Mapping[str, str] = {
    "window.forward": "what a layer reads is found by changing its input in the middle of a call",
    "positions.order": "as above, in several layers",
    "positions.low-precision": "a position table is tried on a copy in bfloat16",
    "positions.slopes": "the numbers stand in the witness",
    "masked-rows.backward": "the forward pass of the same rows says it, and has a program",
    "precision.resolution": "a small change of all parameters and its opposite",
    "recompute.gradients": "two gradients of a whole model",
    "locality.end-row": "a row without a gradient is named by the witness",
    "locality.rows": "as above",
    "auxiliary.padding": "the loss of the router",
    **dict.fromkeys(("tied.flag", "arguments.unknown", "arguments.mask", "loading.total", "loading.round-trip"), WHOLE),
}
"""Probes whose violations have no program, with the reason."""

EFFECTS = ("padding.pad-as-token", "cross-attention.source", "heads.effect")
"""Probes that ask for a difference: their programs print 0."""


@pytest.mark.parametrize("mutant", ALL, ids=str)
def test_a_fault_of_a_model_is_caught_by_the_law_it_breaks_placed_where_it_sits_and_shown_by_a_program(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = check_subject(subject_of(mutant, monkeypatch), only=(mutant.law,))
    assert [r.probe for r in report.violations] == [mutant.law], [(r.verdict, r.reason, r.finding) for r in report]
    result = report[mutant.law]
    placed(mutant, result)
    if mutant.law in NO_PROGRAM:
        assert result.program is None
        return
    assert result.program is not None
    assert "glassformer" not in result.program
    shows(mutant, result.program, capsys)


def placed(mutant: Mutant, result: Result) -> None:
    """The place names the module that was changed, or the one in which its fault is first seen."""
    if mutant.law in NOT_LOCAL:
        assert result.place is None
        return
    assert result.place is not None
    changed = changed_in(mutant)
    wanted, reason = SEEN_IN.get(mutant.name, (CALLERS.get(changed, changed), ""))
    assert result.place.kind == wanted
    assert mutant.place in (None, changed, wanted)
    assert result.place.file is not None
    assert result.place.file.endswith(mutant.file)
    if reason == MASK:
        assert result.place.mask


def shows(mutant: Mutant, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The program prints the difference that there should not be, or none where there should be one."""
    exec(compile(program, "program", "exec"), {})
    out = capsys.readouterr().out
    if mutant.law == "heads.groups":
        assert "[0, 0, 2, 2]" not in out
        return
    measured, beside = (float(number) for number in re.findall(r"largest difference: (\S+) ; .*: (\S+)\n", out)[-1])
    if mutant.law in EFFECTS:
        assert measured == 0
    else:
        assert not measured <= 1e-6 * abs(beside)


def test_the_tables_of_places_name_mutants_and_probes_that_there_are() -> None:
    assert set(SEEN_IN) <= {mutant.name for mutant in ALL}
    assert {*NOT_LOCAL, *NO_PROGRAM, *EFFECTS} <= {mutant.law for mutant in ALL}
