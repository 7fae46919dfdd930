"""Why each gradient line is right, and what else follows from the definitions: checked derivations.

*Chains* derive gradient lines, one file per part: ``output``, ``attention``, ``grouped``, ``qk_norm``, ``rotary``,
``feedforward``, ``norm``, ``dropout``, ``embedding`` (``steps`` holds the reasons they share).
``derivations(program)`` lists those whose quantities a program has, each at the first place where it fits;
``glassformer.notation.chain`` checks them.

*Lemmas* say what is no gradient line, each with its assumptions: ``softmax`` (ratios and shifts), ``dot_product`` (why
scores are divided by the root of d_k), ``no_leak`` (why nothing leaks round through many layers), ``residual`` (its
derivative), ``order`` (permutations, rotary positions), ``likelihood`` (from the probability of a text to cross-entropy).
They bring small programs of their own; ``glassformer.notation.lemma`` checks them.
"""

from __future__ import annotations

from glassformer.notation import Program
from glassformer.notation.chain import Chain, ChainMisplaced, place_chain
from glassformer.notation.lemma import Lemma

from .attention import ATTENTION_CHAINS
from .dot_product import DOT_PRODUCT_LEMMAS
from .dropout import DROPOUT_CHAINS
from .embedding import EMBEDDING_CHAINS
from .feedforward import FEED_FORWARD_CHAINS
from .grouped import GROUPED_CHAINS
from .likelihood import LIKELIHOOD_LEMMAS
from .no_leak import NO_LEAK_LEMMAS
from .norm import NORM_CHAINS
from .order import ORDER_LEMMAS
from .output import OUTPUT_CHAINS
from .qk_norm import QK_NORM_CHAINS
from .residual import RESIDUAL_LEMMAS
from .rotary import ROTARY_CHAINS
from .softmax import SOFTMAX_LEMMAS

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
"""Every derivation of a gradient, from the loss back to the embedding."""

LEMMAS: tuple[Lemma, ...] = (
    *SOFTMAX_LEMMAS,
    *DOT_PRODUCT_LEMMAS,
    *NO_LEAK_LEMMAS,
    *RESIDUAL_LEMMAS,
    *ORDER_LEMMAS,
    *LIKELIHOOD_LEMMAS,
)
"""Every other statement, in the order of the notes."""


def derivations(program: Program) -> list[Chain]:
    """The chains of which ``program`` has all quantities (a model without biases has no chain for a bias)."""
    return [chain for chain in CHAINS if _fits(chain, program)]


def _fits(chain: Chain, program: Program) -> bool:
    try:
        place_chain(chain, program)
    except ChainMisplaced:
        return False
    return True
