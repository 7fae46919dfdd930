"""What becomes of a wrong version of a statement: refused by a rule, impossible to compute, or caught by a number."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from decoders import random_decoder
from glassformer.model import AttentionConfig, DecoderConfig, FeedForwardConfig, NormConfig, definitions
from glassformer.notation import (
    EvaluationError,
    Kind,
    NotationError,
    Program,
    Statement,
    key,
    parse_lines,
    run,
)
from glassformer.notation.check import check_statement
from glassformer.notation.legend import LETTERS
from glassformer.notation.tree import Const, Expr, Ref, refs, rename_names, walk
from glassformer.tracing.record import Sample, record
from glassformer.tracing.replay import replay

from .mutation import Surroundings, mutants
from .source_text import source_text

# No two dimensions and no count coincide, so no exchange of axes or divisors can pass by luck.
N, CONTEXT, D, HEADS, D_K, D_V, D_FF, LENGTH, SCORED = 7, 9, 10, 2, 3, 4, 11, 8, 5
TOKENS = (3, 1, 3, 5, 1, 0, 3, 6)
TARGETS = (1, -100, 5, 1, -100, 3, 6, -100)

CHECKER, EVALUATION, VALUES, ORDER, STRUCTURE = "checker", "evaluation", "values", "order", "structure"


@dataclass(frozen=True)
class Case:
    """A decoder that ran once: its program, every recorded value and autograd gradient by key."""

    program: Program
    values: Mapping[str, np.ndarray[Any, Any]]

    @property
    def infinite(self) -> set[str]:
        return {s.target for s in self.program.forward if Const("inf") in set(walk(s.expr))}

    def around(self) -> Surroundings:
        axes = {id: tuple(dim for _, dim in placed.axes) for id, placed in self.program.quantities.items()}
        faces = [(id, face) for id in axes for face in ("", "grad") if key(id, face) in self.values]
        sizes = [name for name in self.program.scalars if name != "n_k"]
        return Surroundings({(id, face): axes[id] for id, face in faces}, sizes)


@functools.cache
def case(activation: str = "gelu", gamma: float | None = None) -> Case:
    """A decoder with everything on, at random values (``gamma`` fixes every norm's scale), and what it recorded."""
    config = DecoderConfig(
        vocab_size=N,
        context=CONTEXT,
        d=D,
        blocks=1,
        attention=AttentionConfig(heads=HEADS, d_k=D_K, d_v=D_V, bias=True),
        norm=NormConfig(eps=1e-2),
        ffn=FeedForwardConfig(d_ff=D_FF, activation=activation),
        head_bias=True,
    )
    model = random_decoder(config)
    with torch.no_grad():
        # One unit of the feed-forward network is exactly 0 everywhere: at its kink, where ReLU's derivative is a choice.
        model.blocks[0].ffn.W_1[:, 4] = 0.0
        model.blocks[0].ffn.b_1[4] = 0.0
        for name, parameter in model.named_parameters():
            if gamma is not None and name.endswith("gamma"):
                parameter.fill_(gamma)
    targets = torch.tensor(TARGETS)
    sample = Sample(torch.tensor(TOKENS), targets, targets >= 0)
    program = definitions(config, LENGTH)
    return Case(program, record(model, sample, program))


def title(statement: Statement) -> str:
    """``attn.S.grad via attn.A``, or ``attn.S`` for a definition."""
    name = short(key(statement.target, statement.face))
    return f"{name} via {short(statement.consumer)}" if statement.face else name


def short(text: str) -> str:
    return text.replace("blocks.0.", "")


def fate(case: Case, statement: Statement, expr: Expr | None) -> str | None:
    """What catches ``expr`` in place of ``statement``'s right side (None: the statement forgotten); None when nothing."""
    program = case.program
    wrong = None if expr is None else dataclasses.replace(statement, expr=expr)
    if wrong is not None:
        try:
            check_statement(wrong, program, case.infinite)
        except NotationError:
            return CHECKER
    return numbers(case, exchanged(program, {statement: wrong}), statement.target, statement.face)


def exchanged(program: Program, changes: Mapping[Statement, Statement | None]) -> Program:
    """``program`` with statements exchanged, or forgotten where the change is None."""

    def changed(statements: Iterable[Statement]) -> tuple[Statement, ...]:
        after = (changes.get(s, s) for s in statements)
        return tuple(s for s in after if s is not None)

    return dataclasses.replace(program, forward=changed(program.forward), backward=changed(program.backward))


def numbers(case: Case, wrong: Program, target: str, face: str) -> str | None:
    """What catches the wrong program, whose statements for ``target`` and ``face`` (only) differ from the right one's."""
    about = dataclasses.replace(
        wrong,
        quantities={target: wrong.quantities[target]},
        forward=tuple(s for s in wrong.forward if (s.target, s.face) == (target, face)),
        backward=tuple(s for s in wrong.backward if (s.target, s.face) == (target, face)),
    )
    try:
        if not replay(about, (), case.values).holds:
            return VALUES
        computed = run(wrong.statements, leaves(case), wrong.scalars)
    except EvaluationError as error:
        # Something is read before it is computed: its own value, or a gradient that is not complete yet.
        return ORDER if str(error).startswith("no value for") else EVALUATION
    if {name for name in case.values if name.endswith(".grad")} - set(computed):
        return ORDER
    return None if structure_holds(wrong) else STRUCTURE


def leaves(case: Case) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs, parameters and the seed of the gradients: everything that is given and not computed."""
    given = {id: case.values[id] for id in case.program.quantities if case.program.definition(id) is None}
    return {**given, "loss.L.grad": case.values["loss.L.grad"]}


def structure_holds(program: Program) -> bool:
    """Each contribution reads its consumer's gradient and no other; no definition reads a gradient."""
    for s in program.statements:
        read = {ref.name for ref in refs(s.expr) if ref.face == "grad"}
        if read != ({s.consumer} if s.face == "grad" else set()):
            return False
    return True


@dataclass(frozen=True)
class Fates:
    """How many wrong versions of some statements each guard caught, and those that nothing caught."""

    caught: Counter[str]
    survivors: Mapping[str, frozenset[str]]

    @property
    def total(self) -> int:
        return self.caught.total() + sum(map(len, self.survivors.values()))


@functools.cache
def fates_of(activation: str, part: str) -> Fates:
    """The fates of all mechanical wrong versions of the gradient (``part`` is ``backward``) or forward statements."""
    here = case(activation)
    around = here.around()
    caught: Counter[str] = Counter()
    survivors: dict[str, frozenset[str]] = {}
    statements: tuple[Statement, ...] = getattr(here.program, part)
    for statement in statements:
        if activation == "relu" and not statement.consumer.endswith("ffn.C"):
            continue  # everything else is as with GELU
        alive = set()
        for mutant in mutants(statement, around):
            by = fate(here, statement, mutant.expr)
            if by is None:
                alive.add(short(source_text(mutant.expr)))
            else:
                caught[by] += 1
        if alive:
            survivors[title(statement)] = frozenset(alive)
    return Fates(caught, survivors)


def written(program: Program, consumer: str, text: str) -> tuple[Statement, ...]:
    """The statements of ``text`` as if they stood beside ``consumer``, in the names of its group."""
    placed = program.quantities[consumer]
    names = dict(placed.names)
    return tuple(
        Statement(
            target=names[line.target],
            face=line.face,
            letters=tuple((letter, names.get(LETTERS[letter], LETTERS[letter])) for letter in line.letters),
            expr=rename_names(line.expr, names),
            adds=line.adds,
            consumer=consumer,
            quantity=placed.quantity,
            line=placed.quantity.line,
        )
        for line in parse_lines(text)
        if line.expr is not None
    )
