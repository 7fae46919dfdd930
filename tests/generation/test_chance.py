"""How often tokens come, against their exact probabilities: the draw alone, and a model that writes."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
import torch

from decoding import RULES, oracle, require_frequencies
from glassformer.generation import draw, generate, next_probabilities, uniform
from glassformer.model import Decoder
from learning import tiny_decoder

LOGITS = {
    "distinct": [1.0, -0.5, 2.0, 0.0, 1.5],
    "tied": [0.0, 3.0, 3.0, -1.0, 3.0],
    "many": np.random.default_rng(0).normal(0.0, 1.5, 60).tolist(),
}
BOS, PAD = 1, 4  # they would often be drawn


def require_draws(name: str, logits: list[float], count: int, excluded: tuple[int, ...] = ()) -> None:
    rule, generator = RULES[name], torch.Generator().manual_seed(1)
    p = next_probabilities(torch.tensor(logits), rule, excluded)
    drawn = Counter(draw(p, uniform(rule, generator)) for _ in range(count))
    require_frequencies(drawn, oracle(np.float32(logits).tolist(), rule, excluded))


@pytest.mark.parametrize("logits", LOGITS.values(), ids=LOGITS)
@pytest.mark.parametrize("name", RULES)
def test_tokens_are_drawn_as_often_as_the_rule_says(name: str, logits: list[float]) -> None:
    require_draws(name, logits, 4000)


@pytest.mark.parametrize("name", RULES)
def test_without_bos_and_pad_the_others_come_as_often_as_the_rule_says_of_them_alone(name: str) -> None:
    require_draws(name, LOGITS["distinct"], 4000, (BOS, PAD))


@pytest.mark.full
@pytest.mark.parametrize("logits", LOGITS.values(), ids=LOGITS)
@pytest.mark.parametrize("name", RULES)
def test_forty_thousand_tokens_are_drawn_as_often_as_the_rule_says(name: str, logits: list[float]) -> None:
    require_draws(name, logits, 40_000)


# --- a model that writes ---------------------------------------------------------------------------------------------


def forgetful(vocab_size: int) -> Decoder:
    """A decoder whose scores depend on the last token alone, so that every token after the same one is a new draw."""
    model = tiny_decoder(vocab_size, context=8)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for name in ("embed.E", "head.U"):
            model.get_parameter(name).normal_(0.0, 0.6, generator=generator)
        model.get_parameter("final_norm.gamma").fill_(1.0)
    return model


def require_writing(name: str, count: int) -> None:
    model, rule, size = forgetful(6), RULES[name], 6
    options = {"temperature": rule.temperature, "top_k": rule.top_k, "top_p": rule.top_p}
    after: dict[int, Counter[int]] = defaultdict(Counter)
    last = 0
    for token in generate(model, [last], count, **options, seed=3, excluded=(BOS, PAD)):
        after[last][token] += 1
        last = token
    scores = model(torch.arange(size)[:, None]).logits[:, 0].detach().tolist()
    assert not {BOS, PAD} & after.keys()
    for token, followers in after.items():
        require_frequencies(followers, oracle(scores[token], rule, (BOS, PAD)))


@pytest.mark.parametrize("name", ["plain", "all of them"])
def test_a_model_writes_each_token_after_each_other_as_often_as_its_scores_and_the_rule_say(name: str) -> None:
    require_writing(name, 1000)


@pytest.mark.full
@pytest.mark.parametrize("name", RULES)
def test_over_four_thousand_tokens_a_model_writes_them_as_often_as_they_are_probable(name: str) -> None:
    require_writing(name, 4000)
