"""Runs of a model, and claims about two of them: most laws say that some logits of two runs are the same, or differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inputs:
    """What one call of a model is given. Which argument of ``forward`` carries it is the subject's business.

    ``ids (b, n)`` int64; ``mask (b, p + n)`` int64, 1 where a token may be read, over the ``p`` positions in the cache
    and the new ones; ``positions (b, n)`` int64; ``segments (b, n)`` int64, the document of each token; ``labels (b, n)``
    int64, what stands there in the text and is to be predicted from what comes before, -100 where nothing is; ``embeds
    (b, n, d)`` in the place of ids; ``source (b, m)`` and ``source_mask (b, m)`` for an encoder. ``bare`` asks
    for the call that generation makes, which may give the logits of the last position alone. ``options`` are arguments
    of the subject's own ``forward``, by name.
    """

    ids: Tensor
    mask: Tensor | None = None
    positions: Tensor | None = None
    segments: Tensor | None = None
    labels: Tensor | None = None
    embeds: Tensor | None = None
    source: Tensor | None = None
    source_mask: Tensor | None = None
    bare: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Calls made one after another; with ``cached`` each continues the cache of those before.

    ``training`` leaves the model in training mode, with the random numbers of ``seed``, and with ``dropout`` False with
    every rate of dropout at zero; ``grad`` records for automatic differentiation; ``gain`` multiplies the weights. The
    logits of a run are those of its calls, one after another along the positions.
    """

    calls: tuple[Inputs, ...]
    cached: bool = False
    training: bool = False
    dropout: bool = True
    grad: bool = False
    gain: float = 1.0
    seed: int = 0

    @property
    def rows(self) -> int:
        return self.calls[0].ids.shape[0]

    @property
    def length(self) -> int:
        return sum(call.ids.shape[1] for call in self.calls)


def once(ids: Tensor, *, options: Mapping[str, Any] | None = None, **inputs: Any) -> Run:
    """A run of one call without a cache."""
    return Run(calls=(Inputs(ids=ids, options=options or {}, **inputs),))


def chunked(ids: Tensor, lengths: Sequence[int], **inputs: Any) -> Run:
    """``ids (b, n)`` fed through the cache in chunks of ``lengths``, which add up to ``n``."""
    if sum(lengths) != ids.shape[1]:
        raise ValueError(f"chunks of {lengths} are not {ids.shape[1]} tokens")
    return Run(calls=tuple(Inputs(ids=chunk, **inputs) for chunk in ids.split(list(lengths), 1)), cached=True)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Places in the logits of a run: ``rows (k,)`` and ``positions (k,)`` int64."""

    rows: Tensor
    positions: Tensor

    def of(self, logits: Tensor) -> Tensor:
        """``(k, V)`` of ``logits (b, n, V)``."""
        return logits[self.rows, self.positions]


def cells(pairs: Sequence[tuple[int, int]]) -> Cells:
    """The cells of ``(row, position)`` pairs."""
    table = torch.tensor(list(pairs), dtype=torch.int64).reshape(-1, 2)
    return Cells(table[:, 0], table[:, 1])


def block(rows: Sequence[int], positions: Sequence[int]) -> Cells:
    """Each of ``positions`` in each of ``rows``."""
    return cells([(row, position) for row in rows for position in positions])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Claim:
    """That the logits of ``left`` at ``left_at`` are those of ``right`` at ``right_at``, or with ``differ`` are not.

    ``right_at`` of None is ``left_at``. ``facts`` go into the witness: what was changed, the length, the chunks.
    """

    left: Run
    right: Run
    left_at: Cells
    right_at: Cells | None = None
    differ: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


def row_by_row(claim: Claim) -> Iterator[Claim]:
    """``claim`` taken apart: each row of the left run alone against its row of the right run alone."""
    right_at = claim.left_at if claim.right_at is None else claim.right_at
    pairs = torch.stack([claim.left_at.rows, right_at.rows], 1)
    for left_row, right_row in torch.unique(pairs, dim=0).tolist():
        at = (pairs == torch.tensor([left_row, right_row])).all(1)
        zero = torch.zeros(int(at.sum()), dtype=torch.int64)
        yield replace(
            claim,
            left=row_of(claim.left, left_row),
            right=row_of(claim.right, right_row),
            left_at=Cells(zero, claim.left_at.positions[at]),
            right_at=Cells(zero, right_at.positions[at]),
            facts={**claim.facts, "row_of_batch": left_row},
        )


def row_of(run: Run, row: int) -> Run:
    """``run`` on one of its rows."""
    return replace(run, calls=tuple(_row(call, row) for call in run.calls))


def _row(call: Inputs, row: int) -> Inputs:
    given = {each.name: getattr(call, each.name) for each in fields(call)}
    kept = {name: value[row : row + 1] for name, value in given.items() if isinstance(value, Tensor)}
    return replace(call, **kept)
