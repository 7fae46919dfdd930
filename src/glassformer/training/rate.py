"""The learning rate of a step as a definition: the largest rate times the factor of the schedule.

| symbol | |
|---|---|
| ``eta_max`` | largest learning rate of the run |
| ``share`` | how much of the run is over, 0 to 1 |
| ``warmup``, ``decay`` | shares of the run in which the rate rises, and falls |
| ``floor`` | where it ends, as a factor of the largest |

``ScheduleConfig.factor`` computes the same.
"""

from __future__ import annotations

from glassformer.notation import Kind, Statement, parse_expression, quantity

from .config import ScheduleConfig

RATE_ID = "optimizer.rate"

COSINE = quantity("rate", r"\eta_k", "scheduled learning rate", "按计划的学习率", Kind.OPTIMIZER_STATE, """
eta_max*share/warmup if share < warmup else eta_max*(floor + (1 - floor)*(1 + cos(pi*(share - warmup)/(1 - warmup)))/2)
""")  # fmt: skip
TRAPEZOID = quantity("rate", r"\eta_k", "scheduled learning rate", "按计划的学习率", Kind.OPTIMIZER_STATE, """
eta_max*share/warmup if share < warmup else eta_max*(floor + (1 - floor)*min(1, (1 - share)/decay))
""")  # fmt: skip
CONSTANT = quantity("rate", r"\eta_k", "scheduled learning rate", "按计划的学习率", Kind.OPTIMIZER_STATE, """
eta_max*share/warmup if share < warmup else eta_max
""")  # fmt: skip

_RULES = {"cosine": COSINE, "trapezoid": TRAPEZOID, "constant": CONSTANT}


def rate_statement(schedule: ScheduleConfig) -> Statement:
    """``optimizer.rate`` by the rule of ``schedule``, for a ``share`` of 0 to 1."""
    rule = _RULES[schedule.kind]
    return Statement(RATE_ID, "", (), parse_expression(rule.text), False, RATE_ID, rule, rule.line + 1)


def rate_scalars(schedule: ScheduleConfig, largest: float, share: float) -> dict[str, float]:
    """The numbers that ``rate_statement`` reads."""
    parts = {
        name: float(value) for name, value in schedule.model_dump().items() if name in ("warmup", "floor", "decay")
    }
    return {"eta_max": largest, "share": share, **parts}
