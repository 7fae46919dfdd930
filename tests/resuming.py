"""One small run, in a folder: begun, gone on with, finished; what the tests of interruptions repeat."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from glassformer.generation import generate
from glassformer.text import CharacterTokenizer, Corpus
from glassformer.training import RunFolder, TrainingConfig, TrainingState, run
from glassformer.training.runner import Outcome
from learning import tiny_decoder, tokens_of, words_text

STEPS = 12
EVERY_STEP = {"every_seconds": 1e-9, "keep": 2}
"""A checkpoint after each step."""

TIMES = ("elapsed", "tokens_per_second")
"""What no two runs have in common."""


def text_and_tokens() -> tuple[CharacterTokenizer, Corpus]:
    return tokens_of(words_text(150))


def settings(**values: object) -> TrainingConfig:
    """Two parts to a step; checkpoints only at the end and when stopped; the last step and some before are measured."""
    return TrainingConfig.model_validate(
        {
            "steps": STEPS,
            "batch": 3,
            "accumulation": 2,
            "threads": 1,
            "validation": {"times": 3, "prefix": 20},
            "checkpoint": {"every_seconds": 1e9, "keep": 2},
            **values,
        }
    )


def begin(path: Path, config: TrainingConfig | None = None) -> None:
    """Everything before the first step."""
    tokenizer, _ = text_and_tokens()
    with RunFolder.create(path) as folder:
        folder.begin(tiny_decoder(tokenizer.vocab_size), tokenizer, {}, config or settings(), facts={"origin": "words"})


def go_on(path: Path, stop: Callable[[], bool] = lambda: False, *, until_saved: bool = True) -> Outcome:
    """From the last checkpoint to the end, or until stopped; then a sample, and the folder is sealed."""
    resumed = RunFolder.resume(path)
    tokenizer, data = text_and_tokens()
    with resumed.folder as folder:
        outcome = run(resumed.model, data, resumed.training, folder, stop=stop, resumed=resumed.state)
        if until_saved:
            ids = generate(resumed.model, [0], 20, temperature=0.8, seed=resumed.training.seed)
            sample = tokenizer.decode(list(ids))
            folder.save(resumed.model, meta={"steps": outcome.step}, samples=sample, finished=not outcome.stopped)
    return outcome


def result(path: Path) -> dict[str, Any]:
    """All that a run leaves, but for the times: weights, samples, metrics, and the last checkpoint."""
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text("utf-8").splitlines()]
    last = max((path / "checkpoints").glob("step-*"))
    state = json.loads((last / "state.json").read_text("utf-8"))
    return {
        "metrics": [{k: v for k, v in line.items() if k not in TIMES} for line in lines],
        "last": last.name,
        "state": {k: v for k, v in state.items() if k not in ("elapsed", "validating", "longest")},
        **{name: (path / name).read_bytes() for name in ("model.safetensors", "samples.txt", "config.json")},
        **{f"last {name}": (last / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")},
    }


def state_of(path: Path) -> TrainingState:
    """Where the run in ``path`` stands."""
    resumed = RunFolder.resume(path)
    resumed.folder.close()
    return resumed.state
