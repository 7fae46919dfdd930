"""A trained run of ours as subjects: its model, its tokenizer, and the loop, rules and data files that serve it."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...generation import Continuation, Request, Rule, StopStrings, draw, next_probabilities, uniform
from ...generation.continuation import Vocabulary
from ...model import Decoder
from ...text.batches import TokenStream
from ...text.shards import DTYPES, CorpusWriter, ShardedIds, StreamWriter
from ...text.tokenizer import Tokenizer
from ...text.tokens import Specials
from .data import Loader
from .decoding import Generator, Written
from .own import DecoderSubject
from .sampling import Sampler
from .text import tokenizer_subject

SHARD = 64
"""Ids to a shard: few, so that what is kept is cut somewhere."""


def run_subjects(model: Decoder, tokenizer: Tokenizer, name: str) -> tuple[Any, ...]:
    """All that can be checked of a run called ``name``: the model first, then what belongs to it."""
    return (
        DecoderSubject(model, name),
        tokenizer_subject(tokenizer, name),
        loop_subject(model, tokenizer, name),
        rules_subject(name),
        loader_subject(name),
    )


class _Ending:
    """A vocabulary in which another token, or none, ends a text."""

    def __init__(self, vocabulary: Vocabulary, end: int | None) -> None:
        self.specials: Specials = vocabulary.specials._replace(end=end)
        self._vocabulary = vocabulary

    def bytes_of(self, id: int) -> bytes:
        """The bytes of a token."""
        return self._vocabulary.bytes_of(id)


def loop_subject(model: Decoder, vocabulary: Vocabulary, name: str, *, of_rule: bool = False) -> Generator:
    """The loop of ``glassformer generate``; scores are the model's, or with ``of_rule`` what the rule made of them."""
    specials = vocabulary.specials

    def generate(
        prompts: Sequence[Sequence[int]], *, count: int, temperature: float = 0.0, seed: int = 0, end: int | None = None
    ) -> list[Written]:
        rows = []
        for prompt in prompts:
            text = Continuation(model, _Ending(vocabulary, end), prompt, Request(count, Rule(temperature), seed))
            list(text)
            chosen = [choice for choice in text.choices if choice.token != end]
            p = [choice.probability if of_rule else choice.model_probability for choice in chosen]
            rows.append(Written(ids=[choice.token for choice in chosen], score=sum(map(math.log, p))))
        return rows

    return Generator(
        name=name, generate=generate, forward=lambda ids: in_windows(model, ids), vocab_size=model.config.vocab_size,
        special=frozenset(id for id in specials if id is not None), never=frozenset(specials.unwritten),
        scores_of_rule=of_rule, stopped=_stopped,
    )  # fmt: skip


def in_windows(model: Decoder, ids: Tensor) -> Tensor:
    """``(n, N)``: logits at every position of ``ids (n,)``, where a text outgrows the context those of its last window."""
    n = model.config.context
    later = (model(ids[None, at + 1 - n : at + 1]).logits[0, -1:] for at in range(n, len(ids)))
    return torch.cat([model(ids[None, :n]).logits[0], *later])


def _stopped(parts: Sequence[str], stop: str) -> str:
    strings = StopStrings([stop])
    return "".join([*(strings.feed(part) for part in parts), strings.end()])


def rules_subject(name: str) -> Sampler:
    """Our rules of decoding, in their documented order."""

    def distribution(
        logits: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0
    ) -> Tensor:
        return next_probabilities(logits, Rule(temperature, top_k, top_p))

    def drawn(
        logits: Tensor, *, count: int, seed: int, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0
    ) -> list[int]:
        rule, generator = Rule(temperature, top_k, top_p), torch.Generator().manual_seed(seed)
        p = next_probabilities(logits, rule)
        return [draw(p, uniform(rule, generator)) for _ in range(count)]

    return Sampler(name=name, distribution=distribution, draw=drawn, order=("temperature", "top_k", "top_p"))


def loader_subject(name: str) -> Loader:
    """Our data files, and the windows in which a text is measured. Training draws windows with replacement: no epochs."""
    return Loader(name=name, kept=through_files, scored=scored)


def through_files(ids: NDArray[np.int64], vocab_size: int) -> NDArray[Any]:
    """``ids (n,)`` written into shards, and read back."""
    dtype = next(name for name in DTYPES if vocab_size - 1 <= np.iinfo(name).max)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "corpus"
        with CorpusWriter(folder) as writer:
            stream = StreamWriter(writer, "train", dtype, shard=SHARD)
            stream.begin_document()
            stream.append(ids)
            shards = stream.finish()["shards"]
        return ShardedIds([np.fromfile(folder / shard, DTYPES[dtype]) for shard in shards])[0 : len(ids)]


def scored(m: int, n: int) -> list[int]:
    """Places of the tokens that one pass over ``m`` of them predicts: tokens are their own places."""
    stream = TokenStream(np.arange(m), np.zeros(1, dtype=np.int64))
    return [int(place) for batch in stream.validation_windows(n, 2) for place in batch.targets[batch.scored]]
