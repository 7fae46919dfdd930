"""Score consistency: what is reported for a text is the log-probability of that text."""

from __future__ import annotations

from typing import Any

import torch

from ...bilingual import words
from ..law import Family, Law, Probe
from ..subjects.decoding import Generator, Ids
from ..subjects.sampling import Sampler, takes
from ..verdict import Finding, NotApplicable, NotSupported
from .generate import after, prompts
from .rules import cases, defined

COUNT = 5
ERROR = 1e-3


def sampling(subject: Sampler) -> Finding:
    """The scores of sampled tokens are those of the distribution they were drawn from: its temperature, its filters."""
    if subject.scores is None:
        raise NotSupported("no scores were told", "未给出得分")
    found = []
    for logits in cases():
        for rules in ({}, {"temperature": 0.6}, {"top_k": 4}, {"top_p": 0.8}):
            if not all(takes(subject.scores, rule) or takes(subject.draw or subject.scores, rule) for rule in rules):
                continue
            taken = {rule: value for rule, value in rules.items() if takes(subject.scores, rule)}
            wanted = defined(logits, rules, tuple(rules))
            if wanted is not None:
                kept = wanted > 0
                got = subject.reported(logits, **taken)
                error = float((got[kept] - wanted[kept].log()).abs().max())
                found.append(Finding(measured=error, bound=ERROR, unit="log-probability", witness=dict(rules)))
    return max(found, key=lambda finding: finding.severity)


def teacher_forced(subject: Generator, prompt: Ids, ids: Ids, temperature: float = 1.0) -> float:
    """The log-probability of ``ids`` after ``prompt``, by the forward pass."""
    log_p = torch.log_softmax(after(subject, prompt, ids) / temperature, -1)
    return float(log_p.gather(1, torch.tensor(list(ids))[:, None]).sum())


def _reported(subject: Generator, temperature: float | None, **settings: Any) -> Finding:
    given = settings if temperature is None else {"temperature": temperature, **settings}
    subject.need(*given)
    if subject.scores_of_rule and temperature is None:
        raise NotApplicable("scores are those of the rule, and what is certain has none", "得分按规则计，确定者无得分")
    batch = prompts(subject, (4, 2, 6), seed=4)
    found = []
    for row, (prompt, written) in enumerate(zip(batch, subject.write(batch, COUNT, **given), strict=True)):
        if written.score is None or not written.ids:
            raise NotSupported("no scores are told", "未报告得分")
        wanted = teacher_forced(subject, prompt, written.ids, (temperature or 1.0) if subject.scores_of_rule else 1.0)
        witness = {"prompt": prompt, "ids": list(written.ids), "row": row, "score": written.score, **given}
        witness["log_probability"] = wanted
        error = abs(written.score - wanted)
        found.append(Finding(measured=error, bound=ERROR * len(written.ids), unit="log-probability", witness=witness))
    return max(found, key=lambda finding: finding.severity)


def greedy(subject: Generator) -> Finding:
    """Of greedy text."""
    return _reported(subject, None)


def sampled(subject: Generator) -> Finding:
    """Of sampled text."""
    return _reported(subject, 0.7, seed=5)


def beams(subject: Generator) -> Finding:
    """Of what beam search found, without a penalty."""
    return _reported(subject, None, beams=2, length_penalty=0.0)


def _probe(name: str, en: str, zh: str, run: Any, family: Family = Family.GENERATOR) -> Probe:
    return Probe(id=f"score.{name}", does=words(en, zh), run=run, family=family, fast=True)


SCORE = Law(
    id="score",
    statement=words(
        "A reported score is the log-probability of what was returned, under the distribution it is said to be of.",
        "所报告的得分就是所返回文本在所声明分布下的对数概率。",
    ),
    formula=r"s(y) = \sum_i \log p(y_i \mid x, y_{<i})",
    conditions=words("A generator or sampler that reports scores.", "会报告得分的生成器或采样器。"),
    why=words(
        "Policy gradients divide by these numbers, and reranking sorts by them.",
        "策略梯度用它作除数，重排序以它排序。",
    ),
    chapter="12.2",
    probes=(
        _probe("greedy", "greedy text", "贪心文本", greedy),
        _probe("sampled", "sampled text", "抽样文本", sampled),
        _probe("beams", "beam search", "束搜索", beams),
        _probe("sampling", "temperature and filters", "温度与过滤", sampling, Family.SAMPLER),
    ),
)
