"""Where two implementations compute one thing, both run over the same grid and must agree."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from glassformer.model.activation import ACTIVATIONS
from glassformer.model.attention import explicit_attention, fused_attention
from glassformer.model.grouped import head_table
from glassformer.model.loss import explicit_cross_entropy, fused_cross_entropy
from glassformer.notation import silent

DTYPES = {torch.float64: 1e-13, torch.float32: 1e-5, torch.bfloat16: 3e-2}
AT = ("here",)


def masks(b: int, n: int, n_k: int) -> dict[str, Tensor]:
    """What the last ``n`` of ``n_k`` positions may read: ``(i, j)``, or ``(b, 1, i, j)`` where the rows differ."""
    column = torch.arange(n_k)
    row = column[n_k - n :, None]
    causal = column <= row
    # Row k of the batch has a border after its first k + 1 positions: two texts, or padding and a text.
    segment = (column > torch.arange(b)[:, None]).long()
    packed = (causal & (segment[:, n_k - n :, None] == segment[:, None, :]))[:, None]
    return {
        "causal": causal,
        "everything": torch.ones((n, n_k), dtype=torch.bool),
        "window": causal & (row - column < 2),
        "first only": (column == 0).expand(n, n_k).clone(),
        "packed": packed,
        "packed, window": packed & (row - column < 2),
    }


MASKS = tuple(masks(1, 1, 1))
SHAPES = {
    "one cell": (1, 1, 1, 1, 1, 1),
    "heads": (2, 3, 3, 5, 4, 6),
    "wide heads": (2, 2, 2, 9, 8, 8),
    "two heads share": (2, 4, 2, 5, 4, 6),
    "three heads share": (3, 6, 2, 6, 4, 4),
    "all heads share": (2, 4, 1, 7, 3, 2),
}
"""Rows of the batch, heads, key-value heads, positions, ``d_k``, ``d_v``."""
MODES = {"train": (1.0, True), "prefill": (1.0, False), "continue": (0.5, False), "decode": (0.0, False)}
"""How many of the positions are new (at least one), and whether there are gradients."""


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("mode", MODES)
def test_explicit_and_fused_attention_agree_in_value_and_gradient(
    dtype: torch.dtype, shape: str, mask: str, mode: str
) -> None:
    b, heads, shared, n_k, d_k, d_v = SHAPES[shape]
    share, trains = MODES[mode]
    n = max(1, int(n_k * share))
    allowed = masks(b, n, n_k)[mask]
    assert allowed.any(-1).all()
    generator = torch.Generator().manual_seed(0)
    sizes = ((b, heads, n, d_k), (b, shared, n_k, d_k), (b, shared, n_k, d_v))
    operands = [torch.randn(size, generator=generator).to(dtype) for size in sizes]
    weights = torch.randn((b, heads, n, d_v), generator=generator).to(dtype)
    kv = None if heads == shared else head_table(heads, shared, torch.device("cpu"), silent, AT)
    results = []
    for attention in (explicit_attention, fused_attention):
        Q, K, V = (x.clone().requires_grad_(trains) for x in operands)
        with torch.set_grad_enabled(trains):
            Z = attention(Q, K, V, allowed, silent, AT, kv)
        assert (Z.dtype, Z.shape) == (dtype, weights.shape)
        if trains:
            (Z * weights).sum().backward()
        results.append([Z, Q.grad, K.grad, V.grad] if trains else [Z])
    # Who reads a single position sends nothing back to Q and K: of a gradient that is 0, no share is an error.
    least = max(x.abs().max().item() for x in results[0])
    for explicit, fused in zip(*results, strict=True):
        close(explicit, fused, DTYPES[dtype], least)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 2, 3), (3, 5, 11)])
@pytest.mark.parametrize("which", ["all", "last", "some"])
@pytest.mark.parametrize("size", [1.0, 50.0])
def test_explicit_and_fused_cross_entropy_agree_in_value_and_gradient(
    dtype: torch.dtype, shape: tuple[int, int, int], which: str, size: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    values = (torch.randn(shape, generator=generator) * size).to(dtype)
    y = torch.randint(shape[-1], shape[:2], generator=generator)
    scored = {
        "all": torch.ones(shape[:2], dtype=torch.bool),
        "last": torch.arange(shape[1]).expand(shape[:2]) == shape[1] - 1,
        "some": torch.rand(shape[:2], generator=generator) < 0.5,
    }[which].clone()
    scored[-1, -1] = True
    y = torch.where(scored, y, -100)
    results = []
    for cross_entropy in (explicit_cross_entropy, fused_cross_entropy):
        logits = values.clone().requires_grad_()
        L = cross_entropy(logits, y, scored, silent, AT)
        assert L.dtype == torch.promote_types(dtype, torch.float32)
        L.backward()
        results.append([L, logits.grad])
    for explicit, fused in zip(*results, strict=True):
        close(explicit, fused, DTYPES[dtype])


def close(a: Any, b: Any, tolerance: float, least: float = 1e-3) -> None:
    """Relative to the largest value of the tensor, or to ``least``."""
    scale = max(b.abs().max().item(), least)
    torch.testing.assert_close(a, b, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("size", [0.5, 3.0, 30.0])
def test_explicit_and_fused_activations_agree_in_value_and_gradient(dtype: torch.dtype, name: str, size: float) -> None:
    values = (torch.randn((2, 5, 7), generator=torch.Generator().manual_seed(0)) * size).to(dtype)
    values[0, 0, 0] = 0.0
    results = []
    for compute in (lambda B: ACTIVATIONS[name].explicit(B, silent, AT), ACTIVATIONS[name].fused):
        B = values.clone().requires_grad_()
        C = compute(B)
        assert C.dtype == dtype
        C.sum().backward()
        results.append([C, B.grad])
    for explicit, fused in zip(*results, strict=True):
        close(explicit, fused, DTYPES[dtype])
