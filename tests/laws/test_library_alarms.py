"""Architectures of ``transformers`` against which a law was once raised for how we built, called or understood them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("transformers")

from glassformer.laws import Verdict, check_subject
from glassformer.laws.bench import Bench
from glassformer.laws.documented import LIMITS
from glassformer.laws.runs import Claim, block, once
from glassformer.laws.subjects.architectures import tiny_subject
from glassformer.laws.subjects.module import CallableSubject
from glassformer.laws.subjects.tiny import Sizes, tiny
from glassformer.laws.verdict import NotSupported

SOUND = {
    "EncoderDecoderModel": ("causality.forward", "cross-attention.source", "flags.embeds"),
    "T5GemmaForConditionalGeneration": ("flags.embeds",),
    "GotOcr2ForConditionalGeneration": ("tied.flag",),
    "ModernVBertForMaskedLM": ("tied.flag",),
    "MiniCPM3ForCausalLM": ("initial-loss.untrained",),
    "GlmMoeDsaForCausalLM": ("norm.epsilon",),
    "LongcatFlashForCausalLM": ("norm.epsilon",),
}
"""Probes that were violated because the decoder was built as an encoder, the table of the source was taken for that of the
ids, the configuration of another part was believed, a divisor of the logits was left large, or the epsilon of another norm."""

DEFECTS = {
    "BigBirdPegasusForCausalLM": ("tied.flag",),
    "BioGptForCausalLM": ("norm.epsilon",),
    "EsmForMaskedLM": ("flags.embeds",),
    "YosoForMaskedLM": ("arguments.mask",),
}
"""Faults of transformers 5.24 that lie next to those alarms, and must still be told."""


def verdicts(name: str, only: tuple[str, ...]) -> dict[str, Verdict]:
    report = check_subject(tiny_subject(name), only=only)
    return {result.probe: result.verdict for result in report.results}


@pytest.mark.parametrize("name", SOUND)
def test_no_law_is_raised_against_how_an_architecture_was_built_or_called(name: str) -> None:
    assert set(verdicts(name, SOUND[name]).values()) == {Verdict.HOLDS}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_beside_a_mended_alarm_is_still_told(name: str) -> None:
    assert set(verdicts(name, DEFECTS[name]).values()) == {Verdict.VIOLATED}


def test_a_configuration_inside_another_keeps_what_sets_it_apart() -> None:
    inside = {"model_type": "bert", "is_decoder": True, "hidden_size": 768, "transformers_version": "5", "dtype": None}
    alone = {"is_decoder": False, "hidden_size": 768, "transformers_version": "4", "dtype": "float32"}
    made = tiny({"decoder": inside}, Sizes(), usual={"bert": alone}.__getitem__)
    assert made == {"decoder": {"model_type": "bert", "is_decoder": True, "hidden_size": 32}}


def test_unshifted_labels_are_a_limit_where_the_docstring_says_so_and_nowhere_else() -> None:
    import transformers

    limit = next(each for each in LIMITS if "alignment" in each.probe)
    for name in ("BartForCausalLM", "WhisperForCausalLM", "TrOCRForCausalLM", "LlamaForCausalLM", "BertLMHeadModel"):
        cls: Any = getattr(transformers, name)
        said = "not shifted** inside" in " ".join((cls.forward.__doc__ or "").split())
        assert bool(re.fullmatch(limit.subject, f"{cls.__module__}.{name}")) is said
    assert verdicts("BartForCausalLM", ("alignment.value",)) == {"alignment.value": Verdict.DOCUMENTED}


class Chaotic(nn.Module):
    """Magnifies what its embeddings hold, so that rounding decides its logits; equal calls are equal."""

    def __init__(self, factor: float = 1e13) -> None:
        super().__init__()
        self.factor = factor
        self.embed = nn.Embedding(30, 16)
        self.head = nn.Linear(16, 30)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids).cumsum(1)
        return self.head(torch.sin(x * self.factor))


def test_what_magnified_rounding_hides_is_not_supported_rather_than_holds() -> None:
    bench = Bench(CallableSubject(Chaotic()), torch.float64)
    ids, at = bench.texts(2), block([0, 1], [3])
    assert bench.tolerance > 1
    with pytest.raises(NotSupported, match="rounding alone"):
        bench.test([Claim(left=once(ids), right=once(bench.other(ids)), left_at=at)])
    assert bench.test([Claim(left=once(ids), right=once(ids.clone()), left_at=at)]).kept


def test_a_loosened_bound_beyond_the_spread_decides_nothing() -> None:
    bench = Bench(CallableSubject(Chaotic(1e7)), torch.float64)
    ids, at = bench.texts(2), block([0, 1], [3])
    finding = bench.test([Claim(left=once(ids), right=once(bench.other(ids)), left_at=at)])
    assert not finding.kept
    with pytest.raises(NotSupported, match="rounding alone"):
        bench.loosened(finding)
