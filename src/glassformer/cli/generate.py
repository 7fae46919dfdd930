"""``glassformer generate``: a text continued by a trained model, shown as it is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError
from .console import aside, stream
from .decoding import explain_choice
from .output import emit_json, refuse_existing
from .stopping import stop_on_signal
from .subject import Language
from .words import GENERATE

if TYPE_CHECKING:
    from ..generation import Continuation, Request
    from ..training import LoadedRun

SCHEMA = 1


def generate_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="The text to continue.")],
    temperature: Annotated[float, typer.Option(help="0 takes the most probable token; 1 the model's own odds.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Choose among this many most probable tokens (all).")] = None,
    top_p: Annotated[float, typer.Option(help="Choose among the most probable tokens that fill this much.")] = 1.0,
    max_tokens: Annotated[int, typer.Option(help="Write at most this many tokens.")] = 200,
    seed: Annotated[int, typer.Option(help="The same seed writes the same text.")] = 0,
    stop: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="End before this text; may be given several times.")
    ] = None,
    explain: Annotated[
        int | None, typer.Option(metavar="K", help="Instead of the text: how the K-th token (from 1) was chosen.")
    ] = None,
    json_path: Annotated[
        str | None, typer.Option("--json", metavar="PATH|-", help="Write text, ids and probabilities as JSON.")
    ] = None,
    lang: Annotated[Language, typer.Option(help="Language of the notes beside the text.")] = Language.en,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Continue a text token by token. The text goes to standard output, notes to standard error; Ctrl-C ends it."""
    refuse_existing(json_path if json_path != "-" else None, force)
    from ..generation import Continuation, Reason, Request, Rule
    from ..text import prompt_ids
    from ..training import load_run
    from ..training.config import default_threads
    from ..training.loop import torch_threads

    if max_tokens < 1:
        raise UserError(f"--max-tokens cannot be {max_tokens}.", "", "Use a whole number from 1 up.")
    request = Request(max_tokens, Rule(temperature, top_k, top_p), seed, tuple(stop or ()))
    loaded = load_run(run)
    ids = prompt_ids(loaded.tokenizer, prompt, loaded.begin)
    if explain is not None:
        with torch_threads(default_threads(loaded.model.config.d)):
            explain_choice(loaded, ids, request, explain, json_path, force, lang.value)
        return
    words = GENERATE[lang.value]
    with stop_on_signal() as signal, torch_threads(default_threads(loaded.model.config.d)):
        written = Continuation(loaded.model, loaded.tokenizer, ids, request, lambda: signal.wanted)
        context = loaded.model.config.context
        if len(ids) > context:
            aside(words["window"].format(n=len(ids), context=context))
        shown = json_path != "-"
        _write(prompt, written, shown)
    if shown:
        aside(words[written.reason.name].format(n=len(written.choices), stop=written.stop))
    if json_path is not None:
        emit_json(report(loaded, prompt, ids, request, written), json_path, force, indent=1)
    if written.reason is Reason.INTERRUPTED:
        raise typer.Exit(130)


def _write(prompt: str, written: Continuation, shown: bool) -> None:
    if shown:
        stream(prompt)
    for part in written:
        if shown:
            stream(part)
    if shown:
        stream("\n")


def report(loaded: LoadedRun, prompt: str, ids: list[int], request: Request, written: Continuation) -> dict[str, Any]:
    """What ``--json`` says: each chosen token with the probability the rule gave it, and the model's own.

    ``text`` has neither the end-of-text token nor the stop string; the lists hold every token chosen.
    """
    chosen = [choice.token for choice in written.choices]
    return {
        "schema": SCHEMA,
        "prompt": {"text": prompt, "ids": ids, "read": min(len(ids), loaded.model.config.context)},
        "rule": {"temperature": request.rule.temperature, "top_k": request.rule.top_k, "top_p": request.rule.top_p},
        "seed": request.seed,
        "text": written.text,
        "ids": chosen,
        "tokens": [loaded.tokenizer.texts[id] for id in chosen],
        "probabilities": [choice.probability for choice in written.choices],
        "model_probabilities": [choice.model_probability for choice in written.choices],
        "ended": written.reason.value,
        "stop": written.stop,
    }
