"""Random expressions, in their JSON form, whose printed form every reader can compute."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

SIZES = {"n": 2, "d_k": 3, "d": 2, "eps": 0.25}
LETTERS = {"i": "n", "c": "d_k", "r": "d"}
SHAPES = {"x": "", "y": "", "B": "i", "G": "ic", "J": "ic"}
FREE = {"i": 1}
NUMBERS = [["num", v] for v in (0.0, 1.0, 2.0, 3.0, 0.5, 1.25, 1.5e-7)]
POWERS = [["num", 2.0], ["num", 3.0], ["num", 1.0], ["neg", ["num", 2.0]], ["scalar", "d_k"]]
WEIGHTS = {
    "leaf": 1,
    "add": 2,
    "mul": 2,
    "neg": 2,
    "div": 2,
    "pow": 1,
    "exp": 1,
    "sqrt": 1,
    "pick": 1,
    "fn": 1,
    "cond": 1,
}
WEIGHTS |= {"iverson": 1, "reduce": 3, "lse": 1}
KINDS = [kind for kind, weight in WEIGHTS.items() for _ in range(weight)]

Json = list[Any]


class Drawer:
    """Draws one expression; letters in ``scope`` may index cells, the others may be bound."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def one_of(self, options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def leaf(self, scope: str) -> Json:
        readable = [name for name, axes in SHAPES.items() if name != "J" and set(axes) <= set(scope)]
        cells = [["ref", name, "", [["idx", letter] for letter in SHAPES[name]]] for name in readable]
        return self.one_of([*NUMBERS, *cells, *cells, ["const", "pi"], ["scalar", "d_k"], ["scalar", "eps"]])

    def several(self, scope: str, depth: int) -> list[Json]:
        return [self.tree(scope, depth) for _ in range(self.one_of([2, 2, 3]))]

    def tree(self, scope: str, depth: int) -> Json:
        kind = self.one_of(KINDS) if depth else "leaf"
        match kind:
            case "leaf":
                return self.leaf(scope)
            case "reduce" | "lse":
                return self.reduction(kind, scope, depth - 1)
            case "cond":
                return ["cond", self.test(scope, depth - 1), self.tree(scope, depth - 1), self.tree(scope, depth - 1)]
            case "iverson":
                return ["cond", self.test(scope, depth - 1), ["num", 1.0], ["num", 0.0]]
            case "add" | "mul":
                return [kind, *self.several(scope, depth - 1)]
            case "pick":
                return ["fn", self.one_of(["min", "max"]), *self.several(scope, depth - 1)]
            case "neg":
                return ["neg", self.tree(scope, depth - 1)]
            case "div":
                return ["div", self.tree(scope, depth - 1), self.tree(scope, depth - 1)]
            case "pow":
                return ["pow", self.tree(scope, depth - 1), self.one_of(POWERS)]
            case "exp":
                return ["fn", "exp", ["fn", "sin", self.tree(scope, depth - 1)]]
            case "sqrt":
                return ["fn", "sqrt", ["fn", "abs", self.tree(scope, depth - 1)]]
            case _:
                return ["fn", self.one_of(["tanh", "sin", "cos", "erf", "abs"]), self.tree(scope, depth - 1)]

    def reduction(self, kind: str, scope: str, depth: int) -> Json:
        free = [letter for letter in "cr" if letter not in scope]
        if not free:
            return self.leaf(scope)
        letter = self.one_of(free)
        loops = [[letter, LETTERS[letter]]]
        body = self.tree(scope + letter, depth)
        if kind == "lse":
            return ["fn", "ln", ["reduce", "sum", ["fn", "exp", ["fn", "sin", body]], loops, None]]
        where = self.test(scope + letter, depth) if self.one_of([False, False, True]) else None
        return ["reduce", self.one_of(["sum", "sum", "mean", "max"]), body, loops, where]

    def test(self, scope: str, depth: int) -> Json:
        """A condition that does not hang on the last digit of anything computed."""
        kind = self.one_of(["compare", "compare", "table", "not", "and", "or"] if depth else ["compare", "table"])
        if kind in ("and", "or"):
            return ["bool", kind, *(self.test(scope, depth - 1) for _ in range(self.one_of([2, 3])))]
        if kind == "not":
            return ["bool", "not", self.test(scope, depth - 1)]
        if kind == "table" and "c" in scope:
            return ["ref", "J", "", [["idx", "i"], ["idx", "c"]]]
        return ["cmp", self.one_of(["<", "<=", ">", ">="]), self.side(scope), self.side(scope)]

    def side(self, scope: str) -> Json:
        a = self.leaf(scope)
        return self.one_of([a, ["neg", a], ["add", a, ["neg", self.leaf(scope)]]])


@st.composite
def expressions(draw: Any, depth: int = 3) -> Json:
    """Expressions of every node kind with the letter ``i`` free."""
    return Drawer(draw).tree("i", depth)


def nested_pairs() -> list[Json]:
    """Every kind of node with every kind in each of its places, the other places holding leaves."""
    x, y, two, cell = ["ref", "x", "", []], ["ref", "y", "", []], ["num", 2.0], ["ref", "B", "", [["idx", "i"]]]
    simple = [x, two, ["scalar", "d_k"], *(build(x, y) for build in _BUILDERS)]
    pairs = [build(inner, cell) for build in _BUILDERS for inner in simple]
    pairs += [build(cell, inner) for build in _BUILDERS for inner in simple]
    pairs = [pair for pair in pairs if not _binds_twice(pair, "")]
    tests = [["cmp", op, a, b] for op in ("<", "<=", ">", ">=") for a, b in ((x, y), (y, x), (x, x), (["neg", x], y))]
    joined = [["bool", op, a, b] for op in ("and", "or") for a in tests[:6] for b in tests[3:9]]
    deeper = [["bool", op, a, b] for op in ("and", "or") for a in joined[::5] for b in [*tests[:3], *joined[::11]]]
    conditions = [*tests, *joined, *deeper, *(["bool", "not", t] for t in (*tests[:4], *joined, *deeper[::3]))]
    return [
        *pairs,
        *(["cond", t, ["num", 1.0], ["num", 0.0]] for t in conditions),
        *(["cond", t, x, y] for t in conditions),
    ]


def _binds_twice(data: Any, bound: str) -> bool:
    """Whether a reduction stands inside another over the same letter, which the language refuses."""
    if not isinstance(data, list):
        return False
    if data and data[0] == "reduce":
        letter = data[3][0][0]
        return letter in bound or any(_binds_twice(part, bound + letter) for part in data)
    return any(_binds_twice(part, bound) for part in data)


_OVER_C = [["c", "d_k"]]
_G = ["ref", "G", "", [["idx", "i"], ["idx", "c"]]]
_J = ["ref", "J", "", [["idx", "i"], ["idx", "c"]]]
_BUILDERS = (
    lambda a, b: ["add", a, b],
    lambda a, b: ["add", a, ["neg", b]],
    lambda a, b: ["add", ["neg", a], b, a],
    lambda a, b: ["mul", a, b],
    lambda a, b: ["mul", b, a, b],
    lambda a, b: ["mul", ["neg", a], b],
    lambda a, b: ["neg", a],
    lambda a, b: ["div", a, b],
    lambda a, b: ["div", ["neg", a], b],
    lambda a, b: ["pow", a, ["num", 2.0]],
    lambda a, b: ["pow", ["num", 2.0], b],
    lambda a, b: ["pow", ["fn", "exp", a], ["num", 2.0]],
    lambda a, b: ["fn", "exp", a],
    lambda a, b: ["fn", "sqrt", ["fn", "abs", a]],
    lambda a, b: ["fn", "tanh", a],
    lambda a, b: ["fn", "min", a, b],
    lambda a, b: ["cond", ["cmp", "<", ["ref", "x", "", []], ["ref", "y", "", []]], a, b],
    lambda a, b: ["cond", ["cmp", ">", a, b], a, b],
    lambda a, b: ["cond", ["cmp", ">", a, b], ["num", 1.0], ["num", 0.0]],
    lambda a, b: ["reduce", "sum", ["add", _G, a], _OVER_C, None],
    lambda a, b: ["reduce", "sum", a, [["r", "d"]], None],
    lambda a, b: ["reduce", "sum", ["mul", _G, a], _OVER_C, _J],
    lambda a, b: ["reduce", "mean", ["mul", a, _G], _OVER_C, None],
    lambda a, b: ["reduce", "max", ["mul", a, _G], _OVER_C, None],
    lambda a, b: ["fn", "ln", ["reduce", "sum", ["fn", "exp", a], [["r", "d"]], None]],
)
