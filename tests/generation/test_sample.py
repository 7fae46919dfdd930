"""Token after token: from the model's last logits, through the cache, the same for the same seed."""

from __future__ import annotations

import pytest
import torch

from decoders import CONFIGS, random_decoder
from glassformer.errors import UserError
from glassformer.generation import Rule, choices, draw, generate, next_probabilities, uniform
from glassformer.generation.sample import Reader
from learning import tiny_decoder

RULE = Rule(temperature=1.5, top_k=4, top_p=0.9)


def continued(seed: int = 0, temperature: float = 1.0, count: int = 20, prompt: tuple[int, ...] = (1, 2)) -> list[int]:
    return list(generate(tiny_decoder(5, seed=3), prompt, count, temperature=temperature, seed=seed))


def test_greedy_is_the_largest_logit_of_the_model_at_each_step() -> None:
    model = tiny_decoder(5, seed=3)
    tokens = [1, 2]
    for token in generate(model, tokens, 15, temperature=0):
        assert token == int(model(torch.tensor([tokens[-8:]])).logits[0, -1].argmax())
        tokens = [*tokens, token]


def test_the_same_seed_gives_the_same_tokens_and_another_seed_others() -> None:
    assert continued(seed=4) == continued(seed=4) != continued(seed=5)


def test_sampling_leaves_the_random_state_of_torch_alone() -> None:
    before = torch.get_rng_state()
    continued()
    assert torch.equal(torch.get_rng_state(), before)


def test_each_token_is_drawn_from_the_last_logits_of_the_whole_window() -> None:
    model, tokens = tiny_decoder(5, seed=3).double(), [1, 2]
    generator = torch.Generator().manual_seed(7)
    for choice in choices(model, [1, 2], 20, RULE, seed=7):
        logits = model(torch.tensor([tokens[-8:]])).logits[0, -1].detach()
        p = next_probabilities(logits, RULE)
        assert choice.token == draw(p, uniform(RULE, generator))
        assert choice.probability == pytest.approx(float(p[choice.token]), rel=1e-12)
        assert choice.model_probability == pytest.approx(float(torch.softmax(logits, -1)[choice.token]), rel=1e-12)
        tokens.append(choice.token)
    assert len(tokens) == 22


@pytest.mark.parametrize("name", CONFIGS)
def test_reading_on_from_any_prompt_equals_reading_the_last_window_anew(name: str) -> None:
    model, context = random_decoder(CONFIGS[name]), CONFIGS[name].context
    tokens = torch.randint(7, (context + 3,), generator=torch.Generator().manual_seed(2)).tolist()
    for prompt in (1, 4, context - 1, context, context + 1):
        reader = Reader(model)
        for n in range(prompt, len(tokens) + 1):
            anew = model(torch.tensor([tokens[:n][-context:]])).logits[0, -1].detach()
            torch.testing.assert_close(reader.logits(tokens[:n]), anew, rtol=1e-12, atol=1e-12)


def test_while_the_text_fits_each_token_is_read_once() -> None:
    model, read = tiny_decoder(5, seed=3), []
    model.embed.register_forward_hook(lambda _, given, out: read.append(given[0].shape[1]))
    list(generate(model, [1, 2, 3], 4))
    assert read == [3, 1, 1, 1]


def test_a_text_longer_than_the_context_slides_its_window() -> None:
    tokens = continued(count=30)
    assert len(tokens) == 30
    model = tiny_decoder(5, seed=3)
    last_window = list(generate(model, (tokens[:20])[-8:], 1, temperature=0))
    assert list(generate(model, tokens[:20], 1, temperature=0)) == last_window


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_of_a_prompt_longer_than_the_context_only_the_end_is_read(temperature: float) -> None:
    model, prompt = tiny_decoder(5, seed=3), [1, 2, 0, 4, 3, 3, 1, 0, 2, 4, 1]
    whole = list(generate(model, prompt, 12, temperature=temperature, seed=2))
    assert whole == list(generate(model, prompt[-8:], 12, temperature=temperature, seed=2))
    assert whole == list(generate(model, [0, 0, 0, *prompt[-8:]], 12, temperature=temperature, seed=2))


def test_an_excluded_token_is_never_chosen_and_the_model_keeps_its_own_probability() -> None:
    model = tiny_decoder(5, seed=3)
    for rule in (Rule(0.0), Rule(), RULE):
        chosen = list(choices(model, [1, 2], 40, rule, 0, excluded=(0, 3)))
        assert {choice.token for choice in chosen} <= {1, 2, 4}
        assert chosen[0].model_probability == pytest.approx(
            float(torch.softmax(model(torch.tensor([[1, 2]])).logits[0, -1].detach().double(), -1)[chosen[0].token])
        )


@pytest.mark.parametrize("excluded", [(5,), (-1,)])
def test_an_excluded_token_that_is_none_is_refused_at_the_call(excluded: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="There is no token"):
        generate(tiny_decoder(5), [1], 1, excluded=excluded)


def test_no_token_is_yielded_when_none_is_wanted() -> None:
    assert continued(count=0) == []


@pytest.mark.parametrize(
    "numbers", [{"temperature": -1.0}, {"top_k": 0}, {"top_p": 0.0}, {"seed": -1}, {"seed": 2**63}, {"count": -1}]
)
def test_an_impossible_number_is_refused_at_the_call(numbers: dict[str, float]) -> None:
    with pytest.raises(UserError):
        generate(tiny_decoder(5), [1], **{"count": 1, **numbers})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("prompt", [(), (5,), (-1,)])
def test_a_prompt_the_model_cannot_read_is_refused_at_the_call(prompt: tuple[int, ...]) -> None:
    with pytest.raises(UserError):
        generate(tiny_decoder(5), prompt, 1)
