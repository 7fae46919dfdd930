"""Formulas as readers see them: the notes' own form, and parentheses that cannot be misread."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from decoders import decoder_config
from glassformer.model import (
    AttentionConfig,
    DecoderConfig,
    DropoutConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerConfig,
    NormConfig,
    definitions,
)
from glassformer.model.toy24 import CONFIG
from glassformer.notation import Program, parse_expression
from glassformer.notation.arithmetic import arithmetic
from glassformer.notation.latex import expr_latex, gradient_latex, index_latex, symbol_latex
from glassformer.notation.plain import SYMBOLIC, Frame, plain
from glassformer.notation.scalar import ScalarEvaluator
from glassformer.notation.symbols import Style, entry_text, short_names, style_of
from glassformer.notation.tree import Expr, from_json
from glassformer.training.descent import update_statements
from notation.expression_trees import FREE, LETTERS, SHAPES, SIZES, Json, expressions, nested_pairs
from notation.latex_reader import read_latex
from notation.readers import read_plain

VALUES = {
    name: np.asarray(np.random.default_rng(k).normal(size=[int(SIZES[LETTERS[a]]) for a in axes]).round(2) + 0.005)
    for k, (name, axes) in enumerate(SHAPES.items())
}
VALUES["J"] = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])


def cell(name: str, index: tuple[int, ...]) -> float:
    return float(VALUES[name][index])


@pytest.fixture(scope="module")
def toy() -> Program:
    return definitions(CONFIG, 2).with_scalars(eta=0.1)


@pytest.fixture(scope="module")
def deep() -> Program:
    config = DecoderConfig.alike(
        2,
        vocab_size=5,
        context=4,
        d=6,
        attention=AttentionConfig(heads=2, d_k=3, d_v=2, bias=True),
        norm=NormConfig(),
        ffn=FeedForwardConfig(d_ff=4),
        head=HeadConfig(bias=True),
    )
    return definitions(config, 3)


def forward(program: Program, name: str) -> str:
    statement = program.definition(program.resolve(name))
    assert statement is not None
    return index_latex(statement, program)


def gradient(program: Program, name: str) -> str:
    return gradient_latex(program.contributions(program.resolve(name)), program)


# The notes' own formulas.

TOY_FORWARD = {
    "X": r"X_{ir} = E_{t_i\,r}",
    "Q": r"Q_{ic} = \sum_{r=1}^{d} X_{ir} [W_Q]_{rc}",
    "S": r"S_{ij} = \begin{cases} \displaystyle \frac{\sum_{c=1}^{d_k} Q_{ic} K_{jc}}{\sqrt{d_k}}, & j \in J_i \\ "
    r"-\infty, & j \notin J_i \end{cases}",
    "A": r"A_{ij} = \frac{e^{S_{ij}}}{\sum_{m=1}^{n} e^{S_{im}}}",
    "O": r"O_{ir} = \sum_{e=1}^{d_v} Z_{ie} [W_O]_{er}",
    "count": r"\lvert I\rvert = \sum_{i=1}^{n} [i \in I]",
    "nll": r"\mathcal{L}_i = \begin{cases} \displaystyle \ln \sum_{v=1}^{N} e^{\Lambda_{iv}} - \Lambda_{i\,y_i}, & i \in I \\ "
    r"0, & i \notin I \end{cases}",
}
TOY_GRADIENTS = {
    "logits": r"\bar \Lambda_{iw} = \begin{cases} \bar{\mathcal{L}}_i (p_{iw} - [w = y_i]), & i \in I \\ "
    r"0, & i \notin I \end{cases}",
    "W_Q": r"[\bar W_Q]_{rc} = \sum_{i=1}^{n} X_{ir} \bar Q_{ic}",
    "S": r"\bar S_{ij} = \begin{cases} \displaystyle A_{ij} \left(\bar A_{ij} - \sum_{m=1}^{n} A_{im} \bar A_{im}\right), "
    r"& j \in J_i \\ 0, & j \notin J_i \end{cases}",
    "E": r"\bar E_{wr} = \sum_{i:\,t_i = w} \bar X_{ir}",
    "X": r"\bar X_{ir} = \underbrace{\bar R_{ir}}_{R} + \underbrace{\sum_{e=1}^{d_v} \bar V_{ie} [W_V]_{re}}_{V}"
    r" + \underbrace{\sum_{c=1}^{d_k} \bar K_{ic} [W_K]_{rc}}_{K} + \underbrace{\sum_{c=1}^{d_k} \bar Q_{ic} [W_Q]_{rc}}_{Q}",
}


@pytest.mark.parametrize("name", TOY_FORWARD)
def test_the_small_model_prints_the_formulas_of_the_notes(name: str, toy: Program) -> None:
    assert forward(toy, name) == TOY_FORWARD[name]


@pytest.mark.parametrize("name", TOY_GRADIENTS)
def test_the_small_model_prints_the_gradients_of_the_notes(name: str, toy: Program) -> None:
    assert gradient(toy, name) == TOY_GRADIENTS[name]


def test_one_head_leaves_no_trace_and_one_layer_neither(toy: Program) -> None:
    formulas = [index_latex(s, toy) for s in toy.statements]
    assert not [f for f in formulas if "(" in f.replace(r"\left(", "").replace("(p_", "") or "h=1" in f]


def test_one_contribution_of_several_is_added_and_a_single_one_is_the_gradient(toy: Program) -> None:
    several = toy.contributions(toy.resolve("X"))
    assert index_latex(several[0], toy).startswith(r"\bar X_{ir} \mathrel{+}= ")
    first = toy.contributions(toy.resolve("Q"))[0]
    assert index_latex(first, toy) == r"\bar Q_{ic} = \frac{\sum_{j=1}^{n} \bar S_{ij} K_{jc}}{\sqrt{d_k}}"


def test_heads_and_layers_are_superscripts_where_there_are_several(deep: Program) -> None:
    assert forward(deep, "blocks.1.attn.Z") == r"Z^{(2,h)}_{ie} = \sum_{j=1}^{n} A^{(2,h)}_{ij} V^{(2,h)}_{je}"
    assert r"\sum_{h=1}^{H} \sum_{e=1}^{d_v} Z^{(1,h)}_{ie} [W_O^{(1,h)}]_{er} + [b_O^{(1)}]_r" in forward(
        deep, "blocks.0.attn.O"
    )


def test_a_set_for_each_head_has_the_head_above_and_the_row_below() -> None:
    config = decoder_config(dropout=DropoutConfig(embedding=0.1, attention=0.1))
    program = definitions(config, 3, dropout=True)
    assert r"& j \in [\mathcal D_A^{(1,h)}]_i \\" in forward(program, "blocks.0.attn.A_D")
    assert r"& r \notin [\mathcal D_X]_i" in forward(program, "embed.X_D")
    assert r"\frac{X_{ir}}{1 - p_{\mathrm{embed}}}" in forward(program, "embed.X_D")


def test_two_masks_are_told_apart_and_no_symbol_has_two_subscripts() -> None:
    attention = AttentionConfig(heads=1, d_k=3, d_v=2)
    near = attention.model_copy(update={"window": 2})
    layers = tuple(LayerConfig(attention=x, ffn=None) for x in (attention, near))
    program = definitions(CONFIG.model_copy(update={"layers": layers}), 3)
    assert r"& j \in [J_{\mathrm{window}}]_i \\" in forward(program, "blocks.1.attn.S")
    assert r"& j \notin [J_{\mathrm{mask}}]_i" in forward(program, "blocks.0.attn.S")
    # Braces may nest once: that is as deep as a subscript goes.
    script = r"_(?:\{(?:[^{}]|\{[^{}]*\})*\}|[^{\\])"
    formulas = [index_latex(s, program) for s in program.statements]
    assert not [f for f in formulas if re.search(script + script, f)]


def test_two_norms_of_a_layer_are_told_apart_and_the_last_one_is_plain(deep: Program) -> None:
    assert forward(deep, "blocks.0.norm2.mu") == r"[\mu_2^{(1)}]_i = \frac{1}{d} \sum_{r=1}^{d} R^{(1)}_{ir}"
    assert forward(deep, "final_norm.Y") == r"Y_{ir} = \hat X_{ir} \gamma_r + \beta_r"
    assert forward(deep, "final_norm.sd") == r"s_i = \sqrt{v_i + \varepsilon}"


def test_no_two_quantities_share_a_symbol(deep: Program, toy: Program) -> None:
    for program in (deep, toy):
        symbols = [symbol_latex(id, "", program) for id in program.quantities]
        assert len(set(symbols)) == len(symbols)


def test_every_face_has_its_mark(toy: Program) -> None:
    assert symbol_latex("W_Q", "", toy) == "W_Q"
    assert symbol_latex("W_Q", "grad", toy) == r"\bar W_Q"
    assert symbol_latex("nll", "grad", toy) == r"\bar{\mathcal{L}}"
    assert symbol_latex(toy.quantities["blocks.0.attn.W_Q"], "new", toy) == r"W_Q^{\text{new}}"
    assert symbol_latex("logits", "after", toy) == r"\Lambda^{\text{after}}"


def test_an_accented_symbol_gets_a_bar_over_all_of_it(deep: Program) -> None:
    assert symbol_latex("final_norm.xhat", "grad", deep) == r"\overline{\hat X}"


def test_an_update_is_written_with_new(toy: Program) -> None:
    step = next(s for s in update_statements(toy) if s.target.endswith("W_Q"))
    assert index_latex(step, toy) == r"[W_Q^{\text{new}}]_{rc} = [W_Q]_{rc} - \eta [\bar W_Q]_{rc}"


def test_all_formulas_hold_balanced_braces_and_nothing_but_ascii(deep: Program) -> None:
    style = style_of(deep)
    for s in deep.statements:
        formula = index_latex(s, deep, style)
        assert formula.isascii()
        assert formula.count("{") == formula.count("}")
        assert formula.count(r"\left") == formula.count(r"\right")


def test_short_names_lead_back_to_their_quantity(deep: Program) -> None:
    for home in ("blocks.0.attn", "blocks.1.norm1", "loss"):
        names = short_names(deep, home)
        assert len(set(names.values())) == len(names)
        for id, name in names.items():
            assert deep.quantities[id].path == home or deep.resolve(name) == id


# Details of printing.

CASES = {
    "a[i] - (b[i] - c[i])": (r"a_i - (b_i - c_i)", "a[i] − (b[i] − c[i])"),
    "a[i]*(b[i] + 1)/2": (r"\frac{a_i (b_i + 1)}{2}", "a[i]·(b[i] + 1) / 2"),
    "(a[i]/b[i])**2": (r"\left(\frac{a_i}{b_i}\right)^{2}", "(a[i] / b[i])²"),
    "-(a[i]**2)": (r"-a_i^{2}", "−a[i]²"),
    "(-a[i])**2": (r"(-a_i)^{2}", "(−a[i])²"),
    "exp(a[i])**2": (r"(e^{a_i})^{2}", "exp(a[i])²"),
    "sum(a[i] for i in n)*2": (r"\left(\sum_{i=1}^{n} a_i\right) \cdot 2", "(Σ_i a[i])·2"),
    "2*sum(a[i] for i in n)": (r"2 \sum_{i=1}^{n} a_i", "2·(Σ_i a[i])"),
    "sum(a[i] + 1 for i in n)": (r"\sum_{i=1}^{n} (a_i + 1)", "Σ_i (a[i] + 1)"),
    "1 - sum(a[i] for i in n) + 2": (r"1 - \sum_{i=1}^{n} a_i + 2", "1 − Σ_i a[i] + 2"),
    "mean(a[i]*2 for i in n for r in d)": (
        r"\frac{1}{n\,d} \sum_{i=1}^{n} \sum_{r=1}^{d} a_i \cdot 2",
        "mean_{i,r}(a[i]·2)",
    ),
    "max(a[i] for i in n if allowed[i])": (r"\max_{i:\,i \in \mathrm{allowed}} a_i", "max_{i: allowed[i]}(a[i])"),
    "-a[i]**2/2": (r"-\frac{a_i^{2}}{2}", "−a[i]² / 2"),
    "1e-6*eps": (r"(1\cdot 10^{-6}) \varepsilon", "1e−6·ε"),
    "min(a[i], 1)": (r"\min(a_i, 1)", "min(a[i], 1)"),
    "ln(a[i] + 1)": (r"\ln(a_i + 1)", "ln(a[i] + 1)"),
    "abs(a[i])": (r"\left|a_i\right|", "abs(a[i])"),
    "1 if i == t[j] else 0": (r"[i = t_j]", "[i = t[j]]"),
    "1 if not allowed[i,j] else 0": (r"[j \notin \mathrm{allowed}_i]", "[not allowed[i,j]]"),
    "i*2": (r"(i - 1) \cdot 2", "i·2"),
    "n_ctx + d_ff": (r"n_{\mathrm{ctx}} + d_{\mathrm{ff}}", "n_ctx + d_ff"),
}


@pytest.mark.parametrize("source", CASES)
def test_a_formula_is_written_as_one_writes_it(source: str) -> None:
    tree = parse_expression(source)
    assert expr_latex(tree, Style()) == CASES[source][0]
    assert plain(tree) == CASES[source][1]


def test_positions_are_raised_by_one_in_latex_only() -> None:
    tree = parse_expression("E[t[i],r]*(1 if w == y[i] else 0)")
    at = Frame({"i": 0, "r": 11, "w": 2})
    assert expr_latex(tree, Style(), at) == r"E_{t_1\,12} [3 = y_1]"
    assert plain(tree, at) == "E[t[0],11]·[2 = y[0]]"


def test_three_cases_end_with_otherwise() -> None:
    tree = parse_expression("1 if a[i] > 1 else 2 if a[i] > 0 else 3")
    assert (
        expr_latex(tree, Style()) == r"\begin{cases} 1, & a_i > 1 \\ 2, & a_i > 0 \\ 3, & \text{otherwise} \end{cases}"
    )


def test_a_cell_is_named_as_the_notes_name_it(toy: Program, deep: Program) -> None:
    style = style_of(toy)
    assert entry_text(style, "blocks.0.attn.A", "", (0, 1, 0)) == "a_21"
    assert entry_text(style, "blocks.0.attn.S", "grad", (0, 1, 0)) == "S\u0304_21"
    assert entry_text(style, "blocks.0.attn.W_Q", "", (1, 0, 0)) == "[W_Q]_21"
    assert entry_text(style, "head.logits", "", (1, 11)) == "Λ_2,12"
    assert entry_text(style, "loss.L", "", ()) == "L"
    assert entry_text(style_of(deep), "blocks.1.attn.A", "", (1, 0, 2)) == "a^(2,2)_13"
    assert entry_text(style_of(deep), "final_norm.xhat", "", (0, 1)) == "X\u0302_12"


# No printed formula can be misread.

Read = Callable[[str, Any, Mapping[str, float], Mapping[str, str], Mapping[str, int]], float]


def value_of(tree: Expr) -> float:
    value = ScalarEvaluator(VALUES, SIZES).number(tree, FREE)
    assume(math.isfinite(value) and abs(value) < 1e12)
    return value


def reading(text: str, read: Read) -> float:
    """What ``read`` makes of ``text``; NaN where Python has no number for a part that nobody needs."""
    try:
        got = read(text, cell, {**SIZES, "ε": SIZES["eps"]}, LETTERS, FREE)
    except (ZeroDivisionError, OverflowError, ValueError):
        return math.nan
    return math.nan if isinstance(got, complex) else got


def reads_as(text: str, read: Read, value: float) -> bool:
    got = reading(text, read)
    assume(not math.isnan(got))
    return near(got, value)


def near(got: float, value: float) -> bool:
    return got == value or abs(got - value) <= 1e-9 * max(1.0, abs(value))


def test_every_kind_of_node_inside_every_other_reads_as_the_number_it_stands_for() -> None:
    evaluator, read = ScalarEvaluator(VALUES, SIZES), 0
    for data in nested_pairs():
        tree = from_json(data)
        value = evaluator.number(tree, FREE)
        if not math.isfinite(value):
            continue  # a division by a test that fails
        formula = arithmetic(tree, FREE, evaluator).formula
        frame = Frame(formula.at, formula.numbers, 17)
        for text, reader in (
            (plain(tree), read_plain),
            (plain(formula.expr, frame), read_plain),
            (expr_latex(tree, Style()), read_latex),
            (expr_latex(formula.expr, Style(), frame), read_latex),
        ):
            assert near(reading(text, reader), value), (data, text)
        read += 1
    assert read > 1500


SLOW_TO_DRAW = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
)


@SLOW_TO_DRAW
@given(expressions())
def test_latex_reads_as_the_number_it_stands_for(data: Json) -> None:
    tree = from_json(data)
    text = expr_latex(tree, Style(), SYMBOLIC)
    assert reads_as(text, read_latex, value_of(tree)), text


@SLOW_TO_DRAW
@given(expressions())
def test_plain_text_reads_as_the_number_it_stands_for(data: Json) -> None:
    tree = from_json(data)
    text = plain(tree)
    assert reads_as(text, read_plain, value_of(tree)), text


@SLOW_TO_DRAW
@given(expressions())
def test_the_line_with_numbers_reads_as_the_same_number(data: Json) -> None:
    tree = from_json(data)
    value = value_of(tree)
    formula = arithmetic(tree, FREE, ScalarEvaluator(VALUES, SIZES)).formula
    frame = Frame(formula.at, formula.numbers, 17)
    assert reads_as(plain(formula.expr, frame), read_plain, value), plain(formula.expr, frame)
    text = expr_latex(formula.expr, Style(), frame)
    assert reads_as(text, read_latex, value), text
