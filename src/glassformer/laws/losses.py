"""Losses and gradients of a model on the bench, and what they are by definition, in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from .bench import Bench
from .runs import Inputs, Run
from .subjects.base import Kind, Offer, Outputs
from .verdict import NotSupported
from .weights import parameters, restored

IGNORED = -100
"""The label of a position that is not scored."""

LOSS_ROUNDING = 1e-5
"""What a loss may be off, in units of the largest logit: much code takes it in float32 whatever the model's precision."""

Gradients = Mapping[str, Tensor]


def aligned(logits: Tensor, labels: Tensor, kind: Kind = Kind.CAUSAL) -> tuple[Tensor, Tensor]:
    """``(k, V)`` and ``(k,)``: the logits that are scored, each with its label.

    Logits at i belong to the text at i + 1, but where a model fills in what was hidden, to the text at i.
    """
    given, wanted = (logits, labels) if kind is Kind.MASKED else (logits[:, :-1], labels[:, 1:])
    scored = wanted != IGNORED
    return given[scored], wanted[scored]


def cross_entropy(logits: Tensor, labels: Tensor, kind: Kind = Kind.CAUSAL, smoothing: float = 0.0) -> Tensor:
    """``()`` in float64: the mean over what is scored of -ln p of the label, ``smoothing`` of it spread over all N."""
    given, wanted = aligned(logits.double(), labels, kind)
    log_p = given.log_softmax(-1)
    nll = -log_p.gather(-1, wanted[:, None])[:, 0]
    return ((1 - smoothing) * nll - smoothing * log_p.mean(-1)).mean()


def evaluate(
    bench: Bench,
    call: Inputs,
    *,
    module: nn.Module | None = None,
    grad: bool = False,
    training: bool = False,
    gain: float = 1.0,
    seed: int = 0,
) -> Outputs:
    """One call of the bench's model, or of ``module`` in its place; counted."""
    run = Run(calls=(call,), grad=grad, training=training, gain=gain, seed=seed)
    with bench.mode(run):
        if module is not None:
            module.train(training)
        bench.spent.forwards += 1
        return bench.subject.call(bench.module if module is None else module, _whole(bench.fitted(call)))


def _whole(call: Inputs) -> Inputs:
    """``call`` with its tensors laid out one after another: whether code needs that is for another law."""
    tensors = {name: value for name in call.__slots__ if isinstance(value := getattr(call, name), Tensor)}
    return replace(call, **{name: value.contiguous() for name, value in tensors.items()})


def reported(outputs: Outputs) -> Tensor:
    """The model's own loss; raises ``NotSupported`` where it gives none, or not one number."""
    if outputs.loss is None:
        raise NotSupported("labels are taken and no loss is returned", "接受标签，却不返回损失")
    if outputs.loss.numel() != 1:
        raise NotSupported("the loss is not one number", "损失不是一个数")
    return outputs.loss.reshape(())


def scored(bench: Bench, ids: Tensor, labels: Tensor, mask: Tensor | None = None, *, grad: bool = False) -> Outputs:
    """A call with labels. Raises ``NotSupported`` where the model takes none."""
    bench.subject.require(Offer.LABELS)
    return evaluate(bench, Inputs(ids=ids, labels=labels, mask=mask), grad=grad)


def loss_bound(logits: Tensor, moved: float = 0.0) -> float:
    """What a loss on ``logits``, which differ by up to ``moved`` between two calls, may be off by rounding (nats)."""
    return LOSS_ROUNDING * (1 + float(logits.detach().abs().max())) + 2 * moved


def learning(module: nn.Module) -> dict[str, Tensor]:
    """Every parameter of a copy that learns, by name, once; all are made to where the user has frozen all of them."""
    found = dict(parameters(module))
    for parameter in found.values():
        parameter.requires_grad_(True)
    return found


def backward(bench: Bench, loss: Tensor, module: nn.Module | None = None) -> dict[str, Tensor]:
    """The gradient of ``loss`` with respect to each parameter, by name, in float64; zeros where it has no part in it."""
    named = learning(bench.module if module is None else module)
    bench.spent.forwards += 1
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {
        name: torch.zeros_like(p, dtype=torch.float64) if g is None else _dense(g).double()
        for (name, p), g in zip(named.items(), found, strict=True)
    }


def _dense(gradient: Tensor) -> Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Objective:
    """The cross-entropy in float64 of the logits of ``call``: a function of the parameters whoever wrote the loss.

    Labels are the text itself; a model that fills in is asked for another text.
    """

    bench: Bench
    call: Inputs
    training: bool = False

    @property
    def labels(self) -> Tensor:
        return self.bench.other(self.call.ids) if self.bench.subject.kind is Kind.MASKED else self.call.ids

    def value(self, module: nn.Module | None = None, *, grad: bool = False) -> Tensor:
        kind, labels = self.bench.subject.kind, self.labels
        if kind is not Kind.MASKED and labels.shape[1] < 2:
            raise NotSupported("a text of one token has nothing to predict", "单个词元的文本无可预测")
        if grad:
            learning(self.bench.module if module is None else module)
        outputs = evaluate(self.bench, self.call, module=module, grad=grad, training=self.training)
        if grad and not outputs.logits.requires_grad:
            raise NotSupported("the logits are cut off from the parameters", "logits 与参数之间没有梯度通路")
        return cross_entropy(outputs.logits, labels, kind)

    def here(self) -> float:
        """The loss where the parameters stand; on the usual rows the bench has the logits."""
        call = self.call
        if self.training or call.options or any(x is not None for x in (call.mask, call.positions, call.segments)):
            return float(self.value())
        logits = self.bench.logits(self.bench.plain(call.ids))
        return float(cross_entropy(logits, self.labels, self.bench.subject.kind))

    def gradients(self, module: nn.Module | None = None) -> tuple[float, dict[str, Tensor]]:
        """Loss and gradient by parameter."""
        loss = self.value(module, grad=True)
        return float(loss.detach()), backward(self.bench, loss, module)


@contextmanager
def moved(bench: Bench, direction: Gradients, by: float) -> Iterator[None]:
    """Inside, the parameters are moved ``by`` times ``direction``; afterwards they are bit for bit as before."""
    named = dict(parameters(bench.module))
    with restored(named[name] for name in direction):
        with torch.no_grad():
            for name, step in direction.items():
                named[name].add_((by * step).to(named[name].dtype))
        yield


def double_only(bench: Bench) -> None:
    """Raise ``NotSupported`` where differences would drown in rounding."""
    if bench.dtype is not torch.float64:
        raise NotSupported("differences need float64", "差商需要 float64")


def largest(gradients: Gradients) -> float:
    """The largest number in any of ``gradients``."""
    return max((float(g.abs().max()) for g in gradients.values() if g.numel()), default=0.0)


def apart(left: Gradients, right: Gradients) -> tuple[float, str]:
    """The largest difference between two gradients, in units of the largest number of ``right``, and where it is."""
    size = max(largest(right), 1e-300)
    found = {name: float((left[name] - right[name]).abs().max()) for name in right if right[name].numel()}
    name = max(found, key=lambda each: found[each] if found[each] == found[each] else float("inf"))
    return found[name] / size, name
