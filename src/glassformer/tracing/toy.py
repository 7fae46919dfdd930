"""The 24-parameter model, traced: from plain settings to every number, in the layout of the reference table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import UserError, did_you_mean
from ..model import toy24_model
from ..model.toy24 import ETA, TARGET, TEXTS, TOKENS
from ..notation import key
from .optimizers import SGD, Update
from .request import Text, sample_of
from .settings import set_cells
from .trace import Trace, trace_sample
from .traceable import require_traceable
from .witnesses import STEP

NAMES = {"abstract": ("A, B, C", "A、B、C"), "clinic": ("a clinic sentence", "临床句子")}
LABELS = tuple({"id": id, "en": NAMES[id][0], "zh": NAMES[id][1], "texts": list(texts)} for id, texts in TEXTS.items())
TITLE = {"en": "The 24-parameter model", "zh": "24 个参数的模型"}


@dataclass(frozen=True, slots=True)
class ToySettings:
    """What may be changed: token ids, target id, learning rate, single cells as {"W_Q[1,0]": 0.7}, the optimizer.

    ``update`` None is gradient descent at ``eta``; any other has a learning rate of its own. With ``probes`` the trace is
    one ``with_probes``.
    """

    tokens: Sequence[int] = TOKENS
    target: int = TARGET
    eta: float = ETA
    cells: Mapping[str, float] = field(default_factory=dict)
    update: Update | None = None
    probes: bool = False


def trace_toy24(settings: ToySettings = ToySettings()) -> Trace:
    """Trace the model of the notes' chapter 11 under ``settings``; only the last position is scored.

    Raises ``UserError`` for an unknown parameter, an index out of range, a value that is not a number, a token or target
    outside the vocabulary, or an impossible learning rate.
    """
    model = toy24_model()
    for token in (*settings.tokens, settings.target):
        if not 0 <= token < 3:
            raise UserError(f"There is no token {token}.", "The vocabulary holds A, B and C (0, 1 and 2).")
    n = len(settings.tokens)
    if not 1 <= n <= model.config.context:
        raise UserError(
            f"{n} tokens do not fit.", f"The model reads 1 to {model.config.context}.", "Give for example --tokens A,B."
        )
    set_cells(model, settings.cells)
    require_traceable(model)
    sample = sample_of(settings.tokens, [*settings.tokens[1:], settings.target], [False] * (n - 1) + [True])
    text = Text(tuple(LABELS[0]["texts"]), TITLE, "toy24", "constructed", LABELS)
    update = SGD(lr=settings.eta) if settings.update is None else settings.update
    traced = trace_sample(model, sample, text, update, witness_cells=None)
    return traced.with_probes(model) if settings.probes else traced


def token_of(word: str) -> int:
    """The id of a token of the toy vocabulary, by any of its labels. Raises ``UserError`` with "did you mean"."""
    for label in LABELS:
        if word in label["texts"]:
            return label["texts"].index(word)
    raise UserError(
        f'"{word}" is not a token of this model.', "", did_you_mean(word, [t for x in LABELS for t in x["texts"]])
    )


def reference_json(trace: Trace) -> dict[str, Any]:
    """Every number of a toy trace in the reference layout: no head axis, scored row of ``h``, ``logits`` and ``p``.

    Strict JSON: minus infinity is null.
    """
    short = {id: id.rpartition(".")[2] for id in trace.program.quantities}
    parameters = trace.parameters
    row = int(np.flatnonzero(trace.values["loss.scored"])[-1])
    shown = ("embed.X", *(f"blocks.0.attn.{q}" for q in "QKVSAZ"), "blocks.0.R", "head.logits", "head.p", "loss.L")

    def cells(id: str, face: str) -> Any:
        return _nested(
            trace.face(id, face),
            [a for a, _ in trace.program.quantities[id].axes],
            id in ("head.logits", "head.p"),
            row,
        )

    def faces(face: str) -> dict[str, Any]:
        found = {short[id]: cells(id, face) for id in shown}
        return {**found, "h": found["R"][row]}

    gradients = {
        short[id]: cells(id, "grad")
        for id in (*shown, *parameters)
        if key(id, "grad") in trace.values and id != "loss.L"
    }
    return {
        "input": [int(t) for t in trace.values["embed.t"]],
        "target": int(trace.values["loss.y"][row]),
        "eta": trace.program.scalars["eta"],
        "parameters": {short[id]: cells(id, "") for id in parameters},
        "forward": faces(""),
        "gradients": {**gradients, "h": gradients["R"][row]},
        "updated": {short[id]: cells(id, "new") for id in parameters},
        "forward_after": faces("after"),
        "central_difference_max_abs_diff": max(trace.witnesses[id].central.max_abs_diff for id in parameters),
        "epsilon": STEP,
    }


def _nested(array: Any, letters: list[str], last_row: bool, row: int) -> Any:
    """Nested lists without head axis, or the scored row alone, with null for minus infinity."""
    if "h" in letters:
        array = np.take(array, 0, axis=letters.index("h"))
    if last_row:
        array = array[row]
    plain = np.asarray(array, dtype=np.float64)
    return _finite(plain.tolist())


def _finite(x: Any) -> Any:
    if isinstance(x, list):
        return [_finite(part) for part in x]
    return x if math.isfinite(x) else None
