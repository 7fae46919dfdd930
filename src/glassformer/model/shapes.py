"""Annotations that name the axes of a tensor: ``Float[Tensor, "b i r"]``, with the letters of each file's legend.

The tests execute them on every call (jaxtyping with beartype), so they cannot rot. An installation without jaxtyping
never evaluates an annotation, and then these names are empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
else:
    try:
        from jaxtyping import Bool, Float, Int
    except ModuleNotFoundError:
        Bool = Float = Int = None

__all__ = ["Bool", "Float", "Int"]
