"""The 24-parameter model against the reference numbers of the notes' chapter 11."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from decoders import Inputs, Recorded, Recorder, record
from glassformer.errors import UserError
from glassformer.model import definitions, toy24_inputs, toy24_model
from glassformer.model.toy24 import CONFIG, ETA, TARGET, TEXTS, TOKENS, VOCABULARY
from glassformer.notation import run
from glassformer.training.descent import update_statements

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "toy24.json").read_text())
PROGRAM = definitions(CONFIG, 2)
ROW = {"h", "logits", "p"}  # the reference gives these for the scored row only


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return record(toy24_model(), Inputs(*toy24_inputs()))


@pytest.fixture(scope="module")
def defined() -> dict[str, Any]:
    """Forward, gradients and update computed from the definitions alone."""
    parameters = {name: p.detach().numpy() for name, p in toy24_model().named_parameters()}
    tokens, targets, scored = (x[0].numpy() for x in toy24_inputs())
    inputs = {"embed.t": tokens, "loss.y": targets, "loss.scored": scored, "loss.L.grad": np.ones(())}
    statements = PROGRAM.statements + update_statements(PROGRAM)
    return run(statements, {**parameters, **inputs}, {**PROGRAM.scalars, "eta": ETA})


def agree(name: str, mine: Any, reference: Any) -> None:
    expected = np.array(
        [[-math.inf if x is None else x for x in row] if isinstance(row, list) else row for row in reference]
        if isinstance(reference, list)
        else reference,
        dtype=float,
    )
    mine = np.asarray(mine, dtype=float)
    mine = mine[-1] if name in ROW else mine.reshape(expected.shape)
    assert mine.shape == expected.shape
    finite = np.isfinite(expected)
    assert np.array_equal(mine[~finite], expected[~finite]), name
    assert np.abs(mine[finite] - expected[finite]).max() <= 1e-12, name


def test_it_has_24_parameters() -> None:
    assert sum(p.numel() for p in toy24_model().parameters()) == 24


def test_it_reads_up_to_eight_tokens() -> None:
    assert toy24_model()(torch.tensor([[0, 1] * 4])).logits.shape == (1, 8, 3)
    with pytest.raises(UserError, match="9 tokens"):
        toy24_model()(torch.tensor([[0, 1, 2] * 3]))


def test_its_input_is_a_b_and_only_the_last_row_is_scored() -> None:
    tokens, targets, scored = toy24_inputs()
    assert tokens[0].tolist() == list(TOKENS) == REFERENCE["input"]
    assert targets[0, -1] == TARGET == REFERENCE["target"]
    assert scored.tolist() == [[False, True]]
    assert REFERENCE["eta"] == ETA
    assert VOCABULARY == ("A", "B", "C")
    assert all(len(texts) == CONFIG.vocab_size for texts in TEXTS.values())


@pytest.mark.parametrize("name", REFERENCE["parameters"])
def test_it_starts_at_the_reference_parameters(name: str) -> None:
    agree(name, dict(toy24_model().named_parameters())[PROGRAM.resolve(name)].detach(), REFERENCE["parameters"][name])


@pytest.mark.parametrize("name", REFERENCE["forward"])
def test_every_forward_value_is_the_references(name: str, recorded: Recorded, defined: dict[str, Any]) -> None:
    agree(name, recorded.values[PROGRAM.resolve(name)], REFERENCE["forward"][name])
    agree(name, defined[PROGRAM.resolve(name)], REFERENCE["forward"][name])


@pytest.mark.parametrize("name", REFERENCE["gradients"])
def test_every_gradient_is_the_references(name: str, recorded: Recorded, defined: dict[str, Any]) -> None:
    agree(name, recorded.gradients[PROGRAM.resolve(name)], REFERENCE["gradients"][name])
    agree(name, defined[PROGRAM.resolve(name) + ".grad"], REFERENCE["gradients"][name])


@pytest.mark.parametrize("name", REFERENCE["updated"])
def test_every_updated_parameter_is_the_references(name: str, defined: dict[str, Any]) -> None:
    agree(name, defined[PROGRAM.resolve(name) + ".new"], REFERENCE["updated"][name])


def test_the_forward_pass_after_the_update_is_the_references(defined: dict[str, Any]) -> None:
    model, recorder = toy24_model(), Recorder()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(defined[f"{name}.new"]))
        model(*toy24_inputs(), say=recorder)
    for name, expected in REFERENCE["forward_after"].items():
        agree(name, recorder.said[PROGRAM.resolve(name)].squeeze(0), expected)
