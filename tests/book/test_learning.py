"""Three kinds of learning: only a step changes parameters, and a memory acts through the context alone."""

from __future__ import annotations

import pytest
import torch

from glassformer.book.learning import PENICILLIN, SYMPTOM, WARFARIN, Memory, kinds
from glassformer.model import AttentionConfig, Decoder, DecoderConfig, FeedForwardConfig
from glassformer.text import WordTokenizer
from glassformer.text.clinic import DRUGS, clinic
from glassformer.training import LoadedRun


@pytest.fixture(scope="module")
def loaded() -> LoadedRun:
    """A model that has learnt nothing: what each way changes can be seen on it as well."""
    tokenizer = clinic("zh").tokenizer
    assert isinstance(tokenizer, WordTokenizer)
    config = DecoderConfig.alike(
        1, vocab_size=tokenizer.vocab_size, context=12, d=8,
        attention=AttentionConfig(heads=2, d_k=4, d_v=4), ffn=FeedForwardConfig(d_ff=16),
    )  # fmt: skip
    torch.manual_seed(0)
    return LoadedRun(Decoder(config).eval(), tokenizer, {})


def probability(loaded: LoadedRun, given: str, word: str) -> float:
    ids = [int(i) for i in loaded.tokenizer.encode(given).ids]
    with torch.no_grad():
        p = torch.softmax(loaded.model(torch.tensor([ids])).logits[0, -1].double(), -1)
    return float(p[loaded.tokenizer.texts.index(word)])


def test_only_the_step_of_training_changes_parameters_and_it_changes_a_copy(loaded: LoadedRun) -> None:
    before = {name: x.clone() for name, x in loaded.model.named_parameters()}
    (table,) = kinds(loaded).tables
    step, context, note = table.rows
    assert isinstance(step[5], int)
    assert 0 < step[5] <= sum(x.numel() for x in before.values())
    assert context[5] == note[5] == 0
    assert all(torch.equal(x, before[name]) for name, x in loaded.model.named_parameters())
    assert step[1] == step[2]
    assert isinstance(step[3], float)
    assert isinstance(step[4], float)
    assert step[4] > step[3]


def test_the_probabilities_are_those_of_the_contexts_that_are_named(loaded: LoadedRun) -> None:
    (table,) = kinds(loaded).tables
    _, context, note = table.rows
    with_drug = {drug: probability(loaded, f"患者服用{drug}后出现", SYMPTOM) for drug in DRUGS["患者"]}
    assert context[3:5] == pytest.approx((with_drug[PENICILLIN], with_drug[WARFARIN]))
    mean = sum(probability(loaded, "患者服用", drug) * p for drug, p in with_drug.items())
    assert note[3:5] == pytest.approx((mean, with_drug[WARFARIN]))
    assert note[1:3] == ("患者服用", f"患者服用{WARFARIN}后出现")


def test_a_memory_outlives_the_context_it_was_written_in() -> None:
    assert Memory().context("患者") == ["患者", "服用"]
    saved = Memory({"患者": WARFARIN}).saved()
    assert Memory.opened(saved).context("患者") == ["患者", "服用", WARFARIN, "后", "出现"]
    assert Memory.opened(saved).context("老人") == ["老人", "服用"]
