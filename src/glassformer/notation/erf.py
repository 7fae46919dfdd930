"""The error function, which NumPy lacks.

``math.erf`` of the C library is good to an ulp; a call per cell is fast enough for the sizes that anybody looks at.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_EACH = np.frompyfunc(math.erf, 1, 1)


def erf(x: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
    """``erf`` of every cell, as float64."""
    return np.asarray(_EACH(x), dtype=np.float64)
