"""What becomes of a wrong version of a statement: refused by a rule, impossible to compute, or caught by a number."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from decoders import random_decoder
from glassformer.model import (
    AttentionConfig,
    DecoderConfig,
    DropoutConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerConfig,
    NormConfig,
    PositionConfig,
    definitions,
)
from glassformer.notation import (
    EvaluationError,
    NotationError,
    Program,
    Quantity,
    Statement,
    key,
    parse_lines,
    run,
)
from glassformer.notation.check import check_statement
from glassformer.notation.legend import LETTERS
from glassformer.notation.tree import Const, Expr, rename_names, walk
from glassformer.tracing.record import Sample, record
from glassformer.tracing.replay import replay

from .mutation import Surroundings, mutants
from .source_text import source_text

# No two dimensions and no count coincide, so no exchange of axes or divisors can pass by luck.
N, CONTEXT, D, HEADS, D_K, D_V, D_FF = 7, 9, 10, 2, 3, 4, 11
TOKENS = (3, 1, 3, 5, 1, 0, 3, 6)
RATES = DropoutConfig(embedding=0.2, attention=0.3, residual=0.25)
TARGETS = (1, -100, 5, 1, -100, 3, 6, -100)
SEGMENTS = (4, 4, 4, 4, 4, 2, 6, 6)

CHECKER = "the checker"
EVALUATION = "an evaluation error"
VALUES = "the replay law"
ORDER = "the order of computation"
GUARDS = (CHECKER, EVALUATION, VALUES, ORDER)

# A key bias adds one number to every score of a row, which softmax ignores: its gradient is nothing but rounding.
ZERO_IN_THEORY = frozenset({"attn.b_K.grad via attn.K"})


KINDS = ("gelu", "relu", "options", "shared", "gelu_tanh", "relu2", "packed")
"""The decoders whose statements are changed: together they have every line that an option of a decoder brings."""


@dataclass(frozen=True)
class Case:
    """A decoder that ran once: its program, recorded values and autograd gradients by key, what can be infinite."""

    program: Program
    values: Mapping[str, np.ndarray[Any, Any]]
    infinite: set[str]

    def around(self) -> Surroundings:
        axes = {id: tuple(dim for _, dim in placed.axes) for id, placed in self.program.quantities.items()}
        faces = [(id, face) for id in axes for face in ("", "grad") if key(id, face) in self.values]
        sizes = [name for name in self.program.scalars if name != "n_k"]
        return Surroundings({(id, face): axes[id] for id, face in faces}, sizes)


def config_of(kind: str) -> DecoderConfig:
    """A kind is named after its activation, but for three of them.

    ``options`` is in training mode with QK-norm and dropout; ``shared`` has keys and values shared by heads, a window,
    rotary positions, RMSNorm, a gate with SiLU, and a tied head; ``packed`` reads two texts in one row, with fixed
    positions and a window in one of its two blocks.
    """
    if kind == "shared":
        return DecoderConfig.alike(
            1,
            vocab_size=N,
            context=CONTEXT,
            d=D,
            attention=AttentionConfig(heads=6, kv_heads=3, d_k=14, d_v=16, bias=True, window=4),
            norm=NormConfig(eps=1e-2, kind="rmsnorm"),
            ffn=FeedForwardConfig(d_ff=D_FF, activation="silu", gated=True),
            head=HeadConfig(tied=True),
            position=PositionConfig(kind="rope", base=50.0),
        )
    heads = 1 if kind == "packed" else HEADS
    attention = AttentionConfig(heads=heads, d_k=D_K, d_v=D_V, bias=True, qk_norm=kind == "options")
    ffn = FeedForwardConfig(d_ff=D_FF, activation="gelu" if kind in ("options", "packed") else kind)
    layers = [LayerConfig(attention=attention, ffn=ffn)]
    if kind == "packed":
        layers.append(LayerConfig(attention=attention.model_copy(update={"window": 2}), ffn=ffn))
    return DecoderConfig(
        vocab_size=N,
        context=CONTEXT,
        d=D,
        layers=tuple(layers),
        norm=NormConfig(eps=1e-2),
        position=PositionConfig(kind="sinusoidal", base=50.0) if kind == "packed" else PositionConfig(),
        head=HeadConfig(bias=True),
        dropout=RATES if kind == "options" else DropoutConfig(),
    )


@functools.cache
def case(kind: str = "gelu", gamma: float | None = None, seed: int = 0) -> Case:
    """A decoder of one of ``KINDS`` at random values (``gamma`` fixes every norm's scale), and what it recorded."""
    config = config_of(kind)
    model = random_decoder(config, seed).train()
    with torch.no_grad():
        # One unit of the feed-forward network is exactly 0 everywhere: at its kink, where ReLU's derivative is a choice.
        model.blocks[0].ffn.W_1[:, 4] = 0.0
        if model.blocks[0].ffn.b_1 is not None:
            model.blocks[0].ffn.b_1[4] = 0.0
        for name, parameter in model.named_parameters():
            if gamma is not None and name.endswith("gamma"):
                parameter.fill_(gamma)
    targets, packed = torch.tensor(TARGETS), kind == "packed"
    sample = Sample(torch.tensor(TOKENS), targets, targets >= 0, torch.tensor(SEGMENTS) if packed else None)
    program = definitions(config, len(TOKENS), packed=packed, dropout=kind == "options")
    torch.manual_seed(seed)
    infinite = {s.target for s in program.forward if Const("inf") in set(walk(s.expr))}
    return Case(program, record(model, sample, program), infinite)


def title(statement: Statement) -> str:
    """``attn.S.grad via attn.A``, or ``attn.S`` for a definition."""
    name = short(key(statement.target, statement.face))
    return f"{name} via {short(statement.consumer)}" if statement.face else name


def short(text: str) -> str:
    return text.replace("blocks.0.", "")


@dataclass(frozen=True)
class Fate:
    """``by`` is the guard that caught a wrong version (None: it lives); ``apart`` is how far off its values were."""

    by: str | None
    apart: float = math.inf


def fate(case: Case, statement: Statement, expr: Expr) -> Fate:
    """What becomes of ``expr`` in place of ``statement``'s right side."""
    wrong = dataclasses.replace(statement, expr=expr)
    try:
        check_statement(wrong, case.program, case.infinite)
    except NotationError:
        return Fate(CHECKER)
    return numbers(case, exchanged(case.program, statement, wrong), statement)


def exchanged(program: Program, right: Statement, *wrong: Statement) -> Program:
    """``program`` with ``wrong`` (nothing, or several) in the place of its statement ``right``."""

    def changed(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        at = next((k for k, s in enumerate(statements) if s is right), None)
        return statements if at is None else (*statements[:at], *wrong, *statements[at + 1 :])

    return dataclasses.replace(program, forward=changed(program.forward), backward=changed(program.backward))


def numbers(case: Case, wrong: Program, changed: Statement) -> Fate:
    """What becomes of a program of which only the statements for the target of ``changed`` are not the right ones."""

    def same_target(statements: Iterable[Statement]) -> tuple[Statement, ...]:
        return tuple(s for s in statements if (s.target, s.face) == (changed.target, changed.face))

    about = dataclasses.replace(
        wrong,
        quantities={changed.target: wrong.quantities[changed.target]},
        forward=same_target(wrong.forward),
        backward=same_target(wrong.backward),
    )
    try:
        law = replay(about, (), case.values)
        if not law.holds:
            return Fate(VALUES, law.largest)
        computed = run(wrong.statements, leaves(case), wrong.scalars)
    except EvaluationError as error:
        # Something is read before it is computed: its own value, or a gradient that is not complete yet.
        return Fate(ORDER if str(error).startswith("no value for") else EVALUATION)
    if {name for name in case.values if name.endswith(".grad")} - set(computed):
        return Fate(ORDER)
    return Fate(None)


def leaves(case: Case) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs, parameters and the seed of the gradients: everything that is given and not computed."""
    given = {id: case.values[id] for id in case.program.quantities if case.program.definition(id) is None}
    return {**given, "loss.L.grad": case.values["loss.L.grad"]}


@dataclass(frozen=True)
class Tally:
    """``caught`` counts wrong versions by (kind of change, guard); ``survivors`` lists what nothing caught.

    ``closest`` is the smallest distance, in units of the replay law, of a version that its values betrayed.
    """

    caught: Counter[tuple[str, str]]
    survivors: Mapping[str, frozenset[str]]
    closest: float

    def by(self, guard: str) -> int:
        return sum(count for (_, by), count in self.caught.items() if by == guard)

    @property
    def total(self) -> int:
        return self.caught.total() + sum(map(len, self.survivors.values()))


@functools.cache
def tally(kind: str, part: str) -> Tally:
    """The fates of all mechanical wrong versions of the definitions (``forward``) or gradients (``backward``)."""
    here = case(kind)
    around = here.around()
    caught: Counter[tuple[str, str]] = Counter()
    survivors: dict[str, set[str]] = {}
    closest = math.inf
    for statement in statements_of(kind, part):
        for mutant in mutants(statement, around):
            end = fate(here, statement, mutant.expr)
            if end.by is None:
                survivors.setdefault(title(statement), set()).add(short(source_text(mutant.expr)))
            else:
                caught[mutant.what, end.by] += 1
            if title(statement) not in ZERO_IN_THEORY:
                closest = min(closest, end.apart)
    return Tally(caught, {name: frozenset(texts) for name, texts in survivors.items()}, closest)


def statements_of(kind: str, part: str) -> tuple[Statement, ...]:
    """The statements whose wrong versions are made: those on lines that no earlier kind has."""
    earlier = {at for other in KINDS[: KINDS.index(kind)] for at in map(line_of, case(other).program.statements)}
    program = case(kind).program
    statements = program.forward if part == "forward" else program.backward
    return tuple(s for s in statements if line_of(s) not in earlier)


def line_of(statement: Statement) -> tuple[Quantity, int]:
    """The line of source that ``statement`` comes from: the same one wherever its group is placed."""
    return statement.quantity, statement.line


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
