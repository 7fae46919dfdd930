"""What the definitions say against what the model computes and what automatic differentiation finds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from decoders import CONFIGS, Inputs, Recorded, err, random_decoder, random_inputs, record
from glassformer.errors import UserError
from glassformer.model import AttentionConfig, LayerConfig, definitions
from glassformer.notation import (
    REPLAY_FACTOR,
    UNIT_ROUNDOFF,
    Kind,
    Program,
    Statement,
    evaluate,
    key,
    magnitude,
    run,
)
from glassformer.notation.tree import Ref, walk
from options import OPTION_CONFIGS

ALL = {**CONFIGS, **OPTION_CONFIGS}

SEED = {"loss.L.grad": np.ones(())}
BOUND = REPLAY_FACTOR * UNIT_ROUNDOFF["float64"]


def zero_in_theory(id: str, program: Program) -> bool:
    # A key bias adds the same number to every score of a row, which softmax ignores; not where keys are turned or normed.
    changed = {id.replace("b_K", "K_R"), id.replace("b_K", "qk_norm.K_N")}
    return id.endswith("attn.b_K") and not changed & set(program.quantities)


@pytest.mark.parametrize("name", ALL)
def test_every_quantity_of_a_block_knows_its_layer_and_no_other_has_one(name: str) -> None:
    config = ALL[name]
    for packed in (False, True):
        placed = definitions(config, 4, packed=packed, dropout=True).quantities
        layers = {id: int(id.split(".")[1]) if id.startswith("blocks.") else None for id in placed}
        assert {id: p.layer for id, p in placed.items()} == layers


@pytest.mark.parametrize("name", ALL)
def test_what_is_folded_depends_on_parameters_is_read_and_has_no_gradient_of_its_own(name: str) -> None:
    """And nothing else is: whoever asks for a gradient that is not there is told the right reason."""
    program = definitions(ALL[name], 4, dropout=True)
    moved = {id for id, placed in program.quantities.items() if placed.quantity.kind is Kind.PARAMETER}
    read: set[str] = set()
    for s in program.forward:
        operands = {part.name for part in walk(s.expr) if isinstance(part, Ref)}
        read |= operands
        moved |= {s.target} if operands & moved else set()
    expected = {id for id in moved & read if not program.contributions(id)}
    assert {id for id, placed in program.quantities.items() if placed.quantity.folded} == expected


@pytest.fixture(scope="module", params=ALL)
def case(request: pytest.FixtureRequest) -> tuple[Program, Recorded]:
    config = ALL[request.param]
    inputs = random_inputs(config)
    assert not inputs.scored.all()
    torch.manual_seed(0)
    return definitions(config, inputs.tokens.shape[1], dropout=True), record(random_decoder(config).train(), inputs)


@pytest.fixture(scope="module")
def computed(case: tuple[Program, Recorded]) -> dict[str, np.ndarray]:
    return compute(*case)


def compute(program: Program, recorded: Recorded) -> dict[str, np.ndarray]:
    """Everything that the program computes from inputs and parameters alone."""
    leaves = {id: recorded.values[id] for id in program.quantities if program.definition(id) is None}
    return run(program.statements, {**leaves, **SEED}, program.scalars)


def test_every_quantity_computed_from_parameters_and_tokens_equals_the_models(
    case: tuple[Program, Recorded], computed: dict[str, np.ndarray]
) -> None:
    program, recorded = case
    worst = {s.target: err(computed[s.target], recorded.values[s.target]) for s in program.forward}
    assert max(worst.values()) <= 1e-12, max(worst, key=lambda id: worst[id])


def test_every_gradient_computed_from_definitions_equals_autograds(
    case: tuple[Program, Recorded], computed: dict[str, np.ndarray]
) -> None:
    program, recorded = case
    ids = {s.target for s in program.backward}
    zero = {id for id in ids if zero_in_theory(id, program)}
    worst = {id: err(computed[key(id, "grad")], recorded.gradients[id]) for id in ids - zero}
    assert max(worst.values()) <= 1e-12, max(worst, key=lambda id: worst[id])
    for id in zero:
        scale = np.abs(recorded.gradients[id.replace("b_K", "K")]).max()
        assert np.abs(computed[key(id, "grad")]).max() <= 1e-13 * scale
        assert np.abs(recorded.gradients[id]).max() <= 1e-13 * scale


def test_every_parameter_and_every_stream_has_a_gradient_by_definition(case: tuple[Program, Recorded]) -> None:
    program, recorded = case
    defined = {s.target for s in program.backward}
    for id in recorded.gradients:
        if id != "loss.L" and not program.quantities[id].quantity.folded:
            assert id in defined, f"autograd has a gradient for {id}, no definition sends one"


def test_each_definition_alone_replays_within_the_magnitude_bound(case: tuple[Program, Recorded]) -> None:
    program, recorded = case
    values = {**recorded.values, **{key(id, "grad"): g for id, g in recorded.gradients.items()}}
    for s in program.forward:
        within_bound([s], values, program, recorded.values[s.target])
    for id in {s.target for s in program.backward}:
        # Autograd computes the probabilities anew from the logits, whose rounding they feel.
        within_bound(program.contributions(id), values, program, recorded.gradients[id], anew=("head.p",))


def within_bound(
    statements: list[Statement] | tuple[Statement, ...],
    values: dict[str, np.ndarray],
    program: Program,
    recorded: np.ndarray,
    anew: tuple[str, ...] = (),
) -> None:
    """The sum of ``statements``, each evaluated from recorded operands, is what was recorded, up to rounding."""
    defined = sum(evaluate(s.expr, s.letters, values, program.scalars) for s in statements)
    size = sum(magnitude(s.expr, s.letters, values, program.scalars, anew) for s in statements)
    recorded = np.asarray(recorded, dtype=float)
    finite = np.isfinite(recorded)
    difference = np.abs(recorded[finite] - np.asarray(defined)[finite])
    assert np.array_equal(recorded[~finite], np.asarray(defined)[~finite])
    assert (difference <= BOUND * np.asarray(size)[finite]).all(), statements[0].target


def operands(program: Program, id: str) -> Iterator[str]:
    """What the definition of ``id`` reads, the operands of folded quantities in their stead."""
    statement = program.definition(id)
    for node in walk(statement.expr) if statement else ():
        if isinstance(node, Ref):
            if program.quantities[node.name].quantity.folded:
                yield from operands(program, node.name)
            else:
                yield node.name


def test_every_forward_edge_is_answered_by_a_gradient_contribution(case: tuple[Program, Recorded]) -> None:
    """No number is looked at: which quantities carry a gradient follows from who reads whom."""
    program, _ = case
    carries = {id for id, placed in program.quantities.items() if placed.quantity.kind is Kind.PARAMETER}
    for s in program.forward:
        if any(isinstance(node, Ref) and node.name in carries for node in walk(s.expr)):
            carries.add(s.target)
    reach = {"loss.L"}
    for s in reversed(program.forward):
        if s.target in reach:
            reach.update(node.name for node in walk(s.expr) if isinstance(node, Ref))
    edges = {
        (id, operand)
        for id in reach & carries
        if not program.quantities[id].quantity.folded
        for operand in operands(program, id)
        if operand in carries
    }
    answers = {
        (s.consumer, s.target)
        for s in program.backward
        if any(isinstance(node, Ref) and (node.name, node.face) == (s.consumer, "grad") for node in walk(s.expr))
    }
    assert edges
    assert edges == answers
    assert len(answers) == len({(s.consumer, s.target) for s in program.backward}), "a contribution reads no gradient"


def test_a_gradient_is_complete_before_it_is_read(case: tuple[Program, Recorded]) -> None:
    program, _ = case
    last = {s.target: index for index, s in enumerate(program.backward)}
    for index, s in enumerate(program.backward):
        for node in walk(s.expr):
            if isinstance(node, Ref) and node.face == "grad" and node.name != "loss.L":
                assert last[node.name] < index, f"{s.target}.grad reads {node.name}.grad too early"


def test_a_single_token_has_definitions_too() -> None:
    config = CONFIGS["everything"]
    inputs = random_inputs(config)
    one = Inputs(inputs.tokens[:, -1:], inputs.targets[:, -1:], inputs.scored[:, -1:])
    program, recorded = definitions(config, 1), record(random_decoder(config), one)
    values = compute(program, recorded)
    assert err(values["loss.L"], recorded.values["loss.L"]) <= 1e-12
    assert err(values["embed.E.grad"], recorded.gradients["embed.E"]) <= 1e-12


def test_layers_with_and_without_a_window_read_masks_of_their_own_and_layers_that_agree_one() -> None:
    attention = AttentionConfig(heads=1, d_k=2, d_v=2)
    near = attention.model_copy(update={"window": 2})

    def masks(*layers: AttentionConfig) -> tuple[list[str], list[str]]:
        """The masks of a decoder, and the one that each layer reads."""
        alike = {"layers": tuple(LayerConfig(attention=x, ffn=None) for x in layers)}
        config = CONFIGS["no positions"].model_copy(update=alike)
        program = definitions(config, 3)
        scores = [s for s in program.forward if s.target.endswith("attn.S")]
        read = [node.name for s in scores for node in walk(s.expr) if isinstance(node, Ref) and node.name in made]
        return [id for id in program.quantities if id in made], read

    made = {"mask.allowed", "window.allowed"}
    assert masks(near, attention, near) == (
        ["mask.allowed", "window.allowed"], ["window.allowed", "mask.allowed", "window.allowed"],
    )  # fmt: skip
    assert masks(attention, attention) == masks(near, near) == (["mask.allowed"], ["mask.allowed", "mask.allowed"])


@pytest.mark.parametrize("n", [0, 10])
def test_definitions_for_more_tokens_than_the_context_are_refused(n: int) -> None:
    with pytest.raises(UserError, match="1 to 9 tokens"):
        definitions(CONFIGS["everything"], n)


def test_the_last_hidden_state_is_called_h() -> None:
    assert definitions(CONFIGS["everything"], 3).resolve("h") == "final_norm.Y"
    assert definitions(CONFIGS["no norm"], 3).resolve("h") == "blocks.0.X"
    assert definitions(CONFIGS["attention alone"], 3).resolve("h") == "blocks.1.R"
