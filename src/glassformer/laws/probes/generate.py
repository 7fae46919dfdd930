"""Generate = forward: the loop that writes sees the logits, positions and masks of the forward pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...bilingual import words
from ..bench import FLOOR, Bench, causal_only
from ..law import Family, Law, Probe
from ..place import at_function, at_method
from ..program import opening
from ..runs import Inputs, Run, once
from ..subjects import loops
from ..subjects.base import Kind
from ..subjects.decoding import Generator, Ids
from ..verdict import Finding, NotApplicable, NotSupported

COUNT = 5
PART = 1e-3
"""How far below the largest logit a greedy choice may lie, in standard deviations: loops compute in single precision."""


# Loops as subjects


def prompts(subject: Generator, lengths: Sequence[int] = (1, 4, 7), seed: int = 0) -> list[list[int]]:
    """Random prompts of the given ``lengths``."""
    allowed = torch.tensor([id for id in range(subject.vocab_size) if id not in subject.special])
    generator = torch.Generator().manual_seed(seed)
    return [allowed[torch.randint(len(allowed), (n,), generator=generator)].tolist() for n in lengths]


def after(subject: Generator, prompt: Ids, ids: Ids) -> Tensor:
    """``(len(ids), N)``: the logits from which the forward pass would choose each of ``ids``."""
    return subject.logits([*prompt, *ids])[len(prompt) - 1 : -1]


def shortfall(logits: Tensor, ids: Sequence[int]) -> Tensor:
    """``(k,)``: how far the logit of each of ``ids (k,)`` lies below the largest of its row of ``logits (k, N)``."""
    return logits.max(-1).values - logits.gather(1, torch.tensor(list(ids))[:, None])[:, 0]


def _greedy(subject: Generator, batches: Sequence[list[list[int]]]) -> Finding:
    subject.need()
    found = []
    for batch in batches:
        for row, (prompt, written) in enumerate(zip(batch, subject.write(batch, COUNT), strict=True)):
            if not written.ids:
                raise NotSupported("nothing was written", "什么也没有生成")
            logits = after(subject, prompt, written.ids)
            spread = float(logits.std())
            logits[:, sorted(subject.never)] = -math.inf
            gap = shortfall(logits, written.ids)
            facts = {"prompt": prompt, "written": list(written.ids), "row": row, "rows": len(batch)}
            facts |= {"step": int(gap.argmax()), "arg_max": logits.argmax(-1).tolist()}
            found.append(Finding(measured=float(gap.max()), bound=PART * spread, witness=facts))
    worst = max(found, key=lambda finding: finding.severity)
    return replace(worst, place=at_function(subject.generate, "generate"))


def loop(subject: Generator) -> Finding:
    """Prompts one by one."""
    return _greedy(subject, [[prompt] for prompt in prompts(subject)])


def batch(subject: Generator) -> Finding:
    """Prompts of unequal lengths together."""
    return _greedy(subject, [prompts(subject, (7, 2, 4, 1), seed=seed) for seed in range(3)])


# Models that bring their loop along


def _scored(bench: Bench, row: Tensor, source: Tensor | None) -> Tensor:
    """``(n, V)`` of the forward pass for one row."""
    return bench.logits(once(row[None], source=source))[0]


def _written(bench: Bench, lengths: Sequence[int]) -> Finding:
    """The greedy continuation of rows of the given lengths, padded on the left, against the forward pass of each alone."""
    causal_only(bench)
    width = max(lengths)
    ids, mask = bench.texts(len(lengths), width, seed=5), torch.ones(len(lengths), width, dtype=torch.int64)
    for row, n in enumerate(lengths):
        mask[row, : width - n] = 0
        # A pad's own id: loops and models that are given no mask know pads by it.
        ids[row, : width - n] = bench.subject.facts.pad or 0
    padded = bool((mask == 0).any())
    source = None
    with bench.mode(Run(calls=(Inputs(ids=ids),))):
        made = bench.subject.continued(bench.module, ids, COUNT, mask=mask if padded else None)
        bench.spent.forwards += made.forwards
    found = []
    for row, n in enumerate(lengths):
        text = made.ids[row]
        start = made.start if made.source is not None else made.start - n
        source = None if made.source is None else made.source[row : row + 1]
        new = text[made.start :]
        logits = _scored(bench, text[start:-1], source)[made.start - start - 1 :]
        gap = shortfall(logits, new.tolist())
        facts: dict[str, Any] = {"row": row, "length": n, "pads": width - n, "written": new.tolist()}
        facts |= {"step": int(gap.argmax()), "arg_max": logits.argmax(-1).tolist(), "seed": bench.seed}
        measured = float(gap.max())
        if made.logits is not None:
            apart = (made.logits[row].double() - logits).abs().amax(-1)
            if bench.dtype is torch.float64 and made.logits[row].isnan().any():
                # A softmax in single precision makes minus infinity of the smallest double: single precision decides.
                raise NotSupported("the loop gives NaN in double precision", "循环在双精度下给出 NaN")
            facts |= {"logits_apart": float(apart.max()), "step": int(apart.nan_to_num(math.inf).argmax())}
            measured = max(measured, float(apart.max())) if not apart.isnan().any() else math.nan
        # Loops choose and report in single precision whatever the model computes in.
        bound = max(bench.tolerance, FLOOR[torch.float32]) * bench.spread
        found.append(Finding(measured=measured, bound=bound, witness=facts))
    worst = max(found, key=lambda finding: finding.severity)
    if worst.kept or not loops.brought(bench.module):
        return worst
    shown = partial(_program, ids=ids, mask=mask if padded else None)
    return replace(worst, place=at_method(bench.module, "generate", "generate"), shown=shown)


def _program(bench: Bench, ids: Tensor, mask: Tensor | None) -> str:
    """The loop, and the forward pass over what it wrote, row by row without pads."""
    pads = [0] * len(ids) if mask is None else (mask == 0).sum(1).tolist()
    given = ["ids", *([] if mask is None else ["attention_mask=mask"])]
    given += [f"{name}={value!r}" for name, value in loops.greedily(bench.module, COUNT).items()]
    reads_source = bench.subject.kind is Kind.SEQUENCE_TO_SEQUENCE
    text = Inputs(ids=ids[:1], source=ids[:1] if reads_source else None)
    call = bench.subject.calling(
        text, {"ids": "text[:, :-1]", **({"source": "ids[row:row + 1]"} if reads_source else {})}
    )
    return "\n".join((
        *opening(bench),
        f"ids = torch.tensor({ids.tolist()})",
        *(() if mask is None else (f"mask = torch.tensor({mask.tolist()})",)),
        f"made = model.generate({', '.join(given)})",
        f"for row, pads in enumerate({pads}):",
        "    text = made[row:row + 1]" if reads_source else "    text = made[row:row + 1, pads:]",
        "    with torch.no_grad():",
        f"        out = {call}",
        f"    logits, written = {bench.subject.reading}[0, -{COUNT}:].double(), text[0, -{COUNT}:]",
        "    short = logits.max(-1).values - logits.gather(1, written[:, None])[:, 0]",
        "    print('written:', written.tolist(), '; arg-max:', logits.argmax(-1).tolist())",
        "    print('largest difference:', float(short.max()), '; standard deviation of the logits:', float(logits.std()))",
        "",
    ))  # fmt: skip


def _prompt(bench: Bench) -> int:
    """How long a prompt may be, so that what is written still fits."""
    context = bench.subject.facts.context
    n = bench.length if context is None else min(bench.length, context - COUNT)
    if n < 1:
        raise NotSupported("the context is too short to go on writing", "上下文太短，无法续写")
    return n


def greedy(bench: Bench) -> Finding:
    """One row."""
    return _written(bench, [_prompt(bench)])


def padded(bench: Bench) -> Finding:
    """Rows of unequal lengths, padded on the left."""
    n = _prompt(bench)
    if n < 3:
        raise NotSupported("the context is too short for prompts of unequal lengths", "上下文太短，容不下不等长的提示")
    if not bench.rows_apart:
        raise NotApplicable("rows read each other", "各行互相读取")
    return _written(bench, [n, n - 2])


GENERATE = Law(
    id="generate",
    statement=words(
        "Greedy text is the arg-max of the forward pass over it, step by step.",
        "贪心生成的文本逐步等于前向计算的最大者。",
    ),
    formula=r"y_i = \arg\max \mathrm{logits}(x\, y_{1:i-1})_{-1}",
    conditions=words(
        "A decoding loop, or a causal model that brings one along.", "解码循环，或自带解码循环的因果模型。"
    ),
    why=words(
        "Where loop and forward pass number positions differently, a well-trained model writes badly.",
        "若循环与前向计算的位置编号不同，训练良好的模型也会写得很差。",
    ),
    chapter="12.1",
    probes=(
        Probe(id="generate.greedy", does=words("the model's own loop", "模型自带的循环"), run=greedy),
        Probe(id="generate.padded", does=words("the same with left padding", "左填充时"), run=padded),
        Probe(
            id="generate.loop", does=words("prompts one by one", "逐个提示"), run=loop,
            family=Family.GENERATOR, fast=True,
        ),
        Probe(
            id="generate.batch", does=words("prompts together", "多个提示一起"), run=batch,
            family=Family.GENERATOR, fast=True,
        ),
    ),
)  # fmt: skip
