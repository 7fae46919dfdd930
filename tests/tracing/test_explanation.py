"""Explanations of a trace: right numbers by NumPy, every operand of the run, hostile token texts data in every form."""

from __future__ import annotations

import csv
import html
import io
import re

import numpy as np
import pytest
import torch

from decoders import CONFIGS, random_decoder
from glassformer.errors import UserError
from glassformer.notation import key
from glassformer.notation.numerals import number_text
from glassformer.tracing import Trace, trace, trace_toy24
from glassformer.tracing.explanation import Explanation, explain, quoted
from glassformer.tracing.formats import COLUMNS, harmless
from glassformer.tracing.walk import STEPS

HOSTILE = (
    "=cmd|'/C calc'!A0",
    "<script>alert(1)</script>",
    "`rm` $x$ | **b** [l](javascript:x)",
    "\x1b[31mred\x07\u202e",
    r"\end{aligned}\input{/etc/passwd}%",
    "line\nbreak\rreturn\ttab",
    "-1+2",
)


@pytest.fixture(scope="module")
def toy() -> Trace:
    return trace_toy24()


@pytest.fixture(scope="module")
def deep() -> Trace:
    """Two blocks, two heads, everything on; its seven tokens have hostile texts, and two of them occur twice."""
    model = random_decoder(CONFIGS["everything"])
    return trace(model, [0, 1, 2, 0, 3, 1, 4], vocabulary=HOSTILE, witness_cells=2)


def cells(run: Trace, seed: int = 0) -> list[Explanation]:
    """One cell, drawn at random, of every quantity and face that was recorded."""
    rng = np.random.default_rng(seed)
    return [
        explain(run, id, face, tuple(int(rng.integers(n)) for n in run.program.shape(id)))
        for id in run.program.quantities
        for face in ("", "grad", "new", "after")
        if run.recorded(id, face)
    ]


# --- quantities of a trace -------------------------------------------------------------------------------------------


def test_a_quantity_is_its_numbers_gradient_formula_and_axes(toy: Trace) -> None:
    A = toy.quantity("attn.A", layer=0)
    assert A.values is toy.values["blocks.0.attn.A"]
    assert (A.shape, A.axes) == ((1, 2, 2), (("h", "H"), ("i", "n"), ("j", "n")))
    assert A.formula == "A[h,i,j] = exp(S[h,i,j]) / (Σ_m exp(S[h,i,m]))"
    assert np.asarray(A.grad)[0, 1] == pytest.approx([1.260945, 0.581626], abs=1e-6)
    assert toy.quantity("W_Q").new[1, 0, 0] == pytest.approx(1 - 0.1 * 0.13356232)
    assert toy.quantity("A.after")[0, 1, 0] == pytest.approx(0.713748, abs=1e-6)
    assert toy.quantity("X").grad.formula.splitlines()[1] == ("X.grad[j,r] += Σ_{h,e} V.grad[h,j,e]·W_V[r,h,e]   [V]")
    assert toy.quantity("E").formula == ""
    assert "mixing coefficients  (h of 1, i of 2, j of 2)" in repr(A)


def test_numbers_can_be_taken_away_and_changed(toy: Trace) -> None:
    A = toy.quantity("A")
    for copy in (A.to_numpy(), A.to_torch(), np.array(A)):
        assert copy[0, 1, 0] == A.values[0, 1, 0]
        copy[0, 1, 0] = 7
    assert A.to_torch().dtype == torch.float64
    assert A.values[0, 1, 0] == pytest.approx(0.731059, abs=1e-6)


def test_a_quantity_as_latex_ends_with_its_matrix_one_for_each_head(toy: Trace, deep: Trace) -> None:
    assert toy.quantity("A").to_latex().splitlines() == [
        r"\begin{aligned}",
        r"& A = \operatorname{softmax}_{\text{row}}(S) \\",
        r"& A_{ij} = \frac{e^{S_{ij}}}{\sum_{m=1}^{n} e^{S_{im}}} \\",
        r"& A = \begin{bmatrix} 1 & 0 \\ 0.731059 & 0.268941 \end{bmatrix}",
        r"\end{aligned}",
    ]
    several = deep.quantity("attn.S", layer=1).to_latex()
    assert r"& S^{(2,1)} = \begin{bmatrix}" in several
    assert r"& S^{(2,2)} = \begin{bmatrix}" in several
    assert toy.quantity("L")._repr_latex_().startswith("$$\n\\begin{aligned}")


def test_a_layer_tells_quantities_apart_in_python_too(deep: Trace) -> None:
    for layer in (0, 1):
        assert deep.quantity("attn.A", layer=layer).values is deep.values[f"blocks.{layer}.attn.A"]
        assert deep.quantity(f"blocks.{layer}.attn.A").id == f"blocks.{layer}.attn.A"
    assert deep["blocks.0.attn.A"] is deep.values["blocks.0.attn.A"]


@pytest.mark.parametrize(
    ("name", "layer", "fact"),
    [
        ("A", None, '"A" is the name of 2 quantities.'),
        ("A", 2, "There is no layer 2."),
        ("embed.X", 1, '"embed.X" is not in layer 1.'),
        ("attm.A", 0, 'There is no quantity "attm.A".'),
        ("S[0,0,0]", 0, '"S[0,0,0]" is one cell.'),
        ("S.new", 0, "blocks.0.attn.S.new is not recorded."),
        ("allowed.grad", None, "mask.allowed.grad is not recorded."),
        ("\x1b[31m", None, "does not name a quantity"),
    ],
)
def test_what_is_no_quantity_of_the_trace_is_refused(deep: Trace, name: str, layer: int | None, fact: str) -> None:
    with pytest.raises(UserError) as refusal:
        deep.quantity(name, layer)
    assert fact in refusal.value.fact
    assert refusal.value.next_step


@pytest.mark.parametrize(
    ("index", "fact"),
    [
        ((0, 0), "has 3 axes, not 2"),
        ((0, 7, 0), "Index 7 is out of range for axis i"),
        ((0, -1, 0), "Index -1 is out of range"),
        ((0, 0.5, 0), "is not a list of indices"),
        ((0, "]", 0), "does not name a quantity or a cell"),
    ],
)
def test_what_is_no_cell_is_refused(deep: Trace, index: tuple[int, ...], fact: str) -> None:
    with pytest.raises(UserError, match=fact):
        deep.quantity("S", layer=1).explain(*index)


def test_a_gradient_of_a_gradient_is_refused(toy: Trace) -> None:
    with pytest.raises(UserError, match=r"blocks\.0\.attn\.A\.grad has no grad"):
        _ = toy.quantity("A").grad.grad


# --- one number ------------------------------------------------------------------------------------------------------


def test_the_explanation_of_the_notes_coefficient_reads_as_this(toy: Trace) -> None:
    assert str(toy.quantity("A").explain(1, 0)).splitlines() == [
        "mixing coefficients  [coefficient]  blocks.0.attn.A",
        "formula: A[h,i,j] = exp(S[h,i,j]) / (Σ_m exp(S[h,i,m]))",
        "A[0,1,0]  (a_21)   i = 1 “B”, j = 0 “A”",
        "A[0,1,0] = exp(S[0,1,0]) / (Σ_m exp(S[0,1,m]))",
        "  = exp(1) / 3.718282 = 0.731059",
        "  where Σ_m exp(S[0,1,m]) = exp(1) + exp(0) = 3.718282",
        "  recorded 0.731059   difference 0",
        "operands:",
        "  S[0,1,0] = 1   i = 1 “B”, j = 0 “A”",
        "  S[0,1,1] = 0   i = 1 “B”, j = 1 “B”",
    ]


def test_token_ids_name_their_token(toy: Trace) -> None:
    assert toy.quantity("t").explain(1).lines()[0] == "t[1]  (t_2)   i = 1 “B”, → “B”"
    assert toy.quantity("p").explain(1, 2).lines("zh")[0].endswith("w = 2 “黑便”")


def test_a_position_has_the_text_of_its_token(deep: Trace) -> None:
    for position, token in enumerate([0, 1, 2, 0, 3, 1, 4]):
        line = deep.quantity("embed.X").explain(position, 0).lines()[0]
        assert line.endswith(f"   i = {position} {quoted(HOSTILE[token])}")


def test_a_gradient_shows_its_three_witnesses(toy: Trace) -> None:
    text = toy.quantity("W_Q").grad.explain(1, 0).text()
    assert [line.split()[-1] for line in text[-3:]] == ["0.133562319959"] * 3
    assert not any("witnesses" in line for line in toy.quantity("W_Q").new.explain(1, 0).text())


@pytest.mark.parametrize("run", ["toy", "deep"])
def test_every_explanation_gives_the_recorded_number_from_operands_of_the_run(
    run: str, request: pytest.FixtureRequest
) -> None:
    values = request.getfixturevalue(run)
    for x in cells(values):
        assert x.recorded is not None
        assert x.error is None or x.error <= 1e-11 * max(1.0, abs(x.value)), x
        for operand in x.unfolded().operands:
            assert values.values[key(operand.id, operand.face)][operand.index] == operand.value


def test_a_mixed_value_is_the_product_that_numpy_gives(deep: Trace) -> None:
    x = deep.quantity("Z", layer=1).explain(1, 6, 2)
    A, V = deep.values["blocks.1.attn.A"][1, 6], deep.values["blocks.1.attn.V"][1, :, 2]
    assert x.value == pytest.approx(float(A @ V), rel=1e-14)
    read = {(o.id, o.index): o.value for o in x.unfolded().operands}
    assert read == {
        **{("blocks.1.attn.A", (1, 6, j)): A[j] for j in range(7)},
        **{("blocks.1.attn.V", (1, j, 2)): V[j] for j in range(7)},
    }


def test_a_folded_sum_is_unfolded_on_request(deep: Trace) -> None:
    folded = deep.quantity("Q", layer=0).explain(0, 3, 1)
    assert "[6 smaller terms: " in str(folded)
    assert "smaller" not in str(folded.unfolded())
    assert len(folded.operands) < len(folded.unfolded().operands) == 21  # ten products and a bias


# --- LaTeX, Markdown, CSV --------------------------------------------------------------------------------------------


QUERIES, KEYS = r"\begin{bmatrix} 0 \\ 1 \end{bmatrix}", r"\begin{bmatrix} 1 \\ 0 \end{bmatrix}"
MASK = r"\begin{bmatrix} 0 & -\infty \\ 0 & 0 \end{bmatrix}"
SCORES = r"\begin{bmatrix} 0 & -\infty \\ 1 & 0 \end{bmatrix}"


def test_latex_has_the_matrix_form_with_numbers_and_what_the_mask_stands_for(toy: Trace) -> None:
    lines = toy.quantity("S").explain(1, 0).latex().splitlines()
    assert lines[1:4] == [
        r"& S = \frac{Q K^\top}{\sqrt{d_k}} + M \\",
        r"& M_{ij} = \begin{cases} 0, & j \in J_i \\ -\infty, & j \notin J_i \end{cases} \\",
        rf"& S = \frac{{{QUERIES} {KEYS}^\top}}{{\sqrt{{1}}}} + {MASK} = {SCORES} \\",
    ]
    assert lines[-3:-1] == [r"& = \frac{1}{\sqrt{1}} = 1 \\", r"& \sum_{c=1}^{d_k} Q_{2c} K_{1c} = 1 \cdot 1 = 1"]


def test_the_pass_after_the_update_has_the_numbers_after_the_update(toy: Trace) -> None:
    text = toy.quantity("A").after.explain(1, 0).latex()
    assert r"A^{\text{after}} = \operatorname{softmax}_{\text{row}}\left(\begin{bmatrix} -0.0369997 &" in text
    assert r"= \begin{bmatrix} 1 & 0 \\ 0.713748 & 0.286252 \end{bmatrix}" in text


@pytest.mark.parametrize("run", ["toy", "deep"])
def test_latex_is_balanced_and_free_of_token_texts(run: str, request: pytest.FixtureRequest) -> None:
    for x in cells(request.getfixturevalue(run), seed=1):
        text = x.latex()
        assert text.isascii()
        assert text.count("{") == text.count("}")
        for environment in ("aligned", "bmatrix", "cases"):
            assert text.count(rf"\begin{{{environment}}}") == text.count(rf"\end{{{environment}}}")
        assert not [word for word in ("input", "script", "cmd", "red") if word in text]


def test_markdown_shows_token_texts_as_they_are_and_obeys_none(deep: Trace) -> None:
    for position, text in enumerate(HOSTILE[:4]):
        shown = deep.quantity("logits").explain(6, position).markdown()
        token = re.findall(r"w = \d+ <code>(.*?)</code>", shown)[0]
        assert not set(token) & set("`*_[]<>|$\\\n\r\x1b\u202e\"'"), token
        assert html.unescape(token) == text.replace("\x1b", "␛").replace("\x07", "␇").replace("\u202e", "<U+202E>")
    shown = deep.quantity("A", layer=0).explain(1, 4, 2).markdown()
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {5}
    assert "<script" not in shown
    assert deep.quantity("A", layer=0).explain(1, 4, 2)._repr_markdown_() == shown


def test_markdown_has_formulas_operands_and_the_record(toy: Trace) -> None:
    shown = toy.quantity("A").explain(1, 0).markdown()
    assert "$$\nA_{21} = \\frac{e^{S_{21}}}{\\sum_{m=1}^{n} e^{S_{2m}}}\n$$" in shown
    assert "| `S[0,1,0]` | `s_21` | 1 | i = 1 <code>B</code>, j = 0 <code>A</code> |" in shown
    assert shown.endswith("result: 0.731059; recorded: 0.731059; difference: 0\n")
    assert toy.quantity("E").explain(0, 0).markdown().endswith("result: 1 (given)\n")


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_has_the_result_and_every_operand_in_full(deep: Trace) -> None:
    x = deep.quantity("Q", layer=1).explain(1, 5, 2)
    rows = read_csv(x.csv())
    assert tuple(rows[0]) == COLUMNS
    assert [row["part"] for row in rows] == ["result"] + ["operand"] * 21
    assert (rows[0]["id"], rows[0]["index"], rows[0]["entry"]) == ("blocks.1.attn.Q", "1 5 2", "q^(2,2)_63")
    for row in rows:
        index = tuple(map(int, row["index"].split()))
        assert deep.face(row["id"], row["face"])[index] == float(row["value"]) or row["part"] == "result"
    assert float(rows[0]["value"]) == x.value


def test_no_cell_of_the_csv_is_computed_by_a_spreadsheet(deep: Trace) -> None:
    for x in cells(deep, seed=2):
        for row in csv.reader(io.StringIO(x.csv(), newline="")):
            assert len(row) == len(COLUMNS)
            for column, cell in zip(COLUMNS, row, strict=True):
                assert column == "value" or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell
                assert not set(cell) & set("\x1b\x07\u202e\n\r")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "＝1"])
def test_a_text_that_would_be_computed_begins_with_an_apostrophe(text: str) -> None:
    assert harmless(text) == f"'{text}"
    assert harmless(f"a{text}") == f"a{text}"


def test_terminal_text_shows_control_characters_instead_of_obeying_them(deep: Trace) -> None:
    text = str(deep.quantity("A", layer=0).explain(0, 4, 0)) + str(deep.quantity("logits").explain(6, 5))
    assert not set(text) & set("\x1b\x07\u202e\r\t")
    assert "“␛[31mred␇<U+202E>”" in text
    assert "“line␊break␍return␉tab”" in text


# --- the way on ------------------------------------------------------------------------------------------------------


def test_the_way_leads_to_the_loss_and_down_to_tokens_and_parameters(toy: Trace) -> None:
    way = toy.quantity("A").explain(1, 0).path()
    assert [x.id for x in way.to_loss] == [
        "blocks.0.attn.Z", "blocks.0.attn.O", "blocks.0.R", "head.logits", "loss.nll", "loss.L",
    ]  # fmt: skip
    below = {x.id for x in way.below}
    assert {"blocks.0.attn.S", "blocks.0.attn.W_Q", "blocks.0.attn.W_K", "embed.E", "embed.t"} <= below
    assert not way.cut


def test_each_step_of_the_way_is_read_by_one_before_it(deep: Trace) -> None:
    for name in ("blocks.1.attn.A.grad", "head.logits", "blocks.0.ffn.W_1.grad"):
        view = deep.quantity(name)
        way = view.explain(*(0 for _ in view.shape)).path()
        steps = (way.start, *way.below)
        assert len(way.below) <= STEPS
        assert len({(x.id, x.face) for x in steps}) == len(steps)
        for k, x in enumerate(steps[1:], 1):
            assert any((x.id, x.face, x.index) == (o.id, o.face, o.index) for y in steps[:k] for o in y.operands)


def test_of_a_sum_the_way_follows_the_largest_term(deep: Trace) -> None:
    terms = deep.values["blocks.1.attn.A"][:, :, :, None] * deep.values["blocks.1.attn.V"][:, None]
    largest = np.abs(terms).argmax(axis=2)
    later = np.argwhere(largest > 0)  # where the first term is the largest, any rule would do
    assert len(later) > 4
    for h, i, e in later[:: len(later) // 4].tolist():
        below = deep.quantity("Z", layer=1).explain(h, i, e).path().below
        (followed,) = [step for step in below if step.id == "blocks.1.attn.V"]
        assert followed.index == (h, largest[h, i, e], e)


def test_a_repeated_token_goes_on_where_the_loss_depends_on_it_most(deep: Trace) -> None:
    gradients = np.abs(deep.values["embed.X.grad"][[0, 3]])  # token 0 stands at positions 0 and 3
    places = np.array([0, 3])[gradients.argmax(axis=0)]
    assert set(places) == {0, 3}
    for r, place in enumerate(places):
        first = deep.quantity("E").explain(0, r).path().to_loss[0]
        assert (first.id, first.index) == ("embed.X", (place, r))


def test_a_token_that_does_not_occur_has_no_way_to_the_loss(toy: Trace) -> None:
    assert toy.quantity("E").explain(2, 0).path().to_loss == ()


def test_a_long_way_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch, deep: Trace) -> None:
    monkeypatch.setattr("glassformer.tracing.walk.STEPS", 5)
    way = deep.quantity("logits").explain(6, 0).path()
    assert (len(way.below), way.cut) == (5, True)
    assert way.text()[-1] == "… and further: the way is cut after 5 steps"


def test_the_way_has_every_form(toy: Trace) -> None:
    way = toy.quantity("S").explain(1, 0).path()
    assert way.latex().count(r"\begin{aligned}") == way.markdown().count("### ") == len(way.steps())
    assert [row["part"] for row in read_csv(way.csv())].count("result") == len(way.steps())
    assert f"{number_text(1.0)}   difference 0" in str(way)
