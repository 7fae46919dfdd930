"""Decoding as quantities: every step from the scores to the chosen token, defined in the notation and worked out there.

What ran (``rules.py``) and what the definitions give are two computations; ``DecodingStep`` holds both. The language has
no sorting, so a rank is a count of the tokens that come before (letters ``w`` and ``v``, both over the vocabulary), and
"the first with" is a count too: the cumulative sum never falls, so as many tokens as it leaves at or below ``u`` come
before the chosen one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..errors import UserError
from ..model import Decoder
from ..notation import Kind, Program, Statement, build_program, evaluate, group, place, quantity
from ..notation.cell import CellExplanation, explain_cell
from ..notation.tree import Expr, Idx, Reduce, Ref, free_letters, transform, walk
from .rules import Rule, stages
from .sample import Decision, decisions

Array = np.ndarray[Any, np.dtype[Any]]

# --- the definitions ---------------------------------------------------------------------------------------------------

SCORES = quantity("logits", r"\Lambda", "scores of the next token", "下一个词元的分数", Kind.INPUT, "logits[w]")
TEMPERATURE = quantity("T", "T", "temperature", "温度", Kind.INPUT, "T")
TOP_K = quantity("top_k", "k", "how many tokens may be kept", "最多保留多少个词元", Kind.INPUT, "top_k")
TOP_P = quantity("top_p", "p_{\\min}", "how much probability is to be kept", "要保留多少概率", Kind.INPUT, "top_p")
DRAW = quantity("u", "u", "uniform draw", "均匀随机数", Kind.INPUT, "u")

TEMPERED = quantity("z_T", "z_T", "scores over temperature", "除以温度的分数", Kind.INTERMEDIATE, """
z_T[w] = (logits[w] - max(logits[v] for v in N))/T
""")  # fmt: skip

TEMPERED_PROBABILITIES = quantity("p_T", "p_T", "probabilities at this temperature", "该温度下的概率", Kind.PROBABILITY, """
p_T[w] = exp(z_T[w])/sum(exp(z_T[v]) for v in N)
""")  # fmt: skip

RANK = quantity("rank", r"\rho", "rank", "名次", Kind.INTERMEDIATE, """
rank[w] = sum(1 if logits[v] > logits[w] or (logits[v] == logits[w] and v < w) else 0 for v in N)
""")  # fmt: skip

MASS = quantity("mass", "m", "probability of the first k", "前 k 名的总概率", Kind.INTERMEDIATE, """
mass = sum(p_T[v] for v in N if rank[v] < top_k)
""")  # fmt: skip

BEFORE = quantity("before", "b", "share of the tokens before", "排在前面的份额", Kind.INTERMEDIATE, """
before[w] = sum(p_T[v] for v in N if rank[v] < rank[w])/mass
""")  # fmt: skip

KEPT = quantity("kept", r"\kappa", "kept", "是否保留", Kind.INTERMEDIATE, """
kept[w] = 1 if rank[w] < top_k and (top_p == 1 or before[w] < top_p) else 0
""")  # fmt: skip

PROBABILITIES = quantity("p", "p", "probabilities of the kept tokens", "保留者的概率", Kind.PROBABILITY, """
p[w] = kept[w]*p_T[w]/sum(kept[v]*p_T[v] for v in N)
""")  # fmt: skip

GREEDY = quantity("p", "p", "all for the first rank", "全部归第一名", Kind.PROBABILITY, """
p[w] = 1 if rank[w] == 0 else 0
""")  # fmt: skip

CUMULATED = quantity("P", "P", "cumulative sum", "累积和", Kind.INTERMEDIATE, """
P[w] = sum(p[v] for v in N if v <= w)
""")  # fmt: skip

CHOSEN = quantity("chosen", "c", "chosen token", "选中的词元", Kind.INTERMEDIATE, """
chosen = min(sum(1 if P[w] <= u else 0 for w in N), max(w for w in N if p[w] > 0))
""")  # fmt: skip

SAMPLING = group(
    "decoding", SCORES, TEMPERATURE, TOP_K, TOP_P, DRAW, TEMPERED, TEMPERED_PROBABILITIES, RANK, MASS, BEFORE, KEPT,
    PROBABILITIES, CUMULATED, CHOSEN,
)  # fmt: skip
GREEDILY = group("decoding", SCORES, DRAW, RANK, GREEDY, CUMULATED, CHOSEN)


def decoding_program(size: int, rule: Rule) -> Program:
    """The definitions that ``rule`` uses, for a vocabulary of ``size`` tokens. At temperature 0 only ranks decide."""
    return build_program([place(SAMPLING if rule.temperature else GREEDILY, "decoding")], {"N": size})


# --- one step ----------------------------------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """A token with its numbers; it is chosen when ``u`` lies from ``low`` up to, not including, ``high``."""

    token: int
    rank: int
    logit: float
    p_T: float  # noqa: N815 - the notes' symbol
    before: float
    kept: bool
    p: float
    low: float
    high: float


@dataclass(frozen=True)
class DecodingStep:
    """Step ``number`` (from 1) of a text being written, under ``rule``: what ran, and its definitions.

    ``values`` holds what ran, by quantity id (``decoding.p`` and so on).
    """

    number: int
    decision: Decision
    rule: Rule
    program: Program
    values: Mapping[str, Array]

    @property
    def token(self) -> int:
        """The chosen token."""
        return self.decision.choice.token

    @cached_property
    def defined(self) -> Mapping[str, Array]:
        """Every quantity again, from its definition and the scores alone."""
        inputs = {id: x for id, x in self.values.items() if self.program.definition(id) is None}
        return evaluated(self.program, inputs)

    @property
    def differences(self) -> dict[str, float]:
        """For each defined quantity, the largest difference between what ran and its definition."""
        found = {}
        for id in (s.target for s in self.program.forward):
            ran, defined = np.asarray(self.values[id], dtype=np.float64), self.defined[id]
            with np.errstate(invalid="ignore"):  # minus infinity on both sides is no difference
                found[id] = float(np.where(ran == defined, 0.0, np.abs(ran - defined)).max())
        return found

    def candidates(self, count: int | None = None) -> list[Candidate]:
        """The ``count`` tokens of smallest rank (None: all), and the chosen one if it is none of them."""
        ran = stages(self.decision.scores, self.rule)
        order = np.argsort(ran.rank.numpy())
        shown = [int(w) for w in order[:count]]
        shown += [] if self.token in shown else [self.token]
        P = self.values["decoding.P"]
        return [
            Candidate(
                w,
                int(ran.rank[w]),
                float(self.values["decoding.logits"][w]),
                float(ran.p_T[w]),
                float(ran.before[w]),
                bool(ran.kept[w]),
                float(ran.p[w]),
                float(P[w - 1]) if w else 0.0,
                float(P[w]),
            )
            for w in shown
        ]

    def explain(self, name: str, *index: int) -> CellExplanation:
        """How one number of the step came about: ``explain("p", 12)``. Raises ``UserError`` for what is not there."""
        return explain_cell(self.program, name, "", index, self.values)


def explain_decoding(
    model: Decoder, prompt: Sequence[int], number: int, rule: Rule, seed: int, excluded: Sequence[int] = ()
) -> DecodingStep:
    """Step ``number`` (from 1) of what ``choices(model, prompt, number, rule, seed, excluded)`` writes.

    Raises ``UserError`` as ``choices`` does, and for a number below 1.
    """
    return decoding_step(_last(decisions(model, prompt, _counted(number), rule, seed, excluded)), number, rule)


def _counted(number: int) -> int:
    if number < 1:
        raise UserError(
            f"There is no token {number} to explain.", "Written tokens are counted from 1.", "Use 1 or more."
        )
    return number


def _last(made: Iterator[Decision]) -> Decision:
    *_, last = made
    return last


def decoding_step(decision: Decision, number: int, rule: Rule) -> DecodingStep:
    """A decision with the definitions that it follows."""
    ran = stages(decision.scores, rule)
    size = len(ran.p)
    program = decoding_program(size, rule)
    known = {
        "logits": decision.scores.numpy(),
        "T": np.array(rule.temperature),
        "top_k": np.array(float(rule.top_k or size)),
        "top_p": np.array(rule.top_p),
        "u": np.array(decision.u),
        **{name: stage.numpy().astype(np.float64) for name, stage in ran._asdict().items()},
        "P": ran.p.cumsum(0).numpy(),
        "chosen": np.array(float(decision.choice.token)),
    }
    values = {id: known[placed.quantity.name] for id, placed in program.quantities.items()}
    return DecodingStep(number, decision, rule, program, values)


# --- the definitions worked out ----------------------------------------------------------------------------------------

CELLS = 2**22
"""How many pairs of tokens are compared at once."""


def evaluated(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """``inputs`` and everything that ``program`` defines, without ever holding all pairs of tokens."""
    values = dict(inputs)
    for statement in program.forward:
        values[statement.target] = _in_rows(statement, values, program.scalars)
    return values


def _in_rows(statement: Statement, values: Mapping[str, Array], scalars: Mapping[str, float]) -> Array:
    size, pairs = int(scalars["N"]), any(isinstance(e, Reduce) and "w" in free_letters(e) for e in walk(statement.expr))
    if not pairs or size * size <= CELLS:
        return evaluate(statement.expr, statement.letters, values, scalars)
    # In the rows from `start` the letter `w` runs over fewer places: what it reads is cut to them, and as a number it
    # is read from a table.
    cut, parts, step = transform(statement.expr, _row), [], max(1, CELLS // size)
    for start in range(0, size, step):
        rows = slice(start, start + step)
        some = {f"{id}{ROWS}": x[rows] for id, x in values.items() if x.ndim == 1}
        some[ROWS] = np.arange(size, dtype=np.float64)[rows]
        count = {**scalars, ROWS: float(len(some[ROWS]))}
        parts.append(evaluate(cut, (("w", ROWS),), {**values, **some}, count))
    return np.concatenate(parts)


ROWS = "@rows"


def _row(e: Expr) -> Expr:
    match e:
        case Idx("w"):
            return Ref(ROWS, "", (e,))
        case Ref(name, face, (Ref(table, _, (Idx("w"),)),)) if table == ROWS:
            return Ref(f"{name}{ROWS}", face, (Idx("w"),))
        case _:
            return e
