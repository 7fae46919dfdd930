"""Models of x-transformers are checked as they come: nothing has to be told of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from glassformer.laws import Report, Verdict, check

x_transformers = pytest.importorskip("x_transformers")

LAWS = (
    "causality",
    "prefix",
    "cache.one-by-one",
    "cache.prefill-then-steps",
    "padding",
    "heads",
    "gradient.differences",
)


def wrapped(layers: str = "Decoder", **settings: Any) -> nn.Module:
    torch.manual_seed(0)
    made = getattr(x_transformers, layers)(dim=32, depth=2, heads=4, attn_dim_head=8, **settings)
    return x_transformers.TransformerWrapper(num_tokens=40, max_seq_len=32, attn_layers=made)


def hold(report: Report, *probes: str) -> None:
    assert not report.violations, [(each.probe, each.finding) for each in report.violations]
    assert {probe: report[probe].verdict for probe in probes} == dict.fromkeys(probes, Verdict.HOLDS)


@pytest.mark.parametrize(
    "settings",
    [{}, {"alibi_pos_bias": True, "alibi_num_heads": 2}, {"use_rmsnorm": True, "ff_glu": True, "attn_kv_heads": 2}],
    ids=str,
)
def test_a_decoder_is_checked_without_configuration(settings: dict[str, Any]) -> None:
    report = check(wrapped(**settings), only=LAWS)
    assert (report.facts["vocabulary"], report.facts["context"]) == (40, 32)
    hold(report, "causality.forward", "causality.past", "prefix.lengths", "cache.one-by-one", "cache.prefill-then-steps",
         "padding.right", "padding.content", "gradient.differences")  # fmt: skip


def test_an_encoder_leaks_unless_it_is_said_to_read_both_ways() -> None:
    violated = check(wrapped("Encoder"), only=("causality.forward",))["causality.forward"]
    assert violated.verdict is Verdict.VIOLATED
    assert violated.place is not None
    assert violated.place.kind == "Attend"
    hold(check(wrapped("Encoder"), only=("padding", "batch"), kind="masked"), "padding.right", "batch.companions")
