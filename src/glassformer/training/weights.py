"""Tensors as bytes and back: the safetensors format, nothing that executes, nothing taken on trust."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from ..model import Decoder


def tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """``tensors`` by name as the content of a ``.safetensors`` file."""
    return safetensors.torch.save({k: x.detach().cpu().contiguous() for k, x in tensors.items()}, {"format": "pt"})


def weight_bytes(model: Decoder) -> bytes:
    """The parameters of ``model`` under their ids."""
    return tensor_bytes(dict(model.named_parameters()))


def read_tensors(content: bytes) -> dict[str, Tensor]:
    """What ``tensor_bytes`` wrote. Raises ``ValueError`` for anything else."""
    try:
        return safetensors.torch.load(content)
    except (SafetensorError, ValueError, KeyError) as problem:
        raise ValueError(f"it is not a safetensors file: {problem}") from problem


def fill(model: Decoder, content: bytes) -> None:
    """Give ``model`` the parameters that ``weight_bytes`` wrote.

    Raises ``ValueError``, nothing changed, unless each parameter is there in its shape and precision, every number finite.
    """
    tensors = read_tensors(content)
    own = dict(model.named_parameters())
    for id in sorted(own.keys() | tensors.keys()):
        if id not in tensors:
            raise ValueError(f"{id} is missing")
        if id not in own:
            raise ValueError(f"{id} is no parameter of this model")
        found, wanted = tensors[id], own[id]
        if found.shape != wanted.shape:
            raise ValueError(f"{id} has shape {tuple(found.shape)}, {tuple(wanted.shape)} in the model")
        if found.dtype != wanted.dtype:
            raise ValueError(f"{id} is {found.dtype}, {wanted.dtype} in the model")
        if not bool(torch.isfinite(found).all()):
            raise ValueError(
                f"{id} has {int((~torch.isfinite(found)).sum())} numbers that are infinite or not a number"
            )
    with torch.no_grad():
        for id, parameter in own.items():
            parameter.copy_(tensors[id])


def fingerprint(content: bytes) -> dict[str, Any]:
    """Size and SHA-256: what a manifest says about a file."""
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
