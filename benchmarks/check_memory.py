"""What a check of a model of 100 million parameters takes: memory at its highest, forward passes, time.

The model is a decoder of the size of GPT-2 small (d 768, 12 blocks, 12 heads) with a vocabulary of 16384 at random values,
in float32; the check runs in a child process that has loaded what it needs, as ``glassformer check`` does. Of the highest
resident set (Linux counts it), what importing and the model itself take is printed beside it.

    python benchmarks/check_memory.py [--fast] [--blocks 12] [--vocabulary 16384]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from typing import Any

import torch
from forked import in_a_child

from glassformer.laws import check_subject
from glassformer.laws.subjects.told import subject_of
from glassformer.model import AttentionConfig, Decoder, DecoderConfig, FeedForwardConfig

LIMIT = 4.0
"""GB that the check may take, libraries and model included."""


def decoder(blocks: int, vocabulary: int) -> Decoder:
    """A decoder as wide as GPT-2 small; with 12 blocks and 16384 ids it has 110 million parameters."""
    config = DecoderConfig.alike(
        blocks,
        vocab_size=vocabulary,
        context=512,
        d=768,
        attention=AttentionConfig(heads=12, d_k=64, d_v=64),
        ffn=FeedForwardConfig(d_ff=3072),
    )
    return Decoder(config, torch.Generator().manual_seed(0))


def highest() -> float:
    """The highest resident set of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """One check: GB before and after, passes, seconds, and where it was when the memory last grew by much."""
    imported = highest()
    model = decoder(options.blocks, options.vocabulary)
    built = highest()
    grew: list[tuple[float, str]] = []
    last = ["the start"]

    def watch(probe: str, precision: str) -> None:
        if highest() > (grew[-1][0] if grew else built) + 0.05:
            grew.append((highest(), last[0]))
        last[0] = f"{probe} ({precision})"

    begun, busy = time.monotonic(), time.process_time()
    report = check_subject(subject_of(model), fast=options.fast, only=options.only, watch=watch)
    watch("", "")
    return {
        "parameters": sum(p.numel() for p in model.parameters()), "imported": imported, "built": built,
        "highest": highest(), "seconds": time.monotonic() - begun,
        "processor": time.process_time() - busy, "forwards": report.forwards,
        "violated": [result.probe for result in report.violations], "grew": grew,
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--only", action="append", default=[], metavar="LAW")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--vocabulary", type=int, default=16384)
    options = parser.parse_args()
    answer = in_a_child(lambda: json.dumps(measured(options)))
    if not answer:
        raise SystemExit("The check did not end: there was not enough memory, or it raised.")
    found = json.loads(answer)
    print(f"load average {os.getloadavg()[0]:.1f}")
    print(f"{found['parameters'] / 1e6:.0f} million parameters, {found['forwards']} forward passes")
    print(f"  highest resident set  {found['highest']:5.2f} GB   (limit {LIMIT:g})")
    print(f"  of which imports      {found['imported']:5.2f} GB")
    print(f"  and the model         {found['built'] - found['imported']:5.2f} GB")
    for gigabytes, where in found["grew"]:
        print(f"    {gigabytes:5.2f} GB after {where}")
    print(f"  time                  {found['seconds']:5.0f} s, of the processor {found['processor']:.0f} s")
    print(f"  violated              {', '.join(found['violated']) or 'nothing'}")


if __name__ == "__main__":
    main()
