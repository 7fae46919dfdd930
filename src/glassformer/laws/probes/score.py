"""Score consistency: what is reported for a text is the log-probability of that text."""

from __future__ import annotations

from ...bilingual import words
from ..law import Family, Law, Probe
from ..subjects.sampling import Sampler, takes
from ..verdict import Finding, NotSupported
from .rules import cases, defined

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
        Probe(
            id="score.sampling", does=words("temperature and filters", "温度与过滤"), run=sampling,
            family=Family.SAMPLER, fast=True,
        ),
    ),
)  # fmt: skip
