"""The decoding loops that models bring along: ``generate`` as in ``transformers``, and as in nanoGPT and minGPT."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..verdict import NotSupported
from .base import Continued


def continued(module: nn.Module, ids: Tensor, count: int, mask: Tensor | None) -> Continued:
    """``ids (b, n)`` and ``count`` more by ``module.generate``, greedily; raises ``NotSupported`` where it cannot be asked."""
    generate = getattr(module, "generate", None)
    if not callable(generate):
        raise NotSupported("the model brings no decoding loop along", "模型没有自带解码循环")
    names = inspect.signature(generate).parameters
    if "generation_config" in names and getattr(module, "generation_config", None) is not None:
        return _by_config(module, generate, ids, count, mask)
    if "max_new_tokens" not in names:
        raise NotSupported("generate does not take max_new_tokens", "generate 不接受 max_new_tokens")
    return _by_arguments(generate, frozenset(names), ids, count, mask)


def _by_config(
    module: nn.Module, generate: Callable[..., Any], ids: Tensor, count: int, mask: Tensor | None
) -> Continued:
    reads_source = bool(getattr(getattr(module, "config", None), "is_encoder_decoder", False))
    if reads_source and mask is not None:
        raise NotSupported("prompts of an encoder are padded by another law", "编码器提示的填充由另一定律检验")
    with _plain_config(module, count):
        made = generate(ids, attention_mask=torch.ones_like(ids) if mask is None else mask)
    logits = torch.stack(list(made.logits), 1) if made.logits is not None else None
    start = made.sequences.shape[1] - count
    if made.sequences.shape[0] != ids.shape[0] or start < 1:
        raise NotSupported(
            f"generate wrote {tuple(made.sequences.shape)}", f"generate 写出 {tuple(made.sequences.shape)}"
        )
    return Continued(
        ids=made.sequences,
        start=start,
        logits=logits,
        source=ids if reads_source else None,
        forwards=count + reads_source,
    )


@contextmanager
def _plain_config(module: Any, count: int) -> Iterator[None]:
    """In the place of the model's own generation config one that is greedy, never ends, and changes no logits."""
    kept = module.generation_config
    named = ("bos_token_id", "decoder_start_token_id", "pad_token_id")
    ids = {name: value for name in named if (value := getattr(kept, name, None)) is not None}
    module.generation_config = type(kept)(
        **{"pad_token_id": 0, **ids}, max_new_tokens=count, do_sample=False, num_beams=1, use_cache=True,
        output_logits=True, return_dict_in_generate=True,
    )  # fmt: skip
    try:
        yield
    finally:
        module.generation_config = kept


def brought(module: nn.Module) -> bool:
    """Whether ``module`` brings a loop along."""
    return callable(getattr(module, "generate", None))


def greedily(module: nn.Module, count: int) -> dict[str, Any]:
    """The arguments that make ``module.generate`` write ``count`` ids greedily, for a program."""
    names = inspect.signature(module.generate).parameters  # pyright: ignore[reportArgumentType]
    if "generation_config" in names:
        return {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False, "num_beams": 1}
    return _greedy(frozenset(names), count)


def _greedy(names: frozenset[str], count: int) -> dict[str, Any]:
    """What a loop of its own arguments is told. Raises ``NotSupported`` where it cannot be told to be greedy."""
    if "do_sample" in names:
        return {"max_new_tokens": count, "do_sample": False}
    if "top_k" in names:
        return {"max_new_tokens": count, "top_k": 1}
    raise NotSupported("generate cannot be told to be greedy", "无法要求 generate 贪心")


def _by_arguments(
    generate: Callable[..., Any], names: frozenset[str], ids: Tensor, count: int, mask: Tensor | None
) -> Continued:
    settings = _greedy(names, count)
    if mask is not None:
        if "attention_mask" not in names:
            raise NotSupported("generate takes no mask", "generate 不接受掩码")
        settings["attention_mask"] = mask
    made = generate(ids.clone(), **settings)
    if not isinstance(made, Tensor) or made.shape != (ids.shape[0], ids.shape[1] + count):
        raise NotSupported("generate returned something else than ids", "generate 返回的不是编号")
    if not torch.equal(made[:, : ids.shape[1]], ids):
        raise NotSupported("what generate returned does not begin with the prompt", "generate 的返回不以提示开头")
    return Continued(ids=made, start=ids.shape[1], forwards=count)
