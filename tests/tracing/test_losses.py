"""The loss with other numbers in a parameter's place: asked of the model that ran, and of the definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from decoders import CONFIGS, decoder_config, random_decoder
from glassformer.model import Decoder, NormConfig
from glassformer.notation import Program
from glassformer.tracing import SGD, AdamW, Trace, trace
from glassformer.tracing import losses as module
from glassformer.tracing import witnesses as witnesses_module
from glassformer.tracing.losses import losses_with
from glassformer.tracing.record import Sample, forward, patching, record
from glassformer.tracing.request import sample_of
from glassformer.tracing.update import loss_of, steps_of
from glassformer.tracing.witnesses import Witnesses
from options import OPTION_CONFIGS

TOKENS, TARGETS, SCORED = [3, 1, 3, 0, 6, 1], [1, 3, 0, 6, 1, 2], [True, False, True, True, False, True]
ALL = {**CONFIGS, **OPTION_CONFIGS}
FEW = ["everything", "no norm", *list(OPTION_CONFIGS)[::6]]


def traced(name: str, **options: object) -> Trace:
    torch.manual_seed(0)
    kwargs = {"update": SGD(lr=0.05), "witness_cells": 0, "dropout": True, **options}
    return trace(random_decoder(ALL[name]), TOKENS, TARGETS, SCORED, **kwargs)


def asked(name: str, seed: int = 0) -> tuple[Decoder, Sample, Program, Witnesses]:
    """A model in evaluation mode, its sample and program, and the witnesses that may be asked."""
    from glassformer.model import definitions

    model, sample = random_decoder(ALL[name], seed), sample_of(TOKENS, TARGETS, SCORED)
    program = definitions(model.config, sample.length)
    return model, sample, program, Witnesses(model, sample, program, record(model, sample, program))


@pytest.mark.parametrize("name", FEW)
def test_the_update_finds_with_the_model_what_the_definitions_find(name: str) -> None:
    run = traced(name)
    program, values, analysis = run.program, run.values, run.analysis
    assert analysis.loss == pytest.approx(loss_of(program, values, {}), rel=1e-13)
    steps = steps_of(program, run.update, values)
    for k, (_, loss) in list(enumerate(analysis.line))[::4]:
        moved = {id: values[id] + k / 2 * step for id, step in steps.items()}
        assert loss == pytest.approx(loss_of(program, values, moved), rel=1e-11)
    for group in analysis.groups[::3]:
        moved = {group.id: values[f"{group.id}.new"]}
        assert group.alone == pytest.approx(loss_of(program, values, moved) - analysis.loss, abs=1e-12)
    assert analysis.exact == pytest.approx(float(values["loss.L.after"]) - analysis.loss, abs=1e-12)


def test_sets_of_parameters_may_differ_and_what_is_not_named_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where only a few of them fit into one pass."""
    model, sample, *_ = asked("everything")
    old = {id: p.detach().numpy().copy() for id, p in model.named_parameters()}
    sets = [{}, {"head.U": old["head.U"] * 1.5}, {"embed.E": old["embed.E"] + 0.1, "head.U": old["head.U"] * 0.5}, {}]
    expected = []
    for replaced in sets:
        changed = random_decoder(ALL["everything"])
        with torch.no_grad():
            for id, array in replaced.items():
                changed.get_parameter(id).copy_(torch.from_numpy(array))
            expected.append(float(forward(changed, sample, patching({})).loss))
    for cells in (1, 200, module.CELLS_AT_ONCE):
        monkeypatch.setattr(module, "CELLS_AT_ONCE", cells)
        assert losses_with(model, sample, sets) == pytest.approx(expected, rel=1e-13)
    assert losses_with(model, sample, []) == []
    assert all(np.array_equal(old[id], p.detach().numpy()) for id, p in model.named_parameters())


def test_a_step_that_leaves_float64_has_no_exact_change() -> None:
    run = trace(random_decoder(ALL["no norm"]), TOKENS, TARGETS, SCORED, update=SGD(lr=1e300), witness_cells=0)
    assert math.isnan(run.analysis.exact)
    assert math.isfinite(run.analysis.loss)
    assert not math.isfinite(run.analysis.line[-1][1])


def test_a_longer_step_is_taken_only_where_rounding_does_not_explain_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tiny deviation under a norm bends the loss so much that truncation shows: then it counts, and suffices."""
    steps: list[float] = []
    original = Witnesses._differences

    def counted(self: Witnesses, id: str, directions: np.ndarray, step: float) -> np.ndarray:
        steps.append(step)
        return original(self, id, directions, step)

    monkeypatch.setattr(Witnesses, "_differences", counted)
    flat = random_decoder(decoder_config(norm=NormConfig(eps=1e-9)))
    with torch.no_grad():
        for table in ("embed.E", "embed.P"):
            flat.get_parameter(table).mul_(1e-2)
    longer = {}
    for name, decoder in {"usual": random_decoder(ALL["everything"]), "flat": flat}.items():
        steps.clear()
        run = trace(decoder, TOKENS, TARGETS, SCORED)
        assert all(w.agree for w in run.witnesses.values()), name
        longer[name] = sum(step > witnesses_module.STEP for step in steps)
    assert longer["usual"] == 0 < longer["flat"]
    monkeypatch.setattr(witnesses_module, "WIDE", 1e9)  # no truncation is admitted to
    run = trace(flat, TOKENS, TARGETS, SCORED)
    assert not all(w.agree for w in run.witnesses.values())


def test_a_wrong_gradient_is_not_made_right_by_a_longer_step() -> None:
    _, _, _, witnesses = asked("everything")
    id = "blocks.0.attn.W_Q"
    assert witnesses.testify(id, 16).agree
    witnesses.defined[f"{id}.grad"] = witnesses.defined[f"{id}.grad"] * (1 + 1e-6)
    witness = witnesses.testify(id, 16)
    assert witness.central.worst_share > 1
    assert witness.directional.difference > witness.directional.estimated_error


def test_the_joint_change_is_the_same_whoever_steps() -> None:
    run = traced("everything", update=AdamW(lr=0.02))
    moved = {id: run.values[f"{id}.new"] for id in run.parameters}
    assert run.analysis.exact == pytest.approx(loss_of(run.program, run.values, moved) - run.analysis.loss, abs=1e-12)
