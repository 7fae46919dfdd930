"""The optimizer of a trace, line by line: torch.optim does the same, the definitions hold, nothing lies outside them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from decoders import CONFIGS, random_decoder
from glassformer.errors import UserError
from glassformer.notation import key, run
from glassformer.notation.cell import explain_cell
from glassformer.tracing import SGD, AdamW, Moments, Scheduled, ToySettings, trace, trace_toy24
from glassformer.tracing import optimizers as code
from glassformer.training import ScheduleConfig
from glassformer.training.adamw import is_decayed

TOKENS, TARGETS, SCORED = [3, 1, 3, 0, 6, 1], [1, 3, 0, 6, 1, 2], [True, False, True, True, False, True]


def decoder():
    return random_decoder(CONFIGS["everything"])


STEPS = 10
UPDATES = {
    "gradient descent": SGD(lr=0.05),
    "clipped gradient descent": SGD(lr=0.05, clip=0.3),
    "AdamW": AdamW(lr=0.02, weight_decay=0.2),
    "AdamW without clipping": AdamW(lr=0.02, clip=None),
    "scheduled AdamW": AdamW(lr=0.02, schedule=Scheduled(ScheduleConfig(), 0.6)),
}


@pytest.mark.parametrize("name", UPDATES)
def test_every_line_of_every_optimizer_equals_its_definition_and_no_operation_lies_outside(name):
    traced = trace(decoder(), TOKENS, TARGETS, SCORED, update=UPDATES[name], witness_cells=0)
    assert traced.replay.holds, traced.replay.violations()
    assert {key(s.target, s.face) for s in traced.update} <= set(traced.replay.worst)
    assert traced.audit.uncovered == ()


@pytest.mark.parametrize("clip", [None, 0.3, 1e6])
def test_ten_traces_in_a_row_with_the_state_handed_on_are_ten_steps_of_torchs_adamw(clip):
    model, theirs = decoder(), decoder()
    named = dict(theirs.named_parameters())
    groups = [
        {"params": [p for id, p in named.items() if is_decayed(id) == decayed], "weight_decay": 0.1 * decayed}
        for decayed in (True, False)
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-3, foreach=False)
    update = AdamW(lr=0.03, weight_decay=0.1, eps=1e-3, clip=clip)
    rows = [torch.tensor([row]) for row in (TOKENS, TARGETS, SCORED)]
    for k in range(1, STEPS + 1):
        schedule = Scheduled(ScheduleConfig(kind="trapezoid"), k / STEPS)
        update = dataclasses.replace(update, schedule=schedule)
        traced = trace(model, TOKENS, TARGETS, SCORED, update=update, witness_cells=0)
        assert traced.program.scalars["step"] == k
        optimizer.zero_grad()
        theirs(*rows).loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(named.values(), float("inf") if clip is None else clip)
        for group in optimizer.param_groups:
            group["lr"] = 0.03 * schedule.config.factor(k / STEPS)
        optimizer.step()
        if clip is not None:
            assert float(traced["optimizer.norm"]) == pytest.approx(float(norm), rel=1e-9)
        with torch.no_grad():
            for id, theta in model.named_parameters():
                theta.copy_(torch.from_numpy(traced[f"{id}.new"]))
                np.testing.assert_allclose(theta.numpy(), named[id].detach().numpy(), rtol=1e-9, atol=1e-10)
        update = dataclasses.replace(update, state=traced.moments)


def test_a_line_that_differs_from_its_formula_by_a_hair_breaks_replay(monkeypatch):
    original = code.adamw_lines

    def off(moved, numbers):
        lines = original(moved, numbers)
        return lines._replace(direction=lines.direction * (1 + 1e-11))

    monkeypatch.setattr(code, "adamw_lines", off)
    traced = trace_toy24(ToySettings(update=AdamW()))
    assert set(traced.replay.violations()) >= {"embed.E.direction", "head.U.direction"}
    assert "embed.E.moment1.new" not in traced.replay.violations()


def test_an_operation_of_the_update_that_no_line_tells_of_is_named(monkeypatch):
    original = code.adamw_lines

    def more(moved, numbers):
        moved.theta.sin()
        return original(moved, numbers)

    monkeypatch.setattr(code, "adamw_lines", more)
    traced = trace_toy24(ToySettings(update=AdamW()))
    assert any("aten.sin" in line for line in traced.audit.uncovered)


@pytest.mark.parametrize("kind", ["cosine", "trapezoid", "constant"])
@pytest.mark.parametrize("warmup", [0.0, 0.1])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.5, 0.95, 1.0])
def test_the_scheduled_rate_is_the_one_its_definition_gives(kind, warmup, share):
    config = ScheduleConfig(kind=kind, warmup=warmup)
    update = SGD(lr=0.3, schedule=Scheduled(config, share))
    program, statements = code.stepped(trace_toy24_program(), update)
    value = float(run(statements[:1], {}, program.scalars)["optimizer.rate"])
    assert value == pytest.approx(0.3 * config.factor(share), rel=1e-14, abs=1e-16)
    assert program.scalars["eta"] == 0.3 * config.factor(share)


def trace_toy24_program():
    from glassformer.model import definitions, toy24_model

    return definitions(toy24_model().config, 2)


def test_the_whole_gradient_is_clipped_to_the_norm_and_no_longer():
    traced = trace_toy24(ToySettings(update=SGD(lr=0.1, clip=0.5)))
    whole = np.concatenate([traced[f"{id}.clipped"].ravel() for id in traced.parameters])
    assert np.linalg.norm(whole) == pytest.approx(0.5, rel=1e-6)
    assert float(traced["optimizer.norm"]) == pytest.approx(
        np.linalg.norm(np.concatenate([traced[f"{id}.grad"].ravel() for id in traced.parameters])), rel=1e-14
    )
    longer = trace_toy24(ToySettings(update=SGD(lr=0.1, clip=50.0)))
    assert float(longer["optimizer.kept"]) == 1.0


@pytest.mark.parametrize("name", ["W_Q.direction", "W_Q.moment1_hat", "optimizer.kept", "embed.E.clipped"])
def test_a_line_of_the_optimizer_explains_itself(name):
    traced = trace_toy24(ToySettings(update=AdamW()))
    id, face, _ = traced.program.reference(name)
    cell = tuple(0 for _ in traced.program.shape(id))
    told = explain_cell(traced.program, id, face, cell, traced.values, updates=traced.update)
    assert told.parts
    assert told.value == pytest.approx(float(traced[name][cell]), rel=1e-13)


def test_the_analysis_of_adamw_follows_its_own_direction():
    traced = trace(decoder(), TOKENS, TARGETS, SCORED, update=AdamW(lr=1e-5, clip=None), witness_cells=0)
    step = {id: traced[f"{id}.new"] - traced[id] for id in traced.parameters}
    predicted = sum(float((traced[f"{id}.grad"] * step[id]).sum()) for id in traced.parameters)
    assert traced.analysis.predicted == pytest.approx(predicted, rel=1e-8)
    assert traced.analysis.exact == pytest.approx(predicted, rel=1e-2)
    line = dict(traced.analysis.line)
    assert line[1e-5] == pytest.approx(traced.analysis.loss + traced.analysis.exact, rel=1e-14)


def test_updating_one_after_another_differs_from_the_joint_step_of_adamw_too():
    sequential = trace_toy24(ToySettings(update=AdamW(clip=None))).analysis.sequential
    assert sequential.different
    assert "head.U" not in sequential.different


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (lambda: SGD(lr=-1.0), "learning rate cannot be -1.0"),
        (lambda: SGD(lr=float("nan")), "learning rate cannot be nan"),
        (lambda: SGD(clip=0.0), "cannot be clipped to 0.0"),
        (lambda: AdamW(beta_1=1.0), "beta_1 cannot be 1.0"),
        (lambda: AdamW(beta_2=-0.1), "beta_2 cannot be -0.1"),
        (lambda: AdamW(eps=0.0), "eps = 0.0"),
        (lambda: AdamW(weight_decay=float("inf")), "weight_decay = inf"),
        (lambda: Scheduled(ScheduleConfig(), 1.5), "1.5 is no share"),
    ],
)
def test_numbers_that_make_no_step_are_refused(make, fact):
    with pytest.raises(UserError) as refusal:
        make()
    assert fact in str(refusal.value)


def test_moments_of_another_model_are_refused():
    model = decoder()
    own = trace(model, TOKENS, TARGETS, SCORED, update=AdamW(), witness_cells=0).moments
    fewer = Moments(1, {name: x for name, x in own.tensors.items() if not name.endswith("head.U")})
    turned = Moments(1, {name: x.T for name, x in own.tensors.items()})
    more = Moments(1, {**own.tensors, "moment1.nobody": np.zeros(2)})
    for state in (fewer, turned, more):
        with pytest.raises(UserError, match="moments are not those of this model"):
            trace(model, TOKENS, TARGETS, SCORED, update=AdamW(state=state), witness_cells=0)


def test_what_is_no_step_is_refused():
    for step in (0.1, "run", torch.optim.SGD(decoder().parameters(), lr=0.1)):
        with pytest.raises(UserError, match=r"update cannot be a .* Give glassformer\.SGD"):
            trace(decoder(), TOKENS, update=step)
