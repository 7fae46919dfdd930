"""The probes that need a model and one text, and nothing else: what a trace can carry beside its numbers."""

from __future__ import annotations

from .bilinear import bilinear_forms
from .effect import attention_effect
from .gradients import gradient_norms
from .linearity import linearity
from .reading import Aim, Reading
from .report import Report
from .saturation import saturation
from .variance import score_variance


def standard_reports(reading: Reading, aim: Aim, layer: int = -1) -> tuple[Report, ...]:
    """Attention beside measured effect, bilinear forms, gradient norms, variance of scores, saturation, linearity.

    ``aim`` and ``layer`` (the last by default) are those of the probes that read one row of one layer. The second text of
    linearity is this one in reverse order. A text of one token has no gradient norms: nothing in it is predicted. Raises
    ``UserError`` for an unknown layer.
    """
    return (
        attention_effect(reading, aim, layer).report(),
        bilinear_forms(reading).report(),
        *([gradient_norms(reading).report()] if reading.n > 1 else ()),
        score_variance(reading).report(),
        saturation(reading, aim, layer).report(),
        linearity(reading, reading.of(reading.tokens[::-1]), layer).report(),
    )
