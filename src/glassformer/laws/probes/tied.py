"""Tied weights: one matrix, read twice, that stays one."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ...bilingual import words
from ..bench import EFFECT, Bench
from ..law import Law, Probe
from ..losses import Objective, double_only, evaluate, learning, moved
from ..runs import Inputs
from ..verdict import Finding, NotApplicable
from .gradient import checked, usual
from .locality import row_step


def together(module: nn.Module) -> set[frozenset[str]]:
    """The names under which one parameter is known, for each that has several."""
    names: dict[int, set[str]] = {}
    for name, p in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), set()).add(name)
    return {frozenset(each) for each in names.values() if len(each) > 1}


def _with_row(bench: Bench, ids: Tensor, name: str, row: int) -> Tensor:
    p = learning(bench.module)[name]
    with moved(bench, {name: row_step(p, row)}, 1.0):
        return evaluate(bench, Inputs(ids=ids)).logits.double()


def read_twice(bench: Bench) -> list[str]:
    """Parameters with a row for each token that both the embedding and the head read."""
    return bench.known("read twice", lambda: _read_twice(bench))


def _read_twice(bench: Bench) -> list[str]:
    ids = bench.texts(1)
    used = int(ids[0, 0])
    unused = next((i for i in range(bench.subject.facts.vocab_size) if i not in set(ids[0].tolist())), None)
    if unused is None:
        raise NotApplicable("every token stands in the text", "文本含有所有词元")
    before = bench.logits(bench.plain(ids))
    others = torch.ones(before.shape[-1], dtype=torch.bool)
    others[used] = False
    least, found = EFFECT * bench.spread, []
    for name, p in learning(bench.module).items():
        if p.ndim != 2 or p.shape[0] != bench.subject.facts.vocab_size:
            continue
        as_head = (_with_row(bench, ids, name, unused) - before).abs()[..., unused].max()
        as_table = (_with_row(bench, ids, name, used) - before).abs()[..., others].max()
        if float(as_head) > least and float(as_table) > least:
            found.append(name)
    return found


def flag(bench: Bench) -> Finding:
    """What the configuration says is what the logits show."""
    said = bench.subject.facts.settings.get("tied")
    if not isinstance(said, bool):
        raise NotApplicable(
            "nothing says whether embedding and head share a matrix", "没有说明嵌入与输出层是否共享矩阵"
        )
    found = read_twice(bench)
    facts = {"said": said, "read_twice": found, "seed": bench.seed}
    return Finding(measured=float(said is not bool(found)), bound=0.0, unit="flags", witness=facts)


def _kept(bench: Bench) -> set[frozenset[str]]:
    if groups := together(bench.subject.module):
        return groups
    raise NotApplicable("no parameter has two names", "没有一个参数有两个名字")


def copies(bench: Bench) -> Finding:
    """One matrix after a copy, after a step and after loading."""
    groups = _kept(bench)
    copied = copy.deepcopy(bench.module)
    with torch.no_grad():
        for p in copied.parameters():
            p.add_(0.5)  # a step that no load undoes
    copied.load_state_dict(bench.module.state_dict())
    lost = {
        "copied": groups - together(bench.module),
        "loaded": groups - together(copied),
        "unequal": {group for group in groups if not _equal(bench.module, group)},
    }
    facts = {key: sorted(sorted(group) for group in each) for key, each in lost.items()}
    return Finding(measured=float(sum(map(len, lost.values()))), bound=0.0, unit="matrices", witness=facts)


def _equal(module: nn.Module, names: Iterable[str]) -> bool:
    named = dict(module.named_parameters(remove_duplicate=False))
    first, *rest = (named[name] for name in names)
    return all(torch.equal(first, each) for each in rest)


def gradients(bench: Bench) -> Finding:
    """The gradient of a shared matrix is the sum over its uses."""
    names = read_twice(bench) or [name for group in together(bench.module) for name in group]
    own = learning(bench.module)
    shared = [name for name in names if name in own]
    if not shared:
        raise NotApplicable("embedding and head share no matrix", "嵌入与输出层不共享矩阵")
    double_only(bench)
    return checked(bench, Objective(bench=bench, call=Inputs(ids=bench.texts(2))), usual(bench), shared)


TIED = Law(
    id="tied",
    statement=words(
        "Tied weights are one matrix: its gradients add, and it stays one after copying, loading and a step.",
        "共享权重是同一个矩阵：梯度相加，且经复制、加载、更新后仍是同一个。",
    ),
    formula=r"U = E^\top, \quad \nabla E = \nabla_{\text{embedding}} + \nabla_{\text{head}}^\top",
    conditions=words("A model with weights that are tied, or said to be.", "权重共享或声称共享的模型。"),
    why=words(
        "A tie that is lost trains two matrices where one is saved: what is loaded is another model.",
        "共享一旦失效，训练的是两个矩阵而保存一个：加载后成了另一个模型。",
    ),
    chapter="9.4",
    probes=(
        Probe(id="tied.flag", does=words("what the configuration says", "与配置所述一致"), run=flag),
        Probe(id="tied.copies", does=words("after copying and loading", "复制与加载之后"), run=copies),
        Probe(id="tied.gradients", does=words("gradients add", "梯度相加"), run=gradients),
    ),
)
