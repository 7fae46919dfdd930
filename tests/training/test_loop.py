"""The training loop: learns, repeats exactly, keeps its time, scores each token once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from glassformer.errors import UserError
from glassformer.text import TokenStream
from glassformer.training import OptimizerConfig, Step, TrainingConfig, ValidationConfig, train, validation_loss
from glassformer.training.baseline import fit_bigram
from glassformer.training.loop import held_out, torch_threads
from learning import tiny_decoder, tokens_of, words_text

FAST = OptimizerConfig(learning_rate=1e-2)


def config(**values: object) -> TrainingConfig:
    return TrainingConfig.model_validate({"optimizer": FAST, "batch": 16, **values})


class Clock:
    """Time that passes only when it is asked for: ``tick`` seconds a reading."""

    def __init__(self, tick: float) -> None:
        self.now = 0.0
        self.tick = tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


def test_training_finds_what_a_bigram_cannot_see() -> None:
    tokenizer, data = tokens_of(words_text(2000))
    model = tiny_decoder(tokenizer.vocab_size)
    steps = list(train(model, data, config(steps=200)))
    # Each word is 1 of 3 and settles its other letters: ln 3 nats per four characters is all there is to know.
    entropy = math.log(3) / 4
    bigram = fit_bigram(data.train, tokenizer.vocab_size).loss(data.validation(8, 64))
    assert bigram is not None
    assert bigram > 0.6
    assert steps[-1].validation is not None
    assert entropy - 0.05 < steps[-1].validation < bigram - 0.2


def test_the_same_seed_gives_the_same_run_bit_by_bit() -> None:
    tokenizer, data = tokens_of(words_text(200))

    def run(seed: int) -> tuple[list[float], list[torch.Tensor]]:
        model = tiny_decoder(tokenizer.vocab_size)
        losses = [step.loss for step in train(model, data, config(steps=12, seed=seed))]
        return losses, [p.detach() for p in model.parameters()]

    (first, a), (again, b), (other, _) = run(1), run(1), run(2)
    assert first == again != other
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_steps_are_counted_and_the_last_one_is_measured() -> None:
    tokenizer, data = tokens_of(words_text(200))
    model = tiny_decoder(tokenizer.vocab_size)
    measured = ValidationConfig(times=3, prefix=10_000)
    steps = list(train(model, data, config(steps=7, validation=measured)))
    assert [step.step for step in steps] == list(range(1, 8))
    assert [step.step for step in steps if step.validation is not None] == [3, 5, 7]
    assert steps[-1].validation == validation_loss(model, held_out(data, model.config.context))
    assert steps[-1].left == 0


def test_validation_during_training_scores_the_stated_prefix() -> None:
    tokenizer, data = tokens_of(words_text(200))
    model = tiny_decoder(tokenizer.vocab_size)
    *_, last = train(model, data, config(steps=2, validation=ValidationConfig(times=1, prefix=20)))
    part = TokenStream(data.held_out.ids[:21], data.held_out.starts)
    assert last.validation == pytest.approx(validation_loss(model, part.validation_windows(8, 4)), rel=1e-6)


@pytest.mark.parametrize("length", [2, 3, 9, 10, 17, 40])
def test_the_validation_loss_is_the_mean_over_every_token_once(length: int) -> None:
    tokenizer, data = tokens_of(words_text(200))
    model = tiny_decoder(tokenizer.vocab_size, context=8).double()
    ids = data.train.ids[:length]
    text = TokenStream(ids, data.train.starts)
    expected = []
    for position in range(1, length):
        start = (position - 1) // 8 * 8  # windows of 8 inputs, one after the other
        logits = model(torch.from_numpy(ids[None, start:position])).logits[0, -1]
        expected.append(-torch.log_softmax(logits, -1)[ids[position]].item())
    assert validation_loss(model, text.validation_windows(8, 2)) == pytest.approx(np.mean(expected), rel=1e-12)


def test_validation_leaves_mode_and_gradients_alone() -> None:
    tokenizer, data = tokens_of(words_text(50))
    model = tiny_decoder(tokenizer.vocab_size).train()
    validation_loss(model, data.validation(8, 4))
    assert model.training
    assert all(p.grad is None for p in model.parameters())


def test_a_time_budget_is_kept_and_no_step_begins_that_would_pass_it() -> None:
    tokenizer, data = tokens_of(words_text(200))
    clock = Clock(0.25)
    steps = list(train(tiny_decoder(tokenizer.vocab_size), data, config(seconds=20), clock=clock))
    assert len(steps) > 5
    assert 17 < steps[-1].elapsed <= 20.25
    assert all(a.left >= b.left for a, b in itertools.pairwise(steps[1:]))


def test_the_smallest_budget_still_makes_one_step() -> None:
    tokenizer, data = tokens_of(words_text(200))
    steps = list(train(tiny_decoder(tokenizer.vocab_size), data, config(seconds=1e-6)))
    assert len(steps) == 1


def test_with_a_time_budget_validation_takes_at_most_a_tenth_of_it() -> None:
    tokenizer, data = tokens_of(words_text(200))
    clock = Clock(0.01)
    spent = []

    model = tiny_decoder(tokenizer.vocab_size)
    forward = model.forward

    def slow(*args: object, **kwargs: object) -> object:
        if not model.training:
            clock.now += 0.4
            spent.append(0.4)
        return forward(*args, **kwargs)  # pyright: ignore[reportArgumentType]

    model.forward = slow  # pyright: ignore[reportAttributeAccessIssue]
    list(train(model, data, config(seconds=10), clock=clock))
    assert 0 < sum(spent) <= 1.3


def test_the_caller_may_stop_at_any_step() -> None:
    tokenizer, data = tokens_of(words_text(200))
    steps: Iterator[Step] = train(tiny_decoder(tokenizer.vocab_size), data, config(steps=10**9))
    assert [next(steps).step for _ in range(3)] == [1, 2, 3]


def test_each_step_takes_the_learning_rate_of_the_schedule() -> None:
    settings = config(steps=5, optimizer={"learning_rate": 2.0}, schedule={"warmup": 0.1, "floor": 0.25})
    tokenizer, data = tokens_of(words_text(200))
    steps = list(train(tiny_decoder(tokenizer.vocab_size), data, settings))
    assert [step.learning_rate for step in steps] == [settings.rate(k / 5) for k in range(5)]


def test_each_step_is_that_of_adamw_with_the_clipped_gradient_of_its_batch() -> None:
    tokenizer, data = tokens_of(words_text(200))
    optimizer = OptimizerConfig(clip=0.01, weight_decay=0.5, beta_1=0.8, beta_2=0.9)
    model = tiny_decoder(tokenizer.vocab_size).double()
    settings = config(steps=3, optimizer=optimizer, schedule={"warmup": 0})
    reported = [(step.learning_rate, step.grad_norm) for step in train(model, data, settings)]
    by_hand = tiny_decoder(tokenizer.vocab_size).double()
    theta = {name: p.detach().clone() for name, p in by_hand.named_parameters()}
    m = {name: torch.zeros_like(p) for name, p in theta.items()}
    v = {name: torch.zeros_like(p) for name, p in theta.items()}
    generator = np.random.default_rng(0)
    for k, (rate, grad_norm) in enumerate(reported, 1):
        starts = generator.integers(0, len(data.train) - 8, size=(16, 1))
        window = torch.from_numpy(data.train.ids[starts + np.arange(9)])
        inputs = {name: p.clone().requires_grad_() for name, p in theta.items()}
        out = torch.func.functional_call(by_hand, inputs, (window[:, :-1], window[:, 1:]))
        g = dict(zip(inputs, torch.autograd.grad(out.loss, list(inputs.values())), strict=True))
        norm = math.sqrt(sum(float(x.square().sum()) for x in g.values()))
        assert norm > 0.01
        assert grad_norm == pytest.approx(norm, rel=1e-9)
        for name, p in theta.items():
            clipped = g[name] * (0.01 / (norm + 1e-6))
            m[name] = 0.8 * m[name] + 0.2 * clipped
            v[name] = 0.9 * v[name] + 0.1 * clipped.square()
            decay = 0.5 if "W_" in name or name == "head.U" else 0.0
            move = m[name] / (1 - 0.8**k) / ((v[name] / (1 - 0.9**k)).sqrt() + 1e-8)
            theta[name] = p * (1 - rate * decay) - rate * move
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.detach(), theta[name], rtol=1e-9, atol=1e-12, msg=name)


def test_a_diverging_run_stops_with_advice() -> None:
    tokenizer, data = tokens_of(words_text(200))
    model = tiny_decoder(tokenizer.vocab_size)
    with torch.no_grad():
        model.get_parameter("head.U").fill_(math.nan)
    with pytest.raises(UserError, match="diverged") as caught:
        list(train(model, data, config(steps=3)))
    assert "smaller learning rate" in caught.value.next_step


def test_a_text_shorter_than_a_window_is_refused() -> None:
    tokenizer, data = tokens_of("abcabcab")
    with pytest.raises(UserError, match="shorter than one window"):
        next(train(tiny_decoder(tokenizer.vocab_size, context=8), data, config(steps=1)))


def test_the_thread_count_is_given_back_between_steps() -> None:
    before = torch.get_num_threads()
    tokenizer, data = tokens_of(words_text(200))
    for _ in train(tiny_decoder(tokenizer.vocab_size), data, config(steps=2, threads=before + 1)):
        assert torch.get_num_threads() == before
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
