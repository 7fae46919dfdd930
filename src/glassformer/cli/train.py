"""``glassformer train``: a small decoder on a user's text, or on the clinic language, in a folder of its own."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError
from ..text.shards import open_prepared
from . import clinic
from .console import aside, write
from .running import Begun, Subject, finish
from .settings import CLINIC, TEXT, recipe_of, refuse_too_large
from .stopping import Stop, stop_on_signal
from .subject import Language
from .text_run import TextSubject

if TYPE_CHECKING:
    from ..training import RunFolder
    from ..training.recipe import Recipe


class TokenizerKind(StrEnum):
    """What a token is."""

    characters = "characters"
    bytes = "bytes"


def train_command(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="SOURCE", help="A text file, a folder, - for standard input, or the word clinic."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the run; must not exist yet, or be empty.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Go on with an interrupted run, exactly where it was saved.")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="TOML", help="Settings, as in RUN/recipe.toml.")] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting: model.positions=rope.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Train for this long (20 unless --steps is given).")] = None,
    steps: Annotated[int | None, typer.Option(help="Train for this many steps: repeatable, unlike --seconds.")] = None,
    tokenizer: Annotated[
        TokenizerKind | None, typer.Option(help="One token per character, or byte pairs merged.")
    ] = None,
    vocab_size: Annotated[int | None, typer.Option(help="Tokens of a tokenizer of bytes, at most (1024).")] = None,
    isolated: Annotated[
        bool | None, typer.Option("--isolated/--joined", help="Documents in one row cannot read each other (joined).")
    ] = None,
    field: Annotated[str | None, typer.Option(help="Where a JSON line or Parquet table has the text (text).")] = None,
    d: Annotated[int | None, typer.Option("--d", help="Model dimension (64).")] = None,
    blocks: Annotated[int | None, typer.Option(help="Number of blocks (2).")] = None,
    heads: Annotated[int | None, typer.Option(help="Attention heads of a block (4).")] = None,
    context: Annotated[int | None, typer.Option(help="How many tokens it sees at once (64).")] = None,
    batch: Annotated[int | None, typer.Option(help="Rows of text per step (16; sentences of clinic: 256).")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Largest of the schedule (0.01; clinic: 0.004).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of first parameters, batches and sample (0).")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads (1 below d = 128, else up to 4).")] = None,
    lang: Annotated[Language | None, typer.Option(help="Language of clinic: zh, or its English twin.")] = None,
) -> None:
    """Train a small decoder and save it. Ctrl-C stops and saves what there is; --resume goes on from there.

    SOURCE is a .txt or .md file (one document), .jsonl or .parquet (one document a line or row), any of them as .gz or
    .zst, a folder of such files, or clinic: a language of sentences whose probabilities are known.
    """
    given = {
        "--steps": steps, "--seconds": seconds, "--batch": batch, "--seed": seed, "--threads": threads,
        "--learning-rate": learning_rate, "--d": d, "--blocks": blocks, "--heads": heads, "--context": context,
        "--tokenizer": None if tokenizer is None else tokenizer.value, "--vocab-size": vocab_size,
        "--isolated": isolated, "--field": field, "--lang": None if lang is None else lang.value,
    }  # fmt: skip
    if resume is not None:
        _refuse_beside_resume(
            {**given, "SOURCE": source, "--out": out, "--config": config, "--set": assignments or None}
        )
        stopped = _go_on(resume)
    else:
        stopped = _begin(source, out, given, (config, assignments or []))
    if stopped:
        raise typer.Exit(130)


def _begin(
    source: Path | None, out: Path | None, given: Mapping[str, Any], settings: tuple[Path | None, list[str]]
) -> bool:
    """A new run; whether somebody stopped it."""
    from ..training import RunFolder
    from ..training.run_files import RUN
    from ..training.run_folder import refuse_existing

    if source is None or out is None:
        raise UserError(
            "A new run needs a text and a folder." if source is None else "A new run needs a folder.",
            "",
            "For example: glassformer train notes.txt --out runs/mine",
        )
    refuse_existing(out)
    of_language = str(source) == clinic.NAME and not source.exists()
    if of_language:
        _refuse_for_language(given)
    elif given["--lang"] is not None:
        raise UserError("--lang belongs to clinic.", "A text is in the language it is in.", "Leave it out.")
    recipe = recipe_of(given, *settings, CLINIC if of_language else TEXT)
    if recipe.data.clinic is not None and not of_language:
        raise UserError(
            "These settings are for the clinic language, and there is a text.",
            f"data.clinic is {recipe.data.clinic}.",
            "Give clinic in the place of the text, or leave data.clinic out.",
        )
    there = [path for path in (out, *out.parents) if path.exists()]
    with stop_on_signal() as stop, RunFolder.create(out) as folder:
        try:
            subject, context = _prepared(source, recipe, folder, stop)
            finish(subject, _begun(subject, context, recipe, folder), stop)
        except BaseException as problem:
            folder.abandon()
            _leave_what_was_there(out, there)
            if (out / RUN).exists():
                problem.add_note(_how_to_go_on(out))
            elif isinstance(problem, KeyboardInterrupt):
                problem.add_note("Nothing was saved yet, and nothing is left behind.")
            raise
    return stop.wanted


def _leave_what_was_there(out: Path, there: list[Path]) -> None:
    """After a run that left nothing: of the folder ``out`` and those around it exactly those that were ``there``."""
    with contextlib.suppress(OSError):
        if out in there:
            out.mkdir(exist_ok=True)
        elif not out.exists():
            for path in out.parents:
                if path not in there:
                    path.rmdir()


def _how_to_go_on(path: Path) -> str:
    return f"What was learned until its last checkpoint is kept: glassformer train --resume {shlex.quote(str(path))}"


def _prepared(source: Path, recipe: Recipe, folder: RunFolder, stop: Stop) -> tuple[Subject, int]:
    """The data of a new run, written to its folder where it is a text, and how many tokens its model reads."""
    data = recipe.data
    if data.clinic is not None:
        subject = clinic.ClinicSubject.of(data.clinic)
        return subject, subject.context
    from ..text import documents, prepare, require_window

    vocab_size = data.vocab_size if data.tokenizer == "bytes" else None
    with documents(source, data.field) as texts:
        ready = prepare(
            texts, folder.data, data.tokenizer, vocab_size, isolated=data.isolated, progress=stop.before_work
        )
    require_window(ready.corpus.train.ids, recipe.model.context)
    return TextSubject.of(ready, recipe.training.seed), recipe.model.context


def _begun(subject: Subject, context: int, recipe: Recipe, folder: RunFolder) -> Begun:
    """A model at its start, and its folder ready to be resumed."""
    import torch

    from ..model import Decoder
    from ..text import tokenizer_config

    vocab_size = subject.tokenizer.vocab_size
    refuse_too_large(recipe, vocab_size)
    shape = recipe.model.model_copy(update={"context": context}).config(vocab_size)
    model = Decoder(shape, torch.Generator().manual_seed(recipe.training.seed))
    training = folder.begin(
        model, subject.tokenizer, tokenizer_config(subject.tokenizer, recipe.data.isolated), recipe.training,
        facts={"clinic": recipe.data.clinic}, recipe=recipe.toml(),
    )  # fmt: skip
    return Begun(model, training, folder)


def _go_on(path: Path) -> bool:
    """An interrupted run, to its end; whether somebody stopped it again."""
    from ..training import RunFolder

    subject = _subject_again(path)
    found = RunFolder.resume(path)
    with found.folder as folder, stop_on_signal() as stop:
        for note in found.notes:
            aside(note)
        write([f"going on after step {found.state.step:,}"])
        try:
            finish(subject, Begun(found.model, found.training, folder, found.state), stop)
        except BaseException as problem:
            problem.add_note(_how_to_go_on(path))
            raise
    return stop.wanted


def _subject_again(path: Path) -> Subject:
    """What the run in ``path`` learns; read before the run is touched, for it may be damaged."""
    from ..training.loading import read_parts
    from ..training.run_files import DATA, require_folder

    require_folder(path)
    parts = read_parts(path)
    lang = parts.facts.get("clinic")
    return clinic.ClinicSubject.of(lang) if lang else TextSubject.of(open_prepared(path / DATA), parts.training.seed)


def _refuse_for_language(given: Mapping[str, Any]) -> None:
    for option, reason in (
        ("--context", "It is as long as its longest sentence."),
        ("--tokenizer", "Its words are its tokens."),
        ("--vocab-size", "Its words are its tokens."),
        ("--isolated", "Each row is one sentence."),
        ("--field", "It is no file."),
    ):
        if given[option] is not None:
            raise UserError(f"{option} does not apply to clinic.", reason, "Leave it out.")


def _refuse_beside_resume(given: Mapping[str, Any]) -> None:
    beside = [option for option, value in given.items() if value is not None]
    if beside:
        raise UserError(
            f"{beside[0]} does not apply to --resume.",
            "An interrupted run goes on as it began: that makes it equal to one that was not interrupted.",
            "Leave it out, or begin a new run.",
        )
