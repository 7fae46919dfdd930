"""What laws ask of a loss on its own: value, gradient, and what ignored targets do to it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..losses import IGNORED, LOSS_ROUNDING, aligned
from ..subjects.base import Kind
from ..subjects.training import Loss
from ..verdict import Finding, NotSupported

ROWS, LENGTH, VOCABULARY = 3, 7, 11
SIZE = 1e4
COLUMNS = 3


def drawn(loss: Loss, seed: int = 0, size: float = 3.0) -> tuple[Tensor, Tensor]:
    """``logits (3, 7, 11)`` in float64 and labels: all of the first row, half of the second, two of the third."""
    generator = torch.Generator().manual_seed(seed)
    logits = size * torch.randn(ROWS, LENGTH, VOCABULARY, generator=generator, dtype=torch.float64)
    labels = torch.randint(VOCABULARY, (ROWS, LENGTH), generator=generator)
    labels[1, : LENGTH // 2 + 1] = IGNORED
    labels[2, : LENGTH - 2] = IGNORED
    if not loss.shift:
        labels[:, -1] = IGNORED
    return logits, labels


def called(loss: Loss, logits: Tensor, labels: Tensor) -> Tensor:
    """What ``loss`` says; of all tokens together where it reduces nothing. Raises ``NotSupported`` for another shape."""
    found = loss.call(logits, labels)
    if loss.reduction != "none" and found.numel() != 1:
        raise NotSupported(f"the loss has the shape {tuple(found.shape)}", f"损失的形状为 {tuple(found.shape)}")
    return found.sum()


def defined(loss: Loss, logits: Tensor, labels: Tensor) -> Tensor:
    """The same by definition, in float64."""
    given, wanted = aligned(logits.double(), labels, Kind.CAUSAL if loss.shift else Kind.MASKED)
    log_p = given.log_softmax(-1)
    nll = -log_p.gather(-1, wanted[:, None])[:, 0]
    each = (1 - loss.smoothing) * nll - loss.smoothing * log_p.mean(-1)
    return each.mean() if loss.reduction == "mean" else each.sum()


def bound(logits: Tensor, labels: Tensor, loss: Loss) -> float:
    """What rounding in float32 may do (nats)."""
    count = 1 if loss.reduction == "mean" else int((labels != IGNORED).sum())
    return LOSS_ROUNDING * count * (1 + float(logits.abs().max()))


def added_columns(loss: Loss) -> Finding:
    """A column block and a row that are not scored, whatever logits and ignored labels they hold."""
    logits, labels = drawn(loss)
    wider = torch.cat([logits, 50 * drawn(loss, seed=1)[0][:, :COLUMNS]], 1)
    wider = torch.cat([wider, wider[:1].flip(1)], 0)
    ignored = torch.full(wider.shape[:2], IGNORED)
    ignored[:ROWS, :LENGTH] = labels
    without, with_ = float(called(loss, logits, labels)), float(called(loss, wider, ignored))
    facts = {"loss": with_, "loss_without": without}
    measured = abs(with_ - without)
    return Finding(measured=measured, bound=bound(wider, ignored, loss), unit="nat", witness=facts)


def without_targets(loss: Loss) -> Finding:
    """An error, or numbers that are finite in value and gradient."""
    logits = drawn(loss)[0].requires_grad_()
    unit = "numbers that are not finite"
    called(loss, logits, drawn(loss)[1])  # what cannot be called at all is no witness
    try:
        value = called(loss, logits, torch.full(logits.shape[:2], IGNORED))
    except Exception as error:  # noqa: BLE001 - an error is what the law asks for
        return Finding(measured=0.0, bound=0.0, unit=unit, witness={"raised": str(error)[:200]})
    bad = int(not math.isfinite(float(value.detach())))
    if value.requires_grad:
        bad += int((~torch.autograd.grad(value, logits)[0].isfinite()).sum())
    return Finding(measured=float(bad), bound=0.0, unit=unit, witness={"loss": float(value.detach())})


def gradient(loss: Loss) -> Finding:
    """The gradient by autograd against that of the definition, with other factors above than 1."""
    logits, labels = drawn(loss)
    labels = torch.where(labels == VOCABULARY - 1, 0, labels)  # code that counts classes in what is scored has one less
    found, expected = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    value = loss.call(found, labels)
    if not value.requires_grad:
        raise NotSupported("the loss has no gradient", "损失没有梯度")
    (3 * value.sum()).backward()
    (3 * defined(loss, expected, labels)).backward()
    assert found.grad is not None
    assert expected.grad is not None
    measured = float((found.grad.double() - expected.grad).abs().max() / expected.grad.abs().max())
    return Finding(measured=measured, bound=1e-4, unit="share of the largest gradient", witness={"upstream": 3})


def large(loss: Loss) -> Finding:
    """Logits of 1e4: the loss is a number, the same after a shift of all logits."""
    logits, labels = drawn(loss, size=SIZE / 3)
    expected = float(defined(loss, logits, labels))
    off = [abs(float(called(loss, logits + shift, labels)) - expected) for shift in (0.0, SIZE)]
    worst = max(off, key=lambda x: math.inf if math.isnan(x) else x)
    facts = {"largest_logit": float(logits.abs().max()), "expected": expected}
    return Finding(measured=worst, bound=bound(logits + SIZE, labels, loss), unit="nat", witness=facts)
