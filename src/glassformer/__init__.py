"""glassformer: a Transformer you can see through.

    import glassformer
    run = glassformer.trace_toy24()
    run["W_Q.grad"]

Importing the package is light: each public name is fetched from its home when it is first used, so that nothing loads
torch before something needs it. ``PUBLIC`` is the whole table.
"""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import UserError
    from .generation import generate
    from .model import (
        AttentionConfig,
        Decoder,
        DecoderConfig,
        DropoutConfig,
        FeedForwardConfig,
        HeadConfig,
        LayerConfig,
        NormConfig,
        PositionConfig,
        definitions,
    )
    from .tracing import (
        SGD,
        AdamW,
        ToySettings,
        Trace,
        load_trace,
        save_trace,
        trace,
        trace_run,
        trace_toy24,
        train,
    )
    from .training import TrainingConfig, load_run

__version__ = "0.1.0"

__all__ = [
    "SGD",
    "AdamW",
    "AttentionConfig",
    "Decoder",
    "DecoderConfig",
    "DropoutConfig",
    "FeedForwardConfig",
    "HeadConfig",
    "LayerConfig",
    "NormConfig",
    "PositionConfig",
    "ToySettings",
    "Trace",
    "TrainingConfig",
    "UserError",
    "definitions",
    "generate",
    "load_run",
    "load_trace",
    "save_trace",
    "trace",
    "trace_run",
    "trace_toy24",
    "train",
]

PUBLIC = MappingProxyType(
    {
        "SGD": "tracing",
        "AdamW": "tracing",
        "AttentionConfig": "model",
        "Decoder": "model",
        "DecoderConfig": "model",
        "DropoutConfig": "model",
        "FeedForwardConfig": "model",
        "HeadConfig": "model",
        "LayerConfig": "model",
        "NormConfig": "model",
        "PositionConfig": "model",
        "ToySettings": "tracing",
        "Trace": "tracing",
        "TrainingConfig": "training",
        "UserError": "errors",
        "definitions": "model",
        "generate": "generation",
        "load_run": "training",
        "load_trace": "tracing",
        "save_trace": "tracing",
        "trace": "tracing",
        "trace_run": "tracing",
        "trace_toy24": "tracing",
        "train": "tracing",
    }
)
"""The home of each public name: a module or package below ``glassformer``."""


def __getattr__(name: str) -> object:
    """Fetch a public name from its home; raises ``AttributeError`` for any other."""
    if name not in PUBLIC:
        raise AttributeError(f"module 'glassformer' has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(importlib.import_module(f".{PUBLIC[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
