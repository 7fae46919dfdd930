"""Gradient locality: what a loss cannot depend on has no gradient, what it depends on has one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ...bilingual import words
from ..bench import EFFECT, Bench, causal_only
from ..law import Law, Probe
from ..losses import Objective, evaluate, learning, moved
from ..place import at_table
from ..runs import Inputs
from ..verdict import Finding, NotApplicable, NotSupported
from .gradient import usual

SHARE = "share of the largest gradient"


class Embedded:
    """Makes what a model's embedding gives for ``ids`` a leaf, so that a gradient with respect to it can be asked for."""

    def __init__(self, module: nn.Module, ids: Tensor) -> None:
        self.leaf: Tensor | None = None
        self._ids = ids
        self._handles = [part.register_forward_hook(self._seen, with_kwargs=True) for part in module.modules()]

    def _seen(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        if self.leaf is not None or not any(self._is_ids(value) for value in (*args, *kwargs.values())):
            return None
        first = output[0] if isinstance(output, tuple) else output
        if not (isinstance(first, Tensor) and first.is_floating_point() and first.shape[:-1] == self._ids.shape):
            return None
        self.leaf = first.detach().requires_grad_()
        copy = self.leaf.clone()  # code may write into what it is given
        if not isinstance(output, tuple):
            return copy
        rest = (copy, *output[1:])
        return rest if type(output) is tuple else type(output)(*rest)

    def _is_ids(self, value: Any) -> bool:
        return isinstance(value, Tensor) and value.shape == self._ids.shape and torch.equal(value, self._ids)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def later(bench: Bench) -> Finding:
    """In row t the loss at t alone: no gradient with respect to the embeddings after t, some up to it."""
    causal_only(bench)
    n = bench.length
    ids = bench.texts(1, n).expand(n - 1, n).contiguous()
    if n < 2:
        raise NotSupported("the context is too short", "上下文太短")
    embedded = Embedded(bench.module, ids)
    try:
        logits = evaluate(bench, Inputs(ids=ids), grad=True).logits.double()
    finally:
        embedded.remove()
    if embedded.leaf is None or not logits.requires_grad:
        raise NotSupported("no part of the model turns ids into vectors", "模型中没有把编号变为向量的部分")
    at = torch.arange(n - 1)
    loss = -logits[at, at].log_softmax(-1).gather(-1, ids[at, at + 1][:, None]).sum()
    bench.spent.forwards += 1
    found = torch.autograd.grad(loss, embedded.leaf, allow_unused=True)[0]
    if found is None:
        raise NotSupported("the loss has no gradient at the embeddings", "损失对嵌入没有梯度")
    size = found.double().abs().amax(-1)
    after = torch.ones(n - 1, n).triu(1).bool()
    own = float(size[~after].max())
    if not own:
        raise NotSupported("no embedding has a gradient", "任何嵌入都没有梯度")
    measured = float(size[after].max()) / own
    row, position = divmod(int(torch.where(after, size, -1.0).argmax()), n)
    facts = {"loss_at": row, "position": position, "length": n, "seed": bench.seed}
    return Finding(measured=measured, bound=bench.tolerance, unit=SHARE, witness=facts)


def _after(bench: Bench, ids: Tensor, name: str, rows: Tensor) -> Tensor:
    """``(b, n, V)``: the logits with ``rows`` of the table ``name`` moved."""
    p = learning(bench.module)[name]
    step = torch.zeros_like(p, dtype=torch.float64)
    generator = torch.Generator().manual_seed(bench.seed)
    noise = torch.randn(p.shape, generator=generator, dtype=torch.float64)
    step[rows] = noise[rows] * float(p.detach().double().square().mean().sqrt())
    with moved(bench, {name: step}, 1.0):
        return evaluate(bench, Inputs(ids=ids)).logits.double()


def row_step(p: Tensor, row: int) -> Tensor:
    """A step of one row of a table ``p``, as large as its numbers and in no special direction: norms undo some."""
    noise = torch.randn(p.shape[1], generator=torch.Generator().manual_seed(row), dtype=torch.float64)
    step = torch.zeros_like(p, dtype=torch.float64)
    step[row] = noise * float(p.detach().double().square().mean().sqrt())
    return step


LOOSE = 0.1
"""From this tolerance on, in standard deviations of the logits, rounding hides whether a table is read."""


def sparse(bench: Bench) -> Tensor:
    """``(2, n)``: a text that leaves some tokens out; the usual one where it does."""
    ids, N = bench.texts(2), bench.subject.facts.vocab_size
    if len(ids.unique()) < N:
        return ids
    some = ids.unique()[: max(2, N // 2)]
    return some[ids % len(some)]


def tables(bench: Bench) -> list[str]:
    """The names of the tables that are read for the ids of a text and nowhere else.

    Raises ``NotSupported`` where rounding moves the logits further than a table that is read would.
    """
    if bench.tolerance >= LOOSE:
        raise NotSupported(
            "rounding alone moves the logits too far to tell which table is read",
            "仅舍入误差就使 logits 变化过大，无法判断读取了哪张表",
        )
    if found := bench.known("tables", lambda: _tables(bench, sparse(bench))):
        return found
    raise NotApplicable(
        "no table of token vectors is read for the ids of the text alone", "没有只为文本编号而读取的词向量表"
    )


def _tables(bench: Bench, ids: Tensor) -> list[str]:
    """The names of the tables that are read for the ids of a text and nowhere else.

    A parameter with a row for each token of which unused rows move the logits is a head, or a table tied to it.
    """
    before = bench.logits(bench.plain(ids))
    unused = torch.ones(bench.subject.facts.vocab_size, dtype=torch.bool)
    unused[ids.unique()] = False
    close = bench.tolerance * bench.spread
    found = []
    for name, p in learning(bench.module).items():
        if p.ndim == 2 and p.shape[0] == len(unused) and unused.any():
            still = float((_after(bench, ids, name, unused) - before).abs().max()) <= close
            if still and float((_after(bench, ids, name, ~unused) - before).abs().max()) > _clear(bench):
                found.append(name)
    return found


def _clear(bench: Bench) -> float:
    """How far logits move that move by more than rounding."""
    return max(EFFECT, 2 * bench.tolerance) * bench.spread


def _frozen(module: nn.Module, p: Tensor) -> set[int]:
    """Rows that torch never trains because they are said to be padding."""
    return {
        int(part.padding_idx)
        for part in module.modules()
        if isinstance(part, nn.Embedding) and part.weight is p and part.padding_idx is not None
    }


def _idle(bench: Bench, ids: Tensor, name: str, gradient: Tensor, rows: list[int]) -> list[int]:
    """Those of ``rows`` that move the loss and have no gradient."""
    silent, found = [row for row in rows if not gradient[row].any()], []
    before = Objective(bench=bench, call=Inputs(ids=ids)).here() if silent else 0.0
    for row in silent[:3]:
        step = row_step(learning(bench.module)[name], row)
        with moved(bench, {name: step}, 1.0):
            if abs(float(Objective(bench=bench, call=Inputs(ids=ids)).value()) - before) > _clear(bench):
                found.append(row)
    return found


def rows(bench: Bench) -> Finding:
    """Rows of the token table: exactly zero where unused, not zero where used."""
    ids = sparse(bench)
    same = torch.equal(ids, bench.texts(2))
    names = tables(bench)
    gradients = usual(bench) if same else Objective(bench=bench, call=Inputs(ids=ids)).gradients()[1]
    wrong: dict[str, Any] = {}
    for name in names:
        used = torch.zeros(bench.subject.facts.vocab_size, dtype=torch.bool)
        used[ids[:, :-1].unique()] = True  # the last token of a row predicts nothing
        unused = ~used
        unused[ids.unique()] = False
        stray = [row for row in unused.nonzero()[:, 0].tolist() if gradients[name][row].any()]
        skip = _frozen(bench.module, learning(bench.module)[name])
        idle = _idle(bench, ids, name, gradients[name], [r for r in used.nonzero()[:, 0].tolist() if r not in skip])
        if stray or idle:
            wrong = {"table": name, "unused_with_gradient": stray[:8], "used_without_gradient": idle}
    count = sum(len(value) for value in wrong.values() if isinstance(value, list))
    return Finding(
        measured=float(count), bound=0.0, unit="rows", witness={"tables": names, "seed": bench.seed, **wrong},
        place=at_table(bench, wrong["table"]) if wrong else None,
    )  # fmt: skip


def end_row(bench: Bench) -> Finding:
    """The row of the end of text learns, even where padding has the same id."""
    end = bench.subject.facts.settings.get("eos")
    if end is None:
        raise NotApplicable("the id that ends a text is not known", "未知文末编号")
    ids = bench.texts(2)
    if ids.shape[1] < 4:
        raise NotSupported("the context is too short", "上下文太短")
    ids[:, 1] = end
    names = tables(bench)
    _, gradients = Objective(bench=bench, call=Inputs(ids=ids)).gradients()
    idle = [name for name in names if _idle(bench, ids, name, gradients[name], [int(end)])]
    return Finding(
        measured=float(len(idle)), bound=0.0, unit="rows", witness={"id": int(end), "tables_where_frozen": idle},
        place=at_table(bench, idle[0]) if idle else None,
    )  # fmt: skip


LOCALITY = Law(
    id="locality",
    statement=words(
        "What a loss does not depend on has no gradient; what it depends on has one.",
        "损失不依赖的量没有梯度，依赖的量有梯度。",
    ),
    formula=r"\partial L_t / \partial X_j = 0 \; (j > t), \quad \partial L / \partial E_w = 0 \iff w \notin x",
    conditions=words(
        "A causal model; rows need a token table that no head shares.",
        "因果模型；词表行的规律要求输出层不共用词向量表。",
    ),
    why=words(
        "A gradient from the future is a leak in training; a used row without one never learns.",
        "来自未来的梯度是训练中的泄漏；用到却没有梯度的行永远学不会。",
    ),
    chapter="10.9",
    probes=(
        Probe(id="locality.later", does=words("embeddings of later tokens", "之后词元的嵌入"), run=later),
        Probe(id="locality.rows", does=words("used and unused rows", "用到与未用到的行"), run=rows),
        Probe(id="locality.end-row", does=words("the row of the end of text", "文末的行"), run=end_row),
    ),
)
