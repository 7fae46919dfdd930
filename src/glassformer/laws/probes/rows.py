"""Rows of a batch are written as if alone, end once, and stop at their stop string wherever tokens are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from ...bilingual import words
from ..law import Family, Law, Probe
from ..subjects.decoding import Generator, Written
from ..verdict import Finding, NotApplicable, NotSupported
from .generate import prompts
from .score import teacher_forced

COUNT = 8
LENGTHS = (5, 2, 7)
ERROR = 1e-3
ENDS = 6


def _alone(subject: Generator, batch: Sequence[list[int]], **settings: Any) -> list[Written]:
    return [subject.write([prompt], COUNT, **settings)[0] for prompt in batch]


def _differing(subject: Generator, **settings: Any) -> Finding:
    subject.need(*settings)
    batch = prompts(subject, LENGTHS, seed=2)
    alone = _alone(subject, batch, **settings)
    wrong: list[dict[str, Any]] = []
    for order in ((0, 1, 2), (2, 0, 1), (1, 2)):
        together = subject.write([batch[row] for row in order], COUNT, **settings)
        for place, row in enumerate(order):
            mine, other = alone[row], together[place]
            same = list(mine.ids) == list(other.ids) and _close(mine.score, other.score)
            if not same:
                wrong.append(
                    {"rows": len(order), "row": place, "alone": list(mine.ids), "together": list(other.ids),
                     "scores": [mine.score, other.score], "prompt": batch[row]}
                )  # fmt: skip
    return Finding(measured=len(wrong), bound=0, unit="row", witness={**settings, **(wrong[0] if wrong else {})})


def _close(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else abs(a - b) <= ERROR * max(1.0, abs(a))


def companions(subject: Generator) -> Finding:
    """Greedy, alone and with others, in any order."""
    return _differing(subject)


def beams(subject: Generator) -> Finding:
    """Beam search with a length penalty, alone and with others."""
    return _differing(subject, beams=2, length_penalty=1.0)


def finished(subject: Generator) -> Finding:
    """A row that has met its end writes nothing more, and the others go on."""
    subject.need("end")
    batch = prompts(subject, LENGTHS, seed=2)
    alone = [list(written.ids) for written in _alone(subject, batch)]
    # Those met more than once tell whether a row that has ended can come back.
    ends = sorted({id for ids in alone for id in ids}, key=lambda id: -max(ids.count(id) for ids in alone))[:ENDS]
    if not ends:
        raise NotSupported("nothing was written", "什么也没有生成")
    wrong = []
    for end in ends:
        for row, written in enumerate(subject.write(batch, COUNT, end=end)):
            whole = alone[row]
            wanted = whole[: whole.index(end)] if end in whole else whole
            if list(written.ids) not in (wanted, [*wanted, end] if end in whole else wanted):
                wrong.append({"end": end, "row": row, "without_end": whole, "written": list(written.ids)})
    return Finding(measured=len(wrong), bound=0, unit="row", witness={"ends": ends, **(wrong[0] if wrong else {})})


def length_penalty(subject: Generator) -> Finding:
    """What a penalty makes of a sum depends on the number of new tokens, not on the prompt's length."""
    subject.need("beams", "length_penalty")
    ratios = []
    for prompt in prompts(subject, (2, 9), seed=3):
        written = subject.write([prompt], 4, beams=2, length_penalty=1.0)[0]
        if written.score is None:
            raise NotSupported("no scores are told", "未报告得分")
        if len(written.ids) != 4:
            raise NotApplicable("rows end by themselves", "各行自行结束")
        ratios.append(written.score / teacher_forced(subject, prompt, written.ids))
    witness = {"prompt_lengths": [2, 9], "new_tokens": 4, "score_over_log_probability": ratios}
    return Finding(measured=abs(ratios[0] - ratios[1]), bound=ERROR, unit="ratio", witness=witness)


def _cuts(text: str) -> Iterator[list[str]]:
    yield list(text)
    for size in (2, 3):
        yield [text[i : i + size] for i in range(0, len(text), size)]
    yield [text]
    yield [text[:1], text[1:]]


STOPS = ("ab", "aab", "ba", "aba", "aa", "b")


def stop_strings(subject: Generator) -> Finding:
    """Every text of a and b, however it is cut, ends before the first stop string in it, and only there."""
    if subject.stopped is None:
        raise NotSupported("no stop strings were told", "未给出停止串")
    wrong: list[dict[str, Any]] = []
    for text in ("".join(letters) for n in range(1, 7) for letters in product("ab", repeat=n)):
        for stop in STOPS:
            wanted = text[: text.index(stop)] if stop in text else text
            shown = ((parts, subject.stopped(parts, stop)) for parts in _cuts(text))
            wrong += [{"parts": p, "stop": stop, "wanted": wanted, "shown": got} for p, got in shown if got != wanted]
    return Finding(measured=len(wrong), bound=0, unit="text", witness=wrong[0] if wrong else {})


def _probe(name: str, en: str, zh: str, run: Any) -> Probe:
    return Probe(id=f"rows.{name}", does=words(en, zh), run=run, family=Family.GENERATOR, fast=True)


ROWS = Law(
    id="rows",
    statement=words(
        "A row is written as if it were alone; once finished it stays so; length penalties count new tokens only.",
        "每行的生成与单独时相同；结束后不再变化；长度惩罚只计新词元。",
    ),
    formula=r"\mathrm{generate}(x^{(1)}, \dots, x^{(b)})_r = \mathrm{generate}(x^{(r)})",
    conditions=words(
        "A decoding loop for batches, or one that knows stop strings.", "成批解码的循环，或支持停止串的循环。"
    ),
    why=words(
        "What one reader gets must not depend on who else is served in the same batch.",
        "一位读者得到的文本不应取决于同批中的其他人。",
    ),
    chapter="12.5",
    probes=(
        _probe("companions", "greedy, alone and together", "贪心，单独与成批", companions),
        _probe("beams", "beam search, alone and together", "束搜索，单独与成批", beams),
        _probe("finished", "rows that end early", "提前结束的行", finished),
        _probe("length-penalty", "prompts of two lengths", "两种长度的提示", length_penalty),
        _probe("stop-strings", "stop strings across borders", "跨词元边界的停止串", stop_strings),
    ),
)
