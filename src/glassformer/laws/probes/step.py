"""Steps: the optimizer's step is its definition, all parameters move at once, and the rate follows the step alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ...bilingual import words
from ..law import Family, Law, Probe
from ..losses import apart
from ..subjects.training import Rule, Trainer, part
from ..verdict import Finding, NotSupported
from .accumulation import batches, numbers
from .clip import drawn

STEPS = 4
ROUNDING = 1e-3
"""What a step in float32 may be off, in units of the largest step."""

RUN = 12


def stepped(
    rule: Rule, parameters: Mapping[str, Tensor], gradients: Sequence[Mapping[str, Tensor]]
) -> list[dict[str, Tensor]]:
    """The parameters after each step by definition, in float64."""
    theta = {name: p.double().clone() for name, p in parameters.items()}
    m = {name: torch.zeros_like(p) for name, p in theta.items()}
    v = {name: torch.zeros_like(p) for name, p in theta.items()}
    after = []
    for k, step in enumerate(gradients, start=1):
        for name, p in theta.items():
            g = step[name].double()
            decay = rule.weight_decay if rule.decayed is None or name in rule.decayed else 0.0
            if rule.kind == "sgd":
                m[name] = rule.beta_1 * m[name] + g + decay * p
                theta[name] = p - rule.learning_rate * m[name]
                continue
            m[name] = rule.beta_1 * m[name] + (1 - rule.beta_1) * g
            v[name] = rule.beta_2 * v[name] + (1 - rule.beta_2) * g.square()
            root = (v[name] / (1 - rule.beta_2**k)).sqrt() + rule.eps
            direction = m[name] / (1 - rule.beta_1**k) / root
            theta[name] = p - rule.learning_rate * (decay * p + direction)
        after.append({name: p.clone() for name, p in theta.items()})
    return after


def _off(
    found: Mapping[str, Tensor], expected: Mapping[str, Tensor], before: Mapping[str, Tensor]
) -> tuple[float, str]:
    """How far a step is from what it should be, in units of the largest step."""
    return apart(
        {name: found[name] - before[name] for name in expected},
        {name: expected[name] - before[name] for name in expected},
    )


def definition(trainer: Trainer) -> Finding:
    """Several steps on given gradients."""
    update, rule = part(trainer.update, "update"), part(trainer.rule, "rule")
    parameters = drawn(seed=1)
    gradients = [drawn(seed=seed) for seed in range(2, 2 + STEPS)]
    expected = stepped(rule, parameters, gradients)
    found = update(
        {k: p.clone() for k, p in parameters.items()}, [{k: g.clone() for k, g in s.items()} for s in gradients]
    )
    if len(found) != STEPS:
        raise NotSupported(f"{STEPS} steps gave {len(found)} sets of parameters", f"{STEPS} 步给出 {len(found)} 组参数")
    before, worst = parameters, (0.0, "", 0)
    for k, (made, wanted) in enumerate(zip(found, expected, strict=True), start=1):
        made = numbers(made)
        off, name = _off(made, wanted, {n: p.double() for n, p in before.items()})
        worst = max(worst, (off, name, k))
        before = wanted
    facts = {"step": worst[2], "parameter": worst[1], "rule": rule.kind}
    return Finding(measured=worst[0], bound=ROUNDING, unit="share of the largest step", witness=facts)


def joint(trainer: Trainer) -> Finding:
    """One step on real batches: every gradient was taken at the old parameters."""
    step, gradients = part(trainer.step, "step"), part(trainer.gradients, "gradients")
    rule = part(trainer.rule, "rule")
    pairs = batches(trainer, [[trainer.length - 1, 3], [2, trainer.length - 1]])
    at_old = numbers(gradients(pairs))
    before, after = (numbers(each) for each in step(pairs))
    expected = stepped(rule, before, [at_old])[0]
    measured, name = _off(after, expected, before)
    return Finding(
        measured=measured,
        bound=ROUNDING,
        unit="share of the largest step",
        witness={"parameter": name, "rule": rule.kind},
    )


def rate(trainer: Trainer) -> Finding:
    """The learning rates of a run, whatever the accumulation, and after a resume."""
    rates = part(trainer.rates, "rates")
    plain = list(rates(RUN, 1, 0))
    if len(plain) != RUN:
        facts = {"steps": RUN, "rates": len(plain)}
        return Finding(measured=abs(len(plain) - RUN), bound=0, unit="steps", witness=facts)
    size, worst = max(abs(x) for x in plain) or 1.0, (0.0, 1, 0)
    for accumulation, resumed in ((3, 0), (1, 5), (3, 5)):
        other = list(rates(RUN, accumulation, resumed))
        if len(other) != RUN - resumed:
            facts = {"steps": RUN - resumed, "rates": len(other), "accumulation": accumulation, "resumed_at": resumed}
            return Finding(measured=abs(len(other) - RUN + resumed), bound=0, unit="steps", witness=facts)
        off = max(abs(a - b) for a, b in zip(other, plain[resumed:], strict=True)) / size
        worst = max(worst, (off, accumulation, resumed))
    facts = {"accumulation": worst[1], "resumed_at": worst[2], "rates": plain}
    return Finding(measured=worst[0], bound=1e-6, unit="share of the largest rate", witness=facts)


STEP = Law(
    id="step",
    statement=words(
        "A step is the optimizer's definition at the old parameters; the learning rate depends on the step alone.",
        "一步更新符合优化器在旧参数处的定义；学习率只取决于步数。",
    ),
    formula=r"\theta_{k+1} = \theta_k - \eta_k\, u(g(\theta_k))",
    conditions=words("A trainer that says its rule.", "说明了更新规则的训练器。"),
    why=words(
        "Decay inside the moments, a bias left in, or a schedule that counts micro-batches trains worse and says nothing.",
        "衰减混入动量、偏差未校正、按微批计数的学习率，都会默默地训练得更差。",
    ),
    chapter="11.6",
    probes=(
        Probe(
            id="step.definition", does=words("on given gradients", "给定梯度"), run=definition, family=Family.TRAINER
        ),
        Probe(id="step.joint", does=words("one joint step", "一次联合更新"), run=joint, family=Family.TRAINER),
        Probe(id="step.rate", does=words("the learning rate", "学习率"), run=rate, family=Family.TRAINER),
    ),
)
