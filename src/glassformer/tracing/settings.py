"""Changing single parameters before a run is traced."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from ..errors import UserError, did_you_mean
from ..model import Decoder, definitions


def set_cells(model: Decoder, cells: Mapping[str, float]) -> None:
    """Set single cells of ``model``'s parameters, given as ``{"W_Q[1,0]": 0.7}``.

    Raises ``UserError`` for anything that is not one cell of a parameter or not a finite number.
    """
    program = definitions(model.config, 1)
    parameters = dict(model.named_parameters())
    for name, value in cells.items():
        id, face, cell = program.reference(name)
        if id not in parameters or face:
            known = [*dict.fromkeys(p.rpartition(".")[2] for p in parameters), *parameters]
            hint = did_you_mean(name.partition("[")[0], known)
            raise UserError(f'"{name}" is not a parameter.', "Only parameters can be set.", hint)
        if cell is None:
            raise UserError(
                f'"{name}" is a whole tensor.', "One cell is set at a time.", f"Write for example {name}[0,0]=0.5."
            )
        if not math.isfinite(value):
            raise UserError(
                f"{name} cannot be {value}.", "A parameter is a finite number.", "Give a number such as 0.7."
            )
        with torch.no_grad():
            parameters[id][cell] = value
