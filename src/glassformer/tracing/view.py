"""One quantity of a trace: its numbers, its gradient, its formula, and how any of its cells came about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UserError
from ..notation import key
from ..notation.latex import index_latex
from ..notation.matrix import matrix_face
from ..notation.matrix_numbers import number_matrix
from ..notation.symbols import style_of
from .explanation import Explanation, aligned, explain, formulas

if TYPE_CHECKING:
    import torch

    from .trace import Trace

Array = np.ndarray[Any, np.dtype[Any]]


class QuantityView:
    """``trace.quantity("attn.A", layer=0)``: one face of one quantity; indices count from 0.

    ``values`` is the recorded array, with the axes of the quantity (``axes`` names them) and without batch axis. NumPy
    takes the view itself for an array.
    """

    def __init__(self, trace: Trace, id: str, face: str = "") -> None:
        self._trace = trace
        self.id = id
        self.face = face
        self.values: Array = trace.face(id, face)

    @property
    def axes(self) -> tuple[tuple[str, str], ...]:
        """Each axis as (letter, dimension): ``(("h", "H"), ("i", "n"), ("j", "n"))``."""
        return self._trace.program.quantities[self.id].axes

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.values.shape

    @property
    def grad(self) -> QuantityView:
        """The gradient of the loss by this quantity. Raises ``UserError`` where there is none."""
        return self._other("grad")

    @property
    def new(self) -> QuantityView:
        """A parameter after the update. Raises ``UserError`` for anything else."""
        return self._other("new")

    @property
    def after(self) -> QuantityView:
        """The quantity in the forward pass after the update. Raises ``UserError`` where it does not change."""
        return self._other("after")

    def _other(self, face: str) -> QuantityView:
        if self.face:
            raise UserError(
                f"{key(self.id, self.face)} has no {face}.", "", f"Ask the quantity itself: {key(self.id, face)}."
            )
        return QuantityView(self._trace, self.id, face)

    @property
    def formula(self) -> str:
        """Its definition for every cell, as plain text; a gradient has one line per consumer, a given number none."""
        return "\n".join(formulas(self._trace, self._first().statements))

    def _first(self) -> Explanation:
        return explain(self._trace, self.id, self.face, (0,) * len(self.shape))

    def explain(self, *index: int) -> Explanation:
        """How one cell came about. The head may be left out where there is one. Raises ``UserError`` for a wrong cell."""
        text = ",".join(map(str, index))
        _, _, cell = self._trace.program.reference(f"{key(self.id, self.face)}[{text}]")
        assert cell is not None
        return explain(self._trace, self.id, self.face, cell)

    def to_numpy(self) -> Array:
        """A copy of the numbers, to be changed at will."""
        return np.array(self.values)

    def to_torch(self) -> torch.Tensor:
        """A copy of the numbers as a tensor of the same type."""
        import torch

        return torch.from_numpy(self.to_numpy())

    def to_latex(self) -> str:
        r"""Formulas and numbers, for display mode: the matrix form where there is one, the index form, a ``bmatrix``.

        A matrix per head where there are several; of a matrix of more than ten rows or columns the middle is dots.
        """
        program, style = self._trace.program, style_of(self._trace.program)
        lines: list[str] = []
        for statement in self._first().statements:
            face = matrix_face(statement, program)
            lines += [] if face is None else [face.latex(program, style)]
            lines.append(index_latex(statement, program, style))
        plain = [k for k, (_, dim) in enumerate(self.axes) if dim not in ("H", "G")]
        if len(plain) > 2:
            raise UserError(f"{self.id} has too many axes to be written as matrices.", "", "Take to_numpy().")
        heads = [k for k in range(len(self.axes)) if k not in plain]
        for at in np.ndindex(*(self.shape[k] for k in heads)):
            fixed = dict(zip(heads, at, strict=True))
            part = self.values[tuple(fixed.get(k, slice(None)) for k in range(len(self.axes)))]
            head = ",".join(str(h + 1) for h in at) if style.hidden.isdisjoint({self.axes[k][1] for k in heads}) else ""
            lines.append(f"{style.name(self.id, self.face, head)} = {number_matrix(np.asarray(part))}")
        return aligned(lines)

    def __getitem__(self, index: Any) -> Any:
        """``view[0, 1]``: a part of the numbers, as NumPy gives it."""
        return self.values[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    def __repr__(self) -> str:
        quantity = self._trace.program.quantities[self.id].quantity
        axes = ", ".join(f"{letter} of {size}" for (letter, _), size in zip(self.axes, self.shape, strict=True))
        first = [f"{key(self.id, self.face)}  {quantity.en}" + (f"  ({axes})" if axes else "")]
        return "\n".join([*first, *self.formula.splitlines(), str(self.values)])

    def _repr_latex_(self) -> str:
        return f"$$\n{self.to_latex()}\n$$"
