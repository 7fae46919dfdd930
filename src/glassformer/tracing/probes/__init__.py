"""Probes: experiments on a trained model, each with numbers that can be checked from outside.

| file | what |
|---|---|
| ``reading.py`` | a model, the tokens it reads, and running it with quantities replaced |
| ``places.py`` | where attention and the residual stream stand, read off the definitions |
| ``effect.py`` | attention beside the effect of taking a position, a head or a block out |
| ``prefixes.py`` | the same token under two prefixes |
| ``bilinear.py`` | rank and asymmetry of ``W_Q W_K^T`` |
| ``gradients.py`` | gradient norm by layer, along the residual and through the branches |
| ``variance.py`` | variance of ``q.k`` before and after scaling, over a text |
| ``saturation.py`` | what a softmax lets through when scores grow |
| ``linearity.py`` | additivity and homogeneity of attention |
| ``patch.py`` | other numbers in a quantity's place |
| ``activation.py`` | rows of one run put into another |
| ``ranks.py`` | Spearman's rank correlation |
| ``standard.py`` | those of them that need a model and one text |
| ``report.py`` | what each hands on: tables, notes, strict JSON |

Every result has ``report()``, and a report has ``plain()``.
"""

from .activation import ActivationPatching, activation_patching
from .bilinear import BilinearForms, bilinear_forms
from .effect import AttentionEffect, attention_effect
from .gradients import GradientNorms, gradient_norms
from .linearity import Linearity, linearity
from .patch import PatchedRun, downstream, patch
from .prefixes import SameToken, same_token
from .reading import Aim, Reading, aim_at, reading_of, watch
from .report import Report, report_from
from .saturation import Saturation, saturation
from .standard import standard_reports
from .variance import ScoreVariance, score_variance, sign_sums

__all__ = [
    "ActivationPatching",
    "Aim",
    "AttentionEffect",
    "BilinearForms",
    "GradientNorms",
    "Linearity",
    "PatchedRun",
    "Reading",
    "Report",
    "SameToken",
    "Saturation",
    "ScoreVariance",
    "activation_patching",
    "aim_at",
    "attention_effect",
    "bilinear_forms",
    "downstream",
    "gradient_norms",
    "linearity",
    "patch",
    "reading_of",
    "report_from",
    "same_token",
    "saturation",
    "score_variance",
    "sign_sums",
    "standard_reports",
    "watch",
]
