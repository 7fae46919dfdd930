"""Attention seen from outside: what foreign code hands to torch's softmax and scaled dot-product attention.

Foreign modules do not say what they compute. A function mode sees every call of torch that they make, and hooks tell in
which module it was made; both live on the bench's copy and are gone when the block ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

_SOFTMAX = (torch.softmax, Tensor.softmax, F.softmax)
_PRODUCT = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm)
READ = 1e-30
"""A coefficient above this counts as reading: what is masked gets exactly zero, or the least number there is."""


@dataclass(frozen=True, slots=True, eq=False)
class SeenAttention:
    """One attention: ``module`` it was computed in, ``scores`` and ``weights (..., i, j)``, ``d_k`` where it was seen.

    ``product (..., i, j)`` is the last matrix product of that shape before the scores, None where none was seen: queries
    by keys, with whatever factor they were given before.
    """

    module: str
    scores: Tensor
    weights: Tensor
    product: Tensor | None = None
    d_k: int | None = None

    def reads(self) -> Tensor:
        """``(i, j)`` bool: who reads whom in any row and head."""
        return (self.weights > READ).reshape(-1, *self.weights.shape[-2:]).any(0)


class Spy(TorchFunctionMode):
    """Collects ``SeenAttention`` of ``n`` queries while it is entered; ``within`` names the module that runs."""

    def __init__(self, n: int, within: Sequence[str] = ()) -> None:
        super().__init__()
        self.n = n
        self.within = within
        self.seen: list[SeenAttention] = []
        self._product: tuple[Tensor, int] | None = None

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            self._fused(*args, **kwargs)
        elif func in _PRODUCT and self._square(result):
            self._product = (result.detach(), args[0].shape[-1])
        elif func in _SOFTMAX and self._square(args[0]) and _last(args, kwargs, result):
            product, d_k = self._product or (None, None)
            if product is not None and product.numel() != result.numel():
                product = d_k = None
            shaped = None if product is None else product.reshape(result.shape)
            self._add(args[0].detach(), result.detach(), shaped, d_k)
            self._product = None
        return result

    def _square(self, x: Any) -> bool:
        return isinstance(x, Tensor) and x.ndim >= 3 and x.shape[-2] == self.n and x.shape[-1] >= self.n

    def _fused(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> None:  # fmt: skip
        """What the fused kernel computed, written out."""
        if query.shape[-2] != self.n:
            return
        if enable_gqa:
            key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        product = (query @ key.transpose(-1, -2)).detach()
        scores = product * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
        if is_causal:
            triangle = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            scores = scores.masked_fill(~triangle, -math.inf)
        elif attn_mask is not None:
            masked = attn_mask.dtype is torch.bool
            scores = scores.masked_fill(~attn_mask, -math.inf) if masked else scores + attn_mask.detach()
        self._add(scores, scores.softmax(-1).nan_to_num(0.0), product, query.shape[-1])

    def _add(self, scores: Tensor, weights: Tensor, product: Tensor | None, d_k: int | None) -> None:
        module = self.within[-1] if self.within else ""
        self.seen.append(SeenAttention(module, scores, weights, product, d_k))


def _last(args: Sequence[Any], kwargs: Mapping[str, Any], x: Tensor) -> bool:
    """Whether a softmax runs along the last axis."""
    axis = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    return axis in (-1, x.ndim - 1)


@contextmanager
def spying(module: nn.Module, n: int) -> Iterator[Spy]:
    """See the attention of every forward of ``module`` that has ``n`` queries."""
    with entered(module) as within, Spy(n, within) as spy:
        yield spy


@contextmanager
def entered(module: nn.Module) -> Iterator[list[str]]:
    """The names of the parts of ``module`` that are running, from the outermost to the innermost."""
    within: list[str] = []
    hooks = []
    for name, part in module.named_modules():
        hooks.append(part.register_forward_pre_hook(lambda *_, name=name: within.append(name)))
        hooks.append(part.register_forward_hook(lambda *_: _left(within), always_call=True))
    try:
        yield within
    finally:
        for hook in hooks:
            hook.remove()


def _left(within: list[str]) -> None:
    within.pop()


def drawn(reads: Tensor) -> tuple[str, ...]:
    """``reads (i, j)`` as lines: ``#`` where row i reads position j, ``.`` where not."""
    return tuple("".join("#" if cell else "." for cell in row) for row in reads.tolist())
