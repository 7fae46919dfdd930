"""Where two implementations compute one thing, both run over the same grid and must agree."""

from __future__ import annotations

import itertools
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


def masks(n: int, n_k: int) -> dict[str, Tensor]:
    row, column = torch.arange(n)[:, None], torch.arange(n_k)[None, :]
    return {
        "causal": column <= row + (n_k - n),
        "everything": torch.ones((n, n_k), dtype=torch.bool),
        "window": (column <= row + (n_k - n)) & (column > row + (n_k - n) - 2),
        "first only": (column == 0).expand(n, n_k).clone(),
    }


SHAPES = {
    "one cell": (1, 1, 1, 1, 1, 1),
    "heads": (2, 3, 5, 5, 4, 6),
    "one new row": (1, 2, 1, 7, 3, 2),
    "more keys": (2, 2, 4, 9, 8, 8),
}
ATTENTION_GRID = [(dtype, shape, mask) for dtype, shape in itertools.product(DTYPES, SHAPES) for mask in masks(1, 1)]


@pytest.mark.parametrize(("dtype", "shape", "mask"), ATTENTION_GRID)
def test_explicit_and_fused_attention_agree_in_value_and_gradient(dtype: torch.dtype, shape: str, mask: str) -> None:
    b, h, n, n_k, d_k, d_v = SHAPES[shape]
    generator = torch.Generator().manual_seed(0)
    allowed = masks(n, n_k)[mask]
    operands = [torch.randn(size, generator=generator) for size in ((b, h, n, d_k), (b, h, n_k, d_k), (b, h, n_k, d_v))]
    weights = torch.randn((b, h, n, d_v), generator=generator).to(dtype)
    results = []
    for attention in (explicit_attention, fused_attention):
        Q, K, V = (x.to(dtype).requires_grad_() for x in operands)
        Z = attention(Q, K, V, allowed, silent, AT)
        assert Z.dtype == dtype
        (Z * weights).sum().backward()
        results.append([Z, Q.grad, K.grad, V.grad])
    for explicit, fused in zip(*results, strict=True):
        close(explicit, fused, DTYPES[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask", masks(1, 1))
@pytest.mark.parametrize(("heads", "shared"), [(4, 2), (4, 1), (6, 3)])
@pytest.mark.parametrize(("n", "n_k"), [(5, 5), (1, 7), (4, 9)])
def test_explicit_and_fused_attention_agree_where_heads_share_keys_and_values(
    dtype: torch.dtype, mask: str, heads: int, shared: int, n: int, n_k: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    sizes = ((2, heads, n, 4), (2, shared, n_k, 4), (2, shared, n_k, 6))
    operands = [torch.randn(size, generator=generator) for size in sizes]
    weights = torch.randn((2, heads, n, 6), generator=generator).to(dtype)
    kv = head_table(heads, shared, torch.device("cpu"), silent, AT)
    results = []
    for attention in (explicit_attention, fused_attention):
        Q, K, V = (x.to(dtype).requires_grad_() for x in operands)
        Z = attention(Q, K, V, masks(n, n_k)[mask], silent, AT, kv)
        (Z * weights).sum().backward()
        results.append([Z, Q.grad, K.grad, V.grad])
    for explicit, fused in zip(*results, strict=True):
        close(explicit, fused, DTYPES[dtype])


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


def close(a: Any, b: Any, tolerance: float) -> None:
    """Relative to the largest value of the tensor."""
    scale = max(b.abs().max().item(), 1e-3)
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
