"""What can be found out about a module that says nothing of itself: vocabulary, context, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from ...errors import UserError
from .base import Facts, settings_of

CONTEXT = ("block_size", "context_length", "context_size", "context", "ctx_len", "n_positions", "n_ctx", "max_seq_len",
           "max_position_embeddings", "seq_len", "max_len", "max_length")  # fmt: skip
VOCABULARY = ("vocab_size", "n_vocab", "vocabulary_size", "num_tokens", "n_tokens")
CONFIGS = ("config", "cfg", "args", "params", "hparams")
PAD = ("pad_token_id", "pad_id", "pad_idx", "padding_idx", "pad")


def config_of(module: nn.Module) -> Any:
    """The configuration a module carries, an object or a mapping; None where it has none."""
    return next((c for name in CONFIGS if (c := getattr(module, name, None)) is not None), None)


def found_facts(module: nn.Module, vocab_size: int | None = None, context: int | None = None, **settings: Any) -> Facts:
    """Vocabulary and context as told, or as the module, its config or its tables say. Raises ``UserError``."""
    config = config_of(module)
    if vocab_size is None:
        vocab_size = _read(module, config, VOCABULARY) or _table(module)
    if vocab_size is None:
        raise UserError(
            f"The vocabulary of {type(module).__name__} was not found.",
            "It has no vocab_size and no embedding table.",
            "Say it: vocab_size=... (on the command line --vocab-size).",
        )
    pad = _read(module, config, PAD, least=0)
    pad = pad if pad is not None and pad < vocab_size else None
    return Facts(
        vocab_size=vocab_size,
        context=context or _read(module, config, CONTEXT) or _places(module),
        pad=pad,
        special=frozenset() if pad is None else frozenset({pad}),
        settings=(settings_of(config) if config is not None else {}) | settings,
    )


def _read(module: nn.Module, config: Any, names: Sequence[str], least: int = 1) -> int | None:
    for holder in (config, module):
        for name in names:
            value = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value >= least:
                return value
    return None


def _table(module: nn.Module) -> int | None:
    """The rows of an embedding that some linear layer gives as many numbers as; else of the largest table."""
    tables = [part.num_embeddings for part in module.modules() if isinstance(part, nn.Embedding | nn.EmbeddingBag)]
    heads = {part.out_features for part in module.modules() if isinstance(part, nn.Linear)}
    return next((rows for rows in tables if rows in heads), max(tables, default=None))


def _places(module: nn.Module) -> int | None:
    """The rows of what is called a position, and the side of a square mask: no text is longer."""
    found: list[int] = []
    for name, part in module.named_modules():
        if isinstance(part, nn.Embedding) and _positional(name):
            found.append(part.num_embeddings)
    tensors: list[tuple[str, Tensor]] = [*module.named_parameters(), *module.named_buffers()]
    for name, tensor in tensors:
        owner, _, last = name.rpartition(".")
        if _positional(last) and 2 <= tensor.ndim <= 3 and last != "weight":
            found.append(max(tensor.shape[:-1]))
        elif last in ("mask", "tril", "causal_mask", "bias") and tensor.ndim >= 2 and _square(tensor) and owner:
            found.append(tensor.shape[-1])
    return min(found, default=None)


def _positional(name: str) -> bool:
    last = name.rpartition(".")[2].lower()
    return "pos" in last or last in ("wpe", "pe")


def _square(tensor: Tensor) -> bool:
    return tensor.shape[-1] == tensor.shape[-2] and max(tensor.shape[:-2], default=1) == 1
