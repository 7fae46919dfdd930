"""Gradient norm by layer, split into the path that the residual leaves free and the paths through the branches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...bilingual import words
from ...notation import Program, evaluate
from .places import streams
from .reading import Array, Reading, next_tokens, watch
from .report import Note, Report, Table, cell


@dataclass(frozen=True, slots=True, eq=False)
class GradientNorms:
    """Frobenius norms of the mean loss's gradient, by stream ``ids`` from the embedding up.

    ``total`` is of the whole gradient; ``direct`` of the part that comes back along the residual untouched, ``branch``
    of everything else (NaN at the last stream, after which nothing is added). ``parameters (l)`` is the norm over all
    parameters of each layer, ``by_parameter`` that of every parameter.
    """

    reading: Reading
    loss: float
    ids: tuple[str, ...]
    total: Array
    direct: Array
    branch: Array
    parameters: Array
    by_parameter: Mapping[str, float]

    def report(self) -> Report:
        """Streams from the embedding to the last one, then parameters by layer."""
        columns = (
            words("stream", "残差流"), words("|gradient|", "|梯度|"), words("|along the residual|", "|沿残差|"),
            words("|through branches|", "|经分支|"), words("beside the last stream", "与最后一层之比"),
        )  # fmt: skip
        last = self.total[-1]
        rows = tuple(
            (id, cell(t), cell(a), cell(b), cell(t / last) if last else None)
            for id, t, a, b in zip(self.ids, self.total, self.direct, self.branch, strict=True)
        )
        layers = tuple((k, cell(x)) for k, x in enumerate(self.parameters))
        provenance = self.reading.provenance
        tables = (
            Table(words("Gradient of the loss at the residual stream", "损失对残差流的梯度"), columns, rows, provenance),
            Table(
                words("Gradient of the loss for the parameters of a layer", "损失对各层参数的梯度"),
                (words("layer", "层"), words("|gradient|", "|梯度|")), layers, provenance, (0,),
            ),
        )  # fmt: skip
        values = {
            "loss": self.loss, "ids": self.ids, "total": self.total, "direct": self.direct, "branch": self.branch,
            "parameters": self.parameters, "by_parameter": self.by_parameter,
        }  # fmt: skip
        title = words("Gradient norm by layer", "各层的梯度范数")
        return Report("gradients", title, provenance, tables, _NOTES, {"tokens": self.reading.n}, values)


_NOTES = (
    Note("derivation", words(
        "y = x + F(x) has the Jacobian I + J_F: the gradient of y comes back to x as it is, and once more through F.",
        "y = x + F(x) 的 Jacobian 为 I + J_F：y 的梯度原样回到 x，另有一份经 F 回来。",
    )),
    Note("intuition", words(
        "This is no proof against vanishing: F(x) = −x loses everything.",
        "这不构成“绝不会梯度消失”的证明：F(x) = −x 会失去一切。",
    )),
)  # fmt: skip


def gradient_norms(reading: Reading) -> GradientNorms:
    """Norms ``|dL/dX| = sqrt(sum of squares over rows and coordinates)`` of the text's mean loss, stream by stream.

    The gradient of a stream is the sum of what its readers send back; what the addition of the block sends back is the
    direct part, the sum of all else the branch part. Raises ``UserError`` for a text of one token.
    """
    program, config = reading.program, reading.model.config
    seen = watch(reading, loss=next_tokens(reading))
    after = streams(config)
    additions = {f"blocks.{layer}.{name}" for layer in range(config.blocks) for name in ("R", "X")}
    read_by_additions = {s.target for s in program.backward if s.consumer in additions}
    ids = [id for id in seen if id in after or (id in read_by_additions and not id.endswith((".O", ".F")))]
    parts = [_split(program, seen, id, additions) for id in ids]
    by_parameter = {name: float(np.linalg.norm(seen[f"{name}.grad"])) for name, _ in reading.model.named_parameters()}
    per_layer = [
        math.hypot(*(x for name, x in by_parameter.items() if name.startswith(f"blocks.{layer}.")))
        for layer in range(config.blocks)
    ]
    return GradientNorms(
        reading=reading, loss=float(seen["loss.L"]), ids=tuple(ids),
        total=np.array([np.linalg.norm(seen[f"{id}.grad"]) for id in ids]),
        direct=np.array([direct for direct, _ in parts]), branch=np.array([branch for _, branch in parts]),
        parameters=np.array(per_layer), by_parameter=by_parameter,
    )  # fmt: skip


def _split(program: Program, seen: Mapping[str, Array], id: str, additions: set[str]) -> tuple[float, float]:
    """Norms of what comes back to ``id`` from the addition, and of the sum of all else; NaN where nothing is added."""
    parts: dict[bool, Array] = {}
    for statement in program.contributions(id):
        value = evaluate(statement.expr, statement.letters, seen, program.scalars)
        is_direct = statement.consumer in additions
        parts[is_direct] = parts.get(is_direct, np.zeros(value.shape)) + value
    if True not in parts:
        return math.nan, math.nan
    return float(np.linalg.norm(parts[True])), float(np.linalg.norm(parts.get(False, np.zeros(1))))
