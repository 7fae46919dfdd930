"""Three things that are called learning, done with one trained model: a step, a context, a memory outside."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..bilingual import Words, words
from ..model import Decoder
from ..text.clinic import DRUGS
from ..tracing.probes import Report
from ..tracing.probes.report import Cell, Note, Table, cell
from ..training import LoadedRun

ETA = 0.005
"""Length of the one step of gradient descent."""

WARFARIN, PENICILLIN, SYMPTOM = "华法林", "青霉素", "黑便"


@dataclass(slots=True)
class Memory:
    """What an application writes down between two contexts. The model knows nothing of it."""

    notes: dict[str, str] = field(default_factory=dict)

    def saved(self) -> str:
        return json.dumps(self.notes, ensure_ascii=False)

    @classmethod
    def opened(cls, text: str) -> Memory:
        return cls(json.loads(text))

    def context(self, subject: str) -> list[str]:
        """The beginning of a sentence about ``subject``, with what is noted of it put in; without a note it ends early."""
        drug = self.notes.get(subject)
        return [subject, "服用"] if drug is None else [subject, "服用", drug, "后", "出现"]


def kinds(loaded: LoadedRun) -> Report:
    """How probable the symptom becomes in each of the three ways, and how many parameters that changed."""
    model, asked = loaded.model, _Asked(loaded.model, loaded.tokenizer.texts)
    before = ["患者", "服用", PENICILLIN, "后", "出现"]
    trained = _stepped(model, asked.ids(before), asked.ids([SYMPTOM])[0])
    other = ["患者", "服用", WARFARIN, "后", "出现"]
    empty = Memory()
    later = Memory.opened(Memory({"患者": WARFARIN}).saved())
    said = _Asked(trained, asked.texts)
    rows = (
        _row(words("a step of training", "训练一步"), before, before, asked.next(before), said.next(before),
             _changed(model, trained)),
        _row(words("another context", "换一段上下文"), before, other, asked.next(before), asked.next(other), 0),
        _row(words("a note put into the context", "把记下的内容放进上下文"), empty.context("患者"), later.context("患者"),
             asked.sooner(empty.context("患者")), asked.next(later.context("患者")), 0),
    )  # fmt: skip
    columns = (
        words("what happened", "做了什么"), words("read before", "之前读到"), words("read after", "之后读到"),
        words(f"probability of {SYMPTOM} before", f"“{SYMPTOM}”的概率：之前"), words("after", "之后"),
        words("parameters that changed", "改变的参数个数"),
    )  # fmt: skip
    table = Table(words("One model, three ways", "同一个模型，三种做法"), columns, rows, "measured")
    note = Note(
        "definition",
        words(
            "Without a note the sentence stops before the drug; its probability there is the mean over the drugs that the "
            "model may write. The sentences are examples of language and say nothing about medicine.",
            "没有记录时，句子停在药名之前，那里的概率是对模型可能写出的各种药取的平均。这些句子只是语言的例子，与医学无关。",
        ),
    )
    return Report("kinds", words("Three kinds of learning", "三种“学习”"), "measured", (table,), (note,))


def _row(what: Words, first: Sequence[str], then: Sequence[str], p: float, q: float, changed: int) -> tuple[Cell, ...]:
    return (what, "".join(first), "".join(then), cell(p), cell(q), changed)


@dataclass(frozen=True, slots=True)
class _Asked:
    model: Decoder
    texts: Sequence[str]

    def ids(self, given: Sequence[str]) -> list[int]:
        return [self.texts.index(word) for word in given]

    def next(self, given: Sequence[str], word: str = SYMPTOM) -> float:
        """How probable ``word`` is after ``given``."""
        with torch.no_grad():
            logits = self.model(torch.tensor([self.ids(given)])).logits[0, -1].double()
        return float(torch.softmax(logits, -1)[self.ids([word])[0]])

    def sooner(self, given: Sequence[str]) -> float:
        """How probable the symptom is at the end when the model names the drug itself."""
        drugs = DRUGS[given[0]]
        return sum(self.next(given, drug) * self.next([*given, drug, "后", "出现"]) for drug in drugs)


def _stepped(model: Decoder, given: Sequence[int], target: int) -> Decoder:
    """A copy of ``model`` after one step of gradient descent on one target."""
    stepped = copy.deepcopy(model)
    logits = stepped(torch.tensor([list(given)])).logits[0, -1]
    parameters = list(stepped.parameters())
    gradients = torch.autograd.grad(-torch.log_softmax(logits, -1)[target], parameters)
    with torch.no_grad():
        for x, g in zip(parameters, gradients, strict=True):
            x -= ETA * g
    return stepped


def _changed(model: Decoder, other: Decoder) -> int:
    ours: Mapping[str, Tensor] = dict(model.named_parameters())
    return sum(int((x != ours[name]).sum()) for name, x in other.named_parameters())
