"""Builders whose models do what no model should; run only in processes of their own."""

from __future__ import annotations

import os
import signal
import time

from torch import Tensor, nn

import foreign


class Hanging(foreign.GPTModel):
    """Hangs in training mode alone."""

    def forward(self, in_idx: Tensor) -> Tensor:
        if self.training:
            time.sleep(1000)
        return super().forward(in_idx)


class Dying(foreign.GPTModel):
    def forward(self, in_idx: Tensor) -> Tensor:
        if self.training:
            os.kill(os.getpid(), signal.SIGKILL)
        print("this goes nowhere")
        return super().forward(in_idx)


class Leaking(foreign.GPTModel):
    def forward(self, in_idx: Tensor) -> Tensor:
        return super().forward(in_idx) + 0.1 * self.lm_head(self.wte(in_idx)).sum(1, keepdim=True)


def never() -> nn.Module:
    time.sleep(1000)
    raise AssertionError


def needs(size: int) -> nn.Module:
    raise AssertionError(size)


def fails() -> nn.Module:
    raise ValueError("no such \x1b[31mcheckpoint")
