"""Parts of ``torch.nn`` that read vectors, between a fixed random embedding and a fixed random head."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

VOCABULARY = 40
CORES = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.TransformerDecoder, nn.TransformerDecoderLayer,
         nn.Transformer)  # fmt: skip


def is_core(module: nn.Module) -> bool:
    """Whether ``module`` is one of torch's own transformer parts, which take vectors and a mask."""
    return isinstance(module, CORES)


def wrapped(core: nn.Module, *, causal: bool, mask: Tensor | None = None) -> nn.Module:
    """``core`` with ids in and logits out. ``mask (n, n)`` is the mask it is to be called with (else torch's own).

    The core is copied: the user's own is left alone.
    """
    core = copy.deepcopy(core)
    if isinstance(core, nn.TransformerEncoder | nn.TransformerEncoderLayer):
        return CausalCore(core, mask) if causal or mask is not None else EncoderCore(core)
    return DecoderCore(core, mask)


class _Core(nn.Module):
    def __init__(self, core: nn.Module, mask: Tensor | None) -> None:
        super().__init__()
        self.core = core
        self.given = mask
        self.vocab_size = VOCABULARY
        if mask is not None:
            self.block_size = int(mask.shape[-1])
        layer: Any = next(part for part in core.modules() if isinstance(part, nn.MultiheadAttention))
        self.batch_first = bool(layer.batch_first)
        generator = torch.Generator().manual_seed(0)
        d = int(layer.embed_dim)
        like = next(iter(core.parameters()))
        self.table = nn.Parameter(torch.randn(VOCABULARY, d, generator=generator).to(like.dtype))
        self.head = nn.Parameter(torch.randn(VOCABULARY, d, generator=generator).to(like.dtype) / d**0.5)

    def embedded(self, ids: Tensor) -> Tensor:
        x = self.table[ids]
        return x if self.batch_first else x.transpose(0, 1)

    def logits(self, x: Tensor) -> Tensor:
        return (x if self.batch_first else x.transpose(0, 1)) @ self.head.T

    def mask(self, n: int) -> Tensor:
        """``(n, n)``: who reads whom, True or minus infinity where not."""
        if self.given is not None:
            mask = self.given[:n, :n]
            return mask.to(self.table.dtype) if mask.is_floating_point() else mask
        return torch.ones(n, n, dtype=torch.bool).triu(1)


class EncoderCore(_Core):
    """An encoder that reads in both directions."""

    def __init__(self, core: nn.Module) -> None:
        super().__init__(core, None)

    def forward(self, ids: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        x = self.embedded(ids)
        return self.logits(self.core(x, src_key_padding_mask=key_padding_mask))


class CausalCore(_Core):
    """An encoder with a causal mask, as decoder-only models are often written."""

    def forward(self, ids: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        mask: dict[str, Any] = {
            "src_mask" if isinstance(self.core, nn.TransformerEncoderLayer) else "mask": self.mask(ids.shape[1])
        }
        return self.logits(self.core(self.embedded(ids), **mask, src_key_padding_mask=key_padding_mask))


class DecoderCore(_Core):
    """A decoder beside a source, or both halves."""

    def forward(
        self,
        ids: Tensor,
        source: Tensor,
        key_padding_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        given: dict[str, Any] = {
            "tgt_mask": self.mask(ids.shape[1]),
            "tgt_key_padding_mask": key_padding_mask,
            "memory_key_padding_mask": src_key_padding_mask,
        }
        if isinstance(self.core, nn.Transformer):
            given["src_key_padding_mask"] = src_key_padding_mask
            return self.logits(self.core(self.embedded(source), self.embedded(ids), **given))
        return self.logits(self.core(self.embedded(ids), self.embedded(source), **given))
