"""Attention beside measured effect: a large coefficient says how much of a value was mixed in, not how much it mattered.

For one row ``i``, one layer and one target: what attention looks like, what first-order estimates say, and what happens
when the part is taken out and the model runs again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ...bilingual import same, words
from .places import key_heads
from .ranks import spearman
from .reading import NO_CHANGES, Aim, Array, Change, Changes, Reading, check_layer, losses, rerun, watch
from .report import Note, Report, Table, cell


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """What taking parts out did: changes (removed minus whole) of the loss in nats and of the target's logit.

    NaN where the part cannot be taken out: a row that reads one position only would have nothing left to read.
    """

    loss: Array
    logit: Array


@dataclass(frozen=True, slots=True, eq=False)
class AttentionEffect:
    """Of one row and layer; ``j`` runs over the positions up to the row, ``l`` over layers.

    ``coefficient (h, j)`` is A, ``norm (h, j)`` the length of ``A v W_O``, ``gradient_times_value (h, j)`` is A times
    the loss's gradient of A, ``first_order (h, j)`` predicts the loss change of ``cells (h, j)``: one coefficient of one
    head taken out. ``direct (j)``: the row reads ``j`` in no layer and head. ``everywhere (j)``: nor does any other row
    but ``j`` itself. ``heads (l, h)`` and ``blocks (l)``: a head's output, or what a block adds, is zero.
    ``agreement (h, 3)``: Spearman's correlation of coefficient, norm, and \\|gradient times value\\| with the size of the
    loss change, over the positions that the row may read. ``allowed (j)`` says which these are.
    """

    reading: Reading
    aim: Aim
    layer: int
    loss: float
    logit: float
    allowed: Array
    coefficient: Array
    norm: Array
    gradient_times_value: Array
    first_order: Array
    cells: Removal
    direct: Removal
    everywhere: Removal
    heads: Removal
    blocks: Removal
    agreement: Array

    def report(self) -> Report:
        """Positions, cells, heads and blocks with what each removal changed."""
        i, layer = self.aim.row, self.layer
        target = self.reading.vocabulary[self.aim.target]
        return Report(
            "attention",
            words("Attention beside measured effect", "注意力与实测影响"),
            self.reading.provenance,
            (self._positions(), self._cells(), self._agreement(), self._heads(), self._blocks()),
            _NOTES,
            {"row": i, "token": self.reading.text(i), "target": self.aim.target, "target_token": target, "layer": layer},
            {
                "loss": self.loss, "logit": self.logit, "allowed": self.allowed, "A": self.coefficient, "norm": self.norm,
                "gradient_times_value": self.gradient_times_value, "first_order": self.first_order,
                "agreement": self.agreement,
                **{f"{name}_{what}": getattr(getattr(self, name), what) for name in _PARTS for what in ("loss", "logit")},
            },
        )  # fmt: skip

    def _positions(self) -> Table:
        columns = (
            _J, _TOKEN, words("mean A of the layer", "该层 A 的均值"),
            words("ΔL, this row", "ΔL（本行不读）"), words("Δlogit", "Δ分数"),
            words("ΔL, every row", "ΔL（各行不读）"), words("Δlogit", "Δ分数"),
        )  # fmt: skip
        rows = (
            (j, self.reading.text(j), cell(self.coefficient[:, j].mean()), cell(self.direct.loss[j]),
             cell(self.direct.logit[j]), cell(self.everywhere.loss[j]), cell(self.everywhere.logit[j]))
            for j in range(self.reading.n)
        )  # fmt: skip
        title = words("One position not read", "不读某个位置")
        return Table(title, columns, tuple(rows), self.reading.provenance, (0,))

    def _cells(self) -> Table:
        columns = (
            _HEAD, _J, _TOKEN, same("A"), same("‖A v W_O‖"), same("A · ∂L/∂A"), words("ΔL, first order", "ΔL 一阶"),
            words("ΔL, measured", "ΔL 实测"), words("Δlogit", "Δ分数"),
        )  # fmt: skip
        shown = [(h, j) for h in range(len(self.coefficient)) for j in map(int, np.flatnonzero(self.allowed))]
        order = sorted(shown, key=lambda at: -np.nan_to_num(abs(self.cells.loss[at])))
        arrays = (self.coefficient, self.norm, self.gradient_times_value, self.first_order)
        rows = (
            (h, j, self.reading.text(j), *(cell(x[h, j]) for x in (*arrays, self.cells.loss, self.cells.logit)))
            for h, j in order
        )
        title = words(
            "One coefficient of the layer taken out: largest effects first",
            "去掉该层的一个系数，影响大的在前",
        )
        return Table(title, columns, tuple(rows), self.reading.provenance, (0, 1))

    def _agreement(self) -> Table:
        columns = (_HEAD, same("A"), same("‖A v W_O‖"), same("|A · ∂L/∂A|"))
        title = words("Rank correlation (Spearman) with the size of ΔL", "与 |ΔL| 的秩相关（Spearman）")
        rows = ((h, *map(cell, row)) for h, row in enumerate(self.agreement))
        return Table(title, columns, tuple(rows), self.reading.provenance, (0,))

    def _heads(self) -> Table:
        removed, (layers, heads) = self.heads, self.heads.loss.shape
        rows = (
            (k, h, cell(removed.loss[k, h]), cell(removed.logit[k, h])) for k in range(layers) for h in range(heads)
        )
        columns = (_LAYER, _HEAD, same("ΔL"), words("Δlogit", "Δ分数"))
        return Table(words("One head taken out", "去掉一个头"), columns, tuple(rows), self.reading.provenance, (0, 1))

    def _blocks(self) -> Table:
        pairs = zip(self.blocks.loss, self.blocks.logit, strict=True)
        rows = ((k, cell(loss), cell(logit)) for k, (loss, logit) in enumerate(pairs))
        columns = (_LAYER, same("ΔL"), words("Δlogit", "Δ分数"))
        return Table(words("One block taken out", "去掉一层"), columns, tuple(rows), self.reading.provenance, (0,))


_PARTS = ("cells", "direct", "everywhere", "heads", "blocks")
_J, _TOKEN = same("j"), words("token", "词元")
_HEAD, _LAYER = words("head", "头"), words("layer", "层")
_NOTES = (
    Note("definition", words(
        "Taken out: the score is minus infinity, so the softmax shares the coefficient among the other positions; a head's "
        "Z is 0; what a block adds is 0. Δ is the run without the part minus the whole run.",
        "去掉是指：分数设为负无穷，其系数由 softmax 分给其余位置；头的 Z 设为 0；层所加之量设为 0。Δ 为去掉后减去原来。",
    )),
    Note("derivation", words(
        "To first order, taking one coefficient out changes the loss by −(∂L/∂S)/(1−A).",
        "一阶近似：去掉一个系数使损失改变 −(∂L/∂S)/(1−A)。",
    )),
    Note("intuition", words(
        "A large coefficient is no measure of effect: direction and size of the value, other heads, projection, residual "
        "and what comes after decide too.",
        "系数大不等于影响大：Value 的方向与大小、其他头、投影、残差和后续非线性都会改变最终效果。",
    )),
)  # fmt: skip


def attention_effect(reading: Reading, aim: Aim, layer: int = -1) -> AttentionEffect:
    """Measure, for every position ``j`` that row ``i`` of ``aim`` reads in ``layer``:

    - the coefficient ``A[h,i,j]``;
    - the value-weighted norm ``|A[h,i,j] v_j W_O^(h)|`` (Kobayashi et al. 2020);
    - gradient times value ``A[h,i,j] dL/dA[h,i,j]``;
    - the change of the loss ``L = -ln p[i,target]`` and of the logit of ``target`` when the model runs again without it.

    To take position ``j`` out of a head, its score becomes minus infinity, which is what a mask does: the softmax shares
    the coefficient among what is left. To first order the loss then changes by ``-dL/dS[h,i,j] / (1 - A[h,i,j])``: all
    other coefficients grow by the factor ``1/(1 - A)``. A head is taken out with ``Z^(h) = 0``, a block with ``O = 0`` and
    ``F = 0``, so that biases of these outputs go too in the latter case. Raises ``UserError`` for an unknown layer.
    """
    layer = check_layer(reading, layer)
    whole, i = reading.until(aim.row), aim.row
    seen = watch(whole, loss=aim.scored(whole.n))
    at, H = f"blocks.{layer}.attn", whole.model.config.layers[layer].attention.heads
    A, A_grad = (seen[name][:, i] for name in (f"{at}.A", f"{at}.A.grad"))
    values = np.einsum("hje,her->hjr", seen[f"{at}.V"][key_heads(whole.model.config, layer)], seen[f"{at}.W_O"])
    allowed = np.isfinite(seen[f"{at}.S"][0, i])
    with np.errstate(divide="ignore", invalid="ignore"):
        first_order = np.where(A < 1, -seen[f"{at}.S.grad"][:, i] / (1 - A), np.nan)

    before = rerun(whole, i, [NO_CHANGES])
    cells = _cells(whole, aim, layer, seen, before)
    size, norm = np.abs(cells.loss), A * np.linalg.norm(values, axis=-1)
    guesses = (A, norm, np.abs(A * A_grad))
    judged = allowed & np.isfinite(size).all(0)
    agreement = [[spearman(guess[h, judged], size[h, judged]) for guess in guesses] for h in range(H)]
    return AttentionEffect(
        reading=whole, aim=aim, layer=layer,
        loss=float(losses(before, aim.target)[0]), logit=float(before[0, aim.target]), allowed=allowed,
        coefficient=A, norm=norm, gradient_times_value=A * A_grad, first_order=first_order, cells=cells,
        direct=_positions(whole, aim, seen, before, everywhere=False),
        everywhere=_positions(whole, aim, seen, before, everywhere=True),
        heads=_removal(whole, aim, before, _heads(whole), (whole.model.config.blocks, H)),
        blocks=_removal(whole, aim, before, _blocks(whole), (whole.model.config.blocks,)),
        agreement=np.array(agreement),
    )  # fmt: skip


def _cells(reading: Reading, aim: Aim, layer: int, seen: dict[str, Array], before: Array) -> Removal:
    """One coefficient ``A[h,i,j]`` at a time."""
    id, i = f"blocks.{layer}.attn.S", aim.row
    read = np.isfinite(seen[id][:, i])

    def without(h: int, j: int) -> Changes | None:
        if not read[h, j]:
            return NO_CHANGES
        return _unread([id], h, [i], j) if read[h].sum() > 1 else None

    alternatives = [without(h, j) for h, j in np.ndindex(*read.shape)]
    return _removal(reading, aim, before, alternatives, read.shape)


def _positions(reading: Reading, aim: Aim, seen: dict[str, Array], before: Array, *, everywhere: bool) -> Removal:
    """One position at a time, in every layer and head; for the row itself both ways of taking it out are the same."""
    i = aim.row
    # Heads have one mask.
    masks = {id: np.isfinite(seen[id][0]) for id in (f"blocks.{k}.attn.S" for k in range(reading.model.config.blocks))}
    alternatives: list[Changes | None] = []
    for j in range(i + 1):
        rows = list(range(j + 1, i + 1)) if everywhere and j < i else [i]
        read = [id for id, allowed in masks.items() if allowed[rows, j].any()]
        starved = any(allowed[m, j] and allowed[m].sum() == 1 for allowed in masks.values() for m in rows)
        alternatives.append(None if starved else _unread(read, slice(None), rows, j))
    return _removal(reading, aim, before, alternatives, (i + 1,))


def _heads(reading: Reading) -> list[Changes]:
    layers = reading.model.config.layers
    return [{f"blocks.{k}.attn.Z": _head_off(h)} for k, x in enumerate(layers) for h in range(x.attention.heads)]


def _blocks(reading: Reading) -> list[Changes]:
    def added(layer: int) -> list[str]:
        ffn = reading.model.config.layers[layer].ffn
        return [f"blocks.{layer}.attn.O", *([] if ffn is None else [f"blocks.{layer}.ffn.F"])]

    return [dict.fromkeys(added(layer), torch.zeros_like) for layer in range(reading.model.config.blocks)]


def _removal(
    reading: Reading, aim: Aim, before: Array, alternatives: Sequence[Changes | None], shape: tuple[int, ...]
) -> Removal:
    """What each of ``alternatives`` changes, in ``shape``.

    None stands for what cannot be taken out. Nothing is run again for an empty set of changes (a position that the mask
    hides already): its effect is zero, not the rounding of another order of sums.
    """
    after = np.tile(before, (len(alternatives), 1))
    after[[k for k, changes in enumerate(alternatives) if changes is None]] = np.nan
    made = [(k, changes) for k, changes in enumerate(alternatives) if changes]
    after[[k for k, _ in made]] = rerun(reading, aim.row, [changes for _, changes in made])
    loss = losses(after, aim.target) - losses(before, aim.target)
    return Removal(loss.reshape(shape), (after[:, aim.target] - before[0, aim.target]).reshape(shape))


def _unread(ids: Sequence[str], head: int | slice, rows: list[int], j: int) -> Changes:
    """No row of ``rows`` reads position ``j``, by the scores ``ids``."""

    def change(S: torch.Tensor) -> torch.Tensor:
        changed = S.clone()
        changed[:, head, rows, j] = -math.inf
        return changed

    return dict.fromkeys(ids, change)


def _head_off(head: int) -> Change:
    def change(Z: torch.Tensor) -> torch.Tensor:
        changed = Z.clone()
        changed[:, head] = 0.0
        return changed

    return change
