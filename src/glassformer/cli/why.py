"""Why the loss changed: what the step did, shared out among the parameters, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .console import columns, number
from .words import WHY

if TYPE_CHECKING:
    from ..tracing import Attribution, Trace
    from ..tracing.reasons import Watched


def why_lines(trace: Trace, texts: Sequence[str], lang: str) -> Iterator[str]:
    """First order, exact change alone and Shapley value of each group; watched numbers; equal gradients."""
    a, words = trace.analysis, WHY[lang]
    yield f"── {words['why']} " + "─" * 40
    yield from _step(trace, lang)
    if a.attribution is not None:
        yield from _shares(trace, a.attribution, lang)
    yield from (_watched(trace, cell, texts, lang) for cell in a.watched)
    for pair in a.coincidences:
        left, right = (_short(trace, id) for id in (pair.a, pair.b))
        yield words["equal" if pair.apart_after else "still equal"].format(
            a=left, b=right, apart=number(pair.apart_after)
        )


def _step(trace: Trace, lang: str) -> Iterator[str]:
    scalars, values, words = trace.program.scalars, trace.values, WHY[lang]
    kind = words["adamw"].format(k=int(scalars["step"])) if trace.moments is not None else words["descent"]
    yield f"{words['step']}: {kind}, η = {scalars['eta']:.6g}"
    if "optimizer.kept" in values:
        norm, kept = float(values["optimizer.norm"]), float(values["optimizer.kept"])
        yield words["clipped"].format(norm=number(norm), clip=f"{scalars['clip']:g}", kept=number(kept))


def _shares(trace: Trace, attribution: Attribution, lang: str) -> Iterator[str]:
    words, a = WHY[lang], trace.analysis
    sampled = attribution.orders is not None
    head = (words[f"by {attribution.by}"], "", words["first order"], words["alone"], words["share"])
    rows = [(*head, "±") if sampled else head]
    for share in attribution.shares:
        name = getattr(trace.program.quantities[share.group].quantity, lang) if attribution.by == "tensor" else ""
        cells = (number(share.predicted), number(share.alone), number(share.shapley))
        row = (_short(trace, share.group), name, *cells)
        rows.append((*row, number(share.error, 2)) if sampled else row)
    total = (words["together"], "", number(a.predicted), "", number(a.exact))
    rows.append((*total, "") if sampled else total)
    yield from columns(rows)
    yield f"{words['missed']}: {number(a.missed)}"


def _short(trace: Trace, group: str) -> str:
    """The shortest name that means this parameter alone; a group of several keeps its own."""
    last = group.rpartition(".")[2]
    ends = [id for id in trace.parameters if id.endswith(f".{last}")]
    return last if ends == [group] else group


def _watched(trace: Trace, cell: Watched, texts: Sequence[str], lang: str) -> str:
    words, values, index = WHY[lang], trace.values, cell.index
    if cell.id == "head.p":
        what = words["probability"].format(token=texts[index[1]])
    else:
        letters = [letter for letter, _ in trace.program.quantities[cell.id].axes]
        several = trace.program.layers > 1 or trace.program.scalars["H"] > 1
        place = f" ({cell.id}, h = {index[letters.index('h')]})" if several else ""
        row = index[letters.index("i")]
        what = words["attention"].format(row=row, token=texts[int(values["embed.t"][0])]) + place
    move = "rises" if cell.change > 0 else "falls" if cell.change < 0 else "stays"
    return f"{what} {words[move]}: {number(cell.before)} → {number(cell.after)}"
