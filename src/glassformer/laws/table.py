"""The law table: adding a law means adding a row."""

from __future__ import annotations

from .law import Law
from .probes.batch import BATCH
from .probes.cache import CACHE
from .probes.causality import CAUSALITY
from .probes.cross_attention import CROSS_ATTENTION
from .probes.determinism import DETERMINISM
from .probes.flags import FLAGS
from .probes.masked_rows import MASKED_ROWS
from .probes.packing import PACKING
from .probes.padding import PADDING
from .probes.positions import POSITIONS
from .probes.prefix import PREFIX
from .probes.window import WINDOW

LAWS: tuple[Law, ...] = (
    CAUSALITY,
    PREFIX,
    PADDING,
    BATCH,
    PACKING,
    POSITIONS,
    FLAGS,
    DETERMINISM,
    MASKED_ROWS,
    CROSS_ATTENTION,
    WINDOW,
    CACHE,
)
