"""One-token mutations of Python source: what a slip of the pen would leave, found by walking the syntax tree.

A *site* is a token (or an argument) outside docstrings, annotations, imports, messages and the texts of definitions,
with everything that might have been written there instead. ``sample`` picks sites by a hash of the line they stand on,
so that a change of one line changes the choice on that line only.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

Scope: TypeAlias = frozenset[str]

OPERATORS: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.Pow: ("**", "*"),
    ast.MatMult: ("@", "*"), ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"), ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
UNARY: Mapping[type[ast.AST], str] = {ast.Not: "not", ast.Invert: "~", ast.USub: "-"}
METHODS: Mapping[str, str] = {
    "sum": "mean", "mean": "sum", "sin": "cos", "cos": "sin", "any": "all", "all": "any", "sqrt": "square",
    "softmax": "log_softmax", "logsumexp": "sum", "zeros": "ones", "ones": "zeros", "fill_": "mul_",
}  # fmt: skip
KINDS = ("operator", "constant", "name", "argument")
"""What is changed: a comparison is an operator, an axis a constant; names are those of the same scope."""

MESSAGES = frozenset({"UserError", "ValueError"})
DECLARATIONS = frozenset({"quantity"})


@dataclass(frozen=True)
class Edit:
    """Bytes ``start`` to ``end`` of a file replaced by ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Site:
    """A place with everything that might have been written there; ``kind`` is one of ``KINDS``."""

    kind: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Mutant:
    """``before`` and ``after`` are the line (without indentation) on which the edit begins."""

    file: str
    before: str
    after: str
    source: str = field(repr=False, compare=False)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.before, self.after


def sample(files: Mapping[str, str], count: int, seed: int) -> list[Mutant]:
    """``count`` mutants of ``files`` (source by name), at most one a site and as many of each of ``KINDS``."""
    ranked: dict[str, list[tuple[str, str, Site]]] = {kind: [] for kind in KINDS}
    for name, source in files.items():
        raw, seen = source.encode(), dict[str, int]()
        for site in sites(source):
            line = _line_at(raw, site.edits[0].start)
            twin = seen[line] = seen.get(line, -1) + 1
            ranked[site.kind].append((_hash(f"{seed}|{name}|{line}|{twin}"), name, site))
    chosen = []
    for found in ranked.values():
        made = (_first_that_compiles(name, files[name], rank, site) for rank, name, site in sorted(found, key=_rank))
        chosen += itertools.islice((m for m in made if m is not None), count // len(KINDS))
    return chosen


def _rank(found: tuple[str, str, Site]) -> str:
    return found[0]


def _first_that_compiles(name: str, source: str, rank: str, site: Site) -> Mutant | None:
    for edit in sorted(site.edits, key=lambda e: _hash(f"{rank}|{e.text}|{e.end - e.start}")):
        made = mutant(name, source, edit)
        try:
            compile(made.source, name, "exec", dont_inherit=True)
        except SyntaxError:
            continue
        return made
    return None


def mutant(name: str, source: str, edit: Edit) -> Mutant:
    """``source`` with ``edit`` made."""
    raw = source.encode()
    changed = raw[: edit.start] + edit.text.encode() + raw[edit.end :]
    return Mutant(name, _line_at(raw, edit.start), _line_at(changed, edit.start), changed.decode())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _line_at(raw: bytes, offset: int) -> str:
    # Dropping the only token of a line leaves the next one at its place.
    end = raw.find(b"\n", offset)
    return raw[raw.rfind(b"\n", 0, offset) + 1 : end if end >= 0 else len(raw)].decode().strip()


def sites(source: str) -> list[Site]:
    """All sites of ``source``, each with at least one edit, which need not leave source that compiles."""
    walker = _Walker(source)
    walker.visit(ast.parse(source))
    return walker.found


class _Walker(ast.NodeVisitor):
    """Collects sites; ``locals`` and ``members`` are the names that could be confused with one another here."""

    def __init__(self, source: str) -> None:
        self.raw = source.encode()
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Site] = []
        self.locals: Scope = frozenset()
        self.members: Scope = frozenset()

    def span(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def offer(self, kind: str, start: int, end: int, *texts: str) -> None:
        edits = tuple(Edit(start, end, text) for text in texts if text.encode() != self.raw[start:end])
        if edits:
            self.found.append(Site(kind, edits))

    def between(self, left: ast.expr, right: ast.expr, operator: ast.AST) -> None:
        """The operator that stands somewhere between two operands, perhaps beside parentheses."""
        if type(operator) not in OPERATORS:
            return
        old, new = OPERATORS[type(operator)]
        start = self.raw.find(old.encode(), self.span(left)[1], self.span(right)[0])
        if start >= 0:
            self.offer("operator", start, start + len(old), new)

    # --- what is left alone -------------------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None: ...

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_Raise(self, node: ast.Raise) -> None: ...

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {t.id for t in node.targets if isinstance(t, ast.Name)}
        # Aliases of types are annotations.
        if ("__all__" not in names and not isinstance(node.value, ast.Subscript | ast.Name)) or self.locals:
            self.visit(node.value)

    # --- scopes -------------------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before = self.members
        self.members = frozenset(
            x.attr
            for x in ast.walk(node)
            if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name) and x.value.id == "self"
        )
        for statement in node.body:
            self.visit(statement)
        self.members = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        before = self.locals
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        stored = {x.id for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
        self.locals = before | {a.arg for a in arguments} - {"self", "cls"} | stored
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self.locals = before

    # --- what is changed ----------------------------------------------------------------------------------------------

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.between(node.left, node.right, node.op)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in itertools.pairwise(node.values):
            self.between(left, right, node.op)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for (left, right), operator in zip(itertools.pairwise([node.left, *node.comparators]), node.ops, strict=True):
            self.between(left, right, operator)
        words = [x for x in ast.walk(node) if isinstance(x, ast.Constant) and isinstance(x.value, str)]
        for word in words:
            self.offer("constant", *self.span(word), '"other"')
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if type(node.op) in UNARY:
            start, old = self.span(node)[0], UNARY[type(node.op)]
            self.offer("operator", start, start + len(old), "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        match node.value:
            case bool(x):
                self.offer("constant", *self.span(node), str(not x))
            case int(x):
                self.offer("constant", *self.span(node), str(x + 1), str(x - 1))
            case float(x):
                self.offer("constant", *self.span(node), repr(x + 1), repr(2 * x))

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id in self.locals:
            self.offer("name", *self.span(node), *sorted(self.locals - {node.id}))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load):
            end = self.span(node)[1]
            start = end - len(node.attr.encode())
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                self.offer("name", start, end, *sorted(self.members - {node.attr}))
            elif node.attr in METHODS:
                self.offer("name", start, end, METHODS[node.attr])
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in MESSAGES:
            return
        if name in DECLARATIONS:
            for keyword in node.keywords:
                self.visit(keyword.value)
            return
        arguments = [*node.args, *node.keywords]
        for k, argument in enumerate(arguments):
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                self.offer("argument", *self.dropped(arguments, k), "")
        self.generic_visit(node)

    def dropped(self, arguments: list[ast.expr | ast.keyword], k: int) -> tuple[int, int]:
        """From where to where argument ``k`` goes, with one of the commas beside it."""
        start, end = self.span(arguments[k])
        if k + 1 < len(arguments):
            return start, self.span(arguments[k + 1])[0]
        return (self.span(arguments[k - 1])[1], end) if k else (start, end)


def package_files(folder: Path) -> dict[str, str]:
    """The modules directly in ``folder`` that compute something, by name."""
    idle = {"__init__.py", "shapes.py"}
    return {path.name: path.read_text(encoding="utf-8") for path in _modules(folder) if path.name not in idle}


def _modules(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.glob("*.py")))
