"""A program that shows a violation without this package: what a maintainer runs to believe it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

import torch
from torch import Tensor

from .bench import Bench
from .runs import Cells, Claim, Inputs, Run
from .subjects.base import Kind, Offer
from .weights import NUDGE

WITHOUT_DROPOUT = """
def silence(holder, inside, depth=2):  # every rate of dropout at zero, in parts and in their configs
    for name, value in list(vars(holder).items()):
        drops = inside or "drop" in name
        if isinstance(value, float) and drops:
            object.__setattr__(holder, name, 0.0)
        elif depth and "__dict__" in dir(value) and not isinstance(value, (torch.nn.Module, torch.Tensor, dict, type)):
            silence(value, drops, depth - 1) if not callable(value) else None
for part in model.modules():
    silence(part, "drop" in type(part).__name__.lower())
""".strip()


def program(bench: Bench, claim: Claim) -> str:
    """Python that builds the model, makes its weights tell, and prints how far apart the two runs of ``claim`` are."""
    claim = smallest(bench, claim)
    right_at = claim.left_at if claim.right_at is None else claim.right_at
    lines = [
        *opening(bench, claim.left.gain),
        *run_lines("left", claim.left, bench),
        *run_lines("right", claim.right, bench),
        f"a, b = {_at('left', claim.left_at)}, {_at('right', right_at)}",
        'print("largest difference:", float((a - b).abs().max()), "; standard deviation of the logits:", float(left.std()))',
    ]
    return "\n".join(lines) + "\n"


def opening(bench: Bench, gain: float = 1.0, dtype: torch.dtype | None = None) -> Sequence[str]:
    """The lines that leave the model, with weights that tell, in ``model``; in the precision of the bench or in ``dtype``."""
    return (
        "import torch",
        "",
        *(line for line in bench.subject.building() if line != "import torch"),
        f"model = model.to({dtype or bench.dtype}).eval()",
        "torch.manual_seed(0)",
        "with torch.no_grad():  # weights under which the difference shows; those of training would do as well",
        "    for p in model.parameters():",
        f"        p.{f'mul_({bench.factor * gain:g})'} if p.ndim > 1 else p.add_({NUDGE} * torch.randn_like(p))",
        "",
    )


def program_of_loss(bench: Bench, labels: Tensor, gain: float = 1.0) -> str:
    """A program that prints the model's own loss for ``labels (b, n)`` beside the mean over what they score."""
    call = bench.fitted(Inputs(ids=bench.texts(len(labels)), labels=labels))
    names = {name: f"torch.tensor({value.tolist()})" for name, value in tensors(call)}
    names["labels"] = "labels"
    masked = bench.subject.kind is Kind.MASKED
    given, wanted = ("logits", "labels") if masked else ("logits[:, :-1]", "labels[:, 1:]")
    parts = "next(x for x in (out.values() if isinstance(out, dict) else out) if torch.is_tensor(x) and x.numel() == 1)"
    nothing = bool((labels == -100).all())
    mean = f"torch.nn.functional.cross_entropy({given}.flatten(0, 1), {wanted}.flatten())"
    return "\n".join((
        *opening(bench, gain),
        f"labels = torch.tensor({labels.tolist()})",
        "with torch.no_grad():",
        f"    out = {bench.subject.calling(call, names)}",
        f"logits = {bench.subject.reading}.reshape(*labels.shape, -1)",
        f"reported = {'out.loss' if bench.subject.reading.startswith('out.') else parts}",
        f"expected = {'torch.zeros(())' if nothing else mean}",
        'print("largest difference:", float((reported - expected).abs()), "; expected:", float(expected))',
        "",
    ))  # fmt: skip


def smallest(bench: Bench, claim: Claim) -> Claim:
    """The worst cell of ``claim`` alone, in one row where the row alone breaks it too."""
    right_at = claim.left_at if claim.right_at is None else claim.right_at
    apart = (claim.left_at.of(bench.logits(claim.left)) - right_at.of(bench.logits(claim.right))).abs().amax(-1)
    worst = int(apart.nan_to_num(torch.inf).argmax())
    left_row, right_row = int(claim.left_at.rows[worst]), int(right_at.rows[worst])
    left_at, right_at = _cell(0, claim.left_at, worst), _cell(0, right_at, worst)
    one = replace(
        claim, left=_row(claim.left, left_row), right=_row(claim.right, right_row), left_at=left_at, right_at=right_at
    )
    if not bench.test([one]).kept:
        return one
    return replace(claim, left_at=_cell(left_row, claim.left_at, worst), right_at=_cell(right_row, right_at, 0))


def _cell(row: int, at: Cells, k: int) -> Cells:
    return Cells(torch.tensor([row]), at.positions[k : k + 1])


def _row(run: Run, row: int) -> Run:
    def cut(call: Inputs) -> Inputs:
        given = {f.name: getattr(call, f.name) for f in fields(call) if f.name != "options"}
        rows = {name: x[row : row + 1] for name, x in given.items() if isinstance(x, Tensor)}
        return replace(call, **rows)

    return replace(run, calls=tuple(cut(call) for call in run.calls))


def _at(name: str, at: Cells) -> str:
    return f"{name}[{int(at.rows[0])}, {int(at.positions[0])}]"


def run_lines(name: str, run: Run, bench: Bench, *, cache: str = "") -> Iterator[str]:
    """The lines that leave the logits of ``run`` in ``name``; ``cache`` is an expression of one to go on with."""
    subject = bench.subject
    if run.training:
        yield f"torch.manual_seed({run.seed})"
        yield "model.train()"
    if not run.dropout:
        yield from WITHOUT_DROPOUT.splitlines()
    yield f"parts, cache = [], {cache or (subject.beginning if run.cached else None)}  # {name}"
    for call in run.calls:
        names = {given: spelled(value) for given, value in tensors(bench.fitted(call))}
        if run.cached:
            names[Offer.CACHE.value] = "cache"
        yield "with torch.enable_grad():" if run.grad else "with torch.no_grad():"
        yield f"    out = {subject.calling(call, names)}"
        yield f"parts.append({subject.reading}.detach())"
        if run.cached and subject.keeping != "cache":
            yield f"cache = {subject.keeping}"
    yield f"{name} = torch.cat(parts, 1)"
    if run.training:
        yield "model.eval()"


def spelled(value: Tensor) -> str:
    """An expression of ``value``; where its numbers do not lie one after another, of one whose numbers do not either."""
    text = f"torch.tensor({value.tolist()})"
    return text if value.is_contiguous() else f"{text}.repeat_interleave(2, 1)[:, ::2]"


def tensors(call: Inputs) -> Iterator[tuple[str, Tensor]]:
    """What ``call`` is given, by name."""
    for each in fields(call):
        value = getattr(call, each.name)
        if isinstance(value, Tensor):
            yield each.name, value
