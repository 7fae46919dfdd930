"""Why each gradient line is right: derivations of the model's definitions as checked chains.

One file per part, beside the definitions they explain. ``derivations(program)`` lists those whose quantities a program
has, at the first block; ``glassformer.notation.chain`` checks them.
"""

from __future__ import annotations

from glassformer.notation import Program
from glassformer.notation.chain import Chain, ChainMisplaced, place_chain

from .attention import ATTENTION_CHAINS
from .dropout import DROPOUT_CHAINS
from .embedding import EMBEDDING_CHAINS
from .feedforward import FEED_FORWARD_CHAINS
from .grouped import GROUPED_CHAINS
from .norm import NORM_CHAINS
from .output import OUTPUT_CHAINS
from .qk_norm import QK_NORM_CHAINS
from .rotary import ROTARY_CHAINS

CHAINS: tuple[Chain, ...] = (
    *OUTPUT_CHAINS,
    *ATTENTION_CHAINS,
    *GROUPED_CHAINS,
    *QK_NORM_CHAINS,
    *ROTARY_CHAINS,
    *FEED_FORWARD_CHAINS,
    *NORM_CHAINS,
    *DROPOUT_CHAINS,
    *EMBEDDING_CHAINS,
)
"""Every derivation, from the loss back to the embedding."""


def derivations(program: Program) -> list[Chain]:
    """The chains of which ``program`` has all quantities (a model without biases has no chain for a bias)."""
    return [chain for chain in CHAINS if _fits(chain, program)]


def _fits(chain: Chain, program: Program) -> bool:
    try:
        place_chain(chain, program)
    except ChainMisplaced:
        return False
    return True
