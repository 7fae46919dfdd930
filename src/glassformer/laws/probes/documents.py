"""Whether the segments that a model takes are documents, or types of tokens under the same name."""

from __future__ import annotations

import torch

from ..bench import Bench
from ..runs import Claim, block, once
from ..subjects.base import Offer
from ..verdict import NotSupported


def need_documents(bench: Bench) -> None:
    """Raise ``NotSupported`` unless the subject takes segments, they have an effect, and their numbers mean nothing.

    A text that is one document has the same logits under each number; the type of a token (first or second sentence) is
    added to its embedding.
    """
    bench.need(Offer.SEGMENTS)
    if not bench.known("segments are documents", lambda: _numbers_mean_nothing(bench)):
        argument = bench.subject.offers[Offer.SEGMENTS]
        raise NotSupported(
            f"{argument} has an effect of its own on a text that is one document: it holds types, not documents",
            f"{argument} 对整段单一文档也有影响：它表示类型，而不是文档",
        )


def _numbers_mean_nothing(bench: Bench) -> bool:
    ids = bench.texts(1)
    zero, one = once(ids, segments=torch.zeros_like(ids)), once(ids, segments=torch.ones_like(ids))
    found = bench.test([Claim(left=zero, right=one, left_at=block([0], range(ids.shape[1])))])
    return bench.loosened(found).kept
