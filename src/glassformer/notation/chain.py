"""Derivations as checked chains: from the chain rule to the line that the model uses.

A chain begins with what mechanical differentiation makes of a forward definition and ends with the gradient line
itself. Neither is typed here: both are taken from the program. The steps between are typed in the language of
definitions, each with the reason why it equals the line above. A reason is a *rule*, which holds whatever the operands
are, or a *condition*: the step relies on some quantities being what their definitions say (``p`` is the softmax of the
logits).

``check_chain`` puts random operands in. A rule must hold on operands that have nothing to do with one another. A
condition must hold when just the quantities it names are computed, and must fail when any one of them is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .compose import prune
from .differentiate import ZERO, Letters, derivative, derivative_contribution, inline_folded, separate
from .evaluate import key
from .latex import expr_latex
from .operands import Array, complete, draw, draw_key
from .parse import parse_expression, parse_lines
from .program import Placed, Program, Statement
from .quantity import Quantity
from .steps import DIFFER, ChainReport, Line, Step, StepReport, compare, distance
from .symbols import Style, style_of
from .tree import Add, Bool, Cmp, Cond, Expr, Idx, refs, rename_names, substitute_letters, to_json, transform


@dataclass(frozen=True, slots=True)
class Chain:
    """A derivation of what ``homes`` send back to the gradient of ``target`` (a short name of ``homes[0]``'s part).

    ``partial``, a letter, asks for the derivative of one cell of ``homes[0]`` by one cell of ``target`` instead (``A``
    at ``j`` by ``S`` at ``m``); its last line is typed. ``intruder`` is a definition of one more reader of ``target``
    (``U[r,w] = E[w,r]``): the chain then states that nothing but ``homes`` reads it, and is tested against that
    reader. A program in which something else reads it has no such chain.
    """

    id: str
    en: str
    zh: str
    source: str
    homes: tuple[Quantity, ...]
    target: str
    steps: tuple[Step, ...]
    partial: str = ""
    intruder: str = ""


@dataclass(frozen=True, slots=True)
class PlacedChain:
    """A chain in one program: what it derives, its letters, its lines.

    ``face`` is ``grad``, or ``partial`` for the derivative of a cell of ``target`` by a cell of ``wrt``.
    """

    chain: Chain
    target: str
    face: str
    wrt: str | None
    letters: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]


class ChainMisplaced(ValueError):
    """A chain whose quantities this program does not have."""


def place_chain(chain: Chain, program: Program) -> PlacedChain:
    """``chain`` at the first place where all it speaks of occurs. Raises ``ChainMisplaced`` when there is none."""
    refused = ChainMisplaced(f"{chain.id}: there is no {chain.homes[0].name} here")
    for first in program.quantities.values():
        if first.quantity is chain.homes[0]:
            try:
                return _place(chain, program, _homes(chain, program, first))
            except ChainMisplaced as error:
                refused = error
    raise refused


def _place(chain: Chain, program: Program, homes: list[Placed]) -> PlacedChain:
    first = homes[0]
    target = first.names.get(chain.target)
    if target is None:
        raise ChainMisplaced(f"{chain.target} is absent at {first.path}")
    if chain.partial:
        return _place_partial(chain, program, first, target)
    if chain.intruder and {s.consumer for s in program.contributions(target)} - {home.id for home in homes}:
        raise ChainMisplaced(f"{target} has another reader here, and {chain.id} states that it has none")
    letters, last = _definition(program, homes, target)
    opening = _contribution(program, homes, target, letters)
    names = _names(homes)
    lines = [
        _opening(chain, opening),
        *(_line(step, _expand(step.text, names), names, program) for step in chain.steps[:-1]),
        _line(chain.steps[-1], last, names, program),
    ]
    return PlacedChain(chain, target, "grad", None, tuple(letters), tuple(lines))


def check_chain(chain: Chain, program: Program, rng: np.random.Generator) -> ChainReport:
    """Evaluate every line on random float64 operands and compare it with the line above.

    Raises ``ChainMisplaced`` when the program lacks the quantities; a wrong step is reported, not raised. Two
    positions at least are needed: with one, nothing is masked, and a condition about masks cannot be broken.
    """
    return check_placed(place_chain(chain, program), program, rng)


def check_placed(placed: PlacedChain, program: Program, rng: np.random.Generator) -> ChainReport:
    """``check_chain`` for a chain that was placed before; operands are drawn anew."""
    chain, lines = placed.chain, placed.lines
    # What a condition names is drawn freely wherever it is not granted, a constant table too.
    named = {name for line in lines for name in line.names}
    free = draw((line.expr for line in lines), program, rng, loose=named)
    for name in sorted(named - set(free)):
        free[name] = draw_key(name, program, rng)
    report = compare(chain.id, lines, placed.letters, program, lambda names: complete(free, names, program, rng))
    if not chain.intruder:
        return report
    broken = _with_intruder(placed, program, free, rng)
    idle = f"{chain.id}: one more reader of {placed.target} changes nothing ({broken:.3g})"
    problems = report.problems if broken > DIFFER else (*report.problems, idle)
    return ChainReport(chain.id, (StepReport(0, 0.0, broken), *report.steps), problems)


def chain_json(chain: Chain, program: Program) -> dict[str, Any]:
    """The form that travels in a trace header: steps with global ids, their LaTeX, their reasons."""
    placed = place_chain(chain, program)
    style = style_of(program)
    return {
        "id": chain.id,
        "title": {"en": chain.en, "zh": chain.zh},
        "status": "derivation",
        "source": chain.source,
        "target": placed.target,
        "face": placed.face,
        "wrt": placed.wrt,
        "letters": [list(pair) for pair in placed.letters],
        "steps": [line_json(line, style) for line in placed.lines],
    }


def line_json(line: Line, style: Style) -> dict[str, Any]:
    """One line as plain data: formula, tree, reason, whether it is a condition."""
    return {
        "latex": expr_latex(line.expr, style),
        "expr": to_json(line.expr),
        "reason": {"en": line.en, "zh": line.zh},
        "condition": line.condition,
    }


def _homes(chain: Chain, program: Program, first: Placed) -> list[Placed]:
    """The placed quantities of ``chain.homes``: those beside ``first``, or where there is but one."""
    found = [first]
    for quantity in chain.homes[1:]:
        at = [p for p in program.quantities.values() if p.quantity is quantity]
        beside = [p for p in at if p.path == first.path] or at
        if len(beside) != 1:
            raise ChainMisplaced(f"{chain.id}: there is no {quantity.name} at {first.path}")
        found += beside
    return found


def _names(homes: list[Placed]) -> dict[str, str]:
    """What short names stand for in a chain: those of its first home, then those that only further homes have."""
    return {name: id for home in reversed(homes) for name, id in home.names.items()}


def _opening(chain: Chain, expr: Expr) -> Line:
    en = "chain rule, over every cell of: " + ", ".join(q.en for q in chain.homes)
    zh = "链式法则，遍历每个元素：" + "、".join(q.zh for q in chain.homes)
    if chain.intruder:
        en += f"; nothing else reads {chain.target}, or its contribution would be added"
        zh += f"；没有别的量读取 {chain.target}，否则还要加上它的贡献"
    return Line(expr, en, zh, (), bool(chain.intruder))


def _definition(program: Program, homes: list[Placed], target: str) -> tuple[Letters, Expr]:
    """The gradient lines of ``target`` beside ``homes``, as one sum in the letters of the first."""
    written = []
    for home in homes:
        sent = [s for s in program.contributions(target) if s.consumer == home.id]
        if not sent:
            raise ChainMisplaced(f"{home.id} sends no gradient to {target}")
        written += sent
    letters = written[0].letters
    terms = []
    for s in written:
        renamed = {a: Idx(b) for (a, _), (b, _) in zip(s.letters, letters, strict=True) if a != b}
        terms.append(substitute_letters(s.expr, renamed))
    return letters, terms[0] if len(terms) == 1 else Add(tuple(terms))


def _contribution(program: Program, homes: list[Placed], target: str, letters: Letters) -> Expr:
    """The same by mechanical differentiation of the forward definitions."""
    terms: list[Expr] = []
    for home in homes:
        statement = program.definition(home.id)
        if statement is None:
            raise ChainMisplaced(f"{home.id} has no definition to differentiate")
        # The statement's own letters are chosen before those that the opened means and deviations bind.
        asked = {letter for letter, _ in letters}
        expr, own = separate(statement.expr, statement.letters, asked)
        opened = inline_folded(expr, program, asked | {letter for letter, _ in own})
        term = derivative_contribution(replace(statement, expr=opened, letters=own), target, letters)
        if term != ZERO:
            terms.append(term)
    if not terms:
        raise ChainMisplaced(f"nothing at {homes[0].path} reads {target}")
    return _without_single_heads(terms[0] if len(terms) == 1 else Add(tuple(terms)), program)


def _without_single_heads(expr: Expr, program: Program) -> Expr:
    """``expr`` without the questions whether two heads are the same one, where there is but one."""
    if program.scalars.get("H") != 1:
        return expr

    def idle(test: Expr) -> bool:
        return isinstance(test, Cmp) and isinstance(test.a, Idx) and test.a.letter.rstrip("0123456789") == "h"

    def change(node: Expr) -> Expr:
        match node:
            case Cond(Bool("and", tests), then, other):
                kept = tuple(test for test in tests if not idle(test))
                return Cond(kept[0] if len(kept) == 1 else Bool("and", kept), then, other) if kept else then
            case Cond(test, then, _) if idle(test):
                return then
            case _:
                return node

    return transform(expr, change)


def _place_partial(chain: Chain, program: Program, home: Placed, target: str) -> PlacedChain:
    statement = program.definition(home.id)
    if statement is None:
        raise ChainMisplaced(f"{home.id} has no definition to differentiate")
    taken = {chain.partial, *(letter for letter, _ in statement.letters)}
    expr, _ = separate(statement.expr, statement.letters, {chain.partial})
    expr = inline_folded(expr, program, taken)
    read = next((r for r in refs(expr) if r.name == target and r.face == ""), None)
    if read is None:
        raise ChainMisplaced(f"{home.id} does not read {target}")
    dim = program.quantities[target].axes[-1][1]
    at = (*read.indices[:-1], Idx(chain.partial))
    lines = [Line(derivative(expr, target, at), f"differentiate the definition of {home.quantity.name}",
                  f"对 {home.quantity.name} 的定义求导", ())]  # fmt: skip
    lines += [_line(step, _expand(step.text, home.names), home.names, program) for step in chain.steps]
    return PlacedChain(chain, home.id, "partial", target, (*statement.letters, (chain.partial, dim)), tuple(lines))


def _line(step: Step, expr: Expr, names: Mapping[str, str], program: Program) -> Line:
    return Line(expr, step.en, step.zh, tuple(_name(name, names, program) for name in step.relies_on))


def _name(name: str, names: Mapping[str, str], program: Program) -> str:
    """The id that a short name stands for, its face kept: ``S.grad`` is ``blocks.0.attn.S.grad``."""
    short, _, face = name.partition(".")
    return key(names.get(short) or program.resolve(short), face)


def _expand(text: str, names: Mapping[str, str]) -> Expr:
    """A typed step with global ids; parts that are absent here (an optional bias) drop out, as in definitions."""
    local = parse_expression(text)
    absent = frozenset(r.name for r in refs(local) if r.name not in names)
    expr = prune(local, absent)
    if expr is None:
        raise ChainMisplaced(f"nothing is left of {text!r} here")
    return rename_names(expr, names)


def _with_intruder(
    placed: PlacedChain, program: Program, values: Mapping[str, Array], rng: np.random.Generator
) -> float:
    """How far one more reader of the target moves its gradient."""
    chain = placed.chain
    home = next(
        p for p in program.quantities.values() if p.quantity is chain.homes[0] and placed.target in p.names.values()
    )
    line = parse_lines(chain.intruder)[0]
    assert line.expr is not None
    names = {r.name: _name(r.name, home.names, program) for r in refs(line.expr)}
    id = _name(line.target, home.names, program)
    axes = program.quantities[id].axes
    letters = tuple((letter, dim) for letter, (_, dim) in zip(line.letters, axes, strict=True))
    quantity = program.quantities[id].quantity
    reader = Statement(id, "", letters, rename_names(line.expr, names), False, id, quantity, quantity.line)
    extra = derivative_contribution(reader, placed.target, placed.letters)
    alone = placed.lines[0].expr
    known = {**draw([extra], program, rng), **values}
    return distance(alone, Add((alone, extra)), placed.letters, known, program)
