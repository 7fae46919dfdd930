"""AdamW three times: torch's fused kernel, line by line, and by its definitions."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from decoders import CONFIGS, random_decoder, random_inputs
from glassformer.model import definitions
from glassformer.notation import Kind, run
from glassformer.training import OptimizerConfig
from glassformer.training.adamw import adamw_statements, is_decayed
from glassformer.training.optimizer import Moved, Numbers, Optimizer, explicit_step, fused_step

SHAPES = [(), (1,), (7,), (5, 3), (2, 3, 4), (64, 65)]
STEPS = 10
# Of the largest value: some roundings a step, ten steps of them.
TOLERANCE = {torch.float64: 1e-13, torch.float32: 1e-5, torch.bfloat16: 10 * 2**-7}


def options(k: int, eta: float, beta_1: float = 0.9, beta_2: float = 0.98, eps: float = 1e-8, decay: float = 0.1):
    return Numbers(eta, k, beta_1, beta_2, eps, decay)


OPTIONS = [
    {},
    {"beta_1": 0.0},
    {"beta_2": 0.0},
    {"beta_1": 0.99, "beta_2": 0.999, "decay": 0.0},
    {"eps": 0.1, "decay": 2.0},
]


def fresh(shapes: list[tuple[int, ...]], dtype: torch.dtype) -> list[Moved]:
    draw = torch.Generator().manual_seed(1)
    thetas = [torch.randn(shape, generator=draw, dtype=torch.float64).to(dtype) for shape in shapes]
    return [Moved(x, torch.zeros_like(x), torch.zeros_like(x), torch.zeros_like(x)) for x in thetas]


def gradients(shapes: list[tuple[int, ...]], dtype: torch.dtype, k: int) -> list[Tensor]:
    draw = torch.Generator().manual_seed(100 + k)
    # From step to step of another size, so that the moments matter.
    return [(torch.randn(shape, generator=draw, dtype=torch.float64) * 3**-k).to(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("chosen", OPTIONS)
@pytest.mark.parametrize("shapes", [*([shape] for shape in SHAPES), SHAPES])
def test_explicit_and_fused_take_the_same_ten_steps(
    dtype: torch.dtype, chosen: dict[str, float], shapes: list[tuple[int, ...]]
) -> None:
    one, other = fresh(shapes, dtype), fresh(shapes, dtype)
    for k in range(1, STEPS + 1):
        g = gradients(shapes, dtype, k)
        numbers = options(k, 0.3 / k, **chosen)
        for step, moved in ((explicit_step, one), (fused_step, other)):
            step([x._replace(g=y) for x, y in zip(moved, g, strict=True)], numbers)
    for a, b in zip(one, other, strict=True):
        for name in ("theta", "m", "v"):
            x, y = getattr(a, name).double(), getattr(b, name).double()
            assert float((x - y).abs().max()) <= TOLERANCE[dtype] * float(y.abs().max()), name


@pytest.mark.parametrize("chosen", OPTIONS)
@pytest.mark.parametrize("step", [explicit_step, fused_step])
def test_ten_steps_are_those_of_torchs_adamw(step, chosen: dict[str, float]) -> None:
    moved = fresh(SHAPES, torch.float64)
    parameters = [nn.Parameter(x.theta.clone()) for x in moved]
    first = options(1, 0.3, **chosen)
    theirs = torch.optim.AdamW(
        parameters, betas=(first.beta_1, first.beta_2), eps=first.eps, weight_decay=first.weight_decay, foreach=False
    )
    for k in range(1, STEPS + 1):
        g = gradients(SHAPES, torch.float64, k)
        step([x._replace(g=y) for x, y in zip(moved, g, strict=True)], options(k, 0.3 / k, **chosen))
        for parameter, y in zip(parameters, g, strict=True):
            parameter.grad = y
        theirs.param_groups[0]["lr"] = 0.3 / k
        theirs.step()
    for x, parameter in zip(moved, parameters, strict=True):
        torch.testing.assert_close(x.theta, parameter.detach(), rtol=1e-13, atol=1e-13)


def test_ten_steps_by_definition_are_those_of_torchs_adamw_on_a_whole_decoder() -> None:
    config = CONFIGS["everything"]
    model, inputs = random_decoder(config), random_inputs(config)
    program = definitions(config, inputs.tokens.shape[1])
    statements = adamw_statements(program)
    scalars = {**program.scalars, "beta_1": 0.9, "beta_2": 0.98, "eps_step": 1e-8, "weight_decay": 0.1}
    named = dict(model.named_parameters())
    groups = [
        {"params": [p for id, p in named.items() if is_decayed(id) == decayed], "weight_decay": 0.1 if decayed else 0.0}
        for decayed in (True, False)
    ]
    theirs = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-8, foreach=False)
    values = {id: p.detach().numpy().copy() for id, p in named.items()}
    values |= {f"{id}.moment{k}": np.zeros(p.shape) for id, p in named.items() for k in (1, 2)}
    for k in range(1, STEPS + 1):
        theirs.zero_grad()
        loss = model(inputs.tokens, inputs.targets, inputs.scored).loss
        assert loss is not None
        loss.backward()
        rate = 0.02 * k
        for group in theirs.param_groups:
            group["lr"] = rate
        given = {**values, **{f"{id}.grad": p.grad.numpy().copy() for id, p in named.items() if p.grad is not None}}
        done = run(statements, given, {**scalars, "eta": rate, "step": k})
        theirs.step()
        values = {name: done[f"{name}.new"] for name in values}
        for id, p in named.items():
            np.testing.assert_allclose(values[id], p.detach().numpy(), rtol=1e-12, atol=1e-13, err_msg=f"{id} {k}")


def test_each_parameter_has_six_lines_that_read_its_own_values_alone() -> None:
    program = definitions(CONFIGS["everything"], 4)
    statements = adamw_statements(program)
    parameters = [id for id, placed in program.quantities.items() if placed.quantity.kind is Kind.PARAMETER]
    assert len(statements) == 6 * len(parameters)
    for id, lines in itertools.groupby(statements, key=lambda s: s.consumer):
        targets = [(s.target.removeprefix(id), s.face) for s in lines]
        assert targets == [(".moment1", "new"), (".moment2", "new"), (".moment1_hat", ""), (".moment2_hat", ""),
                           (".direction", ""), ("", "new")]  # fmt: skip


def test_a_line_of_adamw_is_placed_where_its_rule_is_written() -> None:
    for statement in adamw_statements(definitions(CONFIGS["everything"], 4))[:6]:
        lines = Path(statement.quantity.file).read_text("utf-8").splitlines()
        assert lines[statement.line - 1] == statement.quantity.text.strip()


def test_weight_decay_acts_on_the_matrices_that_multiply_and_on_nothing_else() -> None:
    model = random_decoder(CONFIGS["everything"])
    decayed = {id.rpartition(".")[2] for id, _ in model.named_parameters() if is_decayed(id)}
    assert decayed == {"W_Q", "W_K", "W_V", "W_O", "W_1", "W_2", "U"}
    before = {id: p.detach().clone() for id, p in model.named_parameters()}
    optimizer = Optimizer(model, OptimizerConfig(weight_decay=0.5))
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step(0.1)
    for id, p in model.named_parameters():
        torch.testing.assert_close(p.detach(), before[id] * (0.95 if is_decayed(id) else 1.0), rtol=1e-14, atol=0)


def test_gradient_descent_steps_against_the_gradient_and_keeps_nothing() -> None:
    model = random_decoder(CONFIGS["everything"])
    before = {id: p.detach().clone() for id, p in model.named_parameters()}
    optimizer = Optimizer(model, OptimizerConfig(kind="gradient_descent"))
    for p in model.parameters():
        p.grad = torch.full_like(p, 2.0)
    optimizer.step(0.25)
    assert optimizer.tensors() == {}
    for id, p in model.named_parameters():
        torch.testing.assert_close(p.detach(), before[id] - 0.5, rtol=1e-14, atol=0)


@pytest.mark.parametrize(("clip", "kept"), [(None, 1.0), (1e9, 1.0), (0.5, 0.5)])
def test_clipping_shortens_the_gradient_of_all_parameters_together(clip: float | None, kept: float) -> None:
    model = random_decoder(CONFIGS["everything"])
    optimizer = Optimizer(model, OptimizerConfig(clip=clip))
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    count = sum(p.numel() for p in model.parameters())
    assert optimizer.clip() == pytest.approx(count**0.5, rel=1e-12)
    norm = sum(float(p.grad.square().sum()) for p in model.parameters() if p.grad is not None) ** 0.5
    assert norm == pytest.approx(kept if kept < 1 else count**0.5, rel=1e-5)


def test_an_optimizer_goes_on_from_its_tensors_and_refuses_those_of_another_model() -> None:
    def step(optimizer: Optimizer, model: nn.Module) -> None:
        for p in model.parameters():
            p.grad = torch.cos(p.detach() * (1 + optimizer.steps))
        optimizer.step(0.1)

    one, other = random_decoder(CONFIGS["no norm"]), random_decoder(CONFIGS["no norm"])
    whole, first = Optimizer(one, OptimizerConfig()), Optimizer(other, OptimizerConfig())
    for _ in range(4):
        step(whole, one)
    for _ in range(2):
        step(first, other)
    second = Optimizer(other, OptimizerConfig())
    second.restore(first.steps, first.tensors())
    for _ in range(2):
        step(second, other)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(ValueError, match="not those of this model"):
        second.restore(2, Optimizer(random_decoder(CONFIGS["relu"]), OptimizerConfig()).tensors())
    with pytest.raises(ValueError, match="not those of this model"):
        second.restore(2, {})
