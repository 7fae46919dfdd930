"""The law table: adding a law means adding a row."""

from __future__ import annotations

from .law import Law
from .probes.cache import CACHE
from .probes.cache_algebra import CACHE_ALGEBRA
from .probes.causality import CAUSALITY
from .probes.chat_ids import CHAT_IDS
from .probes.control_tokens import CONTROL_TOKENS
from .probes.data import DATA
from .probes.generate import GENERATE
from .probes.prefix import PREFIX
from .probes.resume import RESUME
from .probes.rows import ROWS
from .probes.rules import RULES
from .probes.score import SCORE
from .probes.speculative import SPECULATIVE
from .probes.tokenizer import TOKENIZER

LAWS: tuple[Law, ...] = (
    CAUSALITY,
    PREFIX,
    CACHE,
    CACHE_ALGEBRA,
    GENERATE,
    SCORE,
    RULES,
    ROWS,
    SPECULATIVE,
    TOKENIZER,
    CONTROL_TOKENS,
    CHAT_IDS,
    DATA,
    RESUME,
)
