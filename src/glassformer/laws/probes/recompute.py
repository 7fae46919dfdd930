"""Checkpointing of activations: computing again in the backward pass changes nothing."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from torch import nn

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..losses import Objective, apart, learning
from ..runs import Inputs
from ..verdict import Finding, NotSupported

SWITCHES = ("gradient_checkpointing", "checkpointing", "activation_checkpointing", "use_checkpoint",
            "use_checkpointing", "grad_checkpointing", "use_gradient_checkpointing", "recompute")  # fmt: skip
"""Attributes by which public code turns checkpointing on, of a module or of its config."""

CONFIGS = ("config", "cfg", "args")


def switched(module: nn.Module) -> nn.Module:
    """A copy of ``module`` that checkpoints. Raises ``NotSupported`` where no way to say so is known."""
    # The same weights: nothing is done to them, and a large model has no room for another gradient, copy and original.
    shared = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    copied = copy.deepcopy(module, shared)
    enable = getattr(copied, "gradient_checkpointing_enable", None)
    if callable(enable):
        try:
            enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        except (TypeError, ValueError) as error:
            raise NotSupported(f"checkpointing is refused: {error}", f"不支持激活重算：{error}") from error
        return copied
    found = False
    for part in copied.modules():
        for name in SWITCHES:
            if getattr(part, name, None) is False:
                setattr(part, name, True)
                found = True
        for holder in CONFIGS:
            config = vars(part).get(holder)
            if config is not None and (changed := _with_switch(config)) is not None:
                setattr(part, holder, changed)
                found = True
    if not found:
        raise NotSupported("no switch for checkpointing was found", "没有找到激活重算的开关")
    return copied


def _with_switch(config: Any) -> Any:
    """A copy of ``config`` that asks for checkpointing; None where it has no such switch."""
    name = next((name for name in SWITCHES if getattr(config, name, None) is False), None)
    if name is None:
        return None
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        return dataclasses.replace(config, **{name: True})
    changed = copy.copy(config)
    setattr(changed, name, True)
    return changed


class _Calls:
    """Counts how often the blocks of a model are called."""

    def __init__(self, bench: Bench, module: nn.Module) -> None:
        self.count = 0
        parts = [part for _, part in bench.subject.blocks(module)] or list(module.modules())
        self._handles = [part.register_forward_pre_hook(self._one_more) for block in parts for part in block.modules()]

    def _one_more(self, *_: Any) -> None:
        self.count += 1

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def gradients(bench: Bench) -> Finding:
    """Loss and gradient with checkpointing and without, dropout on, from the same random numbers."""
    copied = switched(bench.module)
    objective = Objective(bench=bench, call=Inputs(ids=bench.texts(2)), training=True)
    counts = []
    found = []
    for module in (bench.module, copied):
        learning(module)
        calls = _Calls(bench, module)
        try:
            found.append(objective.gradients(module))
        finally:
            calls.remove()
        counts.append(calls.count)
    if counts[0] == counts[1]:
        raise NotSupported("the switch for checkpointing has no effect", "激活重算的开关没有效果")
    (loss, expected), (other, again) = found
    measured, name = apart(again, expected)
    off = abs(other - loss) / max(abs(loss), 1e-300)
    facts = {"loss": loss, "loss_with_checkpointing": other, "parameter": name, "seed": bench.seed}
    return Finding(
        measured=max(measured, off), bound=bench.tolerance, unit="share of the largest gradient", witness=facts
    )


RECOMPUTE = Law(
    id="recompute",
    statement=words(
        "Checkpointing of activations changes neither loss nor gradient, dropout included.",
        "激活重算既不改变损失也不改变梯度，含 dropout 时亦然。",
    ),
    formula=r"\nabla L_{\text{recomputed}} = \nabla L",
    conditions=words(
        "A model that can be told to checkpoint; both runs begin with the same random numbers.",
        "可开启激活重算的模型；两次运行的随机数相同。",
    ),
    why=words(
        "Where the second pass drops other cells than the first, the gradient is that of no loss at all.",
        "若重算时丢弃的单元与第一次不同，所得梯度就不属于任何损失。",
    ),
    chapter="10.3",
    probes=(Probe(id="recompute.gradients", does=words("on and off", "开与关"), run=gradients),),
)
