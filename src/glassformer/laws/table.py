"""The law table: adding a law means adding a row."""

from __future__ import annotations

from .law import Law
from .probes.accumulation import ACCUMULATION
from .probes.alignment import ALIGNMENT
from .probes.arguments import ARGUMENTS
from .probes.auxiliary import AUXILIARY
from .probes.batch import BATCH
from .probes.cache import CACHE
from .probes.cache_algebra import CACHE_ALGEBRA
from .probes.causality import CAUSALITY
from .probes.chat_ids import CHAT_IDS
from .probes.clip import CLIP
from .probes.control_tokens import CONTROL_TOKENS
from .probes.cross_attention import CROSS_ATTENTION
from .probes.data import DATA
from .probes.determinism import DETERMINISM
from .probes.distribution import DISTRIBUTION
from .probes.flags import FLAGS
from .probes.generate import GENERATE
from .probes.gradient import GRADIENT
from .probes.heads import HEADS
from .probes.initial_loss import INITIAL_LOSS
from .probes.loading import LOADING
from .probes.locality import LOCALITY
from .probes.loss_mask import LOSS_MASK
from .probes.masked_rows import MASKED_ROWS
from .probes.norm import NORM
from .probes.packing import PACKING
from .probes.padding import PADDING
from .probes.positions import POSITIONS
from .probes.precision import PRECISION
from .probes.prefix import PREFIX
from .probes.recompute import RECOMPUTE
from .probes.resume import RESUME
from .probes.rows import ROWS
from .probes.rules import RULES
from .probes.score import SCORE
from .probes.speculative import SPECULATIVE
from .probes.step import STEP
from .probes.tied import TIED
from .probes.tokenizer import TOKENIZER
from .probes.window import WINDOW

LAWS: tuple[Law, ...] = (
    CAUSALITY,
    PREFIX,
    DISTRIBUTION,
    PADDING,
    BATCH,
    PACKING,
    POSITIONS,
    NORM,
    HEADS,
    FLAGS,
    DETERMINISM,
    MASKED_ROWS,
    CROSS_ATTENTION,
    WINDOW,
    PRECISION,
    INITIAL_LOSS,
    CACHE,
    CACHE_ALGEBRA,
    GENERATE,
    SCORE,
    RULES,
    ROWS,
    SPECULATIVE,
    ALIGNMENT,
    LOSS_MASK,
    ACCUMULATION,
    GRADIENT,
    LOCALITY,
    TIED,
    CLIP,
    STEP,
    RECOMPUTE,
    AUXILIARY,
    TOKENIZER,
    CONTROL_TOKENS,
    CHAT_IDS,
    DATA,
    LOADING,
    RESUME,
    ARGUMENTS,
)
