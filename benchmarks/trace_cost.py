"""What a full verified trace costs: in forward-and-backward passes of the same sample, and in memory.

Two decoders of the sizes that the demo trains, at random values, in float32: one that reads a clinic sentence of 10
tokens, one that reads 32 characters of the plays. CPU time of one thread, the two sides in turns, medians; the pass is in
float64, as those of the trace are. Memory is what the resident set grows by at its highest, in a child that ran both
once before (Linux alone lets a process forget its highest); the recorded arrays are the trace itself and are taken off.

    python benchmarks/trace_cost.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import gc
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from forked import in_a_child

from glassformer import trace
from glassformer.model import AttentionConfig, Decoder, DecoderConfig, FeedForwardConfig
from glassformer.tracing import Trace

PASSES, STEPS = 25.0, 3.0
"""The targets: time in passes, and memory beside the trace itself in training steps."""


@dataclass(frozen=True)
class Subject:
    """A model in float32, the tokens it is traced at, and how many such rows a step of the demo's training reads."""

    name: str
    model: Decoder
    tokens: list[int]
    batch: int

    def passed(self, model: Decoder, rows: int) -> None:
        """One forward and backward pass of ``rows`` copies of the sample through ``model``, which keeps the gradients."""
        tokens = torch.tensor([self.tokens] * rows)
        model.zero_grad(set_to_none=True)
        model(tokens[:, :-1], tokens[:, 1:]).loss.backward()

    def traced(self, witness_cells: int = 16) -> Trace:
        """A trace of all but the last token, each scored against the next one; 16 cells are what everybody gets."""
        return trace(self.model, self.tokens[:-1], self.tokens[1:], witness_cells=witness_cells)


def subject(name: str, vocab_size: int, context: int, n: int, batch: int) -> Subject:
    """A decoder of the demo's sizes (d 64, 2 blocks) and ``n + 1`` random tokens, of which the last is only a target."""
    generator = torch.Generator().manual_seed(0)
    config = DecoderConfig.alike(
        2,
        vocab_size=vocab_size,
        context=context,
        d=64,
        attention=AttentionConfig(heads=4, d_k=16, d_v=16),
        ffn=FeedForwardConfig(d_ff=256),
    )
    tokens = torch.randint(vocab_size, (n + 1,), generator=generator).tolist()
    return Subject(name, Decoder(config, generator), tokens, batch)


def seconds(work: Callable[[], Any]) -> float:
    """The CPU time that ``work`` takes: waiting for other programs is not counted."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def compare(it: Subject, rounds: int) -> None:
    """Print how many passes a trace takes, with and without its differences of the loss."""
    wide = copy.deepcopy(it.model).double()
    one_pass = [lambda: it.passed(wide, 1)] * 20
    kinds = {"full trace": 16, "without differences": 0}
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    passes: list[float] = []
    it.passed(wide, 1)
    it.traced(0)
    for _ in range(rounds):
        for kind, cells in kinds.items():
            passes += map(seconds, one_pass)
            took[kind].append(seconds(lambda cells=cells: it.traced(cells)))
    unit = statistics.median(passes)
    print(f"{it.name}: {len(it.tokens) - 1} tokens, {sum(p.numel() for p in it.model.parameters())} parameters")
    print(f"  one forward and backward pass  {1000 * unit:8.2f} ms   median of {len(passes)}")
    for kind, times in took.items():
        middle = statistics.median(times)
        print(f"  {kind:29}  {1000 * middle:8.2f} ms   {middle / unit:.0f} passes (target {PASSES:g})")


def growth(work: Callable[[], Any]) -> tuple[int, Any]:
    """By how many bytes the resident set grows while ``work`` runs, in a process that has run it before."""
    work()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _status("VmRSS")
    result = work()
    return _status("VmHWM") - before, result


def _status(name: str) -> int:
    """A figure of ``/proc/self/status``, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def beside_the_trace(it: Subject) -> int:
    """Bytes that a full trace needs at its highest, without the arrays that it returns."""
    grown, run = growth(it.traced)
    return grown - sum(array.nbytes for array in run.values.values())


def of_a_step(it: Subject) -> int:
    """Bytes that a training step in float32 needs at its highest: passes of a batch, then AdamW."""
    model = copy.deepcopy(it.model)
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        it.passed(model, it.batch)
        optimizer.step()

    return growth(step)[0]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    subjects = (subject("clinic", 40, 16, 10, 128), subject("plays", 80, 64, 32, 16))
    # First, while nothing has grown this process: a child begins with the memory of its parent.
    memory = [
        [int(in_a_child(lambda it=it, f=f: str(f(it)))) for f in (beside_the_trace, of_a_step)] for it in subjects
    ]
    print(f"load average {os.getloadavg()[0]:.1f}")
    for it, (trace_bytes, step_bytes) in zip(subjects, memory, strict=True):
        compare(it, options.rounds)
        mib = 2.0**20
        print(f"  memory of a training step      {step_bytes / mib:8.1f} MiB  {it.batch} rows")
        print(
            f"  memory beside the trace        {trace_bytes / mib:8.1f} MiB  "
            f"{trace_bytes / step_bytes:.1f} steps (target {STEPS:g})"
        )


if __name__ == "__main__":
    main()
