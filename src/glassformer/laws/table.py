"""The law table: adding a law means adding a row."""

from __future__ import annotations

from .law import Law
from .probes.accumulation import ACCUMULATION
from .probes.alignment import ALIGNMENT
from .probes.arguments import ARGUMENTS
from .probes.auxiliary import AUXILIARY
from .probes.cache import CACHE
from .probes.causality import CAUSALITY
from .probes.clip import CLIP
from .probes.distribution import DISTRIBUTION
from .probes.gradient import GRADIENT
from .probes.heads import HEADS
from .probes.initial_loss import INITIAL_LOSS
from .probes.loading import LOADING
from .probes.locality import LOCALITY
from .probes.loss_mask import LOSS_MASK
from .probes.norm import NORM
from .probes.precision import PRECISION
from .probes.prefix import PREFIX
from .probes.recompute import RECOMPUTE
from .probes.step import STEP
from .probes.tied import TIED

LAWS: tuple[Law, ...] = (
    CAUSALITY,
    PREFIX,
    DISTRIBUTION,
    NORM,
    HEADS,
    PRECISION,
    INITIAL_LOSS,
    CACHE,
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
    LOADING,
    ARGUMENTS,
)
