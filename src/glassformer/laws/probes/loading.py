"""Loading is total: every number comes back, and what is missing or too much is an error."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..losses import evaluate
from ..runs import Inputs
from ..verdict import Finding, NotSupported


def _fresh(bench: Bench) -> nn.Module:
    """A copy with other numbers in everything that a state holds."""
    module = copy.deepcopy(bench.module)
    with torch.no_grad():
        for value in module.state_dict().values():
            if isinstance(value, Tensor) and value.is_floating_point():
                value.mul_(-0.5).add_(0.25)
    return module


def round_trip(bench: Bench) -> Finding:
    """Bit for bit the same logits from a fresh copy that was given the state."""
    ids = bench.texts(2)
    fresh = _fresh(bench)
    before = evaluate(bench, Inputs(ids=ids)).logits.detach()
    if torch.equal(before, evaluate(bench, Inputs(ids=ids), module=fresh).logits.detach()):
        raise NotSupported("the state has no effect on the logits", "状态对 logits 没有影响")
    fresh.load_state_dict(bench.module.state_dict())
    after = evaluate(bench, Inputs(ids=ids), module=fresh).logits.detach()
    differs = int((before != after).sum())
    largest = float((before - after).abs().max()) if differs else 0.0
    left = [name for name, p in bench.module.state_dict().items() if not _same(p, fresh.state_dict()[name])]
    facts = {"logits_that_differ": differs, "largest": largest, "not_loaded": left[:8], "seed": bench.seed}
    return Finding(measured=largest + len(left), bound=0.0, witness=facts)


def _same(left: object, right: object) -> bool:
    return torch.equal(left, right) if isinstance(left, Tensor) and isinstance(right, Tensor) else True


def total(bench: Bench) -> Finding:
    """A missing and an unexpected key are errors."""
    state, fresh = bench.module.state_dict(), _fresh(bench)
    own = [name for name, _ in bench.module.named_parameters() if name in state]
    if not own:
        raise NotSupported("the state holds no parameter", "状态中没有参数")
    accepted = [
        f"without {name}"
        for name in sorted({own[0], own[len(own) // 2], own[-1]})
        if _accepts(fresh, {key: value for key, value in state.items() if key != name})
    ]
    if _accepts(fresh, {**state, "no_such_parameter": torch.zeros(1)}):
        accepted.append("with no_such_parameter")
    return Finding(measured=float(len(accepted)), bound=0.0, unit="states", witness={"accepted": accepted})


def _accepts(module: nn.Module, state: dict[str, Tensor]) -> bool:
    try:
        module.load_state_dict(state)
    except Exception:  # noqa: BLE001 - whatever it raises, it did not accept
        return False
    return True


LOADING = Law(
    id="loading",
    statement=words(
        "Saved and loaded, a model is bit for bit the same; a missing or unexpected key is an error.",
        "保存再加载后模型逐位相同；缺少或多余的键会报错。",
    ),
    formula=r"\mathrm{load}(\mathrm{save}(\theta)) = \theta",
    conditions=words("A module with a state.", "有状态的模块。"),
    why=words(
        "A parameter that is quietly left at its start is a part of the model that was never trained.",
        "悄悄留在初值的参数，等于模型的一部分从未训练。",
    ),
    chapter="10.1",
    probes=(
        Probe(id="loading.round-trip", does=words("into a fresh copy", "加载到新的副本"), run=round_trip),
        Probe(id="loading.total", does=words("missing and unexpected keys", "缺少与多余的键"), run=total),
    ),
)
