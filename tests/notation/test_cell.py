"""The arithmetic of one cell: right numbers by a second path, every operand kept, lines a reader can follow."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest

from glassformer.errors import UserError
from glassformer.model import AttentionConfig, DecoderConfig, FeedForwardConfig, HeadConfig, NormConfig, definitions
from glassformer.model.toy24 import CONFIG, PARAMETERS
from glassformer.notation import Kind, Program, Statement, key, magnitude, parse_expression, run
from glassformer.notation.arithmetic import arithmetic, spell_out
from glassformer.notation.cell import explain_cell, latex_lines, text_lines
from glassformer.notation.scalar import ScalarEvaluator
from glassformer.notation.tree import Reduce
from glassformer.training.descent import update_statements

Array = np.ndarray[Any, np.dtype[Any]]
Run = tuple[Program, tuple[Statement, ...], dict[str, Array]]


def complete_run(program: Program, values: dict[str, Array]) -> Run:
    """Forward, gradients, update, and forward after, from the definitions."""
    updates = update_statements(program)
    values = run((*program.statements, *updates), {**values, "loss.L.grad": np.array(1.0)}, program.scalars)
    new = {id: values[key(id, "new")] for id in program.quantities if key(id, "new") in values}
    after = run(program.forward, {**values, **new}, program.scalars)
    return program, updates, values | {key(s.target, "after"): after[s.target] for s in program.forward}


@pytest.fixture(scope="module")
def toy() -> Run:
    program = definitions(CONFIG, 2).with_scalars(eta=0.1)
    values: dict[str, Array] = {id: np.array(x).reshape(program.shape(id)) for id, x in PARAMETERS.items()}
    inputs = {"embed.t": np.array([0, 1]), "loss.y": np.array([1, 2]), "loss.scored": np.array([False, True])}
    return complete_run(program, values | inputs)


@pytest.fixture(scope="module")
def deep() -> Run:
    config = DecoderConfig.alike(
        2,
        vocab_size=9,
        context=5,
        d=8,
        attention=AttentionConfig(heads=2, d_k=3, d_v=2, bias=True),
        norm=NormConfig(eps=1e-2),
        ffn=FeedForwardConfig(d_ff=10),
        head=HeadConfig(bias=True),
    )
    program, rng = definitions(config, 4).with_scalars(eta=0.05), np.random.default_rng(0)
    values: dict[str, Array] = {
        id: rng.normal(size=program.shape(id))
        for id, q in program.quantities.items()
        if q.quantity.kind is Kind.PARAMETER
    }
    inputs = {
        "embed.t": np.array([3, 0, 3, 8]),
        "embed.pos": np.arange(4),
        "loss.y": np.array([0, 3, 8, -100]),
        "loss.scored": np.array([True, False, True, False]),
    }
    return complete_run(program, values | inputs)


def lines(a_run: Run, name: str, face: str, *cell: int, **options: Any) -> list[str]:
    program, updates, values = a_run
    return text_lines(explain_cell(program, name, face, cell, values, updates=updates), **options)


# The second path gives the numbers of the first.


def computed(a_run: Run) -> list[tuple[str, str, tuple[Statement, ...]]]:
    """Every quantity and face that something computes, with what computes it."""
    program, updates, _ = a_run
    found = [(s.target, "", (s,)) for s in program.forward]
    found += [(id, "grad", program.contributions(id)) for id in program.quantities if program.contributions(id)]
    return found + [(s.target, "new", (s,)) for s in updates]


def test_every_cell_of_the_small_model_is_what_the_array_evaluator_gives(toy: Run) -> None:
    program, updates, values = toy
    for id, face, _ in [*computed(toy), *((s.target, "after", ()) for s in program.forward)]:
        for cell in np.ndindex(*program.shape(id)):
            x = explain_cell(program, id, face, cell, values, updates=updates)
            assert x.recorded is not None
            assert x.value == x.recorded or abs(x.value - x.recorded) <= 1e-15, (id, face, cell)


def test_cells_of_a_deep_model_agree_within_the_rounding_of_their_definition(deep: Run) -> None:
    program, updates, values = deep
    rng = np.random.default_rng(1)
    for id, face, statements in computed(deep):
        bound = sum(magnitude(s.expr, s.letters, values, program.scalars) for s in statements)
        shape = program.shape(id)
        for _ in range(3):
            cell = tuple(int(rng.integers(size)) for size in shape)
            x = explain_cell(program, id, face, cell, values, updates=updates)
            assert x.recorded is not None
            assert x.value == x.recorded or abs(x.value - x.recorded) <= 64 * 2**-53 * np.asarray(bound)[cell], (
                id,
                face,
                cell,
            )


def test_every_operand_is_a_cell_of_the_run_with_its_value(deep: Run) -> None:
    program, updates, values = deep
    seen = 0
    for id, face, _ in computed(deep):
        for o in explain_cell(program, id, face, tuple(0 for _ in program.shape(id)), values, updates=updates).operands:
            assert o.id in program.quantities
            assert values[key(o.id, o.face)][o.index] == o.value
            seen += 1
    assert seen > 300


def test_the_shown_terms_the_remainder_and_nothing_else_make_the_sum(deep: Run) -> None:
    program, updates, values = deep
    for id, face, _ in computed(deep):
        cell = tuple(size - 1 for size in program.shape(id))
        for part in explain_cell(program, id, face, cell, values, updates=updates).parts:
            for s in part.series:
                total = math.fsum([*(t.value for t in s.terms), s.rest]) / (s.count if s.of.op == "mean" else 1)
                assert math.isclose(total, s.value, rel_tol=1e-12, abs_tol=1e-13)
                assert len(s.terms) <= 6


# What is shown, and in what order.

TOY_LINES = {
    ("A", "", 0, 1, 0): [
        "A[0,1,0]  (a_21)",
        "A[0,1,0] = exp(S[0,1,0]) / (Σ_m exp(S[0,1,m]))",
        "  = exp(1) / 3.718282 = 0.731059",
        "  where Σ_m exp(S[0,1,m]) = exp(1) + exp(0) = 3.718282",
        "  recorded 0.731059   difference 0",
    ],
    ("S", "", 0, 1, 0): [
        "S[0,1,0]  (s_21)",
        "S[0,1,0] = (Σ_c Q[0,1,c]·K[0,0,c]) / √d_k   [allowed[1,0]: yes]",
        "  = 1 / √1 = 1",
        "  where Σ_c Q[0,1,c]·K[0,0,c] = 1·1 = 1",
        "  recorded 1   difference 0",
    ],
    ("S", "", 0, 0, 1): [
        "S[0,0,1]  (s_12)",
        "S[0,0,1] = −∞   [allowed[0,1]: no]",
        "  recorded −∞   difference 0",
    ],
    ("X", "grad", 1, 0): [
        "X.grad[1,0]  (X\u0304_21)",
        "X.grad[1,0] = via R + via V + via K + via Q",
        "  via R: R.grad[1,0] = 1.260945",
        "  via V: Σ_{h,e} V.grad[h,1,e]·W_V[0,h,e]",
        "    = 0.33912·1 = 0.33912   (1 term is 0)",
        "  via K: Σ_{h,c} K.grad[h,1,c]·W_K[0,h,c]",
        "    = (−0.133562)·1 = −0.133562",
        "  via Q: Σ_{h,c} Q.grad[h,1,c]·W_Q[0,h,c] = 0   (1 term is 0)",
        "  = 1.260945 + 0.33912 + (−0.133562) + 0 = 1.466503",
        "  recorded 1.466503   difference 0",
    ],
    ("logits", "grad", 1, 2): [
        "logits.grad[1,2]  (Λ\u0304_23)",
        "logits.grad[1,2] = nll.grad[1]·(p[1,2] − [2 = y[1]])   [via nll]   [scored[1]: yes]   [2 = y[1]: 2 = 2, yes]",
        "  = 1·(0.0787145 − 1) = −0.921286",
        "  recorded −0.921286   difference 0",
    ],
    ("E", "grad", 2, 0): [
        "E.grad[2,0]  (E\u0304_31)",
        "E.grad[2,0] = Σ_{i: t[i] = 2} X.grad[i,0] = 0   (no terms)   [via X]",
        "  recorded 0   difference 0",
    ],
    ("W_Q", "new", 1, 0, 0): [
        "W_Q.new[1,0,0]  ([W_Q^new]_21)",
        "W_Q.new[1,0,0] = W_Q[1,0,0] − η·W_Q.grad[1,0,0]",
        "  = 1 − 0.1·0.133562 = 0.986644",
        "  recorded 0.986644   difference 0",
    ],
    ("L", "after"): [
        "L.after  (L^after)",
        "L.after = (Σ_i nll.after[i]) / count.after",
        "  = 1.761382 / 1 = 1.761382",
        "  where Σ_i nll.after[i] = 1.761382   (1 term is 0)",
        "  recorded 1.761382   difference 0",
    ],
    ("X", "", 1, 0): ["X[1,0]  (x_21)", "X[1,0] = E[t[1],0] = 0   [t[1] = 1]", "  recorded 0   difference 0"],
    ("L", "grad"): ["L.grad  (L\u0304)", "L.grad = 1   (given)"],
    ("E", "", 0, 0): ["E[0,0]  (e_11)", "E[0,0] = 1   (given)"],
}


@pytest.mark.parametrize("cell", TOY_LINES, ids=str)
def test_a_reader_can_follow_the_small_model_with_a_pencil(cell: tuple[Any, ...], toy: Run) -> None:
    assert lines(toy, *cell) == TOY_LINES[cell]


def test_latex_counts_from_one_and_has_no_words(toy: Run) -> None:
    program, _, values = toy
    assert latex_lines(explain_cell(program, "S", "grad", (0, 1, 0), values)) == [
        r"\bar S_{21} = A_{21} \left(\bar A_{21} - \sum_{m=1}^{n} A_{2m} \bar A_{2m}\right)\qquad 1 \in J_2",
        r"= 0.731059 \cdot (1.260945 - 1.078248) = 0.133562",
        r"\sum_{m=1}^{n} A_{2m} \bar A_{2m} = 0.731059 \cdot 1.260945 + 0.268941 \cdot 0.581626 = 1.078248",
    ]
    assert latex_lines(explain_cell(program, "X", "", (1, 0), values)) == [r"X_{21} = E_{t_2\,1} = 0\qquad t_2 = 2"]
    assert latex_lines(explain_cell(program, "S", "", (0, 0, 1), values)) == [r"S_{12} = -\infty\qquad 2 \notin J_1"]
    assert latex_lines(explain_cell(program, "X", "grad", (1, 0), values))[0] == (
        r"\bar X_{21} = \underbrace{1.260945}_{R} + \underbrace{0.33912}_{V} + \underbrace{-0.133562}_{K}"
        r" + \underbrace{0}_{Q} = 1.466503"
    )


def test_chinese_lines_differ_in_words_only(toy: Run) -> None:
    assert lines(toy, "X", "grad", 1, 0, lang="zh")[1:5] == [
        "X.grad[1,0] = 经由 R + 经由 V + 经由 K + 经由 Q",
        "  经由 R: R.grad[1,0] = 1.260945",
        "  经由 V: Σ_{h,e} V.grad[h,1,e]·W_V[0,h,e]",
        "    = 0.33912·1 = 0.33912   (1 项为 0)",
    ]


def test_the_number_of_digits_is_the_readers_choice(toy: Run) -> None:
    assert lines(toy, "A", "", 0, 1, 0, digits=3)[2] == "  = exp(1) / 3.718 = 0.731"
    assert lines(toy, "A", "", 0, 1, 0, digits=12)[2] == "  = exp(1) / 3.718281828459 = 0.73105857863"


def test_names_from_elsewhere_are_long_enough_to_be_found(deep: Run) -> None:
    program = deep[0]
    symbolic = lines(deep, "blocks.1.attn.Q", "", 0, 1, 2)[1]
    assert symbolic == "Q[0,1,2] = Σ_r blocks.1.norm1.Y[1,r]·W_Q[r,0,2] + b_Q[0,2]"
    assert program.resolve("blocks.1.norm1.Y") == "blocks.1.norm1.Y"


# Long sums.


def series(text: str, values: dict[str, Any], sizes: dict[str, float], **at: int) -> Any:
    e = parse_expression(text)
    assert isinstance(e, Reduce)
    arrays = {name: np.array(x, dtype=np.float64) for name, x in values.items()}
    return spell_out(e, at, ScalarEvaluator(arrays, sizes))


def test_more_than_six_terms_leave_the_four_largest_in_written_order() -> None:
    s = series("sum(x[f] for f in d_ff)", {"x": [1, -9, 0, 7, 2, -3, 8, 5]}, {"d_ff": 8})
    assert [t.value for t in s.terms] == [-9, 7, 8, 5]
    assert (s.others, s.rest, s.zeros, s.value) == (3, 0, 1, 11)


def test_six_terms_that_count_are_all_shown_whatever_the_zeros() -> None:
    s = series("sum(x[f] for f in d_ff)", {"x": [1, 0, 2, 3, 0, 4, 5, 6]}, {"d_ff": 8})
    assert (len(s.terms), s.others, s.zeros) == (6, 0, 2)


def test_of_a_filtered_or_folded_sum_the_places_of_the_terms_shown_are_told(deep: Run) -> None:
    # Positions 0 and 2 hold token 3, no position holds token 1; the model has d = 8.
    told = lines(deep, "E", "grad", 3, 0)
    assert told[1] == "E.grad[3,0] = Σ_{i: t[i] = 3} X.grad[i,0]   [via X]"
    assert told[2].endswith("   (i = 0, 2)")
    assert lines(deep, "E", "grad", 1, 0)[1] == "E.grad[1,0] = Σ_{i: t[i] = 1} X.grad[i,0] = 0   (no terms)   [via X]"
    (places,) = re.findall(
        r"where .* smaller terms: .*\((r = \d(?:, \d){3})\)", "\n".join(lines(deep, "blocks.1.attn.K", "", 0, 1, 2))
    )
    program, _, values = deep
    terms = values["blocks.1.norm1.Y"][1] * values["blocks.1.attn.W_K"][:, 0, 2]
    assert places == f"r = {', '.join(map(str, sorted(np.argsort(-np.abs(terms))[:4])))}"
    assert r"\qquad i = 1, 3" in latex_lines(explain_cell(program, "E", "grad", (3, 0), values))[-1]


def test_a_masked_term_is_a_zero_and_not_minus_infinity() -> None:
    s = series("sum(exp(S[j]) for j in n_k)", {"S": [0.0, -math.inf]}, {"n_k": 2})
    assert ([t.value for t in s.terms], s.zeros, s.value) == ([1.0], 1, 1.0)


def test_a_maximum_counts_infinities_and_adds_nothing_up() -> None:
    s = series("max(x[f] for f in d_ff)", {"x": [3, -math.inf, 1, 2, 0, -1, -2, -3]}, {"d_ff": 8})
    assert [t.value for t in s.terms] == [3, 1, 2, 0]
    assert (s.others, s.zeros, s.value) == (3, 1, 3)


# Laziness and stability.


def whole(text: str, values: dict[str, Any], sizes: dict[str, float], **at: int) -> Any:
    arrays = {name: np.array(x, dtype=np.float64) for name, x in values.items()}
    return arithmetic(parse_expression(text), at, ScalarEvaluator(arrays, sizes))


def test_the_branch_not_taken_is_never_looked_at() -> None:
    a = whole("z[y[i]] if scored[i] else 0", {"y": [-100], "z": [1.0], "scored": [0]}, {}, i=0)
    assert a.value == 0
    assert not a.formula.operands


def test_a_condition_that_an_earlier_part_decided_may_miss_too() -> None:
    a = whole("1 + (2 if scored[i] and z[y[i]] > 0 else 3)", {"y": [-100], "z": [1.0], "scored": [0]}, {}, i=0)
    assert (a.value, a.conditions[0].holds) == (4, False)


@pytest.mark.parametrize("largest", [1000.0, -1000.0, 701.0])
def test_exponents_beyond_range_are_shown_with_the_largest_taken_out(largest: float) -> None:
    values = {"S": [largest, largest - 1, -math.inf]}
    a = whole("exp(S[j])/sum(exp(S[m]) for m in n_k)", values, {"n_k": 3}, j=1)
    assert [m.value for m in a.maxima] == [largest]
    assert math.isclose(a.value, 1 / (1 + math.e), rel_tol=1e-15)
    assert math.isclose(a.series[0].value, 1 + 1 / math.e, rel_tol=1e-15)
    a = whole("ln(sum(exp(S[m]) for m in n_k))", values, {"n_k": 3})
    assert math.isclose(a.value, largest + math.log(1 + 1 / math.e), rel_tol=1e-15)


def test_ordinary_exponents_are_shown_as_they_are() -> None:
    assert not whole("exp(S[j])/sum(exp(S[m]) for m in n_k)", {"S": [700.0, 1.0]}, {"n_k": 2}, j=0).maxima


# Requests that cannot be carried out.


@pytest.mark.parametrize(
    ("name", "face", "cell", "fact"),
    [
        ("SS", "", (0, 0, 0), 'no quantity "SS"'),
        ("S", "", (0,), "3 axes, not 1"),
        ("S", "", (0, 0, 2), "Index 2 is out of range"),
        ("S", "", (0, 0, -1), "Index -1 is out of range"),
        ("S", "new", (0, 0, 0), "Nothing computes blocks.0.attn.S.new"),
        ("t", "grad", (0,), "Nothing computes embed.t.grad"),
    ],
)
def test_a_cell_that_does_not_exist_is_refused_with_the_fact(
    name: str, face: str, cell: tuple[int, ...], fact: str, toy: Run
) -> None:
    program, _, values = toy
    with pytest.raises(UserError, match=fact):
        explain_cell(program, name, face, cell, values)


def test_an_operand_that_was_not_recorded_is_named(toy: Run) -> None:
    program, _, values = toy
    some = {name: value for name, value in values.items() if name != "blocks.0.attn.Q"}
    with pytest.raises(UserError, match=r"no value for blocks\.0\.attn\.Q"):
        explain_cell(program, "S", "", (0, 1, 0), some)


def test_every_line_of_every_cell_prints(toy: Run) -> None:
    program, updates, values = toy
    for id, face in itertools.product(program.quantities, ("", "grad", "new", "after")):
        if key(id, face) in values:
            for cell in np.ndindex(*program.shape(id)):
                x = explain_cell(program, id, face, cell, values, updates=updates)
                assert all(text_lines(x, lang="zh"))
                assert all(line.isascii() for line in latex_lines(x))
