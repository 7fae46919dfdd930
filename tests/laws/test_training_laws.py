"""Laws of losses, gradients, norms and trainers: what they catch, and what they leave in peace."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from decoders import random_decoder
from glassformer.laws import LAWS, Family, Verdict, check_subject
from glassformer.laws.subjects.module import CallableSubject
from glassformer.laws.subjects.own import DecoderSubject
from glassformer.laws.subjects.training import Collator, Loss, Rule, Trainer
from mutants import Mutant, mutated
from mutants_training import PARTS
from options import OPTION_CONFIGS

MINE = (
    "alignment", "loss-mask", "gradient", "locality", "tied", "recompute", "initial-loss", "precision", "distribution",
    "norm", "heads", "arguments", "loading", "auxiliary",
)  # fmt: skip
SETTINGS: tuple[dict[str, Any], ...] = (
    {}, {"positions": "learned", "tied": True}, {"positions": "alibi", "window": 3, "smoothing": 0.1},
    {"layers": 1, "kv_heads": 4, "dropout": 0.0}, {"context": 6, "pad": 1},
)  # fmt: skip


def small(source: ModuleType, **config: Any) -> CallableSubject:
    """The small decoder, or the small mixture of experts, with what is known of it told."""
    torch.manual_seed(0)
    if source.__name__.startswith("small_experts"):
        return CallableSubject(source.SmallExperts())
    settings = source.SmallConfig(**config)
    subject = CallableSubject(
        source.SmallDecoder(settings), eps=settings.eps, tied=settings.tied, eos=1, kv_heads=settings.kv_heads
    )
    subject.facts.pad = settings.pad
    return subject


def part(source: ModuleType, name: str) -> Any:
    """One of the subjects that the small trainer is made of."""
    trainer = source.SmallTrainer()
    s = trainer.settings
    rule = Rule(learning_rate=s.learning_rate, beta_1=s.beta_1, beta_2=s.beta_2, eps=s.eps, weight_decay=s.weight_decay)
    match name:
        case "loss":
            return Loss(name=name, call=lambda x, y: source.next_token_loss(x, y, 0.1), smoothing=0.1)
        case "sum":
            return Loss(name=name, call=lambda x, y: source.next_token_loss(x, y, reduction="sum"), reduction="sum")
        case "sequence":
            return Loss(name=name, call=source.sequence_log_probability, reduction="sum")
        case "fused":
            return Loss(name=name, call=source.fused_loss, reduction="none")
        case "parallel":
            return Loss(name=name, call=source.parallel_loss)
        case "padded":
            return Collator(name=name, call=lambda documents: source.padded(documents, 2), pad=2, eos=2)
        case "packed":
            return Collator(name=name, call=source.packed, packed=True)
        case "ranks":
            return Trainer(name=name, vocab_size=s.vocab_size, gradients=trainer.over_ranks)
        case _:
            return Trainer(
                name=name, vocab_size=s.vocab_size, gradients=trainer.gradients, clip=trainer.clip,
                update=trainer.update, step=trainer.step, rates=trainer.rates, rule=rule,
            )  # fmt: skip


PIECES = ("loss", "sum", "sequence", "fused", "parallel", "padded", "packed", "ranks", "trainer")


@pytest.mark.parametrize("mutant", PARTS, ids=str)
def test_a_fault_of_a_trainer_is_caught_by_the_law_it_breaks(mutant: Mutant) -> None:
    subject = part(mutated(mutant.file, mutant.old, mutant.new), mutant.config["subject"])
    found = check_subject(subject, only=(mutant.law,))
    assert found[mutant.law].verdict is Verdict.VIOLATED, (found[mutant.law].reason, found[mutant.law].finding)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_small_decoder_itself_breaks_nothing(settings: dict[str, Any]) -> None:
    found = check_subject(small(mutated("small_decoder.py"), **settings), only=MINE)
    assert not found.violations, found.violations
    assert found["gradient.differences"].verdict is Verdict.HOLDS
    assert found["alignment.value"].verdict is Verdict.HOLDS


def test_the_small_experts_break_nothing() -> None:
    found = check_subject(small(mutated("small_experts.py")), only=(*MINE, "auxiliary"))
    assert [each.probe for each in found.violations] == ["loss-mask.nothing"]  # torch's own mean over nothing
    assert found["auxiliary.padding"].verdict is Verdict.HOLDS


@pytest.mark.parametrize("name", PIECES)
def test_the_small_trainer_itself_breaks_nothing(name: str) -> None:
    found = check_subject(part(mutated("small_trainer.py"), name))
    assert not found.violations, found.violations
    decided = [each for each in found if each.verdict is Verdict.HOLDS]
    assert len(decided) >= len(found.results) // 2


def test_our_own_decoders_break_nothing() -> None:
    for name in list(OPTION_CONFIGS)[:: max(1, len(OPTION_CONFIGS) // 4)]:
        found = check_subject(DecoderSubject(random_decoder(OPTION_CONFIGS[name]), name), only=MINE)
        assert not found.violations, found.violations


@pytest.mark.full
@pytest.mark.parametrize("name", OPTION_CONFIGS)
def test_our_own_decoder_breaks_nothing_whatever_its_options(name: str) -> None:
    found = check_subject(DecoderSubject(random_decoder(OPTION_CONFIGS[name])), only=MINE)
    assert not found.violations, found.violations


def test_a_check_leaves_gradients_and_flags_of_the_model_alone() -> None:
    subject = small(mutated("small_decoder.py"))
    module: nn.Module = subject.module
    frozen = next(module.parameters())
    frozen.requires_grad_(False)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    check_subject(subject, only=MINE)
    assert not frozen.requires_grad
    assert all(p.grad is None and p.equal(before[name]) for name, p in module.named_parameters())


def test_the_laws_of_loss_and_gradient_cost_few_passes() -> None:
    subject = small(mutated("small_decoder.py"))
    assert check_subject(subject, only=MINE).forwards <= 120


def test_a_whole_check_of_a_small_model_costs_at_most_400_passes() -> None:
    assert check_subject(small(mutated("small_decoder.py"))).forwards <= 400


def test_every_law_of_a_family_has_probes_that_its_subject_can_run() -> None:
    families = {probe.family for law in LAWS for probe in law.probes}
    assert {Family.MODEL, Family.LOSS, Family.TRAINER, Family.COLLATOR} <= families
