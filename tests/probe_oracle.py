"""A model run by its definitions alone, in NumPy, with quantities changed on the way: the oracle of the probes' tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from decoders import decoder_config, random_decoder, random_inputs
from glassformer.model import AttentionConfig, DecoderConfig, PositionConfig
from glassformer.notation import Kind, evaluate
from glassformer.tracing.probes import Reading, reading_of
from options import CASES, OPTION_CONFIGS

Array = np.ndarray[Any, np.dtype[Any]]


def few_and_all(cases: Sequence[dict[str, Any]], names: Iterable[str]) -> list[Any]:
    """The names as parameters of a test: first few that meet every value of every option, the others marked ``full``."""
    left = {item for case in cases for item in case.items()}
    few: set[int] = set()
    while left:
        few.add(max(range(len(cases)), key=lambda k: len(left & set(cases[k].items()))))
        left -= {item for k in few for item in cases[k].items()}
    return [name if k in few else pytest.param(name, marks=pytest.mark.full) for k, name in enumerate(names)]


SOME_CONFIGS = few_and_all(CASES, OPTION_CONFIGS)


def by_definition(reading: Reading, changed: Mapping[str, Callable[[Array], Array]] | None = None) -> dict[str, Array]:
    """Every number that leads to the logits, by id; each of ``changed`` is replaced as soon as it is computed."""
    program = reading.program
    values = {name: p.detach().numpy() for name, p in reading.model.named_parameters()}
    values["embed.t"] = np.array(reading.tokens)
    for id, placed in program.quantities.items():
        if placed.quantity.kind is Kind.INPUT and id.endswith(".pos"):
            values[id] = np.arange(reading.n)
    for statement in program.forward:
        if statement.target.startswith("loss."):
            continue
        value = evaluate(statement.expr, statement.letters, values, program.scalars)
        change = (changed or {}).get(statement.target)
        values[statement.target] = value if change is None else change(np.array(value))
    return values


def loss_and_logit(values: Mapping[str, Array], row: int, target: int) -> tuple[float, float]:
    """``-ln p[target]`` and the logit of ``target`` at ``row``."""
    logits = values["head.logits"][row]
    return float(np.logaddexp.reduce(logits) - logits[target]), float(logits[target])


def random_reading(case: str, n: int = 6, seed: int = 1) -> Reading:
    """A model of ``OPTION_CONFIGS`` with nothing at a trivial value, reading random tokens."""
    config = OPTION_CONFIGS[case]
    return reading_of(random_decoder(config), random_inputs(config, n=n, seed=seed).tokens[0].tolist())


def bare_config(**changes: Any) -> DecoderConfig:
    """One block with one head that nothing stands beside: no norm, no feed-forward network, no positions, no biases."""
    attention = AttentionConfig(**{"heads": 1, "d_k": 3, "d_v": 5, **changes})
    return decoder_config(blocks=1, attention=attention, norm=None, ffn=None, position=PositionConfig(kind="none"))
