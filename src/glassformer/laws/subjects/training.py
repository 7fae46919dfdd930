"""Losses, collators and trainers as subjects: three lines of a user each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from ..law import Family
from ..verdict import NotSupported

Named = Mapping[str, Tensor]
"""Parameters or gradients by name."""

Pair = tuple[Tensor, Tensor]
"""``ids (b, n)`` and ``labels (b, n)`` of one micro-batch, both int64; labels are the text, -100 where not scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A loss: ``call`` maps ``logits (b, n, V)`` and ``labels (b, n)`` int64 to a scalar.

        Loss(name="mine", call=lambda logits, labels: my_loss(logits, labels))

    With ``shift`` labels are the text itself and the loss compares logits at i with labels at i + 1; without, labels
    are what comes next already. ``reduction`` of ``none`` gives ``(b, n)`` or ``(b, n - 1)``, or all of it in one row.
    """

    name: str
    call: Callable[[Tensor, Tensor], Tensor]
    shift: bool = True
    smoothing: float = 0.0
    reduction: Literal["mean", "sum", "none"] = "mean"

    family = Family.LOSS


@dataclass(frozen=True, slots=True, kw_only=True)
class Collator:
    """What makes a batch of documents: ``call`` maps lists of ids to ``input_ids`` and ``labels``, each ``(b, n)``.

        Collator(name="mine", call=my_collator, pad=0, eos=2)

    Each document is given with its end-of-text id. With ``shift`` labels are the text itself, as most libraries want
    them; without, what comes next. ``packed`` says that several documents share a row and do not read each other.
    """

    name: str
    call: Callable[[list[list[int]]], Mapping[str, Any]]
    pad: int = 0
    eos: int = 1
    vocab_size: int = 50
    shift: bool = True
    packed: bool = False

    family = Family.COLLATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How an optimizer turns gradients into a step.

    ``sgd``: momentum ``beta_1`` (a sum, not a mean; 0 for none), decay added to the gradient. ``adamw``: as by Loshchilov
    and Hutter 2019, decay on the parameter. ``decayed`` are the names that decay acts on; None means all.
    """

    kind: Literal["sgd", "adamw"] = "adamw"
    learning_rate: float = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    decayed: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """Parts of a training loop; a part that is None is not tested.

        Trainer(name="mine", vocab_size=50, gradients=lambda pairs: my_gradients(model, pairs))

    ``gradients`` maps the micro-batches (or the shards of ranks) of one step, at least one, perhaps fewer than usual and
    with unequal counts, to the gradient that the optimizer would be given, each time from the same parameters.
    ``clip`` maps gradients and the largest norm to what clipping leaves. ``update`` maps parameters and the gradients of
    several steps to the parameters after each of them, by ``rule``. ``step`` makes one step on micro-batches and gives
    parameters before and after it. ``rates`` maps ``(steps, accumulation, resumed_at)`` to the learning rates of the
    steps from ``resumed_at`` on of a run of ``steps``.
    """

    name: str
    vocab_size: int = 50
    length: int = 8
    gradients: Callable[[Sequence[Pair]], Named] | None = None
    clip: Callable[[Named, float], Named] | None = None
    update: Callable[[Named, Sequence[Named]], Sequence[Named]] | None = None
    step: Callable[[Sequence[Pair]], tuple[Named, Named]] | None = None
    rates: Callable[[int, int, int], Sequence[float]] | None = None
    rule: Rule | None = None

    family = Family.TRAINER


def part(value: Any, name: str) -> Any:
    """``value``; raises ``NotSupported`` where the trainer has no such part."""
    if value is None:
        raise NotSupported(f"the trainer gives no {name}", f"训练器没有给出 {name}")
    return value
