"""The annotations of the package, executed: every call of an annotated function is checked while the tests run.

`--jaxtyping-packages=glassformer.model,...,executed_types.checked` (Makefile) has jaxtyping rewrite these packages as they
are imported: axes named alike in one call must have one size, and beartype checks everything else.
"""

from __future__ import annotations

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # where a float is asked for, an int will do (PEP 484)
