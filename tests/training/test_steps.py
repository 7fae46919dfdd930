"""One step: accumulated or at once, whole or not at all, and resumed exactly."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from glassformer.errors import UserError
from glassformer.model import Decoder
from glassformer.model.decoder import Output
from glassformer.text import Batch, Corpus, TokenStream, clinic
from glassformer.text.batches import Data
from glassformer.training import Step, TrainingConfig, TrainingState, precision, train
from glassformer.training.loop import accumulate
from learning import tiny_decoder, tokens_of, words_text

TEXT = words_text(300)


def config(**values: object) -> TrainingConfig:
    return TrainingConfig.model_validate({"batch": 4, "validation": {"times": 2, "prefix": 20}, **values})


class Noisy(Decoder):
    """A decoder whose training draws from torch's own random numbers, as dropout does."""

    def forward(self, *args: object, **kwargs: object) -> Output:
        out = super().forward(*args, **kwargs)  # pyright: ignore
        if not self.training or out.loss is None:
            return out
        return Output(out.logits, out.loss * (1 + torch.rand(())))


def noisy(vocab_size: int) -> Noisy:
    return Noisy(tiny_decoder(vocab_size).config, torch.Generator().manual_seed(0))


def random_batch(b: int, seed: int = 0) -> Batch:
    draw = np.random.default_rng(seed)
    scored = draw.random((b, 8)) < draw.random((b, 1))
    scored[0, 0] = True
    return Batch(draw.integers(0, 5, (b, 8)), draw.integers(0, 5, (b, 8)), scored, None)


class Seen(Data):
    """The same batches, whatever is asked for, with uneven numbers of scored positions."""

    def batch(self, n: int, b: int, generator: np.random.Generator) -> Batch:
        return random_batch(b, int(generator.integers(1000)))

    def validation(self, n: int, b: int) -> Iterator[Batch]:
        return iter(())

    def describe(self) -> str:
        return ""


# --- accumulation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 12, 100])
def test_the_gradient_in_parts_is_that_of_the_whole_batch(rows: int) -> None:
    batch, model = random_batch(12), tiny_decoder(5).double()
    whole = model(*(torch.from_numpy(x) for x in batch[:3])).loss
    whole.backward()
    expected = {id: p.grad for id, p in model.named_parameters()}
    model.zero_grad()
    loss = accumulate(model, batch, rows)
    assert loss == pytest.approx(whole.item(), rel=1e-13)
    for id, p in model.named_parameters():
        torch.testing.assert_close(p.grad, expected[id], rtol=1e-12, atol=1e-15, msg=id)


def test_a_part_without_scored_positions_adds_nothing_and_a_whole_batch_without_is_refused() -> None:
    batch, model = random_batch(4), tiny_decoder(5).double()
    batch.scored[2:] = False
    assert accumulate(model, batch, 2) == pytest.approx(accumulate(model, batch, 4), rel=1e-13)
    batch.scored[:] = False
    with pytest.raises(UserError, match="No position of the batch is scored"):
        accumulate(model, batch, 2)


@pytest.mark.parametrize("accumulation", [2, 3, 6])
def test_steps_that_accumulate_are_those_of_larger_batches(accumulation: int) -> None:
    models = [tiny_decoder(5).double() for _ in range(2)]
    sizes = [{"batch": 12}, {"batch": 12 // accumulation, "accumulation": accumulation}]
    runs = [list(train(model, Seen(), config(steps=5, **size))) for model, size in zip(models, sizes, strict=True)]
    for a, b in zip(*runs, strict=True):
        assert b.loss == pytest.approx(a.loss, rel=1e-12)
        assert b.grad_norm == pytest.approx(a.grad_norm, rel=1e-12)
        np.testing.assert_array_equal(a.batch.tokens, b.batch.tokens)
    for p, q in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-10, atol=1e-12)


def test_segments_reach_the_model_and_only_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[dict[str, object]] = []
    real = Decoder.forward

    def forward(self: Decoder, tokens: torch.Tensor, *args: object, **kwargs: object) -> Output:
        handed.append({name: (x.shape, x.dtype) for name, x in kwargs.items()})  # pyright: ignore
        return real(self, tokens, *args)  # pyright: ignore

    monkeypatch.setattr(Decoder, "forward", forward)
    ids = np.tile(np.array([4, 0, 1, 2, 5]), 40)
    stream = TokenStream(ids, np.flatnonzero(ids == 4), 4)
    for isolated in (True, False):
        handed.clear()
        list(train(tiny_decoder(6), Corpus(stream, stream, isolated=isolated), config(steps=1, batch=3)))
        assert handed[0] == ({"segments": ((3, 8), torch.int64)} if isolated else {})


# --- whole or not at all ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulation", [1, 3])
@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_step_whose_loss_is_no_number_changes_no_parameter_and_names_step_and_rate(
    accumulation: int, broken: float
) -> None:
    tokenizer, data = tokens_of(TEXT)
    model = tiny_decoder(tokenizer.vocab_size)
    steps = train(model, data, config(steps=10, accumulation=accumulation, schedule={"warmup": 0}))
    next(steps)
    with torch.no_grad():
        model.get_parameter("head.U")[0, 0] = broken
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(UserError, match=r"is (nan|inf) at step 2: training has diverged") as caught:
        next(steps)
    assert "learning rate was 0.0098" in caught.value.context
    assert all(torch.equal(x.nan_to_num(7), before[id].nan_to_num(7)) for id, x in model.state_dict().items())


def test_a_gradient_that_is_no_number_is_refused_like_such_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, data = tokens_of(TEXT)
    model = tiny_decoder(tokenizer.vocab_size)
    model.get_parameter("head.U").register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(UserError, match=r"norm of the gradient is (nan|inf) at step 1"):
        next(train(model, data, config(steps=1)))


# --- precision --------------------------------------------------------------------------------------------------------


def test_bfloat16_is_used_for_products_alone_and_learns_about_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_bfloat16", lambda: True)  # torch can do without, slowly
    tokenizer, data = tokens_of(TEXT)
    losses = {}
    for kind in ("float32", "bfloat16"):
        model = tiny_decoder(tokenizer.vocab_size)
        steps = list(train(model, data, config(steps=60, precision=kind)))
        assert {p.dtype for p in model.parameters()} == {torch.float32}
        assert {x.dtype for x in steps[-1].state().optimizer.values()} == {torch.float32}
        losses[kind] = [step.loss for step in steps]
    assert losses["bfloat16"] != losses["float32"]
    assert losses["bfloat16"][-1] == pytest.approx(losses["float32"][-1], abs=0.1)


def test_bfloat16_that_this_processor_lacks_is_refused_before_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_bfloat16", lambda: False)
    tokenizer, data = tokens_of(TEXT)
    with pytest.raises(UserError, match="no bfloat16"):
        next(train(tiny_decoder(tokenizer.vocab_size), data, config(steps=1, precision="bfloat16")))


# --- resumption -------------------------------------------------------------------------------------------------------


def same(a: TrainingState, b: TrainingState) -> bool:
    """Whether training goes on from both in the same way: all but the times."""
    parts = ("step", "tokens", "validations", "data_random", "torch_random")
    return all(getattr(a, part) == getattr(b, part) for part in parts) and (
        a.optimizer.keys() == b.optimizer.keys() and all(torch.equal(x, b.optimizer[k]) for k, x in a.optimizer.items())
    )


def facts(step: Step) -> tuple[object, ...]:
    return step.step, step.loss, step.validation, step.learning_rate, step.grad_norm


SETTINGS = {
    "adamw": {},
    "accumulated": {"accumulation": 3},
    "gradient descent": {"optimizer": {"kind": "gradient_descent"}, "schedule": {"kind": "trapezoid"}},
    "two threads": {"threads": 2},
}


@pytest.mark.parametrize(("text", "settings"), [*(("corpus", x) for x in SETTINGS.values()), ("clinic", {})])
def test_a_run_resumed_at_any_step_is_bit_for_bit_the_uninterrupted_one(settings: dict[str, object], text: str) -> None:
    tokenizer, corpus = tokens_of(TEXT)
    data = corpus if text == "corpus" else clinic("zh")
    size = {"context": 8} if text == "corpus" else {"context": 11}
    vocab_size = tokenizer.vocab_size if text == "corpus" else clinic("zh").tokenizer.vocab_size
    settled = config(steps=4, **settings)
    model = tiny_decoder(vocab_size, **size)
    whole, kept = [], []
    for step in train(model, data, settled):
        whole.append(facts(step))
        kept.append((copy.deepcopy(model), step.state()))
    final = step.state()
    for k, (copied, state) in enumerate(kept, 1):
        rest = []
        for step in train(copied, data, settled, resume=state):
            rest.append(facts(step))
        assert rest == whole[k:]
        if rest:
            assert same(step.state(), final)
        assert all(torch.equal(p, q) for p, q in zip(copied.parameters(), model.parameters(), strict=True))


def test_randomness_of_training_comes_from_the_seed_alone_and_goes_on_where_it_was() -> None:
    tokenizer, data = tokens_of(TEXT)
    settled = config(steps=6)
    results = []
    for own in (1, 2):
        torch.manual_seed(own)
        before = torch.get_rng_state()
        model, losses = noisy(tokenizer.vocab_size), []
        steps = train(model, data, settled)
        for step in steps:
            losses.append(step.loss)
            torch.rand(own)  # the caller draws too
            if own == 2 and step.step == 3:
                copied, state = copy.deepcopy(model), step.state()
                steps.close()
                model = copied
                losses += [later.loss for later in train(model, data, settled, resume=state)]
        results.append((losses, model))
        if own == 1:
            torch.manual_seed(own)
            assert torch.equal(torch.get_rng_state(), before)
    (a, one), (b, other) = results
    assert a == b
    assert len(set(a)) == 6
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))


def test_torchs_own_random_numbers_are_left_alone() -> None:
    tokenizer, data = tokens_of(TEXT)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    list(train(noisy(tokenizer.vocab_size), data, config(steps=2)))
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_does_not_repeat_the_numbers_from_which_the_parameters_came() -> None:
    tokenizer, data = tokens_of(TEXT)
    drawn: list[float] = []

    class Listening(Noisy):
        def forward(self, *args: object, **kwargs: object) -> Output:
            if self.training:
                drawn.append(float(torch.rand(())))
            return super().forward(*args, **kwargs)

    model = Listening(tiny_decoder(tokenizer.vocab_size).config)
    next(train(model, data, config(steps=1, seed=3)))
    assert drawn[0] != float(torch.rand((), generator=torch.Generator().manual_seed(3)))


def test_the_state_of_a_step_is_a_copy_and_is_refused_once_it_is_gone() -> None:
    tokenizer, data = tokens_of(TEXT)
    steps = train(tiny_decoder(tokenizer.vocab_size), data, config(steps=3, schedule={"warmup": 0}))
    first = next(steps)
    state = first.state()
    kept = {name: x.clone() for name, x in state.optimizer.items()}
    next(steps)
    assert all(torch.equal(x, kept[name]) for name, x in state.optimizer.items())
    with pytest.raises(RuntimeError, match="state of step 1 is gone"):
        first.state()


class Clock:
    """Time that passes only when it is asked for: ``tick`` seconds a reading."""

    def __init__(self, tick: float) -> None:
        self.now = 0.0
        self.tick = tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


def test_a_run_bounded_by_time_gets_what_is_left_of_its_budget() -> None:
    tokenizer, data = tokens_of(TEXT)
    settled = config(seconds=20)
    whole = list(train(tiny_decoder(tokenizer.vocab_size), data, settled, clock=Clock(0.25)))
    model = tiny_decoder(tokenizer.vocab_size)
    steps = train(model, data, settled, clock=Clock(0.25))
    *_, last = (next(steps) for _ in range(8))
    state = last.state()
    steps.close()
    rest = list(train(model, data, settled, resume=state, clock=Clock(0.25)))
    assert rest[0].step == 9
    assert rest[0].elapsed > last.elapsed
    assert 17 < rest[-1].elapsed <= 20.25
    assert len(rest) + 8 == pytest.approx(len(whole), abs=2)


@pytest.mark.parametrize(
    "other", [{"optimizer": {"kind": "gradient_descent"}}, {"d": 8}], ids=["another optimizer", "another model"]
)
def test_a_state_of_another_model_or_optimizer_is_refused(other: dict[str, object]) -> None:
    tokenizer, data = tokens_of(TEXT)
    *_, last = train(tiny_decoder(tokenizer.vocab_size), data, config(steps=1))
    d = int(other.pop("d", 16))  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="cannot go on from this state"):
        next(train(tiny_decoder(tokenizer.vocab_size, d=d), data, config(steps=2, **other), resume=last.state()))


def test_a_state_written_out_and_read_back_is_the_same() -> None:
    tokenizer, data = tokens_of(TEXT)
    *_, last = train(tiny_decoder(tokenizer.vocab_size), data, config(steps=3))
    state = last.state()
    back = TrainingState.of_plain(state.plain(), state.optimizer)
    assert same(state, back)
    assert back.elapsed == state.elapsed


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: p.pop("step"),
        lambda p: p.update(step=-1),
        lambda p: p.update(step=1.0),
        lambda p: p.update(elapsed=math.nan),
        lambda p: p.update(more=1),
        lambda p: p["random"].pop("torch"),
        lambda p: p["random"].update(torch="!!!"),
        lambda p: p["random"].update(torch="AAAA"),
        lambda p: p["random"].update(torch=7),
        lambda p: p["random"].update(data={}),
        lambda p: p["random"].update(data=7),
        lambda p: p["random"]["data"].update(bit_generator="MT19937"),
        lambda p: p["random"]["data"].pop("state"),
    ],
)
def test_a_damaged_state_is_found(damage) -> None:
    tokenizer, data = tokens_of(TEXT)
    *_, last = train(tiny_decoder(tokenizer.vocab_size), data, config(steps=1))
    plain = copy.deepcopy(last.state().plain())
    damage(plain)
    with pytest.raises(ValueError):
        TrainingState.of_plain(plain, {})
