"""``glassformer generate --explain K``: how one token of a written text was chosen, from the scores to the draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UserError
from ..text.visible import visible
from .console import aligned, number, write
from .output import emit_json
from .words import DECODING

if TYPE_CHECKING:
    from ..generation import DecodingStep, Request
    from ..generation.decoding import Candidate
    from ..training import LoadedRun

SCHEMA = 1

SHOWN = 12
"""How many candidates are printed, the most probable first; JSON has every token that was kept, and these."""


def explain_choice(
    loaded: LoadedRun, ids: list[int], request: Request, number: int, json_path: str | None, force: bool, lang: str
) -> None:
    """Print, or write as JSON, how token ``number`` (from 1) of the continuation of ``ids`` was chosen.

    Raises ``UserError`` for a number outside the text and for options that do not apply.
    """
    if request.stop:
        raise UserError(
            "--stop does not go with --explain.", "The text is written as far as the token asked for.", "Leave it out."
        )
    if number > request.count:
        raise UserError(
            f"Token {number} is not written: --max-tokens is {request.count}.",
            "",
            "Ask for an earlier one, or for more.",
        )
    step = _step(loaded, ids, request, number)
    if json_path is not None:
        emit_json(as_json(step, loaded, len(ids), request), json_path, force, indent=1)
    if json_path != "-":
        write(lines(step, loaded, request, lang))


def _step(loaded: LoadedRun, ids: list[int], request: Request, number: int) -> DecodingStep:
    from ..generation import explain_decoding

    step = explain_decoding(loaded.model, ids, number, request.rule, request.seed, loaded.tokenizer.specials.unwritten)
    written = step.decision.tokens[len(ids) :]
    end = loaded.tokenizer.end_of_text
    if end is not None and end in written:
        count = written.index(end) + 1
        raise UserError(
            f"The text ends before token {number}.",
            f"Token {count} is the end of the text.",
            f"Use 1 to {count}, or another seed.",
        )
    return step


def lines(step: DecodingStep, loaded: LoadedRun, request: Request, lang: str) -> list[str]:
    """The step as lines: what was read, the rule, the candidates, where the draw fell, the arithmetic of the choice."""
    from ..notation.cell import text_lines
    from ..notation.plain import index_text
    from ..notation.symbols import short_names

    words, texts, rule = DECODING[lang], loaded.tokenizer.texts, step.rule
    decision, reading = step.decision, step.decision.reading
    before = visible(loaded.tokenizer.decode(list(decision.tokens))[-60:], keep="")
    names = short_names(step.program, "decoding")
    chosen = next(c for c in step.candidates(0) if c.token == step.token)
    told = [
        words["title"].format(k=step.number, text=before, n=len(decision.tokens)),
        words["slid" if len(decision.tokens) > loaded.model.config.context else "cache"].format(
            reused=reading.reused, new=reading.new
        ),
        words["rule"].format(T=rule.temperature, k=rule.top_k or len(texts), p=rule.top_p, seed=request.seed),
        "",
        *(f"  {index_text(s, names)}" for s in step.program.forward),
        "",
        *_table(step, step.candidates(SHOWN), texts, words),
        "",
        words["drawn" if rule.temperature else "greedy"].format(
            u=number(decision.u), low=number(chosen.low), high=number(chosen.high), token=_quoted(texts[step.token])
        ),
        "",
    ]
    for placed in step.program.quantities.values():
        if step.program.definition(placed.id) is not None:
            told += text_lines(step.explain(placed.id, *[step.token] * len(placed.axes)), lang=lang)
    worst = max(step.differences.values())
    return [*told, "", words["agree"].format(difference=number(worst, 2) if worst else "0")]


def _table(step: DecodingStep, shown: list[Candidate], texts: Any, words: dict[str, str]) -> list[str]:
    heads = ("rank", "token", "id", "logits", "p_T", "before", "kept", "p", "from", "to")
    rows = [[words.get(head, head) for head in heads] + [""]]
    for c in shown:
        numbers = [number(x) for x in (c.logit, c.p_T, c.before)]
        interval = [number(c.p), number(c.low), number(c.high)] if c.kept else ["0", "", ""]
        mark = f"← u = {number(step.decision.u)}" if c.token == step.token and step.rule.temperature else ""
        mark = mark or ("←" if c.token == step.token else "")
        kept = words["yes" if c.kept else "no"]
        rows.append([str(c.rank), _quoted(texts[c.token]), str(c.token), *numbers, kept, *interval, mark])
    table = [line.rstrip() for line in aligned(rows)]
    rest = len(texts) - len(shown)
    left = sum(float(x) for x in np.delete(step.values["decoding.p"], [c.token for c in shown]))
    return table + ([words["rest"].format(n=rest, p=number(left))] if rest else [])


def _quoted(text: str) -> str:
    return f"“{visible(text, keep='')}”"


def as_json(step: DecodingStep, loaded: LoadedRun, prompt: int, request: Request) -> dict[str, Any]:
    """What ``--json`` says of the step: strict JSON (a score of minus infinity is null), tokens with their texts."""
    texts, rule, decision = loaded.tokenizer.texts, step.rule, step.decision
    candidates = [c for c in step.candidates() if c.kept or c.rank < SHOWN]
    return {
        "schema": SCHEMA,
        "step": step.number,
        "before": {
            "ids": list(decision.tokens),
            "text": loaded.tokenizer.decode(list(decision.tokens)),
            "prompt_length": prompt,
        },
        "read": {
            "positions_kept": decision.reading.reused,
            "positions_anew": decision.reading.new,
            "context": loaded.model.config.context,
        },
        "rule": {"temperature": rule.temperature, "top_k": rule.top_k, "top_p": rule.top_p},
        "seed": request.seed,
        "u": decision.u if rule.temperature else None,
        "chosen": {"id": step.token, "text": texts[step.token], "probability": decision.choice.probability},
        "candidates": [
            {"text": texts[c.token], **c._asdict(), "logit": c.logit if c.logit > float("-inf") else None}
            for c in candidates
        ],
        "definitions": [s.quantity.text.strip() for s in step.program.forward],
        "differences": step.differences,
    }
