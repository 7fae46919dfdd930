"""From groups to a program: names, absence, order, names for readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from decoders import CONFIGS
from glassformer.errors import UserError
from glassformer.model import definitions
from glassformer.notation import (
    Group,
    Kind,
    NotationError,
    Program,
    Quantity,
    build_program,
    group,
    place,
    quantity,
)
from glassformer.notation.compose import prune
from glassformer.notation.parse import parse_expression

from .source_text import source_text

SCALARS = {"n": 3, "n_k": 3, "d": 4, "d_ff": 5, "d_k": 2, "H": 1, "eps": 0.1}


def q(name: str, text: str, kind: Kind = Kind.INTERMEDIATE, *, folded: bool = False) -> Quantity:
    return quantity(name, name, name, name, kind, text, folded=folded)


INPUT = group("input", q("X", "X[i,r]", Kind.PARAMETER))
AFFINE = group(
    "affine",
    q("W", "W[r,f]", Kind.PARAMETER),
    q("b", "b[f]", Kind.PARAMETER),
    q("B", """
    B[i,f] = sum(X[i,r]*W[r,f] for r in d) + b[f]
    X.grad[i,r] += sum(B.grad[i,f]*W[r,f] for f in d_ff)
    W.grad[r,f] += sum(X[i,r]*B.grad[i,f] for i in n)
    b.grad[f] += sum(B.grad[i,f] for i in n)
    """),
)  # fmt: skip
LOSS = group("loss", q("L", """
    L = sum(Y[i,f] for i in n for f in d_ff)
    Y.grad[i,f] += L.grad
"""))  # fmt: skip


def program(**bind: str | None) -> Program:
    return build_program(
        [
            place(INPUT, "in"),
            place(AFFINE, "layers.0.ffn", layer=0, X="in.X", **bind),
            place(LOSS, "loss", Y="layers.0.ffn.B"),
        ],
        SCALARS,
        {"out": "layers.0.ffn.B"},
    )


def written(p: Program) -> list[str]:
    """Every statement as text."""
    texts = []
    for s in p.statements:
        face, letters = f".{s.face}" if s.face else "", f"[{','.join(a for a, _ in s.letters)}]" if s.letters else ""
        texts.append(f"{s.target}{face}{letters} {'+=' if s.adds else '='} {source_text(s.expr)}")
    return texts


def test_names_of_a_group_become_ids_and_outside_names_are_what_they_are_bound_to() -> None:
    p = program()
    assert set(p.quantities) == {"in.X", "layers.0.ffn.W", "layers.0.ffn.b", "layers.0.ffn.B", "loss.L"}
    assert written(p) == [
        "layers.0.ffn.B[i,f] = sum(in.X[i,r]*layers.0.ffn.W[r,f] for r in d) + layers.0.ffn.b[f]",
        "loss.L = sum(layers.0.ffn.B[i,f] for i in n for f in d_ff)",
        "layers.0.ffn.B.grad[i,f] += loss.L.grad",
        "in.X.grad[i,r] += sum(layers.0.ffn.B.grad[i,f]*layers.0.ffn.W[r,f] for f in d_ff)",
        "layers.0.ffn.W.grad[r,f] += sum(in.X[i,r]*layers.0.ffn.B.grad[i,f] for i in n)",
        "layers.0.ffn.b.grad[f] += sum(layers.0.ffn.B.grad[i,f] for i in n)",
    ]


def test_an_absent_quantity_vanishes_from_sums_with_its_statements() -> None:
    p = program(b=None)
    assert "layers.0.ffn.b" not in p.quantities
    assert written(p)[0] == "layers.0.ffn.B[i,f] = sum(in.X[i,r]*layers.0.ffn.W[r,f] for r in d)"
    assert not [text for text in written(p) if ".b" in text]


def test_a_dimension_can_be_bound() -> None:
    scores = group(
        "scores", q("S", "S[i,j] = sum(X[i,r]*M[j,r] for r in d)"), q("Z", "Z[i] = sum(S[i,j] for j in n_k)")
    )
    p = build_program([place(INPUT, "in"), place(scores, "s", X="in.X", M="in.X", n_k="n")], SCALARS)
    assert p.quantities["s.S"].axes == (("i", "n"), ("j", "n"))
    assert written(p)[1] == "s.Z[i] = sum(s.S[i,j] for j in n)"
    with pytest.raises(NotationError, match=r"in\.X axis i \(n\) read with j \(n_k\)"):
        build_program([place(INPUT, "in"), place(scores, "s", X="in.X", M="in.X")], SCALARS)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a + x", "a"),
        ("x + a", "a"),
        ("a - x", "a"),
        ("x - a", "-a"),
        ("a*x", "a"),
        ("a + x*b", "a + b"),
        ("a + sum(x[i]*b for i in n)", "a + sum(b for i in n)"),
        ("a + sum(x[i] for i in n)", "a"),
        ("a + x/b", "a"),
        ("a + x**2", "a"),
        ("a*exp(b) + x", "a*exp(b)"),
        ("x", None),
        ("x + x", None),
        ("-x", None),
        ("a + b", "a + b"),
    ],
)
def test_absence_drops_terms_and_factors(text: str, left: str | None) -> None:
    kept = prune(parse_expression(text), frozenset({"x"}))
    assert (None if kept is None else source_text(kept)) == left


@pytest.mark.parametrize(
    "text", ["a/x", "exp(x)", "a**x", "a + (x if b else 0)", "a[x]", "1 if x > a else 0", "sum(a for i in n if x[i])"]
)
def test_an_absent_quantity_that_is_needed_is_an_error(text: str) -> None:
    with pytest.raises(NotationError, match=r"an absent quantity \(x\) is needed"):
        prune(parse_expression(text), frozenset({"x"}))


def test_a_quantity_of_which_nothing_is_left_is_an_error() -> None:
    alone = group("alone", q("Y", "Y[i,r] = X[i,r]"))
    with pytest.raises(NotationError, match="nothing is left of Y at here: everything in it is absent"):
        build_program([place(alone, "here", X=None)], SCALARS)


# --- what a program refuses


BASE = (
    q("X", "X[i,r]", Kind.PARAMETER),
    q("W", "W[r,f]", Kind.PARAMETER),
    q("K", "K[i,c]", Kind.PARAMETER),
    q("t", "t[i]", Kind.INPUT),
    q("pos", "pos[i] = i", Kind.CONSTANT),
    q("b", "b[i]", Kind.PARAMETER),
    q("S", "S[i,j] = 0 if j <= i else -inf"),
)


def build_with(text: str) -> Program:
    """``BASE`` and a quantity D with this text."""
    return build_program([place(group("test", *BASE, q("D", text)), "p", n_k="n")], SCALARS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("D[i,f] = sum(X[i,r]*W[f,r] for r in d)", r"p.W axis r \(d\) read with f \(d_ff\)"),
        ("D[i,c] = sum(X[i,c]*K[i,c] for r in d)", r"p.X axis r \(d\) read with c \(d_k\)"),
        ("D[i] = X[i,r]", "letter r is free on the right and missing on the left"),
        ("D[i] = sum(X[i,r] for r in d)*r", "letter r is free on the right and missing on the left"),
        ("D[i] = b[i] if j <= i else 0", "letter j is free on the right and missing on the left"),
        ("D[i] = X[i]", "p.X has 2 axes, read with 1"),
        ("D[i] = b", "p.b has 1 axes, read with 0"),
        ("D[i,r] = sum(X[i,r] for r in d)", "letter r is bound twice"),
        ("D[i] = sum(X[i,r] for r in d for r in d)", "letter r is bound twice"),
        ("D[i] = sum(X[i,r]*sum(X[i,r] for r in d) for r in d)", "letter r is bound twice"),
        ("D[i,r] = X[b[i],r]", "p.X is looked up with something that is not an integer table"),
        ("D[i,r] = X[i+1,r]", "p.X is looked up with something that is not an integer table"),
        ("D[i,r] = X[0,r]", "p.X is looked up with something that is not an integer table"),
        ("D[r] = X[t[r],r]", r"p.t axis i \(n\) read with r \(d\)"),
        ("D[i] = b[i]\nX.grad[i,f] += D.grad[i]*W[r,f]", r"p.X has axes .* written with"),
        ("D[i] = b[i]\nX.grad[i] += D.grad[i]", r"p.X has axes .* written with"),
        ("D[i] = b[i]\nb.grad[r] += D.grad[r]", r"p.b has axes .* written with"),
        ("D[i] = Y[i]", "test.D at p speaks of 'Y', which is not bound"),
        ("D[i] = b[i]\nY.grad[i] += D.grad[i]", "test.D at p speaks of 'Y', which is not bound"),
        ("D[i] = exp(b[i])", "exp outside a stable pattern overflows silently"),
        ("D[i] = 1 + ln(exp(b[i]))", "exp outside a stable pattern overflows silently"),
        ("D[i,r] = exp(X[i,r])/sum(exp(2*X[i,q]) for q in d)", "exp outside a stable pattern overflows silently"),
        ("D[i,r] = exp(X[i,r])/sum(exp(X[i,q]) for q in d if q <= r)", "exp outside a stable pattern"),
        ("D[i,j] = 2*S[i,j]", "p.S can be infinite, so only exp, max and comparisons may read it"),
        ("D[i] = sum(S[i,m]*b[i] for m in n_k)", "p.S can be infinite, so only exp, max and comparisons may read it"),
        ("D[i,j] = exp(S[i,j] - b[i])/sum(exp(S[i,m] - b[i]) for m in n_k)", "p.S can be infinite"),
        ("D[i] = D[i] + 1", "a cycle of definitions: p.D -> p.D"),
        ("E[i] = 1", "the text of D must begin with its own declaration or definition"),
        ("D.grad[i] += 1", "the text of D must begin with its own declaration or definition"),
        ("D[i] += 1", "the text of D must begin with its own declaration or definition"),
        ("", "the text of D must begin with its own declaration or definition"),
        ("D[i] = b[i]\nD[i] = 2*b[i]", "may only add to gradients"),
        ("D[i] = b[i]\nb[i] = 2", "may only add to gradients"),
        ("D[i] = b[i]\nb.grad[i] = D.grad[i]", "may only add to gradients"),
        ("D[i] = b[i]\nb.new[i] += D.grad[i]", "may only add to gradients"),
        ("D[i] = b[i]\nX[i,r]", "may only add to gradients"),
    ],
)
def test_a_definition_that_breaks_a_rule_is_refused(text: str, message: str) -> None:
    with pytest.raises(NotationError, match=message):
        build_with(text)


@pytest.mark.parametrize(
    "text",
    [
        "D[i,r] = exp(X[i,r])/sum(exp(X[i,q]) for q in d)",
        "D[i,j] = exp(S[i,j])/sum(exp(S[i,m]) for m in n_k)",
        "D[i] = ln(sum(exp(X[i,r]) for r in d))",
        "D[i] = max(S[i,j] for j in n_k)",
        "D[i,j] = 1 if S[i,j] > 0 else 0",
        "D[i] = 1/(1 + exp(-b[i]))",
        "D[i] = exp(-b[i]**2/2)",
        "D[i,r] = X[i,r] + W[t[i],pos[i]]*0",
        "D[i] = sum(X[i,r] for r in d)*sum(X[i,r] for r in d)",
    ],
)
def test_a_definition_that_keeps_the_rules_is_accepted(text: str) -> None:
    assert build_with(text).definition("p.D") is not None


def test_a_refusal_says_where_the_statement_stands() -> None:
    bad = quantity("D", "D", "d", "d", Kind.INTERMEDIATE, """
    D[i] = 1

    Y.grad[i] += D.grad[r]
    """)  # fmt: skip
    line = bad.line + 3
    with pytest.raises(NotationError, match=rf"\(in p\.Y\.grad, .*{Path(__file__).name}:{line}\)"):
        build_program([place(group("g", bad, q("Y", "Y[i] = 1")), "p")], SCALARS)


def test_a_cycle_through_several_definitions_is_named() -> None:
    ring = group("ring", q("A", "A[i] = B[i]"), q("B", "B[i] = C[i] + 1"), q("C", "C[i] = 2*A[i]"))
    with pytest.raises(NotationError, match=r"a cycle of definitions: p\.A -> p\.B -> p\.C -> p\.A"):
        build_program([place(ring, "p")], SCALARS)


def test_two_things_with_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="group 'twice' declares 'A' twice"):
        group("twice", q("A", "A[i]"), q("A", "A[i]"))
    with pytest.raises(NotationError, match=r"in\.X is declared twice"):
        build_program([place(INPUT, "in"), place(INPUT, "in")], SCALARS)


# --- order


def test_definitions_follow_what_they_read_and_contributions_come_in_the_opposite_order() -> None:
    def step(name: str, reads: str) -> Group:
        return group(name, q(name, f"{name}[i,r] = {reads}[i,r]\n{reads}.grad[i,r] += {name}.grad[i,r]"))

    parts = [place(INPUT, "in"), place(step("B", "A"), "b", A="a.A"), place(step("C", "B"), "c", B="b.B"),
             place(step("A", "X"), "a", X="in.X")]  # fmt: skip
    p = build_program(parts, SCALARS)
    assert [s.target for s in p.forward] == ["a.A", "b.B", "c.C"]
    assert [(s.target, s.consumer) for s in p.backward] == [("b.B", "c.C"), ("a.A", "b.B"), ("in.X", "a.A")]


# --- questions to a program


def test_definitions_and_contributions_are_found_by_id() -> None:
    p = program()
    definition = p.definition("loss.L")
    assert definition is not None
    assert definition.target == "loss.L"
    assert p.definition("in.X") is None
    assert [s.consumer for s in p.contributions("layers.0.ffn.B")] == ["loss.L"]
    assert p.contributions("loss.L") == ()
    assert p.shape("layers.0.ffn.W") == (4, 5)
    assert p.shape("loss.L") == ()
    assert p.with_scalars(d_ff=9, eta=0.1).shape("layers.0.ffn.W") == (4, 9)
    assert p.shape("layers.0.ffn.W") == (4, 5)
    assert p.layers == 1


def test_every_statement_knows_the_line_on_which_it_is_written() -> None:
    model = definitions(CONFIGS["everything"], 3)
    for s in model.statements:
        line = Path(s.quantity.file).read_text(encoding="utf-8").splitlines()[s.line - 1]
        short = {name for name, id in model.quantities[s.consumer].names.items() if id == s.target}
        face = f".{s.face}" if s.face else ""
        assert any(line.startswith(f"{name}{face}") for name in short), f"{s.quantity.file}:{s.line}"


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("W", "layers.0.ffn.W"),
        ("ffn.W", "layers.0.ffn.W"),
        ("layers.0.ffn.W", "layers.0.ffn.W"),
        ("out", "layers.0.ffn.B"),
        ("L", "loss.L"),
    ],
)
def test_a_name_is_an_id_an_alias_or_an_unambiguous_end(name: str, id: str) -> None:
    assert program().resolve(name) == id


def twins() -> Program:
    two = [place(AFFINE, f"layers.{k}.ffn", layer=k, X="in.X") for k in range(2)]
    return build_program([place(INPUT, "in"), *two], SCALARS, {"final": "layers.1.ffn.B"})


@pytest.mark.parametrize(
    ("name", "fact", "advice"),
    [
        ("V", 'There is no quantity "V".', "Known are: "),
        ("layers.0.ffn.W1", "There is no quantity", 'Did you mean "layers.0.ffn.W"'),
        ("finla", "There is no quantity", '"final"'),
        ("", 'There is no quantity "".', ""),
        ("W", '"W" is the name of 2 quantities.', "They are layers.0.ffn.W, layers.1.ffn.W."),
        ("ffn.b", '"ffn.b" is the name of 2 quantities.', "Give one of these ids. Or say which layer: --layer 0"),
    ],
)
def test_an_unknown_or_ambiguous_name_is_refused_with_advice(name: str, fact: str, advice: str) -> None:
    with pytest.raises(UserError) as refusal:
        twins().resolve(name)
    assert fact in refusal.value.fact
    assert advice in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("W", ("layers.0.ffn.W", "", None)),
        ("W.grad", ("layers.0.ffn.W", "grad", None)),
        ("W.grad[1,0]", ("layers.0.ffn.W", "grad", (1, 0))),
        (" W.new [ 3 , 4 ] ", ("layers.0.ffn.W", "new", (3, 4))),
        ("out.after[2,0]", ("layers.0.ffn.B", "after", (2, 0))),
        ("L", ("loss.L", "", None)),
        ("L[]", ("loss.L", "", ())),
        ("layers.0.ffn.b[4]", ("layers.0.ffn.b", "", (4,))),
    ],
)
def test_a_reference_names_a_quantity_a_face_and_perhaps_a_cell(text: str, reference: tuple) -> None:
    assert program().reference(text) == reference


def test_the_head_may_be_left_out_when_there_is_one() -> None:
    heads = group("heads", q("Q", "Q[h,i,c]", Kind.PARAMETER), q("A", "A[h]", Kind.PARAMETER))
    p = build_program([place(heads, "p")], SCALARS)
    assert p.reference("Q[2,1]") == ("p.Q", "", (0, 2, 1))
    assert p.reference("Q[0,2,1]") == ("p.Q", "", (0, 2, 1))
    assert p.reference("A[]") == ("p.A", "", (0,))
    with pytest.raises(UserError, match="has 3 axes, not 2"):
        p.with_scalars(H=2).reference("Q[2,1]")


@pytest.mark.parametrize(
    ("text", "fact", "context", "next_step"),
    [
        ("W.grad[1]", "layers.0.ffn.W has 2 axes, not 1.", "r of 4, f of 5", "layers.0.ffn.W.grad[0,0]"),
        ("W[]", "layers.0.ffn.W has 2 axes, not 0.", "r of 4, f of 5", ""),
        ("L[0]", "loss.L has 0 axes, not 1.", "none", ""),
        ("W[4,0]", "Index 4 is out of range for axis r of layers.0.ffn.W.", "4 cells", "0 to 3"),
        ("W[0,-1]", "Index -1 is out of range for axis f of layers.0.ffn.W.", "5 cells", "0 to 4"),
        ("W[a,0]", '"a,0" is not a list of indices.', "whole numbers", ""),
        ("W[0.5,0]", '"0.5,0" is not a list of indices.', "whole numbers", ""),
        ("W[0,0", '"W[0,0" does not name a quantity or a cell.', "", "layers.0.ffn.B[0,0]."),
        ("W grad", '"W grad" does not name a quantity or a cell.', "", ""),
        ("W[0][0]", "does not name a quantity or a cell", "", ""),
        ("V[0,0]", 'There is no quantity "V".', "", ""),
        ("W.gard[0,0]", 'There is no quantity "W.gard".', "", 'Did you mean "W.grad"'),
    ],
)
def test_a_reference_that_means_nothing_is_refused(text: str, fact: str, context: str, next_step: str) -> None:
    with pytest.raises(UserError) as refusal:
        program().reference(text)
    assert fact in refusal.value.fact
    assert context in refusal.value.context
    assert next_step in refusal.value.next_step
