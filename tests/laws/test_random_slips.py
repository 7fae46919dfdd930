"""A random slip of one token in a correct piece is said by some law, or raises, or is named here with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from slips import caught, slips
from source_mutation import Mutant

COUNT, SEED = 100, 0
QUICK_COUNT = 4
"""Of each kind in a sample that always runs, without those that survive: that takes every law."""

SIGN = "the sign of a matrix that is learned: the same models can be expressed"
SETTING = "a setting: what it is now is what the piece says that it is"
SAME = "the same numbers"

SURVIVING: Mapping[tuple[str, str, str], str] = {
    ("small_decoder.py", "return x + F.dropout(self.down(h), self.config.dropout, self.training), kept",
     "return x - F.dropout(self.down(h), self.config.dropout, self.training), kept"): SIGN,
    ("small_seq2seq.py", "x = self.embed(ids) + self.place(torch.arange(past, total))",
     "x = self.embed(ids) - self.place(torch.arange(past, total))"): "a table of positions that is learned, whatever its sign",
    ("small_trainer.py", "log_p = logits.log_softmax(-1)", "log_p = logits.log_softmax(1)"): f"{SAME}: of two axes",
    ("small_trainer.py", "accumulation: int = 4", "accumulation: int = 5"): SETTING,
    ("small_decoder.py", "eps: float = 1e-5", "eps: float = 1.00001"): SETTING,
    ("small_decoder.py", "pad: int = 0", "pad: int = -1"): SETTING,
    ("small_generator.py", "return accept, (rest / rest.sum().clamp(min=1e-300)).expand(len(p), -1)",
     "return accept, (rest / rest.sum().clamp(min=1e-300)).expand(-1)"): f"{SAME}: one row stands for all",
    ("small_generator.py",
     "mask, positions = torch.cat([mask, torch.ones(b, 1, dtype=torch.int64)], 1), positions[:, -1:] + 1",
     "mask, positions = torch.cat([mask, torch.ones(b, 1)], 1), positions[:, -1:] + 1"): f"{SAME}: ones of another dtype",
    ("small_trainer.py", "for (ids, labels), _count in zip(shards, counts, strict=True):",
     "for (ids, labels), _count in zip(shards, counts, strict=False):"): f"{SAME}: both are as long",
    ("small_trainer.py", "for part, wanted in zip(logits.chunk(ranks, 1), following.chunk(ranks, 1), strict=True):",
     "for part, wanted in zip(logits.chunk(ranks, 1), following.chunk(ranks, 1), strict=False):"): f"{SAME}: as above",
    ("small_sampler.py", "ordered, order = p.sort(descending=True, stable=True)",
     "ordered, order = p.sort(descending=True)"): "which of two equal tokens is kept is stated, not prescribed",
}  # fmt: skip
"""Slips that are no faults."""

UNSEEN: Mapping[tuple[str, str, str], str] = {
    ("small_trainer.py", "summed[name] = summed.get(name, 0) + gradient / len(shards)",
     "summed[name] = summed.get(name, -1) + gradient / len(shards)"):
        "a number added to every gradient, however the batch is cut: a trainer tells gradients, not the loss they are of",
    ("small_seq2seq.py", "return self.o(attend(q, k, v, shown)), (k, v)",
     "return self.k(attend(q, k, v, shown)), (k, v)"):
        "one projection used for two: a model that can be meant; its other matrix is never read",
    ("small_trainer.py", "found.append(rate)", "found.append(steps)"):
        "a rate that is the same at every step is a schedule too; how large it may be, nobody says",
}  # fmt: skip
"""Slips that are faults and that no law sees."""


def survivors(mutants: Sequence[Mutant]) -> set[tuple[str, str, str]]:
    return {mutant.key for mutant in mutants if not caught(mutant)}


FEW = [mutant for mutant in slips(4 * QUICK_COUNT, SEED) if mutant.key not in {**SURVIVING, **UNSEEN}]


@pytest.mark.parametrize("mutant", FEW, ids=lambda mutant: f"{mutant.file}: {mutant.after}")
def test_a_slip_is_said_by_a_law(mutant: Mutant) -> None:
    assert caught(mutant)


@pytest.mark.mutants
def test_of_a_hundred_slips_those_that_survive_are_named() -> None:
    assert survivors(slips(COUNT, SEED)) == set(SURVIVING) | set(UNSEEN)
