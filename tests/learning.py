"""Small models and texts for the tests of training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from glassformer.model import Decoder, read_config
from glassformer.text import CharacterTokenizer, Corpus, split
from glassformer.training import RunFolder, TrainingConfig

WORDS = ("abc ", "bca ", "cab ")
"""After a letter alone the next is uncertain only at a space; after two tokens it is known inside a word."""


def tiny_decoder(vocab_size: int, *, context: int = 8, d: int = 16, seed: int = 0) -> Decoder:
    """One block, two heads."""
    config = read_config(
        {
            "vocab_size": vocab_size,
            "context": context,
            "d": d,
            "layers": [{"attention": {"heads": 2, "d_k": d // 2, "d_v": d // 2}, "ffn": {"d_ff": 2 * d}}],
        }
    )
    return Decoder(config, torch.Generator().manual_seed(seed))


def words_text(count: int, seed: int = 0) -> str:
    """``count`` words drawn from ``WORDS``: the letter after "a" depends on what stood before it."""
    return "".join(np.random.default_rng(seed).choice(WORDS, count))


def tokens_of(text: str) -> tuple[CharacterTokenizer, Corpus]:
    """Tokenizer and split of ``text``."""
    tokenizer = CharacterTokenizer.of_text(text)
    return tokenizer, split(tokenizer.ids(text))


def save_run(path: Path, model: Decoder, tokenizer: CharacterTokenizer) -> None:
    """A finished run of ``model``, which nobody trained."""
    with RunFolder.create(path) as folder:
        folder.begin(model, tokenizer, {}, TrainingConfig(steps=1), facts={})
        folder.save(model, meta={}, samples="")
