"""What the book shows of a trained model of the clinic language, whose true probabilities are known."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

import torch

from ..bilingual import same, words
from ..errors import UserError
from ..generation import generate
from ..text import Language, WordTokenizer
from ..text.clinic import clinic, sentence
from ..tracing import trace_run
from ..tracing.probes import Report, aim_at, attention_effect, gradient_norms, linearity, reading_of, same_token
from ..tracing.probes.report import Note, Table, cell
from ..training import LoadedRun, load_run, log_probabilities
from .cuts import cuts
from .learning import kinds
from .library import Library
from .shortcut import learned, shortcut

GIVEN = 5
"""How many words of the fixed sentence stand before its symptom."""


def library_with(run: Path | None, *, say: Callable[[str], None] = lambda _: None) -> Library:
    """A library with the run of the clinic language at ``run``, or with one that is trained first (half a minute).

    Raises ``UserError`` for a folder that is no run, or a run of another language.
    """
    if run is not None:
        return _library(run)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clinic"
        say("Training a small model of the clinic language first (--run RUN takes one you have) …")
        command = [sys.executable, "-m", "glassformer", "train", "clinic", "--out", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
        if done.returncode:
            raise UserError("The model of the clinic language was not trained.", done.stderr.strip()[-400:], "")
        return _library(path)


def _library(path: Path) -> Library:
    loaded = load_run(path)
    language = clinic("zh")
    if not isinstance(loaded.tokenizer, WordTokenizer) or loaded.tokenizer.texts != language.tokenizer.texts:
        raise UserError(
            f"{path} is not a run of the clinic language in Chinese.",
            "The book compares a model with probabilities that are known.",
            "Train one: glassformer train clinic --out runs/clinic",
        )
    text = "".join(sentence("zh"))
    marks = shortcut(learned(Fraction(1)), learned(Fraction(1, 2)))
    return Library(
        runs={"clinic": trace_run(path, text, witness_cells=0)},
        facts={**_facts(loaded, language), **marks.values},
        reports={**_reports(loaded, language), "shortcut": marks},
    )


def _ids(loaded: LoadedRun, text: str) -> list[int]:
    return [int(i) for i in loaded.tokenizer.encode(text).ids]


def _facts(loaded: LoadedRun, language: Language) -> Mapping[str, float]:
    ids = _ids(loaded, "".join(sentence("zh")))
    p = _probabilities(loaded, ids[:GIVEN])[-1, ids[GIVEN]]
    return {
        "divergence": float(language.divergence(log_probabilities(loaded.model, language))),
        "entropy": float(language.entropy),
        "p": float(p),
        "truth": float(language.next_distribution(ids[:GIVEN])[ids[GIVEN]]),
        "parameters": float(sum(x.numel() for x in loaded.model.parameters())),
    }


@torch.no_grad()
def _probabilities(loaded: LoadedRun, ids: list[int]) -> torch.Tensor:
    """``(i, w)`` in float64."""
    return torch.softmax(loaded.model(torch.tensor([ids])).logits[0].double(), -1)


def _reports(loaded: LoadedRun, language: Language) -> Mapping[str, Report]:
    ids = _ids(loaded, "".join(sentence("zh")))
    reading = reading_of(loaded.model, ids, vocabulary=loaded.tokenizer.texts, provenance="measured")
    before = reading.of(ids[:GIVEN])
    return {
        "effect": attention_effect(reading, aim_at(reading, GIVEN - 1, ids[GIVEN]), -1).report(),
        "linearity": linearity(reading, reading.of(ids[::-1]), -1).report(),
        "gradients": gradient_norms(reading).report(),
        "prefixes": same_token(before, reading.of(_other(language, ids))).report(),
        "teacher": _teacher(loaded, ids),
        "distribution": _distribution(loaded, language, ids[:GIVEN]),
        "cuts": cuts(),
        "kinds": kinds(loaded),
    }


def _other(language: Language, ids: list[int]) -> list[int]:
    """Another beginning of the language that ends in the same word as the sentence's first ``GIVEN``."""
    beginnings = (list(map(int, row[:GIVEN])) for row in language.rows)
    return next(b for b in beginnings if b[-1] == ids[GIVEN - 1] and b[2] != ids[2])


def _teacher(loaded: LoadedRun, ids: list[int]) -> Report:
    """Every position given the true prefix, beside what the model writes when it reads its own words."""
    p = _probabilities(loaded, ids)
    texts = loaded.tokenizer.texts
    written = [*ids[:1], *generate(loaded.model, ids[:1], len(ids) - 1, temperature=0)]
    rows = []
    for i in range(len(ids) - 1):
        best = int(p[i].argmax())
        own = texts[written[i + 1]] if i + 1 < len(written) else None
        rows.append((i + 1, texts[ids[i]], texts[ids[i + 1]], cell(float(p[i, ids[i + 1]])), texts[best], own))
    columns = (
        words("position", "位置"), words("reads up to", "读到"), words("target", "目标"), words("its probability", "目标概率"),
        words("most probable", "最可能"), words("written alone (greedy)", "自行写出（贪心）"),
    )  # fmt: skip
    table = Table(
        words("The true prefix, and the model's own", "真实前缀与模型自己的前缀"), columns, tuple(rows), "measured"
    )
    note = Note(
        "definition",
        words(
            "With the same prefix, parameters and mask, and without dropout, both ways compute the same probabilities.",
            "前缀、参数、掩码相同且不用 dropout 时，两种方式算出同样的概率。",
        ),
    )
    title = words("Teacher forcing beside free running", "教师强制与自由生成")
    return Report("teacher", title, "measured", (table,), (note,))


def _distribution(loaded: LoadedRun, language: Language, given: list[int]) -> Report:
    """The model's next word beside the true probabilities."""
    p, truth = _probabilities(loaded, given)[-1], language.next_distribution(given)
    order = sorted(range(len(truth)), key=lambda w: -float(truth[w]))[:8]
    rows = tuple((loaded.tokenizer.texts[w], cell(float(truth[w])), cell(float(p[w]))) for w in order)
    columns = (words("next word", "下一个词"), words("true probability", "真实概率"), words("model", "模型"))
    title = words("After 患者服用华法林后出现", "在“患者服用华法林后出现”之后")
    table = Table(same("".join(loaded.tokenizer.texts[i] for i in given)), columns, rows, "measured")
    return Report("distribution", title, "measured", (table,))
