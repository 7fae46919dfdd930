"""A shortcut that a small model really learns: two letters, a mark that gives the answer away, and what it costs later.

A question is two letters and a mark; the answer says whether the letters are the same. In the text that one model learns
from, the mark always agrees with the answer; in the text of the other, the same model from the same start, it is drawn
by a coin. Both are asked the same questions in the end: with marks that agree, and with marks that lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch

from ..bilingual import words
from ..errors import UserError
from ..model import AttentionConfig, Decoder, DecoderConfig, FeedForwardConfig
from ..text import Language, WordTokenizer
from ..tracing.probes import Report
from ..tracing.probes.report import Note, Table, cell
from ..training import TrainingConfig, ValidationConfig, log_probabilities, train

LETTERS = ("A", "B", "C", "D")
ANSWERS = ("same", "other")
MARKS = ("+", "-")
END = "<end>"
"""``MARKS[k]`` agrees with ``ANSWERS[k]``."""

STEPS = 100
SHOWN = (0, 10, 20, 50, STEPS)
"""Steps at which both models are looked at; 0 is before the first."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One model after ``step`` steps, asked about every pair of letters.

    Where all marks agree, ``loss`` is the expected one (nats per answer) and ``right`` the share answered rightly;
    ``lied_to`` is that share where all marks lie. The answer is taken to be the more probable one of the two.
    """

    step: int
    loss: float
    right: float
    lied_to: float


def questions(told: Fraction) -> Language:
    """All questions with their answers; the mark agrees with the answer with probability ``told``. Only answers count."""

    def following(prefix: Sequence[str]) -> dict[str, Fraction]:
        match len(prefix):
            case 0:
                return dict.fromkeys(LETTERS, Fraction(1, len(LETTERS)))
            case 1:
                other = Fraction(1, 2 * (len(LETTERS) - 1))
                return {letter: Fraction(1, 2) if letter == prefix[0] else other for letter in LETTERS}
            case 2:
                right = _answer(prefix)
                shares = {MARKS[right]: told, MARKS[1 - right]: 1 - told}
                return {mark: share for mark, share in shares.items() if share}
            case 3:
                return {ANSWERS[_answer(prefix)]: Fraction(1)}
            case 4:
                return {END: Fraction(1)}
            case _:
                return {}

    names = [*LETTERS, *MARKS, *ANSWERS, END]
    language = Language.of(following, names, WordTokenizer(names, END))
    answers = np.zeros_like(language.scored)
    answers[:, 2] = True
    return replace(language, scored=answers)


def _answer(prefix: Sequence[str]) -> int:
    return int(prefix[0] != prefix[1])


def learned(told: Fraction, *, seed: int = 0) -> list[Measured]:
    """A small model trained on ``questions(told)``, looked at before the first step and at those of ``SHOWN``.

    The same at every call with one seed, on one machine.
    """
    language = questions(told)
    model = _model(language.tokenizer.vocab_size, seed)
    config = TrainingConfig(steps=STEPS, seed=seed, validation=ValidationConfig(times=0))
    found = [_measured(0, model)]
    found += [_measured(step.step, model) for step in train(model, language, config) if step.step in SHOWN]
    return found


def shortcut(marked: Sequence[Measured], tossed: Sequence[Measured]) -> Report:
    """Both trainings side by side; ``values`` are what the book's text says of their ends.

    Raises ``UserError`` where the text would not follow: the lower loss must go with fewer right answers.
    """
    ends = {"marked": marked[-1], "tossed": tossed[-1]}
    if not (marked[-1].loss < tossed[-1].loss and marked[-1].lied_to < tossed[-1].lied_to):
        raise UserError(
            "The lower loss does not go with fewer right answers here, as section 13.4 says.",
            "; ".join(
                f"{name}: {end.loss:.3g} nats, {end.lied_to:.0%} right where marks lie" for name, end in ends.items()
            ),
            "Mend `book/shortcut.py` or the section; the book is not written.",
        )
    columns = (
        words("steps", "步数"),
        words("loss, marks agree", "损失（记号属实）"), words("right, marks agree", "答对（记号属实）"),
        words("right, marks lie", "答对（记号说谎）"),
    )  # fmt: skip
    titles = (
        words("learnt from marks that always agree", "训练时记号总是属实"),
        words("learnt from marks drawn by a coin", "训练时记号由抛硬币决定"),
    )
    tables = tuple(
        Table(title, columns, tuple((m.step, *map(cell, (m.loss, m.right, m.lied_to))) for m in each), "measured")
        for title, each in zip(titles, (marked, tossed), strict=True)
    )
    note = Note(
        "definition",
        words(
            "Both models begin alike and see equally many questions; all pairs of letters are asked, as often as they come "
            "up in training. A question counts as right when the right answer is the more probable of the two.",
            "两个模型起点相同，见到的题数相同；考的是全部字母对，权重与训练时出现的频率相同。两个答案里，正确的那个概率更大，就算答对。",
        ),
    )
    values = {
        f"{name}_{fact}": getattr(end, fact) for name, end in ends.items() for fact in ("loss", "right", "lied_to")
    }
    title = words("A mark that gives the answer away", "泄露答案的记号")
    return Report("shortcut", title, "measured", tables, (note,), values=values)


def _model(vocab_size: int, seed: int) -> Decoder:
    config = DecoderConfig.alike(
        2, vocab_size=vocab_size, context=4, d=16,
        attention=AttentionConfig(heads=2, d_k=8, d_v=8), ffn=FeedForwardConfig(d_ff=32),
    )  # fmt: skip
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return Decoder(config)


def _measured(step: int, model: Decoder) -> Measured:
    loss, right = _asked(model, questions(Fraction(1)))
    return Measured(step, loss, right, _asked(model, questions(Fraction(0)))[1])


def _asked(model: Decoder, language: Language) -> tuple[float, float]:
    """Expected loss in nats per answer, and the share of questions answered rightly."""
    log_p, truth, share = log_probabilities(model, language)[:, 2], language.truth[:, 2], language.probabilities
    ids = [language.tokenizer.texts.index(answer) for answer in ANSWERS]
    right = log_p[:, ids].argmax(-1) == truth[:, ids].argmax(-1)
    return float(-(share @ (truth * log_p).sum(-1))), float(share[right].sum())
