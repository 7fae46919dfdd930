"""Where a run stands: everything that going on exactly needs beside the parameters themselves."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .config import TrainingConfig
from .optimizer import Optimizer

_PLAIN = {"step": int, "tokens": int, "elapsed": float, "validations": int, "validating": float, "longest": float}


@dataclass(frozen=True, slots=True, eq=False)
class TrainingState:
    """After ``step`` updates: counters, clocks, random numbers and moments. It shares nothing with the running training.

    ``tokens`` were read; ``elapsed`` seconds have passed, ``validating`` of them in ``validations`` measurements;
    ``longest`` is how long a step may take (seconds). ``data_random`` is the state of the NumPy generator that draws the
    batches: with it the position in the data. ``torch_random`` is that of torch's generator, which draws dropout.
    ``optimizer`` holds the moments by name.
    """

    step: int
    tokens: int
    elapsed: float
    validations: int
    validating: float
    longest: float
    data_random: Mapping[str, Any]
    torch_random: bytes
    optimizer: Mapping[str, Tensor]

    def plain(self) -> dict[str, Any]:
        """All but the tensors, as what JSON can hold."""
        counters = {name: getattr(self, name) for name in _PLAIN}
        random = {"data": dict(self.data_random), "torch": base64.b64encode(self.torch_random).decode("ascii")}
        return {**counters, "random": random}

    @classmethod
    def of_plain(cls, data: Any, optimizer: Mapping[str, Tensor]) -> TrainingState:
        """The state that ``plain`` described. Raises ``ValueError`` for anything that it cannot have written."""
        if not isinstance(data, dict) or data.keys() != {*_PLAIN, "random"}:
            raise ValueError(f"it holds {sorted(data) if isinstance(data, dict) else type(data).__name__}")
        for name, kind in _PLAIN.items():
            if type(data[name]) is not kind or not 0 <= data[name] < float("inf"):
                raise ValueError(f"{name} is {data[name]!r}")
        random = data["random"]
        if not isinstance(random, dict) or {k: type(v) for k, v in random.items()} != {"data": dict, "torch": str}:
            raise ValueError("its random numbers are incomplete")
        counters = {name: data[name] for name in _PLAIN}
        state = cls(
            **counters,
            data_random=random["data"],
            torch_random=base64.b64decode(random["torch"], validate=True),
            optimizer=optimizer,
        )
        state.data_generator()
        state.torch_tensor()
        return state

    def data_generator(self) -> np.random.Generator:
        """A generator that draws what comes next. Raises ``ValueError`` for a state that is none."""
        generator = np.random.default_rng(0)
        try:
            generator.bit_generator.state = dict(self.data_random)
        except (TypeError, KeyError, OverflowError) as problem:
            raise ValueError(f"the state of its random numbers is none: {problem}") from problem
        return generator

    def torch_tensor(self) -> Tensor:
        """The state of torch's generator (bytes,). Raises ``ValueError`` for a state that is none."""
        state = torch.frombuffer(bytearray(self.torch_random), dtype=torch.uint8)
        try:
            torch.Generator().set_state(state)
        except RuntimeError as problem:
            raise ValueError(f"the state of torch's random numbers is none: {problem}") from problem
        return state


def first_state(model: nn.Module, config: TrainingConfig) -> TrainingState:
    """Where a run of ``config`` stands before its first step."""
    # Not the seed itself: the first parameters are drawn from it, and dropout must not repeat them.
    seed = int(np.random.SeedSequence([config.seed, 1]).generate_state(1, np.uint64)[0] >> np.uint64(1))
    return TrainingState(
        step=0,
        tokens=0,
        elapsed=0.0,
        validations=0,
        validating=0.0,
        longest=0.0,
        data_random=np.random.default_rng(config.seed).bit_generator.state,
        torch_random=bytes_of(torch.Generator().manual_seed(seed).get_state()),
        optimizer=Optimizer(model, config.optimizer).tensors(),
    )


def bytes_of(state: Tensor) -> bytes:
    """The bytes of the state (bytes,) of a generator of torch."""
    return state.numpy().tobytes()
