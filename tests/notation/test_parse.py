"""The surface of the language: what it reads, what it refuses, and that nothing is lost on the way."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.notation import NotationError, parse_expression, parse_lines
from glassformer.notation.tree import (
    Add,
    Bool,
    Cmp,
    Cond,
    Const,
    Div,
    Expr,
    Fn,
    Idx,
    Mul,
    Neg,
    Num,
    Pow,
    Reduce,
    Ref,
    Scalar,
    from_json,
    to_json,
    walk,
)

from .source_text import source_text

i, j, c = Idx("i"), Idx("j"), Idx("c")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("3", Num(3.0)),
        ("0.5", Num(0.5)),
        ("1e-5", Num(1e-5)),
        ("pi", Const("pi")),
        ("-inf", Neg(Const("inf"))),
        ("d_k", Scalar("d_k")),
        ("eps", Scalar("eps")),
        ("i", i),
        ("count", Ref("count", "", ())),
        ("L.grad", Ref("L", "grad", ())),
        ("S.grad[i,j]", Ref("S", "grad", (i, j))),
        ("b[i]", Ref("b", "", (i,))),
        ("E[t[i],r]", Ref("E", "", (Ref("t", "", (i,)), Idx("r")))),
        ("x - y", Add((Ref("x", "", ()), Neg(Ref("y", "", ()))))),
        ("x + y - c", Add((Ref("x", "", ()), Ref("y", "", ()), Neg(c)))),
        ("x + (y + i)", Add((Ref("x", "", ()), Add((Ref("y", "", ()), i))))),
        ("i*j*c", Mul((i, j, c))),
        ("i*(j*c)", Mul((i, Mul((j, c))))),
        ("i*j/c", Div(Mul((i, j)), c)),
        ("i/j*c", Mul((Div(i, j), c))),
        ("-i**2", Neg(Pow(i, Num(2.0)))),
        ("-i*j", Mul((Neg(i), j))),
        ("i**-2", Pow(i, Neg(Num(2.0)))),
        ("min(i, j, c)", Fn("min", (i, j, c))),
        ("i <= j", Cmp("<=", i, j)),
        ("not i == j and c > 0", Bool("and", (Bool("not", (Cmp("==", i, j),)), Cmp(">", c, Num(0.0))))),
        ("i if c else j if i else c", Cond(c, i, Cond(i, j, c))),
        ("sum(i for j in n_k)", Reduce("sum", i, (("j", "n_k"),))),
        ("mean(i for h in H for c in d_k if i == j)", Reduce("mean", i, (("h", "H"), ("c", "d_k")), Cmp("==", i, j))),
        ("max(i for j in n_k if i if c)", Reduce("max", i, (("j", "n_k"),), Bool("and", (i, c)))),
    ],
)  # fmt: skip
def test_an_expression_reads_as_this_tree(text: str, tree: Expr) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    ("text", "why", "quoted"),
    [
        ("'d_k'", "numbers only", "'d_k'"),
        ("i + True", "numbers only", "True"),
        ("2j", "not part of the language", "2j"),
        ("+i", "not part of the language", "+i"),
        ("i < j < c", "not part of the language", "i < j < c"),
        ("i in n", "not part of the language", "i in n"),
        ("i is j", "not part of the language", "i is j"),
        ("X[0:1]", "not part of the language", "0:1"),
        ("(i, j)", "not part of the language", "(i, j)"),
        ("[i for i in n]", "not part of the language", "[i for i in n]"),
        ("lambda: 0", "not part of the language", "lambda: 0"),
        ("(a := 1)", "not part of the language", "a := 1"),
        ("exp(x=i)", "not part of the language", "exp(x=i)"),
        ("X.grad.exp(i)", "not part of the language", "X.grad.exp(i)"),
        ("1" + "0" * 400, "not part of the language", "000"),
        ("1e999", "not part of the language", "1e999"),
        ("i // j", "the operators are + - * / **", "i // j"),
        ("1 + i % j", "the operators are + - * / **", "i % j"),
        ("i @ j", "the operators are + - * / **", "i @ j"),
        ("S.gard[i,j]", "the faces of a quantity are grad, new, after", "S.gard"),
        ("f(i)[j]", "a quantity is a name, perhaps with a face", "f(i)"),
        ("X.grad.new[i]", "a quantity is a name, perhaps with a face", "X.grad.new"),
        ("log(i)", "the functions are exp, ln,", "log(i)"),
        ("sum(i)", "the functions are exp, ln,", "sum(i)"),
        ("prod(i for i in n)", "the functions are exp, ln,", "prod(i for i in n)"),
        ("exp(i, j)", "wrong number of arguments for exp", "exp(i, j)"),
        ("max(i)", "wrong number of arguments for max", "max(i)"),
        ("sum(i for i in range)", "letter i runs over n, not range", "(i for i in range)"),
        ("sum(i for x in n)", "a reduction runs `for LETTER in DIMENSION`", "(i for x in n)"),
        ("sum(i for i in n_k[j])", "a reduction runs `for LETTER in DIMENSION`", "(i for i in n_k[j])"),
        ("sum(i for i, j in n)", "a reduction runs `for LETTER in DIMENSION`", "(i for i, j in n)"),
        ("sum(i async for i in n)", "a reduction runs `for LETTER in DIMENSION`", "(i async for i in n)"),
        ("sum(i for c in d)", "letter c runs over d_k, not d", "(i for c in d)"),
        ("μ", "names are ASCII", "μ"),
        ("ℓ", "names are ASCII", "ℓ"),  # Python would read l
        ("Ｘ[i]", "names are ASCII", "Ｘ[i]"),  # Python would read X
        ("X[i", "not an expression", "X[i"),
        ("i = j", "not an expression", "i = j"),
        ("", "not an expression", "''"),
    ],
)  # fmt: skip
def test_an_expression_outside_the_language_is_refused_and_quoted(text: str, why: str, quoted: str) -> None:
    with pytest.raises(NotationError) as refusal:
        parse_expression(text)
    assert why in str(refusal.value)
    assert quoted in str(refusal.value).partition(": ")[2] or quoted in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "why", "quoted"),
    [
        ("X[i] -= 1", "a statement is a declaration, `=` or `+=`", "X[i] -= 1"),
        ("X[i] = Y[i] = 1", "a statement is a declaration, `=` or `+=`", "X[i] = Y[i] = 1"),
        ("if i: X[i]", "a statement is a declaration, `=` or `+=`", "if i: X[i]"),
        ("import os", "a statement is a declaration, `=` or `+=`", "import os"),
        ("X[i]: float = 1", "a statement is a declaration, `=` or `+=`", "X[i]: float = 1"),
        ("X[0] = 1", "the left side takes letters of the legend as indices", "X[0]"),
        ("X[z] = 1", "the left side takes letters of the legend as indices", "X[z]"),
        ("X[t[i]] = 1", "the left side takes letters of the legend as indices", "X[t[i]]"),
        ("X[i,j,i] = 1", "a letter appears twice on the left side", "X[i,j,i]"),
        ("X.foo[i] = 1", "the faces of a quantity are grad, new, after", "X.foo"),
        ("(X, Y) = 1", "the left side names a quantity", "(X, Y)"),
        ("f(X)", "the left side names a quantity", "f(X)"),
        ("Xé[i] = 1", "names are ASCII", "Xé[i] = 1"),
        ("X[i] = = 1", "not a definition", "X[i] = = 1"),
        ("1 = X[i]", "not a definition", "1 = X[i]"),
    ],
)  # fmt: skip
def test_a_statement_outside_the_language_is_refused_and_quoted(text: str, why: str, quoted: str) -> None:
    with pytest.raises(NotationError) as refusal:
        parse_lines(text)
    assert why in str(refusal.value)
    assert quoted in str(refusal.value)


def test_a_text_reads_as_its_statements_in_order() -> None:
    declared, defined, contributed = parse_lines("""
    W[r,h,c]
    Q[h,i,c] = 2
    X.grad[i,r] += 3
    """)
    assert (declared.target, declared.face, declared.letters, declared.expr) == ("W", "", ("r", "h", "c"), None)
    assert (defined.target, defined.letters, defined.expr, defined.adds) == ("Q", ("h", "i", "c"), Num(2.0), False)
    assert (contributed.target, contributed.face, contributed.adds) == ("X", "grad", True)


def test_lines_are_counted_from_the_start_of_the_text() -> None:
    text = "\n\n    L\n\n    X[i] = (\n        1 +\n        2\n    )\n    Y[i] += 1\n"
    assert [line.offset for line in parse_lines(text)] == [2, 4, 8]
    assert [line.offset for line in parse_lines("L\nX[i] = 1")] == [0, 1]


def test_a_quantity_without_axes_is_a_bare_name() -> None:
    (line,) = parse_lines("L = sum(nll[i] for i in n)/count")
    assert (line.target, line.letters) == ("L", ())


# Trees of every kind, whether or not they make sense: only their shape matters here.
NAMES = st.sampled_from(["X", "W_Q", "count", "t"])
LOOPS = st.lists(st.sampled_from([("i", "n"), ("j", "n_k"), ("c", "d_k")]), min_size=1, max_size=2).map(tuple)
NUMBERS = st.floats(0, 1e300, allow_subnormal=False).map(Num)
LEAVES = st.one_of(
    NUMBERS,
    st.sampled_from([Const("pi"), Const("inf"), Scalar("d_k"), Scalar("eps"), i, c, Ref("count", "", ())]),
)


def several(part: st.SearchStrategy[Expr], least: int = 2) -> st.SearchStrategy[tuple[Expr, ...]]:
    return st.lists(part, min_size=least, max_size=3).map(tuple)


def nodes(part: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(Ref, NAMES, st.sampled_from(["", "grad", "new", "after"]), several(part, 0)),
        st.builds(Add, several(part)),
        st.builds(Mul, several(part)),
        st.builds(Neg, part),
        st.builds(Div, part, part),
        st.builds(Pow, part, part),
        st.builds(Fn, st.sampled_from(["exp", "sqrt", "erf"]), part.map(lambda x: (x,))),
        st.builds(Fn, st.sampled_from(["min", "max"]), several(part)),
        st.builds(Cmp, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), part, part),
        st.builds(Bool, st.sampled_from(["and", "or"]), several(part)),
        st.builds(lambda x: Bool("not", (x,)), part),
        st.builds(Cond, part, part, part),
        st.builds(Reduce, st.sampled_from(["sum", "mean", "max"]), part, LOOPS, st.none() | part),
    )


TREES = st.recursive(LEAVES, nodes, max_leaves=12)


@given(TREES)
def test_a_tree_survives_the_journey_through_json(tree: Expr) -> None:
    assert from_json(json.loads(json.dumps(to_json(tree)))) == tree


@given(TREES)
def test_a_tree_written_as_text_reads_back_as_itself(tree: Expr) -> None:
    # What reading cannot give: a sum that begins with a sum, or a product with a product (`(a + b) + c` is one sum).
    nested = [
        node
        for node in walk(tree)
        if (isinstance(node, Add) and isinstance(node.terms[0], Add))
        or (isinstance(node, Mul) and isinstance(node.factors[0], Mul))
    ]
    if not nested:
        assert parse_expression(source_text(tree)) == tree


@pytest.mark.parametrize("data", [["mystery", 1], ["Num", 1.0], ["", []]])
def test_json_with_an_unknown_node_is_refused(data: list) -> None:
    with pytest.raises(ValueError, match="unknown node"):
        from_json(data)
