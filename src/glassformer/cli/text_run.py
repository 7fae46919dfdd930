"""``glassformer train FILE``: a small decoder on a user's text, compared with a character bigram."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..text.characters import CharacterTokenizer
from ..text.visible import visible
from .running import Measured

if TYPE_CHECKING:
    from ..model import Decoder
    from ..text import Corpus, Prepared, Tokenizer
    from ..text.batches import Batch
    from ..training import Outcome

SCORED = 131_072  # tokens of the validation text that the final loss is measured on, at most
SAMPLE = 400  # tokens
TEMPERATURE = 0.8
PHRASE = 24  # characters to look at next, at most


@dataclass(frozen=True, slots=True)
class TextSubject:
    """A text as tokens, where it came from, and whether prompts begin with BOS."""

    tokenizer: Tokenizer
    data: Corpus
    origin: str
    begin: bool
    seed: int

    @classmethod
    def of(cls, ready: Prepared, seed: int) -> TextSubject:
        """The text that ``ready`` holds; ``seed`` is that of the sample."""
        return cls(ready.tokenizer, ready.corpus, ready.facts["origin"], ready.corpus.isolated, seed)

    def opening(self, model: Decoder) -> list[str]:
        config = model.config
        attention = config.layers[0].attention
        parameters = sum(p.numel() for p in model.parameters())
        blocks = f"{config.blocks} block{'s' * (config.blocks > 1)}"
        size = f"{blocks}, d = {config.d}, {attention.heads} heads, context {config.context}"
        return [
            f"text: {self.origin}",
            f"{self.tokenizer.vocab_size:,} different tokens; {self.data.describe()}",
            f"model: {parameters:,} parameters, {size}",
        ]

    def measure(self, model: Decoder, outcome: Outcome, out: Path) -> Measured:
        from ..training import validation_loss

        batches = list(self._held_out(model))
        loss = validation_loss(model, batches)
        assert loss is not None
        scored = sum(int(batch.scored.sum()) for batch in batches)
        # joined: a character may begin in one batch and end in the next
        characters = len(self.tokenizer.decode(np.concatenate([batch.targets[batch.scored] for batch in batches])))
        per_character = loss * scored / max(1, characters)
        bigram = self._bigram(batches) / max(1, characters)
        sample = self._sample(model)
        facts = {
            "origin": self.origin,
            "split": self.data.describe(),
            "validation_loss": per_character,
            "validation_loss_per_token": loss,
            "bigram_loss": bigram,
            "scored_tokens": scored,
            "scored_characters": characters,
        }
        samples = f"# sampled from the model, temperature {TEMPERATURE}, after {outcome.step:,} steps\n{sample}\n"
        lines = [
            f"sampled from the model (temperature {TEMPERATURE}):",
            *(f"  {line}" for line in sample.split("\n")),
            "",
            *stopped_lines(outcome, out),
            f"{outcome.step:,} step{'s' * (outcome.step != 1)} in {outcome.elapsed:.1f} s",
            f"validation loss   {per_character:.3f} nats per character ({_verdict(bigram - per_character)})",
            f"character bigram  {bigram:.3f} nats per character",
            f"both over the same {characters:,} characters of the validation text, each scored once",
            "",
            f"saved in {out}",
            f"next: {trace_command(out, self._phrase(model))}",
        ]
        return Measured(facts, samples, lines)

    def _held_out(self, model: Decoder) -> Iterator[Batch]:
        from ..text.batches import first_scored
        from ..training.loop import held_out

        return first_scored(held_out(self.data, model.config.context), SCORED)

    def _bigram(self, batches: Sequence[Batch]) -> float:
        """Nats of all that is scored in ``batches``, for the character bigram of the training text."""
        from ..training.baseline import fit_bigram
        from ..training.respelling import in_characters

        if isinstance(self.tokenizer, CharacterTokenizer):
            loss = fit_bigram(self.data.train, self.tokenizer.vocab_size).loss(batches)
        else:
            alphabet, train, held_out = in_characters(self.tokenizer, self.data.train, batches)
            loss = fit_bigram(train, alphabet).loss(held_out)
            batches = held_out
        assert loss is not None
        return loss * sum(int(batch.scored.sum()) for batch in batches)

    def _sample(self, model: Decoder) -> str:
        from ..generation import generate
        from ..text import prompt_ids

        # The sample continues a line break where there is one, so that it starts like a line of the text.
        start = "" if self.begin else "\n" if "\n" in self.tokenizer.texts else self._phrase(model)[:1]
        prompt = prompt_ids(self.tokenizer, start, self.begin)
        ids, unwritten = list[int](), self.tokenizer.specials.unwritten
        for token in generate(model, prompt, SAMPLE, temperature=TEMPERATURE, seed=self.seed, excluded=unwritten):
            if token == self.tokenizer.end_of_text:
                break
            ids.append(token)
        return self.tokenizer.decode(ids)

    def _phrase(self, model: Decoder) -> str:
        """A few words of the validation text, to look at next."""
        beginning = self.tokenizer.decode(self.data.held_out.tokens(0, min(len(self.data.held_out), 400)))
        longest = max(1, model.config.context - self.begin)
        limit = min(PHRASE, longest)
        while len(self.tokenizer.ids(phrase(beginning, limit))) > longest:
            limit -= 1
        return phrase(beginning, limit)


def trace_command(out: Path, text: str) -> str:
    """The command that traces ``text`` through the run in ``out``, whatever they begin with."""
    folder, words = shlex.quote(str(out)), shlex.quote(text)
    if "-" in (str(out)[:1], text[:1]):
        return f"glassformer trace --html page.html -- {folder} {words}"
    return f"glassformer trace {folder} {words} --html page.html"


def stopped_lines(outcome: Outcome, out: Path) -> list[str]:
    """What is said of a run that somebody stopped."""
    if not outcome.stopped:
        return []
    return [
        f"stopped by you after {outcome.step:,} step{'s' * (outcome.step != 1)}; what was learned until then is saved",
        f"go on with: glassformer train --resume {shlex.quote(str(out))}",
    ]


def _verdict(gain: float) -> str:
    return f"{gain:.3f} below the bigram" if gain > 0 else "not better than the bigram: train longer"


def phrase(text: str, limit: int) -> str:
    """A few words from the beginning of ``text``, within one line and at most ``limit`` characters, to look at next."""
    lines = [line.strip() for line in text.split("\n")]
    shown_as_is = [line for line in lines if len(line) > 1 and visible(line) == line]
    line = next((line for line in shown_as_is if len(line) >= limit // 2), shown_as_is[0] if shown_as_is else text[:2])
    if len(line) <= limit:
        return line
    return line[: limit + 1].rpartition(" ")[0].strip() or line[:limit]
