"""The readable table of a trace: every number of a small model, one line per quantity of a larger one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..notation import Kind, Placed, key
from ..text.visible import visible
from .console import columns, matrix, number
from .why import why_lines
from .words import TABLE

if TYPE_CHECKING:
    from ..tracing import Trace

SMALL = 400
"""Up to this many numbers in all parameters, inputs and values, every one is printed."""

_NOT_LISTED = (Kind.INPUT, Kind.CONSTANT, Kind.OPTIMIZER_STATE)


def summary(trace: Trace, lang: str) -> list[str]:
    """The table as lines."""
    words = TABLE[lang]
    of_model = [id for id, p in trace.program.quantities.items() if p.quantity.kind is not Kind.OPTIMIZER_STATE]
    size = sum(trace.values[id].size for id in of_model if id in trace.values)
    body = _every_number(trace, lang) if size <= SMALL else _one_line_each(trace, lang)
    why = why_lines(trace, _texts(trace, lang), lang)
    return [*_head(trace, words, lang), *body, "", *why, "", *_foot(trace, words)]


def _head(trace: Trace, words: dict[str, str], lang: str) -> list[str]:
    values, texts = trace.values, _texts(trace, lang)
    tokens = " ".join(texts[int(t)] for t in values["embed.t"])
    rows = np.flatnonzero(values["loss.scored"])
    target = " ".join(texts[int(values["loss.y"][row])] for row in rows)
    count = sum(values[id].size for id in trace.parameters)
    return [
        f"{trace.text.title[lang]}: {count:,} {words['parameters']}",
        f"{words['tokens']}: {tokens}   {words['target']}: {target}   {words['rate']} η = {trace.program.scalars['eta']:g}",
    ]


def _texts(trace: Trace, lang: str) -> list[str]:
    """Token texts for the reader; the small model in Chinese reads as the clinic sentence."""
    vocabulary = trace.text.vocabulary
    if lang == "zh" and trace.text.labels:
        vocabulary = trace.text.labels[-1]["texts"]
    return [visible(word, keep="").replace(" ", "␣") for word in vocabulary]


def _every_number(trace: Trace, lang: str) -> Iterator[str]:
    words = TABLE[lang]
    placed = [p for p in trace.program.quantities.values() if p.quantity.kind not in (Kind.INPUT, Kind.CONSTANT)]
    of_model = [p for p in placed if p.quantity.kind is not Kind.OPTIMIZER_STATE]
    of_optimizer = [p for p in placed if p.quantity.kind is Kind.OPTIMIZER_STATE]
    parts = [("", of_model, ("",)), ("grad", of_model, ("grad",)), ("optimizer", of_optimizer, ("", "new"))]
    for heading, quantities, faces in (*parts, ("new", of_model, ("new",)), ("after", of_model, ("after",))):
        shown = [(p, face) for p in quantities for face in faces if key(p.id, face) in trace.values]
        if shown:
            yield from ("", f"── {words[heading]} " + "─" * 40)
            for each, face in shown:
                yield from _block(trace, each, face, lang)


def _block(trace: Trace, placed: Placed, face: str, lang: str) -> Iterator[str]:
    """One quantity: name, then its numbers with token texts along vocabulary and position axes; one table per head."""
    array = trace.values[key(placed.id, face)]
    letters = [letter for letter, _ in placed.axes]
    name = getattr(placed.quantity, lang)
    shown = placed.quantity.name + ("" if face in ("", "after") else f".{face}")
    yield f"{shown}  {name}"
    if "h" in letters:
        at = letters.index("h")
        rest = [x for k, x in enumerate(placed.axes) if k != at]
        for head in range(array.shape[at]):
            if array.shape[at] > 1:
                yield f"  h = {head}"
            yield from _table(trace, np.take(array, head, axis=at), rest, lang)
    else:
        yield from _table(trace, array, placed.axes, lang)


def _table(trace: Trace, array: Any, axes: Any, lang: str) -> Iterator[str]:
    label = [_axis_labels(trace, dim, lang) for _, dim in axes]
    rows, columns = (label[0], label[1]) if len(label) == 2 else (None, label[0] if label else None)
    yield from (f"    {line}" for line in matrix(array, rows, columns))


def _axis_labels(trace: Trace, dim: str, lang: str) -> list[str]:
    texts = _texts(trace, lang)
    if dim == "N":
        return texts
    if dim in ("n", "n_k"):
        return [f"{k} {texts[int(t)]}" for k, t in enumerate(trace.values["embed.t"])]
    return [str(k) for k in range(int(trace.program.scalars[dim]))]


def _one_line_each(trace: Trace, lang: str) -> Iterator[str]:
    words = TABLE[lang]
    faces: tuple[tuple[str, Callable[[Any], float]], ...] = ((words["rms"], _rms), (words["largest"], _largest))
    rows = []
    for placed in trace.program.quantities.values():
        if placed.quantity.kind in _NOT_LISTED or placed.id not in trace.values:
            continue
        value, gradient = trace.values[placed.id], trace.values.get(key(placed.id, "grad"))
        shape = "×".join(map(str, value.shape)) or "1"
        cells = [number(of(value)) for _, of in faces] + ([number(_rms(gradient))] if gradient is not None else ["·"])
        rows.append((placed.id, getattr(placed.quantity, lang), shape, *cells))
    yield ""
    yield from columns([("id", "", words["shape"], words["rms"], words["largest"], "∂ " + words["rms"]), *rows])
    yield from ("", f"{words['next']}: " + "   ".join(_likely_next(trace, lang)))


def _likely_next(trace: Trace, lang: str) -> Iterator[str]:
    last, texts = trace.values["head.p"][-1], _texts(trace, lang)
    for token in np.argsort(-last, kind="stable")[:5]:
        yield f"“{texts[int(token)]}” {last[token]:.3f}"


def _rms(array: Any) -> float:
    finite = array[np.isfinite(array)]
    return float(np.sqrt((finite.astype(np.float64) ** 2).mean())) if finite.size else 0.0


def _largest(array: Any) -> float:
    finite = np.abs(array[np.isfinite(array)].astype(np.float64))
    return float(finite.max(initial=0.0))


def _foot(trace: Trace, words: dict[str, str]) -> list[str]:
    a = trace.analysis
    lines = [
        f"{words['loss']}: {number(a.loss)} {words['before']}, {number(a.loss + a.exact)} {words['then']}",
        f"{words['predicted']}: {number(a.predicted)}   {words['exact']}: {number(a.exact)}",
        f"{words['replay']}: {trace.replay.largest:.2f} {words['of']} ({trace.replay.cells:,})",
    ]
    if trace.witnesses:
        agree = sum(w.agree for w in trace.witnesses.values())
        lines.append(f"{words['witness']}: {agree} / {len(trace.witnesses)}")
    if trace.audit is not None:
        lines.append(f"{words['audit']}: {len(trace.audit.uncovered)} / {trace.audit.operations}")
    seen = {trace.observer.dtype: trace.observer.max_abs_logit_difference, **trace.observer.others}
    lines.append(f"{words['observer']}: " + "   ".join(f"{dtype} {number(x, 2)}" for dtype, x in seen.items()))
    return lines
