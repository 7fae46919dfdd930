"""Our own losses, batches and training loop keep the laws that anybody's have to keep."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from decoders import decoder_config, random_decoder
from glassformer.laws import Verdict, check_subject
from glassformer.laws.subjects.training import Collator, Loss, Pair, Rule, Trainer
from glassformer.model import Decoder
from glassformer.model.inputs import check_targets
from glassformer.model.loss import explicit_cross_entropy, fused_cross_entropy
from glassformer.notation import silent
from glassformer.text.batches import Batch, labels
from glassformer.training import OptimizerConfig, ScheduleConfig, TrainingConfig, ValidationConfig, train
from glassformer.training.clipping import clipped
from glassformer.training.loop import accumulate
from glassformer.training.optimizer import Moved, Numbers, Optimizer, explicit_step, fused_step

LENGTH = 8
CONFIG = decoder_config(context=LENGTH, blocks=1)
RULE = Rule(learning_rate=3e-3, beta_1=0.8, beta_2=0.95, eps=1e-6)
OPTIMIZER = OptimizerConfig(learning_rate=3e-3, beta_1=0.8, beta_2=0.95, eps=1e-6, weight_decay=0.2, clip=None)

Named = Mapping[str, Tensor]


def targets_of(text: Tensor) -> tuple[Tensor, Tensor]:
    following = torch.cat([text[:, 1:], torch.full_like(text[:, :1], -100)], 1)
    return following.clamp(min=0), following != -100


def batch_of(pairs: Sequence[Pair]) -> Batch:
    ids, text = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    targets, scored = targets_of(text)
    return Batch(ids.numpy(), targets.numpy(), scored.numpy())


def gradients(pairs: Sequence[Pair]) -> Named:
    model = random_decoder(CONFIG)
    accumulate(model, batch_of(pairs), rows=len(pairs[0][0]))
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


class Holder(nn.Module):
    """Parameters by name, for what works on a module."""

    def __init__(self, parameters: Named) -> None:
        super().__init__()
        for name, p in parameters.items():
            self.register_parameter(name, nn.Parameter(p.clone()))


def clip(given: Named, largest: float) -> Named:
    holder = Holder({name: torch.zeros_like(g) for name, g in given.items()})
    for name, p in holder.named_parameters():
        p.grad = given[name].clone()
    Optimizer(holder, OPTIMIZER.model_copy(update={"clip": largest})).clip()
    return {name: p.grad for name, p in holder.named_parameters() if p.grad is not None}


def update(parameters: Named, steps: Sequence[Named]) -> list[Named]:
    holder = Holder(parameters)
    optimizer, after = Optimizer(holder, OPTIMIZER), []
    for step in steps:
        for name, p in holder.named_parameters():
            p.grad = step[name].clone()
        optimizer.step(OPTIMIZER.learning_rate)
        after.append({name: p.detach().clone() for name, p in holder.named_parameters()})
    return after


@dataclass(frozen=True)
class Fixed:
    """Data that gives one batch again and again."""

    rows: Batch

    def batch(self, n: int, b: int, generator: np.random.Generator) -> Batch:
        return self.rows

    def validation(self, n: int, b: int) -> Iterator[Batch]:
        return iter(())

    def describe(self) -> str:
        return "one batch"


def settings(steps: int, accumulation: int, optimizer: OptimizerConfig, schedule: ScheduleConfig) -> TrainingConfig:
    return TrainingConfig(
        steps=steps, batch=2, accumulation=accumulation, optimizer=optimizer, schedule=schedule, threads=1,
        validation=ValidationConfig(times=0),
    )  # fmt: skip


def step(pairs: Sequence[Pair]) -> tuple[Named, Named]:
    model = random_decoder(CONFIG)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    at_once = ScheduleConfig(kind="constant", warmup=0.0)
    descent = OptimizerConfig(kind="gradient_descent", learning_rate=0.05, clip=None)
    next(train(model, Fixed(batch_of(pairs)), settings(1, len(pairs), descent, at_once)))
    return before, {name: p.detach().clone() for name, p in model.named_parameters()}


def rates(steps: int, accumulation: int, resumed_at: int) -> list[float]:
    ids = torch.randint(CONFIG.vocab_size, (2 * accumulation, LENGTH), generator=torch.Generator().manual_seed(0))
    data, config = Fixed(batch_of([(ids, ids)])), settings(steps, accumulation, OPTIMIZER, ScheduleConfig())
    model = Decoder(CONFIG)
    if not resumed_at:
        return [each.learning_rate for each in train(model, data, config)]
    for each in train(model, data, config):
        if each.step == resumed_at:
            state = each.state()
            return [later.learning_rate for later in train(copy.deepcopy(model), data, config, resume=state)]
    raise AssertionError("the run was too short")


def lines(parameters: Named, steps: Sequence[Named], move: object) -> list[Named]:
    theta = {name: p.clone() for name, p in parameters.items()}
    m, v = ({name: torch.zeros_like(p) for name, p in theta.items()} for _ in range(2))
    after = []
    for k, grads in enumerate(steps, start=1):
        moved = [Moved(theta[name], grads[name], m[name], v[name]) for name in theta]
        move(moved, Numbers(RULE.learning_rate, k, RULE.beta_1, RULE.beta_2, RULE.eps, 0.2))  # pyright: ignore[reportCallIssue]
        after.append({name: p.clone() for name, p in theta.items()})
    return after


def cross_entropy(function: object) -> Loss:
    def call(logits: Tensor, text: Tensor) -> Tensor:
        targets, scored = targets_of(text)
        check_targets(targets, targets, scored, logits.shape[-1])  # as the decoder does
        return function(logits, targets, scored, silent, ("loss",))  # pyright: ignore[reportCallIssue]

    return Loss(name="cross-entropy", call=call)


def packed(documents: list[list[int]]) -> dict[str, Tensor]:
    """All documents in one window, apart from one another, as a corpus of ours gives them."""
    window = np.array([[token for document in documents for token in document]])
    segments = np.array([[k for k, document in enumerate(documents) for _ in document]])
    batch = labels(window, None, segments)
    return {
        "input_ids": torch.tensor(batch.tokens), "labels": torch.tensor(np.where(batch.scored, batch.targets, -100))
    }  # fmt: skip


@pytest.mark.parametrize("function", [explicit_cross_entropy, fused_cross_entropy])
def test_our_losses_keep_every_law(function: object) -> None:
    found = check_subject(cross_entropy(function))
    assert {each.verdict for each in found} == {Verdict.HOLDS}, [each.plain() for each in found]


def test_our_labels_keep_every_law() -> None:
    found = check_subject(Collator(name="labels", call=packed, shift=False, packed=True))
    assert {each.verdict for each in found} == {Verdict.HOLDS}, [each.plain() for each in found]


def test_our_training_loop_keeps_every_law() -> None:
    descent = Rule(kind="sgd", learning_rate=0.05, beta_1=0.0)
    whole = Trainer(
        name="descent", vocab_size=CONFIG.vocab_size, length=LENGTH, gradients=gradients, clip=clip, step=step,
        rates=rates, rule=descent,
    )  # fmt: skip
    found = check_subject(whole)
    assert not found.violations, [each.plain() for each in found.violations]
    held = {each.probe for each in found if each.verdict is Verdict.HOLDS}
    assert held == {each.probe for each in found} - {"step.definition"}


@pytest.mark.parametrize("move", [explicit_step, fused_step])
def test_our_adamw_is_its_definition(move: object) -> None:
    rule = Rule(
        learning_rate=RULE.learning_rate, beta_1=RULE.beta_1, beta_2=RULE.beta_2, eps=RULE.eps, weight_decay=0.2
    )
    trainer = Trainer(name="adamw", update=lambda theta, steps: lines(theta, steps, move), rule=rule)
    assert check_subject(trainer, only=("step",))["step.definition"].verdict is Verdict.HOLDS


def test_our_optimizer_is_its_definition_and_decays_matrices_alone() -> None:
    # None of the law's parameters is called as our matrices are.
    trainer = Trainer(name="adamw", update=update, rule=RULE)
    assert check_subject(trainer, only=("step",))["step.definition"].verdict is Verdict.HOLDS


def test_our_quantity_of_clipping_keeps_its_law() -> None:
    trainer = Trainer(name="clipping", clip=lambda g, largest: clipped(g, largest).gradients)
    assert check_subject(trainer, only=("clip",))["clip.norm"].verdict is Verdict.HOLDS
