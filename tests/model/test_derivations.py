"""The model's derivations: every one holds, every condition matters, no gradient line is without one."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from decoders import CONFIGS
from glassformer.model import definitions
from glassformer.model.derivations import CHAINS, derivations
from glassformer.model.toy24 import CONFIG as TOY24
from glassformer.notation import Program, Statement, evaluate, parse_expression, run
from glassformer.notation.chain import Chain, PlacedChain, chain_json, check_chain, check_placed, place_chain
from glassformer.notation.operands import draw
from glassformer.notation.tree import Idx, refs, walk
from options import OPTION_CONFIGS

ALL_CONFIGS = {**CONFIGS, **OPTION_CONFIGS}

REQUIRED_BY_CHAPTER = {
    "7.3": {"softmax-jacobian", "softmax-saturation", "confidently-wrong"},
    "8.6": {"rotated-queries", "rotated-keys"},
    "9.4": {"tied-embedding"},
    "10.3": {"cross-entropy"},
    "10.4": {"output-weights", "hidden-rows", "output-bias"},
    "10.5": {
        "residual",
        "residual-branch",
        "output-projection",
        "output-projection-bias",
        "mixed-values",
        "mixing-coefficients",
        "mixing-coefficients-shared",
        "mixing-values",
        "mixing-values-shared",
    },
    "10.6": {"attention-softmax", "softmax-pairs"},
    "10.7": {
        "queries",
        "queries-shared",
        "keys",
        "keys-shared",
        "query-projection",
        "query-bias",
        "key-projection",
        "key-projection-shared",
        "key-bias",
        "key-bias-shared",
        "value-projection",
        "value-projection-shared",
        "value-bias",
        "value-bias-shared",
        "attention-input",
        "attention-input-shared",
    },
    "10.8": {
        "norm-mean",
        "norm-variance",
        "norm-deviation",
        "norm-input",
        "rms-root",
        "rms-input",
        "norm-rows",
        "norm-scale",
        "norm-shift",
        "gelu",
        "gelu-tanh",
        "silu",
        "relu",
        "relu2",
        "gated-activation",
        "gated-rows",
        "ffn-first-weights",
        "ffn-first-input",
        "ffn-first-bias",
        "ffn-gate-weights",
        "ffn-gate-input",
        "ffn-gate-bias",
        "ffn-second-weights",
        "ffn-second-bias",
        "ffn-inside",
        "ffn-residual",
        "ffn-residual-branch",
    },
    "10.9": {"embedding", "positions"},
}

# Of options that the notes do not derive: they have no section.
BEYOND_THE_NOTES = {
    "qk-norm-queries",
    "qk-norm-keys",
    "qk-norm-scaled-queries",
    "qk-norm-scaled-keys",
    "qk-norm-query-gain",
    "qk-norm-key-gain",
    "dropout-embedding",
    "dropout-coefficients",
    "dropout-attention",
    "dropout-feed-forward",
}

# Gradient lines that no derivation ends in, by the reason why that is right: file and target. None so far.
WITHOUT_DERIVATION: dict[str, set[tuple[str, str]]] = {}


@functools.cache
def program_of(name: str) -> Program:
    return definitions(ALL_CONFIGS[name], 4, dropout=True)


@functools.cache
def placed_in(name: str) -> tuple[PlacedChain, ...]:
    program = program_of(name)
    return tuple(place_chain(chain, program) for chain in derivations(program))


@functools.cache
def some_program_with(id: str) -> tuple[str, Program]:
    """A decoder that has the chain: the first, but where heads share keys one with several groups of several heads."""
    names = [name for name in ALL_CONFIGS if any(placed.chain.id == id for placed in placed_in(name))]
    several = (n for n in names if 1 < program_of(n).scalars.get("G", 1) < program_of(n).scalars["H"])
    name = next(several, names[0])
    return name, program_of(name)


def test_every_section_has_its_derivations() -> None:
    sections = set().union(*REQUIRED_BY_CHAPTER.values())
    assert {chain.id for chain in CHAINS} - {"mean-loss"} == sections | BEYOND_THE_NOTES
    assert {chain.id for chain in CHAINS if not chain.source} == BEYOND_THE_NOTES
    for section, ids in REQUIRED_BY_CHAPTER.items():
        assert {chain.id for chain in CHAINS if chain.source == section} == ids
    assert len({chain.id for chain in CHAINS}) == len(CHAINS)


def source_line(statement: Statement) -> tuple[str, int]:
    return statement.quantity.file, statement.line


def derived(placed: PlacedChain, program: Program) -> set[tuple[str, int]]:
    """The source lines that the chain ends in."""
    if placed.face != "grad":
        return set()
    homes = placed.chain.homes
    return {source_line(s) for s in program.contributions(placed.target) if any(s.quantity is home for home in homes)}


@pytest.mark.parametrize("name", ALL_CONFIGS)
def test_every_gradient_line_of_every_option_has_a_derivation(name: str) -> None:
    """Computed from the program itself: a line that is added to the model brings its derivation, or its reason."""
    program = program_of(name)
    found = set().union(*(derived(placed, program) for placed in placed_in(name)))
    excepted = set().union(*WITHOUT_DERIVATION.values())
    missing = {
        (Path(s.quantity.file).stem, s.quantity.name, s.target, s.line)
        for s in program.backward
        if source_line(s) not in found and (Path(s.quantity.file).stem, s.target.rpartition(".")[2]) not in excepted
    }
    assert missing == set()


def test_every_derivation_belongs_to_some_decoder() -> None:
    assert {placed.chain.id for name in ALL_CONFIGS for placed in placed_in(name)} == {chain.id for chain in CHAINS}


def test_a_gradient_line_whose_derivation_is_taken_away_is_missed() -> None:
    program = program_of("everything")
    for id in ("keys", "norm-input", "ffn-second-bias", "residual"):
        rest = [placed for placed in placed_in("everything") if placed.chain.id != id]
        found = set().union(*(derived(placed, program) for placed in rest))
        assert [s for s in program.backward if source_line(s) not in found], id


@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        (
            "everything",
            {"gelu", "norm-input", "positions", "embedding", "keys", "ffn-first-bias"},
            {"relu", "rms-input"},
        ),
        ("relu", {"relu"}, {"gelu"}),
        ("no norm", {"gelu"}, {"norm-input", "norm-mean", "norm-variance", "norm-deviation", "norm-scale"}),
        ("no feed-forward", {"norm-input"}, {"gelu", "ffn-first-weights", "ffn-residual", "ffn-inside"}),
        ("no positions", {"embedding"}, {"positions"}),
        ("no biases", {"query-projection"}, {"output-bias", "query-bias", "ffn-first-bias", "ffn-second-bias"}),
        ("attention alone", {"queries", "softmax-saturation", "confidently-wrong"}, {"gelu", "norm-scale", "key-bias"}),
    ],
)
def test_a_decoder_has_the_derivations_of_its_parts_alone(name: str, present: set[str], absent: set[str]) -> None:
    ids = {placed.chain.id for placed in placed_in(name)}
    assert present <= ids
    assert not absent & ids


@pytest.mark.parametrize("name", ALL_CONFIGS)
def test_every_derivation_holds_and_needs_its_conditions(name: str) -> None:
    for placed in placed_in(name):
        for seed in range(3 if name == "everything" else 1):
            assert check_placed(placed, program_of(name), np.random.default_rng(seed)).problems == ()


@pytest.mark.parametrize("name", ALL_CONFIGS)
def test_in_a_run_of_the_model_every_line_of_a_derivation_gives_the_same_number(name: str) -> None:
    """What the page shows: all conditions hold at once, because everything is what its definition says."""
    program = program_of(name)
    rng = np.random.default_rng(5)
    given = draw([s.expr for s in program.forward], program, rng)
    values = {key: value for key, value in given.items() if program.definition(key) is None}
    # Without norms larger parameters make scores whose exponential, written out in the chain rule's line, is infinite.
    values |= {key: 0.3 * value for key, value in values.items() if np.issubdtype(value.dtype, np.floating)}
    values = run(program.statements, {**values, "loss.L.grad": np.array(1.0)}, program.scalars)
    for placed in placed_in(name):
        first, *others = (evaluate(line.expr, placed.letters, values, program.scalars) for line in placed.lines)
        assert np.isfinite(first).all(), placed.chain.id
        for other in others:
            np.testing.assert_allclose(other, first, rtol=1e-9, atol=1e-12 * max(1.0, float(np.abs(first).max())))


def test_tied_weights_have_one_derivation_in_which_both_paths_add_up() -> None:
    tied = [name for name, config in OPTION_CONFIGS.items() if config.head.tied]
    assert tied
    for name in ALL_CONFIGS:
        ids = {placed.chain.id for placed in placed_in(name)}
        assert ("tied-embedding" in ids) == (name in tied)
        assert ("embedding" in ids) == (name not in tied)


def test_packing_changes_no_derivation() -> None:
    plain, packed = (definitions(CONFIGS["everything"], 4, packed=p) for p in (False, True))
    assert [chain.id for chain in derivations(packed)] == [chain.id for chain in derivations(plain)]
    for chain in derivations(packed):
        assert check_chain(chain, packed, np.random.default_rng(0)).problems == ()


def test_the_toys_derivations_hold_and_print_without_heads() -> None:
    program = definitions(TOY24, 2)
    for chain in derivations(program):
        assert check_chain(chain, program, np.random.default_rng(9)).problems == ()
        for step in chain_json(chain, program)["steps"]:
            assert "(h" not in step["latex"]
            assert "h_2" not in step["latex"]


def test_conditions_are_the_ones_a_reader_must_know() -> None:
    conditions = {chain.id: {name for step in chain.steps for name in step.relies_on} for chain in CHAINS}
    assert {id: names for id, names in conditions.items() if names} == {
        "softmax-jacobian": {"A"},
        "softmax-saturation": {"A", "S"},
        "confidently-wrong": {"p"},
        "cross-entropy": {"p"},
        "attention-softmax": {"A", "S"},
        "softmax-pairs": {"A", "S"},
        "queries": {"S.grad"},
        "keys": {"S.grad"},
        "queries-shared": {"S.grad"},
        "keys-shared": {"S.grad"},
        "rotated-queries": {"partner", "sign", "sin_"},
        "rotated-keys": {"partner", "sign", "sin_"},
        "gelu-tanh": {"tau"},
        "silu": {"sigma"},
        "norm-variance": {"mu"},
        "norm-deviation": {"mu", "var", "sd"},
        "norm-input": {"mu", "var", "sd", "xhat"},
        "rms-root": {"rms"},
        "rms-input": {"rms", "xhat"},
        "qk-norm-queries": {"rms_Q", "Qhat"},
        "qk-norm-keys": {"rms_K", "Khat"},
    }
    assert [chain.id for chain in CHAINS if chain.intruder] == ["embedding", "tied-embedding"]


def chain(id: str) -> Chain:
    return next(chain for chain in CHAINS if chain.id == id)


@pytest.mark.parametrize(
    ("id", "right", "wrong"),
    [
        ("cross-entropy", "(1 if y[i] == w else 0)", "(1 if y[i] != w else 0)"),
        ("attention-softmax", "- A[h,i,j]*sum", "+ A[h,i,j]*sum"),
        ("queries", "/sqrt(d_k)", "/d_k"),
        ("norm-input", "- 1/d)", "- 0)"),
        ("embedding", "t[i] == w", "t[i] != w"),
        ("attention-input", "V.grad[h,i,e]", "2*V.grad[h,i,e]"),
        ("gelu", "**2", "**4"),
        ("softmax-pairs", "- A.grad[h,i,m])", "+ A.grad[h,i,m])"),
        ("softmax-saturation", "if m != j", "if m == j"),
        ("confidently-wrong", "else -sum", "else sum"),
        ("keys-shared", "if kv[h] == k", "if kv[h] != k"),
        ("mixing-values-shared", " if kv[h] == k", ""),
        ("rotated-keys", "sign[partner[c]]", "sign[c]"),
        ("tied-embedding", " + U.grad[r,w]", ""),
        ("rms-input", "mean(xhat.grad[i,q]*X[i,q]", "mean(xhat.grad[i,q]"),
        ("norm-deviation", "/(2*sd[i])", "/sd[i]"),
        ("gelu-tanh", "0.044715*3", "0.044715"),
        ("silu", "(1 - sigma[i,f])", "(1 + sigma[i,f])"),
        ("ffn-gate-input", "W_G[q,f]", "W_1[q,f]"),
    ],
)
def test_a_wrong_step_is_refused(id: str, right: str, wrong: str) -> None:
    _, program = some_program_with(id)
    original = chain(id)
    assert any(right in step.text for step in original.steps)
    changed = replace(original, steps=tuple(replace(s, text=s.text.replace(right, wrong)) for s in original.steps))
    assert check_chain(original, program, np.random.default_rng(1)).holds
    assert not check_chain(changed, program, np.random.default_rng(1)).holds


@pytest.mark.parametrize("id", [chain.id for chain in CHAINS])
def test_no_step_speaks_of_a_quantity_that_its_part_does_not_know(id: str) -> None:
    """An unknown name would silently drop out, as an absent bias does."""
    _, program = some_program_with(id)
    places = [p for p in program.quantities.values() if p.quantity in chain(id).homes]
    known = {name for placed in places for name in placed.names}
    for step in chain(id).steps:
        if step.text:
            assert {ref.name for ref in refs(parse_expression(step.text))} <= known, step.text


def test_every_reason_is_given_in_both_languages_and_no_line_has_a_free_letter_too_many() -> None:
    for id in (chain.id for chain in CHAINS):
        name, _ = some_program_with(id)
        placed = next(placed for placed in placed_in(name) if placed.chain.id == id)
        assert placed.chain.en
        assert any("\u4e00" <= sign <= "\u9fff" for sign in placed.chain.zh)
        for line in placed.lines:
            assert line.en
            assert any("\u4e00" <= sign <= "\u9fff" for sign in line.zh)
            bound = {a for node in walk(line.expr) for a, _ in getattr(node, "loops", ())}
            letters = {node.letter for node in walk(line.expr) if isinstance(node, Idx)}
            assert letters <= bound | {letter for letter, _ in placed.letters}
            assert not bound & {letter for letter, _ in placed.letters}, (id, line.expr)
