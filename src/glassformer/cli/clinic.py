"""``glassformer train clinic``: a small decoder on a language whose probabilities are known, measured against them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..text.clinic import clinic, sentence
from .running import Measured
from .words import CLINIC

if TYPE_CHECKING:
    from ..model import Decoder
    from ..text import Language, WordTokenizer
    from ..training import Outcome

NAME = "clinic"
EXAMPLES = 5  # sentences
GIVEN = 5  # words of the notes' sentence, after which its symptom is predicted


@dataclass(frozen=True, slots=True)
class ClinicSubject:
    """The clinic language in ``lang``: zh, or its English twin."""

    lang: str
    data: Language

    @classmethod
    def of(cls, lang: str) -> ClinicSubject:
        return cls(lang, clinic(lang))

    @property
    def tokenizer(self) -> WordTokenizer:
        return self.data.tokenizer

    @property
    def context(self) -> int:
        """Positions that the longest sentence needs."""
        return self.data.scored.shape[1]

    def opening(self, model: Decoder) -> list[str]:
        words, language = CLINIC[self.lang], self.data
        parameters = sum(p.numel() for p in model.parameters())
        return [
            words["language"].format(m=len(language.rows), N=language.tokenizer.vocab_size, H=language.entropy),
            words["not medicine"],
            words["model"].format(parameters=parameters, blocks=model.config.blocks, d=model.config.d),
        ]

    def measure(self, model: Decoder, outcome: Outcome, out: Path) -> Measured:
        from ..training import log_probabilities

        divergence = self.data.divergence(log_probabilities(model, self.data))
        p, truth = self._symptom(model)
        written = self._sentences(model)
        words, text = CLINIC[self.lang], sentence(self.lang)
        folder = shlex.quote(str(out))
        event = f"p({text[GIVEN].strip()} | {''.join(text[:GIVEN])})"
        stopped = [words["stopped"].format(steps=outcome.step), words["go on"].format(out=folder)]
        facts = {
            "origin": f"the clinic language ({self.lang}), sentences sampled from its grammar; not medicine",
            "entropy": self.data.entropy,
            "divergence": divergence,
            "probability": p,
            "true_probability": truth,
        }
        lines = [
            words["sampled"],
            *(f"  {line}" for line in written),
            words["not medicine"],
            "",
            *(stopped if outcome.stopped else []),
            words["steps"].format(steps=outcome.step, seconds=outcome.elapsed),
            words["divergence"].format(kl=divergence, H=self.data.entropy),
            words["probability"].format(event=event, model=p, truth=truth),
            "",
            words["saved"].format(out=out),
            f"glassformer trace {folder} {shlex.quote(''.join(text))} --lang {self.lang} --html page.html",
            f"glassformer generate {folder} --prompt {shlex.quote(text[0])} --lang {self.lang}",
        ]
        return Measured(facts, "\n".join([words["sampled"], words["not medicine"], *written, ""]), lines)

    def _symptom(self, model: Decoder) -> tuple[float, float]:
        """The probability of the notes' symptom after the words before it: the model's, and the true one."""
        import torch

        ids = self.tokenizer.encode("".join(sentence(self.lang))).ids.tolist()
        given, symptom = ids[:GIVEN], ids[GIVEN]
        with torch.no_grad():
            p = torch.softmax(model(torch.tensor([given])).logits[0, -1].double(), -1)[symptom]
        return float(p), float(self.data.next_distribution(given)[symptom])

    def _sentences(self, model: Decoder) -> tuple[str, ...]:
        """Sentences the model writes after the first word of the notes' own."""
        from ..generation import generate

        first = self.tokenizer.encode(sentence(self.lang)[0]).ids.tolist()
        written: list[str] = []
        for seed in range(EXAMPLES):
            ids = list(first)
            for token in generate(model, first, model.config.context, seed=seed):
                if token == self.tokenizer.end_of_text:
                    break
                ids.append(token)
            written.append(self.tokenizer.decode(ids))
        return tuple(written)
