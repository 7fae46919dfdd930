"""What a subject offers, used in the smallest way that must have an effect."""

from __future__ import annotations

import torch
from torch import Tensor

from .runs import Inputs, Run, once
from .subjects.base import Offer


def used(offer: Offer, ids: Tensor) -> Run | None:
    """``ids (1, n)`` read with ``offer`` in use, so that the last logits must move; None where probes of its own decide."""
    n = ids.shape[1]
    at = torch.arange(n)
    match offer:
        case Offer.MASK:
            # Every second token but the first, so that a query that sees nothing at all is not what is measured.
            return once(ids, mask=(((n - 1 - at) % 2 == 0) | ((at == 0) & (n > 2))).long()[None])
        case Offer.POSITIONS:
            return once(ids, positions=torch.cat([at[:-1].flip(0), at[-1:]])[None])
        case Offer.SEGMENTS:
            # The last token is a document of its own, so that a window cannot hide the border.
            return once(ids, segments=(at == n - 1).long()[None])
        case Offer.CACHE:
            return Run(calls=(Inputs(ids=ids[:, :-1]), Inputs(ids=ids[:, -1:])), cached=True)
        case Offer.EMBEDS | Offer.SOURCE | Offer.SOURCE_MASK | Offer.LABELS:
            return None
