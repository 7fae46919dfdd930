"""Gradients: automatic differentiation agrees with differences, and adds up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ...bilingual import words
from ..bench import Bench
from ..law import Family, Law, Probe
from ..losses import (
    IGNORED,
    LOSS_ROUNDING,
    Gradients,
    Objective,
    aligned,
    apart,
    double_only,
    learning,
    moved,
    reported,
    scored,
)
from ..place import at_parameter, in_order
from ..program import opening, tensors
from ..runs import Inputs
from ..subjects.base import Kind, Offer
from ..subjects.training import Loss
from ..verdict import Finding, NotSupported
from . import loss_functions

STEPS = (1e-5, 1e-4, 1e-3)
"""Steps of the differences, in units of each parameter's root mean square; the larger ones for models that compute in
float32 whatever they are asked, whose rounding swamps the first."""

SHARP = 1e-6
"""What a directional derivative may be off, in units of the sum of all parameters' shares in it."""

CLEAR, SMOOTH = 1e-4, 3e-2
"""From how little doubt about a difference a larger step is not tried; from how much it says nothing."""

SHARES = "share of the derivative"

MANY = 10**7
"""Parameters of a model whose gradient is made anew for each probe rather than kept."""


class Direction(Mapping[str, Tensor]):
    """What each parameter is moved by, made when it is asked for: of a large model it would be as large again."""

    def __init__(self, made: Mapping[str, Callable[[], Tensor]]) -> None:
        self._made = made

    def __getitem__(self, name: str) -> Tensor:
        return self._made[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def only(self, names: Iterable[str]) -> Direction:
        """The part of it that moves ``names``."""
        return Direction({name: self._made[name] for name in names})


def _noise(shape: torch.Size, seed: int, size: float) -> Tensor:
    return size * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _sizes(bench: Bench, gradients: Gradients, seed: int) -> Direction:
    """A random direction in which every parameter has about the same share, however small its gradient."""
    named, sizes, shares = learning(bench.module), {}, {}
    seeds = {name: 100_003 * seed + k for k, name in enumerate(gradients)}
    for name, g in gradients.items():
        sizes[name] = (float(named[name].detach().double().square().mean().sqrt()) if g.numel() else 0.0) or 1.0
        shares[name] = abs(float((g * _noise(g.shape, seeds[name], sizes[name])).sum()))
    positive = sorted(share for share in shares.values() if share > 0)
    usual = positive[len(positive) // 2] if positive else 1.0
    sizes = {name: size * min(1.0, usual / max(shares[name], 1e-300)) for name, size in sizes.items()}
    return Direction({name: partial(_noise, g.shape, seeds[name], sizes[name]) for name, g in gradients.items()})


def slopes(bench: Bench, objective: Objective, direction: Gradients, step: float, here: float) -> tuple[float, float]:
    """The central difference of the loss along ``direction``, and how far to trust it.

    Differences of ``step`` and of twice that are apart by three times the error of the first; their second differences
    around ``here``, the loss where we stand, would be one to four but for rounding.
    """
    loss = {}
    for times in (1, -1, 2, -2):
        with moved(bench, direction, times * step):
            loss[times] = float(objective.value())
    near, far = (loss[1] - loss[-1]) / (2 * step), (loss[2] - loss[-2]) / (4 * step)
    rounding = abs(loss[2] + loss[-2] - 2 * here - 4 * (loss[1] + loss[-1] - 2 * here)) / (6 * step)
    return near, 10 * (abs(near - far) + rounding)


def along(bench: Bench, objective: Objective, gradients: Gradients, direction: Gradients) -> Finding:
    """The derivative along ``direction`` by autograd and by differences. Raises ``NotSupported`` where the loss jumps."""
    shares = {name: float((gradients[name] * step).sum()) for name, step in direction.items()}
    size = max(sum(abs(share) for share in shares.values()), 1e-300)
    tried: list[tuple[float, float, float]] = []
    here = objective.here()
    # The step that has served one direction serves the next: the precision of the model's parts decides.
    served: dict[str, float] = bench.known("step", lambda: {"step": STEPS[0], "doubt": 0.0})
    for step in STEPS[STEPS.index(served["step"]) :]:
        near, doubt = slopes(bench, objective, direction, step, here)
        tried.append((doubt / size, near / size, step))
        if doubt <= max(CLEAR, 3 * served["doubt"]) * size:
            break
    (doubt, by_differences, step), *rest = sorted(tried)
    if doubt <= SMOOTH:
        served.update(step=step, doubt=doubt)
    if not doubt <= SMOOTH or any(abs(by_differences - other) > doubt + more for more, other, _ in rest):
        raise NotSupported("the loss is not smooth enough here for differences", "此处损失不够光滑，差商无法判断")
    by_autograd = sum(shares.values()) / size
    facts = {
        "by_differences": by_differences * size,
        "by_autograd": by_autograd * size,
        "step": step,
        "seed": bench.seed,
    }
    bound = max(SHARP, doubt)
    return Finding(measured=abs(by_differences - by_autograd), bound=bound, unit=SHARES, witness=facts)


def blamed(bench: Bench, objective: Objective, gradients: Gradients, direction: Direction) -> list[str]:
    """The last parameter whose gradient is wrong, found by halving; several where no half of them is wrong alone.

    A fault spoils the gradients of all that comes before it in the forward pass: it lies nearest to the last of them.
    """
    names = in_order(bench, objective.call, direction)
    while len(names) > 1:
        for half in (names[len(names) // 2 :], names[: len(names) // 2]):
            try:
                finding = along(bench, objective, gradients, direction.only(half))
            except NotSupported:
                continue
            if not finding.kept:
                names = half
                break
        else:
            return names
    return names


def usual(bench: Bench) -> Gradients:
    """The gradient on the usual text."""
    return _kept(bench, "gradients", Objective(bench=bench, call=Inputs(ids=bench.texts(2))))


def _kept(bench: Bench, name: str, objective: Objective) -> Gradients:
    """The gradient of ``objective``, made once where it is small; of a large model anew, and in single precision."""
    if sum(p.numel() for p in bench.module.parameters()) > MANY:
        made = objective.gradients()[1]
        return {key: made.pop(key).float() for key in list(made)}
    return bench.known(name, lambda: objective.gradients()[1])


def of_documents(bench: Bench) -> tuple[Objective, Gradients]:
    """The usual rows as two documents each, cut at different places, and the gradient on them."""
    ids = bench.texts(2)
    objective = Objective(bench=bench, call=Inputs(ids=ids, segments=_cut(ids, (3, 5))))
    return objective, _kept(bench, "gradients of documents", objective)


def checked(bench: Bench, objective: Objective, gradients: Gradients, names: Iterable[str] | None = None) -> Finding:
    """The gradient of all parameters, or of those of ``names``, in a random direction."""
    wanted = list(gradients) if names is None else list(names)
    direction = _sizes(bench, {name: gradients[name] for name in wanted}, seed=bench.seed + 1)
    finding = along(bench, objective, gradients, direction)
    if finding.kept:
        return finding
    blame = blamed(bench, objective, gradients, direction)
    witness = {**finding.witness, "parameters": blame[:8]}
    shown = partial(_program, call=objective.call, names=blame)
    return replace(finding, witness=witness, place=at_parameter(bench, blame[-1]), shown=shown)


def _program(bench: Bench, call: Inputs, names: Sequence[str]) -> str:
    """Both derivatives of the loss along a random direction of some parameters."""
    texts = {given: f"torch.tensor({value.tolist()})" for given, value in tensors(bench.fitted(call))}
    told = f"torch.tensor({call.ids.tolist()})"
    wanted = told if bench.subject.kind is Kind.MASKED else f"{told}[:, 1:]"
    given = "logits" if bench.subject.kind is Kind.MASKED else "logits[:, :-1]"
    return "\n".join((
        *opening(bench, dtype=torch.float64),
        f"ps = [dict(model.named_parameters())[name].requires_grad_() for name in {list(names)}]",
        "vs = [torch.randn_like(p) * p.detach().square().mean().sqrt() for p in ps]",
        "def loss():",
        f"    out = {bench.subject.calling(call, texts)}",
        f"    logits = {bench.subject.reading}",
        f"    return torch.nn.functional.cross_entropy({given}.flatten(0, 1), {wanted}.flatten())",
        "gradients = torch.autograd.grad(loss(), ps, allow_unused=True)",
        "by_autograd = sum(float((g * v).sum()) for g, v in zip(gradients, vs) if g is not None)",
        "with torch.no_grad():",
        "    for p, v in zip(ps, vs):",
        "        p.add_(1e-5 * v)",
        "    above = loss()",
        "    for p, v in zip(ps, vs):",
        "        p.sub_(2e-5 * v)",
        "    by_differences = float((above - loss()) / 2e-5)",
        'print("largest difference:", abs(by_autograd - by_differences), "; by differences:", by_differences)',
        "",
    ))  # fmt: skip


def differences(bench: Bench) -> Finding:
    """All parameters, with documents where the model knows them."""
    double_only(bench)
    return checked(bench, Objective(bench=bench, call=Inputs(ids=bench.texts(2))), usual(bench))


def documents(bench: Bench) -> Finding:
    """Rows that hold two documents each, cut at different places."""
    bench.need(Offer.SEGMENTS)
    double_only(bench)
    return checked(bench, *of_documents(bench))


def _cut(ids: Tensor, at: Sequence[int]) -> Tensor:
    return (torch.arange(ids.shape[1])[None] >= torch.tensor(at)[:, None]).long()


def descent(bench: Bench) -> Finding:
    """A small step against the gradient lowers the loss by its length times the squared norm of the gradient."""
    double_only(bench)
    objective, gradients = Objective(bench=bench, call=Inputs(ids=bench.texts(2))), usual(bench)
    named = learning(bench.module)
    # As far as the first of all parameters allows to go before a number of it has moved by a usual one.
    reach = [
        float(named[name].detach().double().square().mean().sqrt() / g.abs().max())
        for name, g in gradients.items()
        if g.any() and named[name].any()
    ]
    if not reach:
        raise NotSupported("the gradient is zero", "梯度为零")
    direction = Direction({name: partial(torch.mul, g, min(reach)) for name, g in gradients.items()})
    return along(bench, objective, gradients, direction)


def adds(bench: Bench) -> Finding:
    """Two backward passes, one for each row, add up to that of both rows together."""
    if not bench.rows_apart:
        raise NotSupported("the rows of a batch read each other", "批中各行互相影响")
    ids = bench.texts(2)
    if Offer.SEGMENTS in bench.subject.offers:
        objective, whole = of_documents(bench)
        segments = objective.call.segments
    else:
        segments, whole = None, usual(bench)
    named = learning(bench.module)
    try:
        for row in range(2):
            call = Inputs(ids=ids[row : row + 1], segments=None if segments is None else segments[row : row + 1])
            bench.spent.forwards += 1
            # Half: both rows have as many targets, and the loss of both is a mean.
            (Objective(bench=bench, call=call).value(grad=True) / 2).backward()
        found = {
            name: torch.zeros_like(p, dtype=torch.float64) if p.grad is None else p.grad.to_dense().double()
            for name, p in named.items()
        }
    finally:
        for p in named.values():
            p.grad = None
    measured, name = apart(found, whole)
    bound = max(1e-4, bench.tolerance)
    facts = {"parameter": name, "seed": bench.seed, "length": ids.shape[1]}
    return Finding(measured=measured, bound=bound, unit="share of the largest gradient", witness=facts)


def own_loss(bench: Bench) -> Finding:
    """The gradient of the model's own loss with respect to its logits: (p - one-hot) / count."""
    ids = bench.texts(2)
    labels = bench.other(ids) if bench.subject.kind is Kind.MASKED else ids.clone()
    labels[1, : ids.shape[1] // 2] = IGNORED
    logits, found = _at_logits(bench, ids, labels)
    nll, uniform = _by_definition(bench, logits, labels)
    # Multiples of both: which reduction and which smoothing it is, `alignment` judges.
    table = torch.stack([nll.flatten(), uniform.flatten()], 1)
    factors = torch.linalg.lstsq(table, found.reshape(-1, 1)).solution
    measured = float((table @ factors - found.reshape(-1, 1)).abs().max() / nll.abs().max())
    bound = max(10 * LOSS_ROUNDING, bench.tolerance) * max(1.0, float(factors.abs().max()))
    facts = {"factor": float(factors[0]), "of_smoothing": float(factors[1]), "seed": bench.seed}
    if not measured <= bound and not _labels_matter_otherwise(bench, ids, labels, found, bound):
        raise NotSupported("the loss has a part that no label touches", "损失含有与标签无关的部分")
    if not float(factors.abs().max()) > 0:
        measured = float("inf")
    return Finding(measured=measured, bound=bound, unit="share of the largest gradient", witness=facts)


def _at_logits(bench: Bench, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Logits, and the gradient of the model's own loss with respect to them, in float64."""
    bench.subject.require(Offer.LABELS)
    learning(bench.module)
    outputs = scored(bench, ids, labels, grad=True)
    loss = reported(outputs)
    if not loss.requires_grad:
        raise NotSupported("the loss has no gradient", "损失没有梯度")
    bench.spent.forwards += 1
    found = torch.autograd.grad(loss, outputs.logits, allow_unused=True)[0] if outputs.logits.requires_grad else None
    if found is None:
        raise NotSupported("the loss is not made from the logits that are returned", "损失并非由返回的 logits 算出")
    return outputs.logits.detach().double(), found.double()


def _by_definition(bench: Bench, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of the mean of -ln p of the labels, and of the mean of -ln p over all N."""
    logits = logits.clone().requires_grad_()
    given, wanted = aligned(logits, labels, bench.subject.kind)
    log_p = given.log_softmax(-1)
    nll = -log_p.gather(-1, wanted[:, None]).mean()
    return (
        torch.autograd.grad(nll, logits, retain_graph=True)[0],
        torch.autograd.grad(-log_p.mean(), logits)[0],
    )


def _labels_matter_otherwise(bench: Bench, ids: Tensor, labels: Tensor, found: Tensor, bound: float) -> bool:
    """Whether what labels do to the gradient is not what they should do either, whatever else is in the loss."""
    again = torch.where(labels == IGNORED, IGNORED, bench.other(labels.clamp(min=0)))
    logits, other = _at_logits(bench, ids, again)
    expected = _by_definition(bench, logits, labels)[0] - _by_definition(bench, logits, again)[0]
    difference = found - other
    factor = float((difference * expected).sum() / expected.square().sum())
    off = float((difference - factor * expected).abs().max() / expected.abs().max())
    return not (factor and off <= bound)


def function(loss: Loss) -> Finding:
    """A loss alone."""
    return loss_functions.gradient(loss)


GRADIENT = Law(
    id="gradient",
    statement=words(
        "Automatic differentiation gives the derivative of the loss, and gradients add up.",
        "自动求导给出损失的导数，且梯度可相加。",
    ),
    formula=r"\langle \nabla L, v \rangle = \lim_{h \to 0} \frac{L(\theta + hv) - L(\theta - hv)}{2h}",
    conditions=words(
        "A loss without jumps near the parameters; differences need float64.",
        "损失在参数附近没有跳跃；差商需要 float64。",
    ),
    why=words(
        "A wrong backward pass trains a model to something else while every forward test passes.",
        "反向传播有误时，前向测试全都通过，模型却在学别的东西。",
    ),
    chapter="10.2",
    probes=(
        Probe(id="gradient.differences", does=words("central differences", "中心差商"), run=differences),
        Probe(id="gradient.documents", does=words("the same with documents", "含多个文档时"), run=documents),
        Probe(id="gradient.descent", does=words("a small step along -g", "沿负梯度的小步"), run=descent),
        Probe(id="gradient.adds", does=words("row by row and together", "逐行与合并"), run=adds),
        Probe(id="gradient.loss", does=words("of the model's own loss", "模型自报损失的梯度"), run=own_loss),
        Probe(
            id="gradient.function",
            does=words("of a loss alone", "单独损失函数的梯度"),
            run=function,
            family=Family.LOSS,
        ),
    ),
)
