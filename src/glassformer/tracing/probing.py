"""A trace with what the probes find in its model and text."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..errors import UserError
from ..model import Decoder
from ..notation import Program
from .probes import Aim, Report, reading_of, standard_reports
from .request import Text

if TYPE_CHECKING:
    from .probes.report import Provenance

Array = np.ndarray[Any, np.dtype[Any]]


def probed(
    model: Decoder, program: Program, values: Mapping[str, Array], text: Text, layer: int = -1
) -> tuple[Report, ...]:
    """The standard probes of ``model`` at what a trace with ``program`` and ``values`` read.

    They explain the last scored row and its target, in ``layer`` (the last). Raises ``UserError`` where ``model`` is not
    the one that was traced, and for a step of training with dropout or a row of several texts, which probes do not read.
    """
    parameters = {name: p.detach().double().cpu().numpy() for name, p in model.named_parameters()}
    if not all(name in values and np.array_equal(values[name], p) for name, p in parameters.items()):
        raise UserError(
            "This is not the model that was traced.",
            "Its parameters are others.",
            "Probe the model of the trace, before it is trained on.",
        )
    if any(program.quantities[id].quantity.name.startswith("kept_") for id in program.quantities):
        raise UserError(
            "A step of training with dropout has no probes.",
            "They run the model again, without masks.",
            "Trace it without dropout.",
        )
    if "embed.seg" in program.quantities:
        raise UserError(
            "A row of several texts has no probes.", "They read one text.", "Trace one of the texts without segments."
        )
    row = int(np.flatnonzero(values["loss.scored"])[-1])
    tokens = [int(token) for token in values["embed.t"]]
    whence = cast("Provenance", text.provenance)
    reading = reading_of(copy.deepcopy(model).cpu(), tokens, text.vocabulary, whence)
    return standard_reports(reading, Aim(row, int(values["loss.y"][row])), layer)
