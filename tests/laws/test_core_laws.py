"""Causality, prefix and cache: what they leave in peace."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from decoders import random_decoder
from glassformer.laws import Verdict, check_subject
from glassformer.laws.subjects.module import CallableSubject
from glassformer.laws.subjects.own import DecoderSubject
from mutants import mutated
from options import OPTION_CONFIGS

CORE = ("causality", "prefix", "cache")
SETTINGS: tuple[dict[str, Any], ...] = (
    {}, {"positions": "learned"}, {"positions": "alibi"}, {"window": 3}, {"tied": True}, {"layers": 1, "kv_heads": 4},
    {"context": 160},
)  # fmt: skip


def small(**config: Any) -> nn.Module:
    module = mutated("small_decoder.py")
    return module.SmallDecoder(module.SmallConfig(**config))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_small_decoder_itself_breaks_nothing(settings: dict[str, Any]) -> None:
    found = check_subject(CallableSubject(small(**settings)), only=CORE)
    assert not found.violations
    assert found["causality.forward"].verdict is Verdict.HOLDS
    assert found["cache.uneven"].verdict is Verdict.HOLDS


@pytest.mark.parametrize("name", OPTION_CONFIGS)
def test_our_own_decoder_breaks_nothing_whatever_its_options(name: str) -> None:
    found = check_subject(DecoderSubject(random_decoder(OPTION_CONFIGS[name])), only=CORE)
    assert not found.violations, found.violations
    assert found["causality.forward"].verdict is Verdict.HOLDS
    alone = OPTION_CONFIGS[name].window == 1  # a token that reads itself alone needs no cache
    assert found["cache.uneven"].verdict is Verdict.HOLDS or alone
