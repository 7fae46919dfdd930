"""``glassformer train clinic``: a small decoder on a language whose probabilities are known, measured against them."""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..text.clinic import clinic, sentence
from .console import write
from .progress import shown
from .stopping import stop_on_signal
from .words import CLINIC

if TYPE_CHECKING:
    from ..model import Decoder, DecoderConfig
    from ..text import Language
    from ..training import Outcome, TrainingConfig
    from ..training.loop import Steps

NAME = "clinic"
STEPS = 400
BATCH = 128  # sentences
LEARNING_RATE = 2e-3
FLOOR = 0.0
"""The last steps are as small as can be: at 1e-2, or with a floor, the loss was as good, but single probabilities ended
0.01 to 0.03 beside the truth."""

MEASURE_EVERY = 100  # steps
EXAMPLES = 5  # sentences
GIVEN = 5  # words of the notes' sentence, after which its symptom is predicted


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended: ``divergence`` in nats per word, and the probability of the notes' symptom beside the true one."""

    steps: int
    seconds: float
    stopped: bool
    divergence: float
    probability: float
    true_probability: float
    samples: tuple[str, ...]


def train_clinic(lang: str, config: DecoderConfig, training: TrainingConfig, out: Path) -> Result:
    """Train, measure, sample and save into the new folder ``out``; raises ``UserError``."""
    import torch

    from ..model import Decoder
    from ..training import RunFolder, run
    from ..training.loop import torch_threads

    language, words = clinic(lang), CLINIC[lang]
    model = Decoder(config, torch.Generator().manual_seed(training.seed))
    parameters = sum(p.numel() for p in model.parameters())
    write(
        [
            words["language"].format(m=len(language.rows), N=language.tokenizer.vocab_size, H=language.entropy),
            words["not medicine"],
            words["model"].format(parameters=parameters, blocks=config.blocks, d=config.d),
        ]
    )
    with RunFolder.create(out) as folder:
        try:
            training = folder.begin(model, language.tokenizer, {}, training, facts={"origin": f"clinic ({lang})"})
            with stop_on_signal() as stop, torch_threads(training.threads or 1):
                outcome = run(
                    model,
                    language,
                    training,
                    folder,
                    stop=lambda: stop.wanted,
                    through=lambda steps: shown(_measured(steps, model, language)),
                )
                result = measure(model, language, lang, outcome)
            samples = "\n".join([words["sampled"], words["not medicine"], *result.samples, ""])
            meta = facts(language, lang, training, result, parameters)
            folder.save(model, meta=meta, samples=samples, finished=not result.stopped)
        except BaseException:
            folder.abandon()
            raise
    write(["", *closing_lines(result, language, lang, out)])
    return result


def _measured(steps: Steps, model: Decoder, language: Language) -> Steps:
    """The steps of training; every so often with the exact expected loss, which needs no validation text."""
    from ..training import log_probabilities

    for step in steps:
        if step.step % MEASURE_EVERY:
            yield step
        else:
            yield dataclasses.replace(step, validation=language.loss(log_probabilities(model, language)))


def measure(model: Decoder, language: Language, lang: str, outcome: Outcome) -> Result:
    """KL to the truth over all prefixes, the notes' prediction, and sentences the model writes."""
    import torch

    from ..generation import generate
    from ..training import log_probabilities

    tokenizer = language.tokenizer
    ids = tokenizer.encode("".join(sentence(lang))).ids.tolist()
    given, symptom = ids[:GIVEN], ids[GIVEN]
    with torch.no_grad():
        p = torch.softmax(model(torch.tensor([given])).logits[0, -1].double(), -1)[symptom]
    samples: list[str] = []
    for seed in range(EXAMPLES):
        written = ids[:1]
        for token in generate(model, ids[:1], model.config.context, seed=seed):
            if token == tokenizer.end_of_text:
                break
            written.append(token)
        samples.append(tokenizer.decode(written))
    return Result(
        steps=outcome.step,
        seconds=outcome.elapsed,
        stopped=outcome.stopped,
        divergence=language.divergence(log_probabilities(model, language)),
        probability=float(p),
        true_probability=float(language.next_distribution(given)[symptom]),
        samples=tuple(samples),
    )


def facts(language: Language, lang: str, training: TrainingConfig, result: Result, parameters: int) -> dict[str, Any]:
    """What the manifest says about the run."""
    import torch

    return {
        "version": __version__,
        "torch": torch.__version__,
        "origin": f"the clinic language ({lang}), sentences sampled from its grammar; not medicine",
        "parameters": parameters,
        "training": training.model_dump(mode="json"),
        "steps": result.steps,
        "seconds": round(result.seconds, 3),
        "stopped_early": result.stopped,
        "entropy": language.entropy,
        "divergence": result.divergence,
        "probability": result.probability,
        "true_probability": result.true_probability,
    }


def closing_lines(result: Result, language: Language, lang: str, out: Path) -> list[str]:
    """What is printed at the end: sentences, the distance to the truth, the next commands."""
    words, text = CLINIC[lang], sentence(lang)
    folder = shlex.quote(str(out))
    event = f"p({text[GIVEN].strip()} | {''.join(text[:GIVEN])})"
    return [
        words["sampled"],
        *(f"  {line}" for line in result.samples),
        words["not medicine"],
        "",
        *([words["stopped"].format(steps=result.steps)] if result.stopped else []),
        words["steps"].format(steps=result.steps, seconds=result.seconds),
        words["divergence"].format(kl=result.divergence, H=language.entropy),
        words["probability"].format(event=event, model=result.probability, truth=result.true_probability),
        "",
        words["saved"].format(out=out),
        f"glassformer trace {folder} {shlex.quote(''.join(text))} --lang {lang} --html page.html",
        f"glassformer generate {folder} --prompt {shlex.quote(text[0])} --lang {lang}",
    ]
