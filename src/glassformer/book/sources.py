"""The sources that the notes cite."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "R1": "Vaswani et al. (2017), Attention Is All You Need",
        "R2": "Bengio et al. (2003), A Neural Probabilistic Language Model",
        "R3": "Ba, Kiros and Hinton (2016), Layer Normalization",
        "R4": "Su et al. (2021), RoFormer: Enhanced Transformer with Rotary Position Embedding",
        "R5": "Devlin et al. (2019), BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
        "R6": "Press and Wolf (2017), Using the Output Embedding to Improve Language Models",
    }
)
