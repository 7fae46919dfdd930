"""What laws ask of whatever makes a batch of documents with labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..losses import IGNORED
from ..subjects.training import Collator
from ..verdict import Finding, NotApplicable, NotSupported

LENGTHS = (7, 3, 5)
UNIT = "labels"


def documents(collator: Collator) -> list[list[int]]:
    """Documents of 7, 3 and 5 tokens, each closed by its end of text; no other of their ids is special."""
    allowed = [i for i in range(collator.vocab_size) if i not in (collator.pad, collator.eos)]
    generator = torch.Generator().manual_seed(0)
    drawn = iter(torch.randperm(len(allowed), generator=generator)[: sum(LENGTHS)].tolist())
    return [[*(allowed[next(drawn)] for _ in range(length - 1)), collator.eos] for length in LENGTHS]


@dataclass(frozen=True, slots=True)
class Made:
    """A batch: ``ids (b, n)``, ``labels (b, n)`` as the text itself, and where ``spans`` (row, first, last) documents lie."""

    ids: Tensor
    labels: Tensor
    spans: list[tuple[int, int, int]]


def made(collator: Collator) -> Made:
    """The batch of ``documents``. Raises ``NotSupported`` where they are not found in it."""
    batch = collator.call([list(document) for document in documents(collator)])
    if "input_ids" not in batch or "labels" not in batch:
        raise NotSupported("the batch has no input_ids and labels", "批中没有 input_ids 与 labels")
    ids, labels = (torch.as_tensor(batch[name]).long() for name in ("input_ids", "labels"))
    if ids.ndim == 1:
        ids, labels = ids[None], labels[None]
    if not collator.shift:  # back to where the token stands; the last target of a row stands beside all inputs
        last = torch.where(labels[:, -1:] == IGNORED, collator.pad, labels[:, -1:])
        ids, labels = torch.cat([ids, last], 1), torch.cat([torch.full_like(labels[:, :1], IGNORED), labels], 1)
    return Made(ids, labels, [_found(ids, document) for document in documents(collator)])


def _found(ids: Tensor, document: list[int]) -> tuple[int, int, int]:
    wanted = torch.tensor(document)
    for row in range(ids.shape[0]):
        for first in range(ids.shape[1] - len(document) + 1):
            if torch.equal(ids[row, first : first + len(document)], wanted):
                return row, first, first + len(document)
    raise NotSupported("a document of the batch was not found in input_ids", "在 input_ids 中没有找到某个文档")


def stand_where_their_token_stands(collator: Collator) -> Finding:
    """Each label that is scored is the token of the same place."""
    batch = made(collator)
    wrong = (batch.labels != IGNORED) & (batch.labels != batch.ids)
    return Finding(measured=float(wrong.sum()), bound=0.0, unit=UNIT, witness=_place(wrong))


def score_tokens_alone(collator: Collator) -> Finding:
    """All tokens of the documents but the first are targets, and nothing else is."""
    batch = made(collator)
    token, free = torch.zeros_like(batch.ids, dtype=torch.bool), torch.zeros_like(batch.ids, dtype=torch.bool)
    for row, first, last in batch.spans:
        token[row, first:last] = True
        free[row, first] = True  # whether there is something before it to predict it from is for another probe
    wrong = ((batch.labels != IGNORED) != token) & ~free
    return Finding(measured=float(wrong.sum()), bound=0.0, unit=UNIT, witness=_place(wrong))


def score_every_end(collator: Collator) -> Finding:
    """The end of each document is a target, even where padding has the same id."""
    batch = made(collator)
    missing = torch.zeros_like(batch.ids, dtype=torch.bool)
    for row, _, last in batch.spans:
        missing[row, last - 1] = int(batch.labels[row, last - 1]) != collator.eos
    facts = {"end": collator.eos, "padding": collator.pad, **_place(missing)}
    return Finding(measured=float(missing.sum()), bound=0.0, unit=UNIT, witness=facts)


def score_no_seam(collator: Collator) -> Finding:
    """The first token of a document is no target of the document before it."""
    if not collator.packed:
        raise NotApplicable("the collator does not pack documents that are apart", "该整理器不把互不相读的文档拼在一行")
    batch = made(collator)
    crossed = torch.zeros_like(batch.ids, dtype=torch.bool)
    for row, first, _ in batch.spans:
        crossed[row, first] = first > 0 and int(batch.labels[row, first]) != IGNORED
    if not any(first > 0 for _, first, _ in batch.spans):
        raise NotApplicable("no two documents share a row", "没有两个文档同处一行")
    return Finding(measured=float(crossed.sum()), bound=0.0, unit=UNIT, witness=_place(crossed))


def _place(wrong: Tensor) -> dict[str, int]:
    if not wrong.any():
        return {}
    row, position = wrong.nonzero()[0].tolist()
    return {"row": row, "position": position}
