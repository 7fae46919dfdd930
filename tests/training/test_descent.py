"""Gradient descent as definitions against ``torch.optim.SGD``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from decoders import CONFIGS, random_decoder, random_inputs
from glassformer.model import definitions
from glassformer.notation import Kind, run
from glassformer.training.descent import update_statements


def test_one_step_by_definition_is_one_step_of_torchs_sgd() -> None:
    config, eta = CONFIGS["everything"], 0.3
    model, inputs = random_decoder(config), random_inputs(config)
    out = model(inputs.tokens, inputs.targets, inputs.scored)
    assert out.loss is not None
    out.loss.backward()
    values = {}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        values[name] = parameter.detach().numpy().copy()
        values[f"{name}.grad"] = parameter.grad.numpy()
    program = definitions(config, inputs.tokens.shape[1])
    stepped = run(update_statements(program), values, {**program.scalars, "eta": eta})
    torch.optim.SGD(model.parameters(), lr=eta).step()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(stepped[f"{name}.new"], parameter.detach().numpy(), rtol=1e-14, atol=1e-15)


def test_every_parameter_steps_once_and_reads_only_its_own_old_value_and_gradient() -> None:
    program = definitions(CONFIGS["everything"], 4)
    statements = update_statements(program)
    parameters = [id for id, placed in program.quantities.items() if placed.quantity.kind is Kind.PARAMETER]
    assert [s.target for s in statements] == parameters
    assert all(s.face == "new" and not s.adds and s.letters == program.quantities[s.target].axes for s in statements)


def test_an_update_is_placed_where_its_rule_is_written() -> None:
    statement = update_statements(definitions(CONFIGS["everything"], 4))[0]
    lines = Path(statement.quantity.file).read_text().splitlines()
    assert lines[statement.line - 1] == "theta[z] - eta*theta.grad[z]"
