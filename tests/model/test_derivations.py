"""The model's derivations: every one holds, every condition matters, none is missing or misspelt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from decoders import CONFIGS, decoder_config
from glassformer.model import AttentionConfig, DropoutConfig, definitions
from glassformer.model.derivations import CHAINS, derivations
from glassformer.model.toy24 import CONFIG as TOY24
from glassformer.notation import parse_expression
from glassformer.notation.chain import Chain, chain_json, check_chain, check_placed, place_chain
from glassformer.notation.tree import Idx, refs, walk
from options import OPTION_CONFIGS

# Each names a part that the configuration lacks.
MISSING = {
    "everything": {"relu"},
    "relu": {"gelu"},
    "no norm": {"relu", "norm-input", "norm-scale", "norm-shift"},
    "no feed-forward": {"relu", "gelu", "ffn-first-weights"},
    "no positions": {"relu", "positions"},
    "no biases": {"relu", "output-bias"},
    "attention alone": {
        "relu", "gelu", "ffn-first-weights", "norm-input", "norm-scale", "norm-shift", "positions", "output-bias",
    },
    "one wide head, three blocks": {"relu"},
}  # fmt: skip

REQUIRED_BY_CHAPTER = {
    "7.3": {"softmax-jacobian"},
    "10.3": {"cross-entropy"},
    "10.4": {"output-weights", "hidden-rows", "output-bias"},
    "10.5": {
        "residual",
        "residual-branch",
        "output-projection",
        "mixed-values",
        "mixing-coefficients",
        "mixing-values",
    },
    "10.6": {"attention-softmax", "softmax-pairs"},
    "10.7": {"queries", "keys", "query-projection", "key-projection", "value-projection", "attention-input"},
    "10.8": {"norm-input", "norm-scale", "norm-shift", "gelu", "relu", "ffn-first-weights"},
    "10.9": {"embedding", "positions"},
}

# Of options that the notes do not derive: they have no section.
BEYOND_THE_NOTES = {
    "qk-norm-queries", "qk-norm-keys", "qk-norm-query-gain", "qk-norm-key-gain", "dropout-coefficients",
}  # fmt: skip

WITH_OPTIONS = decoder_config(
    attention=AttentionConfig(heads=2, d_k=3, d_v=4, bias=True, qk_norm=True), dropout=DropoutConfig(attention=0.3)
)


def test_every_section_of_the_backward_chapter_has_its_derivations() -> None:
    sections = set().union(*REQUIRED_BY_CHAPTER.values())
    assert {chain.id for chain in CHAINS} - {"mean-loss"} == sections | BEYOND_THE_NOTES
    assert {chain.id for chain in CHAINS if not chain.source} == BEYOND_THE_NOTES
    for section, ids in REQUIRED_BY_CHAPTER.items():
        assert {chain.id for chain in CHAINS if chain.source == section} == ids
    assert len({chain.id for chain in CHAINS}) == len(CHAINS)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_derivation_holds_and_needs_its_conditions(name: str) -> None:
    program = definitions(CONFIGS[name], 4)
    chains = derivations(program)
    assert {chain.id for chain in CHAINS} - {chain.id for chain in chains} == MISSING[name] | BEYOND_THE_NOTES
    for chain in chains:
        placed = place_chain(chain, program)
        for seed in range(3 if name == "everything" else 1):
            assert check_placed(placed, program, np.random.default_rng(seed)).problems == ()


def test_the_derivations_of_options_hold_and_need_their_conditions() -> None:
    program = definitions(WITH_OPTIONS, 4, dropout=True)
    chains = derivations(program)
    assert {chain.id for chain in chains} >= BEYOND_THE_NOTES
    for chain in chains:
        for seed in range(3):
            assert check_chain(chain, program, np.random.default_rng(seed)).problems == ()


@pytest.mark.parametrize("name", OPTION_CONFIGS)
def test_the_derivations_of_every_option_hold(name: str) -> None:
    program = definitions(OPTION_CONFIGS[name], 4, dropout=True)
    for chain in derivations(program):
        assert check_chain(chain, program, np.random.default_rng(0)).problems == ()


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
        "cross-entropy": {"p"},
        "attention-softmax": {"A", "S"},
        "softmax-pairs": {"A", "S"},
        "queries": {"S.grad"},
        "keys": {"S.grad"},
        "norm-input": {"mu", "var", "sd", "xhat"},
        "qk-norm-queries": {"rms_Q", "Qhat"},
        "qk-norm-keys": {"rms_K", "Khat"},
    }
    assert [chain.id for chain in CHAINS if chain.intruder] == ["embedding"]


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
        ("qk-norm-queries", "Q[h,i,c]/d_k", "Q[h,i,c]"),
        ("qk-norm-keys", "2*K[k,j,a]", "K[k,j,a]"),
        ("dropout-coefficients", "1/(1 - p_attn)", "1"),
    ],
)
def test_a_wrong_step_is_refused(id: str, right: str, wrong: str) -> None:
    program = definitions(WITH_OPTIONS, 4, dropout=True)
    original = chain(id)
    assert any(right in step.text for step in original.steps)
    changed = replace(original, steps=tuple(replace(s, text=s.text.replace(right, wrong)) for s in original.steps))
    assert check_chain(original, program, np.random.default_rng(1)).holds
    assert not check_chain(changed, program, np.random.default_rng(1)).holds


def test_no_step_speaks_of_a_quantity_that_its_part_does_not_know() -> None:
    """An unknown name would silently drop out, as an absent bias does."""
    whole, relu = definitions(WITH_OPTIONS, 4, dropout=True), definitions(CONFIGS["relu"], 4)
    for chain in CHAINS:
        program = relu if chain.id == "relu" else whole
        home = next(p for p in program.quantities.values() if p.quantity is chain.homes[0])
        for step in chain.steps:
            if step.text:
                assert {ref.name for ref in refs(parse_expression(step.text))} <= set(home.names), (chain.id, step.text)


def test_every_reason_is_given_in_both_languages_and_no_line_has_a_free_letter_too_many() -> None:
    program = definitions(WITH_OPTIONS, 4, dropout=True)
    for chain in derivations(program):
        placed = place_chain(chain, program)
        assert chain.en
        assert any("\u4e00" <= sign <= "\u9fff" for sign in chain.zh)
        for line in placed.lines:
            assert line.en
            assert any("\u4e00" <= sign <= "\u9fff" for sign in line.zh)
            bound = {a for node in walk(line.expr) for a, _ in getattr(node, "loops", ())}
            letters = {node.letter for node in walk(line.expr) if isinstance(node, Idx)}
            assert letters <= bound | {letter for letter, _ in placed.letters}
            assert not bound & {letter for letter, _ in placed.letters}, (chain.id, line.expr)
