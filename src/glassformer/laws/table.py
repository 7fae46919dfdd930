"""The law table: adding a law means adding a row."""

from __future__ import annotations

from .law import Law
from .probes.cache import CACHE
from .probes.causality import CAUSALITY
from .probes.prefix import PREFIX

LAWS: tuple[Law, ...] = (
    CAUSALITY,
    PREFIX,
    CACHE,
)
