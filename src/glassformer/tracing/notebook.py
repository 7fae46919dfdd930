"""A trace in a notebook: a static summary first, and the page in a sandboxed frame after it.

The summary is plain HTML without scripts, so it is still there where a notebook is not trusted or shown by something
that runs nothing. The frame has no origin of its own: it runs its scripts and offers downloads, and reaches neither the
notebook nor anything stored. Texts of users and models are escaped in both.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..errors import UserError
from ..notation.numerals import number_text
from ..text.visible import visible
from .traceable import at

if TYPE_CHECKING:
    from .trace import Trace

LARGEST = 10_000_000
"""Characters of a page that a notebook takes up, which keeps what it shows: a larger one is a file of its own."""

SANDBOX = "allow-scripts allow-downloads allow-forms"
"""What the frame may do. Its fields are forms that the page itself answers; its own policy lets no form be sent."""

HEIGHT = 760
"""CSS pixels of the frame: the map and a table beside it."""

TOKENS = 64
"""How many tokens of a text are shown."""

PARAMETERS = 4
"""How many parameters are shown, those whose own step changes the loss most."""


def rows(trace: Trace) -> Iterator[tuple[str, str]]:
    """The summary as (name, text): tokens, loss, what changed most, and what was checked. The texts are harmless."""
    values, a = trace.values, trace.analysis
    words = [shown(trace, int(token)) for token in values["embed.t"]]
    yield "tokens", " ".join(words[:TOKENS]) + (f" … and {len(words) - TOKENS} more" if len(words) > TOKENS else "")
    scored = np.flatnonzero(values["loss.scored"])
    targets = [shown(trace, int(values["loss.y"][row])) for row in scored]
    yield "scored", f"{len(scored)} of {len(words)}" + (f", the last against {targets[-1]}" if targets else "")
    yield "loss", f"{number_text(a.loss)} → {number_text(a.loss + a.exact)} after one step at η = {a.eta:g}"
    yield "first order", f"{number_text(a.predicted)} predicted, {number_text(a.exact)} happened"
    for cell in a.watched:
        yield at(cell.id, cell.index), f"{number_text(cell.before)} → {number_text(cell.after)}"
    for group in sorted(a.groups, key=lambda group: -abs(group.alone))[:PARAMETERS]:
        yield f"{group.id} alone", f"loss {number_text(group.alone)}"
    replay = trace.replay
    yield (
        "replay",
        f"{'holds' if replay.holds else 'VIOLATED'}: {replay.largest:.2f} of 64 u·mag ({replay.cells:,} cells)",
    )
    if trace.witnesses:
        yield "witnesses", f"{sum(w.agree for w in trace.witnesses.values())} of {len(trace.witnesses)} gradients agree"
    if trace.audit is not None:
        yield "audit", f"{len(trace.audit.uncovered)} of {trace.audit.operations} operations without a definition"


def shown(trace: Trace, token: int) -> str:
    """A token's text in quotation marks, or its id where it has none."""
    texts = trace.text.vocabulary
    return f"“{visible(texts[token], keep='')}”" if 0 <= token < len(texts) else str(token)


def title(trace: Trace) -> str:
    """The title with every character visible."""
    return visible(trace.text.title["en"], keep="")


def text(trace: Trace) -> str:
    """The summary for a terminal."""
    width = max(len(name) for name, _ in rows(trace))
    return "\n".join([title(trace), *(f"  {name:{width}}  {value}" for name, value in rows(trace))])


def summary_html(trace: Trace) -> str:
    """The summary as HTML: a table without scripts, styles or links."""
    cells = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in rows(trace)
    )
    return f"<table><caption>{html.escape(title(trace))}</caption><tbody>{cells}</tbody></table>"


def notebook_html(trace: Trace) -> str:
    """The summary, and after it the page in a frame, or why it is not there and how to get it."""
    try:
        page = page_of(trace)
    except UserError as error:
        return f"{summary_html(trace)}<p>{html.escape(f'{error.fact} {error.next_step}')}</p>"
    if len(page) > LARGEST:
        return f"{summary_html(trace)}<p>{html.escape(_too_large(len(page)))}</p>"
    frame = (
        f'<iframe sandbox="{SANDBOX}" title="glassformer" srcdoc="{html.escape(page)}" '
        f'width="100%" height="{HEIGHT}" style="border: 1px solid currentcolor"></iframe>'
    )
    return summary_html(trace) + frame


def page_of(trace: Trace) -> str:
    """The page of ``trace``; of one that is too large only as many spaces, because writing it takes its time.

    Raises ``UserError`` when the page has not been built.
    """
    from ..page import build
    from ..page.document import template
    from .header import header_of, tensors_of

    # Four bytes a number become at least 16 characters for three of them.
    least = len(template()) + sum(array.size for array in trace.values.values()) * 16 // 3
    return " " * least if least > LARGEST else build(header_of(trace), tensors_of(trace))


def _too_large(size: int) -> str:
    return (
        f"The page of this trace has {size / 1e6:.0f} MB or more; up to {LARGEST / 1e6:.0f} MB are shown in a notebook. "
        'Write it to a file: trace.save("my.trace"), then: glassformer trace my.trace --html my.html'
    )


__all__ = ["notebook_html", "page_of", "rows", "summary_html", "text"]
