"""The model: its parts, each with the definitions of what it computes and of the gradients it sends back."""

from .block import Block
from .cache import KeyValueCache
from .config import (
    AttentionConfig,
    DecoderConfig,
    DropoutConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerConfig,
    NormConfig,
    PositionConfig,
    read_config,
)
from .decoder import Decoder, Output, definitions
from .initial import initialise
from .toy24 import toy24_inputs, toy24_model

__all__ = [
    "AttentionConfig",
    "Block",
    "Decoder",
    "DecoderConfig",
    "DropoutConfig",
    "FeedForwardConfig",
    "HeadConfig",
    "KeyValueCache",
    "LayerConfig",
    "NormConfig",
    "Output",
    "PositionConfig",
    "definitions",
    "initialise",
    "read_config",
    "toy24_inputs",
    "toy24_model",
]
