"""Decoding rules: greedy, temperature, top-k, top-p, min-p keep what they are defined to keep, and draws follow them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from ...bilingual import words
from ..law import Family, Law, Probe
from ..subjects.sampling import Sampler
from ..verdict import Finding, NotSupported

N = 12
ERROR = 1e-4
"""How far a probability may be off: samplers compute in single precision or less."""

MARGIN = 1e-3
"""Cases in which a border falls this near to a token are left out: rounding may decide them either way."""

DRAWS = 5_000
DEVIATIONS = 6.0
"""A right sampler exceeds the bound on chi-square once in 10^9 seeds, and the seeds are always the same."""

NEUTRAL: Mapping[str, Any] = {"temperature": 1.0}


def cases(count: int = 6) -> Iterator[Tensor]:
    """Logits ``(N,)``, none two alike, in single precision."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(count):
        steps = 0.15 + torch.rand(N, generator=generator)
        yield (steps.cumsum(0) - 4)[torch.randperm(N, generator=generator)]


# Definitions: each takes probabilities (N,) and gives those that are kept, and how near a border came to a token.


def by_temperature(p: Tensor, value: float) -> tuple[Tensor, float]:
    """``softmax(log p / T)``."""
    return torch.softmax(p.log() / value, -1), math.inf


def by_top_k(p: Tensor, value: int) -> tuple[Tensor, float]:
    """The k most probable."""
    return _kept(p, p >= p.sort(descending=True).values[min(value, int((p > 0).sum())) - 1]), math.inf


def by_top_p(p: Tensor, value: float) -> tuple[Tensor, float]:
    """The smallest set of most probable tokens whose mass is at least ``value``."""
    ordered, order = p.sort(descending=True)
    mass = ordered.cumsum(0)
    if value == 1:
        return p, math.inf
    keep = torch.zeros_like(p, dtype=torch.bool)
    keep[order[mass - ordered < value]] = True
    return _kept(p, keep), float((mass[ordered > 0] - value).abs().min())


def by_min_p(p: Tensor, value: float) -> tuple[Tensor, float]:
    """What is at least ``value`` times as probable as the most probable."""
    limit = value * p.max()
    return _kept(p, p >= limit), float((p[p > 0] - limit).abs().min() / limit)


def _kept(p: Tensor, keep: Tensor) -> Tensor:
    left = torch.where(keep, p, 0.0)
    return left / left.sum()


DEFINITIONS: Mapping[str, Callable[[Tensor, Any], tuple[Tensor, float]]] = {
    "temperature": by_temperature,
    "top_k": by_top_k,
    "top_p": by_top_p,
    "min_p": by_min_p,
}


def defined(logits: Tensor, rules: Mapping[str, Any], order: tuple[str, ...]) -> Tensor | None:
    """The probabilities that ``rules`` leave in this order; None where rounding may decide what is kept."""
    p = torch.softmax(logits.double(), -1)
    for rule in order:
        p, nearest = DEFINITIONS[rule](p, rules[rule])
        if nearest < MARGIN:
            return None
    return p


def apart(p: Tensor, wanted: Tensor) -> float:
    """The largest difference of two distributions; at least 1 where a token that must be left out is not."""
    if p.shape != wanted.shape or p.isnan().any():
        return math.nan
    return max(float((p - wanted).abs().max()), float(((wanted == 0) & (p > 0)).any()))


def _worst(found: list[tuple[float, dict[str, Any]]], **facts: Any) -> Finding:
    measured, witness = max(found, key=lambda pair: math.inf if math.isnan(pair[0]) else pair[0])
    return Finding(measured=measured, bound=ERROR, unit="probability", witness={**witness, **facts})


def _listed(values: Tensor) -> list[float]:
    return [round(value, 6) for value in values.tolist()]


def distribution(subject: Sampler) -> Finding:
    """Without rules: the softmax, never negative, of sum 1, the same for shifted logits, in the order of the ids."""
    found = []
    for logits in cases():
        p, wanted = subject.probabilities(logits), torch.softmax(logits.double(), -1)
        turn = torch.arange(N).flip(0)
        for name, got in (
            ("softmax", p),
            ("shifted by 100", subject.probabilities(logits + 100)),
            ("ids reversed", subject.probabilities(logits[turn])[turn]),
            ("sum", wanted + (p.sum() - 1)),
        ):
            found.append((apart(got, wanted), {"case": name, "logits": _listed(logits)}))
        large = subject.probabilities(logits * 2500)
        found.append((apart(large, torch.softmax(logits.double() * 2500, -1)), {"case": "logits of 10^4"}))
    return _worst(found)


def greedy(subject: Sampler) -> Finding:
    """At temperature 0 the most probable token has probability 1; of equal ones, one or all of them have it."""
    found = []
    for logits in cases():
        wanted = (logits == logits.max()).double()
        found.append((apart(_cold(subject, logits, 0.0), wanted), {"logits": _listed(logits), "temperature": 0}))
    tied = torch.tensor([1.0, 3.0, 0.0, 3.0, 2.0])
    p = _cold(subject, tied, 0.0)
    found.append((float(1 - p[1] - p[3]), {"logits": _listed(tied), "temperature": 0}))
    return _worst(found, kept_of_two_equal=int((p > 0).sum()))


def cold(subject: Sampler) -> Finding:
    """A temperature near 0 comes near to it."""
    found = []
    for logits in cases():
        wanted = (logits == logits.max()).double()
        found.append((float((_cold(subject, logits, 0.01) - wanted).abs().max()), {"temperature": 0.01}))
    return _worst(found)


def _cold(subject: Sampler, logits: Tensor, temperature: float) -> Tensor:
    """Probabilities, or the frequencies of a few draws where there are no probabilities."""
    if subject.distribution is not None:
        return subject.probabilities(logits, temperature=temperature)
    drawn = subject.drawn(logits, 20, 0, temperature=temperature)
    return torch.bincount(drawn, minlength=len(logits)).double() / len(drawn)


def _alone(rule: str, values: tuple[float, ...], **facts: Callable[[Sampler], Any]) -> Callable[[Sampler], Finding]:
    """The probe of one rule by itself."""

    def run(subject: Sampler) -> Finding:
        found = []
        for logits in cases():
            for value in values:
                wanted = defined(logits, {rule: value}, (rule,))
                if wanted is not None:
                    p = subject.probabilities(logits, **{rule: value})
                    witness = {rule: value, "logits": _listed(logits), "kept": int((p > 0).sum())}
                    found.append((apart(p, wanted), {**witness, "to_keep": int((wanted > 0).sum())}))
        return _worst(found, **{name: fact(subject) for name, fact in facts.items()})

    return run


def _tied(subject: Sampler) -> int:
    """How many tokens top-k keeps for k = 2 where three are equal: both 2 and 3 are in use, so it is only stated."""
    return int((subject.probabilities(torch.tensor([1.0, 2.0, 2.0, 2.0]), top_k=2) > 0).sum())


GRID = (
    {"temperature": 0.6, "top_k": 6, "top_p": 0.8, "min_p": 0.05},
    {"temperature": 1.7, "top_k": 3, "top_p": 0.9, "min_p": 0.2},
    {"temperature": 0.9, "top_k": 4, "top_p": 0.7, "min_p": 0.1},
    {"temperature": 2.5, "top_k": 8, "top_p": 0.6, "min_p": 0.3},
)


def order(subject: Sampler) -> Finding:
    """All rules together act in one order, each on what the one before left, renormalised."""
    offered = subject.rules
    if len(offered) < 2:
        raise NotSupported("there are no two rules", "没有两条规则")
    stated = tuple(rule for rule in subject.order or () if rule in offered)
    orders = [stated] if stated else list(permutations(offered))
    errors = dict.fromkeys(orders, 0.0)
    worst: dict[tuple[str, ...], dict[str, Any]] = {each: {} for each in orders}
    for logits in cases(8):
        for grid in GRID:
            rules = {rule: grid[rule] for rule in offered}
            wanted = {each: defined(logits, rules, each) for each in orders}
            if any(value is None for value in wanted.values()):
                continue
            p = subject.probabilities(logits, **rules)
            for each, value in wanted.items():
                error = apart(p, value) if value is not None else 0.0
                if not error <= errors[each]:
                    errors[each], worst[each] = error, {**rules, "logits": _listed(logits), "p": _listed(p)}
    best = min(orders, key=lambda each: math.inf if math.isnan(errors[each]) else errors[each])
    facts = {"order": list(best), "stated": bool(stated), **worst[best]}
    return Finding(measured=errors[best], bound=ERROR, unit="probability", witness=facts)


# Draws


def _settings(subject: Sampler) -> Iterator[tuple[dict[str, Any], Tensor, Tensor]]:
    """Rules that ``draw`` takes, logits, and the probabilities that its tokens must have."""
    if subject.draw is None:
        raise NotSupported("no draw was told", "未给出抽样")
    logits = next(cases())
    yield {}, logits, torch.softmax(logits.double(), -1)
    for rules in ({"temperature": 0.7}, {"top_k": 5}, {"top_p": 0.8}, {"temperature": 2.0, "top_k": 8, "top_p": 0.95}):
        wanted = defined(logits, rules, tuple(rules))
        if len(rules) > 1 and subject.distribution is not None:
            wanted = _or_none(lambda rules=rules: subject.probabilities(logits, **rules))
        if wanted is not None and _or_none(lambda rules=rules: subject.drawn(logits, 1, 0, **rules)) is not None:
            yield rules, logits, wanted


def _or_none(value: Callable[[], Tensor]) -> Tensor | None:
    try:
        return value()
    except NotSupported:
        return None


def frequencies(subject: Sampler) -> Finding:
    """Chi-square of the frequencies against the probabilities."""
    found = []
    for seed, (rules, logits, wanted) in enumerate(_settings(subject)):
        drawn = subject.drawn(logits, DRAWS, seed, **rules)
        counts = torch.bincount(drawn, minlength=N)[:N].double()
        tested = wanted * DRAWS >= 5
        rest = torch.stack([counts[~tested].sum(), wanted[~tested].sum() * DRAWS])
        seen, expected = counts[tested], wanted[tested] * DRAWS
        if rest[1] >= 5:
            seen, expected = torch.cat([seen, rest[:1]]), torch.cat([expected, rest[1:]])
        chi = float(((seen - expected) ** 2 / expected).sum())
        witness = {**rules, "seed": seed, "counts": counts.int().tolist(), "expected": _listed(wanted * DRAWS)}
        found.append(Finding(measured=chi, bound=quantile(len(seen) - 1), unit="chi-square", witness=witness))
    return max(found, key=lambda finding: finding.severity)


def quantile(freedom: int) -> float:
    """Chi-square, ``DEVIATIONS`` standard deviations out: Wilson and Hilferty's approximation."""
    if freedom < 1:
        return 0.0
    part = 2 / (9 * freedom)
    return freedom * (1 - part + DEVIATIONS * math.sqrt(part)) ** 3


def filtered(subject: Sampler) -> Finding:
    """What the rules leave out is never drawn."""
    found, tried = [], 0
    for rules, logits, wanted in _settings(subject):
        if (wanted == 0).any():
            tried += 1
            drawn = subject.drawn(logits, DRAWS, 7, **rules)
            wrong = int((wanted[drawn.clamp(0, N - 1)] == 0).sum() + ((drawn < 0) | (drawn >= N)).sum())
            found.append(Finding(measured=wrong, bound=0, unit="draw", witness={**rules, "draws": DRAWS}))
    if not tried:
        raise NotSupported("draw takes no rule that leaves tokens out", "抽样不接受会剔除词元的规则")
    return max(found, key=lambda finding: finding.severity)


def seeds(subject: Sampler) -> Finding:
    """The same seed draws the same tokens."""
    logits = next(cases())
    first, again = subject.drawn(logits, 64, 3), subject.drawn(logits, 64, 3)
    return Finding(measured=int((first != again).sum()), bound=0, unit="draw", witness={"seed": 3})


def other_seeds(subject: Sampler) -> Finding:
    """The dual: another seed draws others."""
    logits = next(cases())
    first, other = subject.drawn(logits, 64, 3), subject.drawn(logits, 64, 4)
    return Finding(measured=int((first != other).sum()), bound=1, unit="draw", at_least=True, witness={"seeds": [3, 4]})


def _probe(name: str, en: str, zh: str, run: Callable[[Sampler], Finding]) -> Probe:
    return Probe(id=f"rules.{name}", does=words(en, zh), run=run, family=Family.SAMPLER, fast=True)


RULES = Law(
    id="rules",
    statement=words(
        "Greedy is the arg-max, temperature to zero approaches it; top-k, top-p and min-p keep exactly the defined set.",
        "贪心即取最大者，温度趋零时趋近之；top-k、top-p、min-p 恰好保留所定义的集合。",
    ),
    formula=r"p = \mathrm{softmax}(z / T)\ \text{on the kept set, renormalised; } 0 \text{ elsewhere}",
    conditions=words(
        "Rules of decoding. Their order and what happens to equal scores are stated, not prescribed.",
        "解码规则。其次序及同分的处理只作陈述，不作规定。",
    ),
    why=words(
        "A set that is one token too small or too large shows in no loss, and in every text.",
        "集合多一个或少一个词元不会体现在损失上，却影响每段文本。",
    ),
    chapter="12.2",
    probes=(
        _probe("distribution", "no rule at all", "不加规则", distribution),
        _probe("greedy", "temperature 0", "温度为零", greedy),
        _probe("cold", "a temperature near 0", "温度接近零", cold),
        _probe("temperature", "temperature alone", "仅温度", _alone("temperature", (0.5, 1.0, 2.0))),
        _probe("top-k", "top-k alone", "仅 top-k", _alone("top_k", (1, 2, 5, N), kept_of_three_equal_for_2=_tied)),
        _probe("top-p", "top-p alone", "仅 top-p", _alone("top_p", (0.1, 0.3, 0.5, 0.8, 0.95, 1.0))),
        _probe("min-p", "min-p alone", "仅 min-p", _alone("min_p", (0.02, 0.1, 0.5))),
        _probe("order", "all rules together", "所有规则一起", order),
        _probe("frequencies", "chi-square of draws", "抽样频率的卡方", frequencies),
        _probe("filtered", "what is left out is never drawn", "被剔除者绝不出现", filtered),
        _probe("seeds", "the same seed twice", "同一种子两次", seeds),
        _probe("other-seeds", "another seed", "另一种子", other_seeds),
    ),
)
