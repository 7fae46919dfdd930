"""Our own decoder as a subject: nothing has to be guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...generation import generate
from ...model import Decoder
from ..runs import Inputs
from ..verdict import NotSupported
from .base import Continued, Facts, Kind, ModelSubject, Offer, Outputs

OFFERS = {Offer.SEGMENTS: "segments", Offer.CACHE: "cache", Offer.LABELS: "targets"}


class DecoderSubject(ModelSubject):
    """A ``Decoder``. Padding is a segment of its own, so there is no mask to give; labels become targets and scored."""

    def __init__(self, module: Decoder, name: str = "Decoder") -> None:
        config = module.config
        attention = config.layers[0].attention
        settings = {
            "eps": config.eps, "window": config.window, "heads": attention.heads, "kv_heads": attention.kv_heads,
            "tied": config.head.tied, "positions": config.position.kind,
        }  # fmt: skip
        super().__init__(
            name, module, Kind.CAUSAL, Facts(vocab_size=config.vocab_size, context=config.context, settings=settings)
        )

    beginning = "model.new_cache()"
    keeping = "cache"

    @property
    def offers(self) -> Mapping[Offer, str]:
        return OFFERS

    def call(self, module: nn.Module, inputs: Inputs, *, keep: bool = False, cache: Any = None) -> Outputs:
        for offer in (Offer.MASK, Offer.POSITIONS, Offer.EMBEDS, Offer.SOURCE):
            if getattr(inputs, offer.value) is not None:
                self.require(offer)
        if inputs.options:
            raise NotSupported(
                f"forward takes no {next(iter(inputs.options))}", f"forward 不接受 {next(iter(inputs.options))}"
            )
        assert isinstance(module, Decoder)
        if keep and cache is None:
            cache = module.new_cache()
        targets = scored = None
        if inputs.labels is not None:
            following = torch.cat([inputs.labels[:, 1:], torch.full_like(inputs.labels[:, :1], -100)], 1)
            scored = following != -100
            targets = following.clamp(min=0)
        output = module(inputs.ids, targets, scored, cache=cache, segments=inputs.segments)
        return Outputs(output.logits, output.loss, cache)

    def continued(self, module: nn.Module, ids: Tensor, count: int, mask: Tensor | None = None) -> Continued:
        assert isinstance(module, Decoder)
        if mask is not None:
            raise NotSupported("the loop writes one text at a time", "循环一次只生成一段文本")
        written = [list(generate(module, row, count, temperature=0)) for row in ids.tolist()]
        return Continued(ids=torch.cat([ids, torch.tensor(written)], 1), start=ids.shape[1], forwards=count * len(ids))
