"""What cannot be traced, said before anything is computed: the model that runs must be the one that is looked at.

A trace copies the model and runs it cell by cell in float64. A compiled model runs other code, a sharded one holds only
a part of its cells, activation checkpointing runs parts twice, and a number that is not finite explains nothing after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from ..errors import UserError
from ..model import Decoder, definitions
from ..notation import Kind, Program, key
from ..notation.numerals import number_text

Array = np.ndarray[Any, np.dtype[Any]]

_COMPILED = "_orig_mod"
_CHECKPOINTED = "_checkpoint_wrapped_module"


def require_traceable(model: Any) -> None:
    """Refuse what is not a plain decoder in memory with finite parameters. Raises ``UserError``."""
    for name, module in model.named_modules() if isinstance(model, nn.Module) else ():
        _require_plain(name or "The model", module)
    if not isinstance(model, Decoder):
        raise UserError(
            f"A {type(model).__name__} cannot be traced.",
            "Only a glassformer decoder says every quantity it computes.",
            "Give a Decoder, the one inside a wrapper, or a run: glassformer.load_run(PATH).",
        )
    parameters = dict(model.named_parameters())
    program = definitions(model.config, 1)
    wanted = {id for id, placed in program.quantities.items() if placed.quantity.kind is Kind.PARAMETER}
    if different := sorted(wanted ^ set(parameters)):
        raise UserError(
            f"{different[0]} is {'missing' if different[0] in wanted else 'not a parameter of this decoder'}.",
            "A trace explains exactly the parameters that the model's config names.",
            "Take off what was added to the model or wrapped around its parts.",
        )
    for id, parameter in parameters.items():
        _require_numbers(id, parameter)


def _require_plain(name: str, module: nn.Module) -> None:
    """Refuse a module that is compiled, or that runs other code than its class says."""
    parts = dict(module.named_children())
    if _COMPILED in parts or module._compiled_call_impl is not None:
        raise UserError(
            f"{name} is compiled.",
            "A compiled model runs other code than the one that says its quantities.",
            "Trace the model that was given to torch.compile; after model.compile(), trace copy.deepcopy(model).",
        )
    if _CHECKPOINTED in parts or "forward" in vars(module):
        raise _recomputed(f"The forward pass of {name} was replaced.")


def _require_numbers(id: str, parameter: nn.Parameter) -> None:
    """Refuse a parameter whose cells are not all here, or not all finite."""
    kind = type(parameter.data)
    if kind is not torch.Tensor:
        raise UserError(
            f"{id} is a {kind.__name__}.",
            "The cells of a sharded or quantized tensor are not all here as numbers.",
            "Gather the parameters into an ordinary Decoder (of a DTensor: full_tensor()), and trace that.",
        )
    if parameter.is_meta:
        raise UserError(
            f"{id} is on the meta device.", "It has a shape and no numbers.", "Load the weights before tracing."
        )
    found = first_not_finite(parameter.detach().cpu().double().numpy())
    if found is not None:
        cell, value = found
        raise UserError(
            f"{at(id, cell)} is {number_text(value)}.",
            f"{id} is the first parameter that is not finite; everything computed from it would be without meaning.",
            "Go back to a checkpoint before the training diverged.",
        )


def require_finite(program: Program, values: Mapping[str, Array]) -> None:
    """Refuse a run of finite parameters that leaves float64 on the way. Raises ``UserError`` naming where it first does.

    Minus infinity is what a masked score is; forward it means nothing else, because only infinity can come of it.
    """
    order = [(s.target, "") for s in program.forward]
    order += dict.fromkeys((s.target, "grad") for s in program.backward)
    for id, face in order:
        found = first_not_finite(values[key(id, face)], masked=not face)
        if found is not None:
            cell, value = found
            raise UserError(
                f"{at(key(id, face), cell)} is {number_text(value)}.",
                f"Every parameter is finite; {key(id, face)} is the first quantity of the run that is not.",
                "Its operands are too large for float64: make the parameters smaller.",
            )


def first_not_finite(array: Array, *, masked: bool = False) -> tuple[tuple[int, ...], float] | None:
    """The first cell of ``array`` that is not finite, with its value; where ``masked``, minus infinity counts as finite."""
    bad = ~np.isfinite(array)
    if masked:
        bad &= ~np.isneginf(array)
    if not bad.any():
        return None
    cell = tuple(int(at) for at in np.argwhere(bad)[0])
    return cell, float(array[cell])


def at(name: str, cell: tuple[int, ...]) -> str:
    """A cell as Python writes it: ``W_Q[0,1]``."""
    return name + (f"[{','.join(map(str, cell))}]" if cell else "")


def _recomputed(fact: str) -> UserError:
    return UserError(
        fact,
        "With activation checkpointing parts of the forward pass run again for the gradients, unseen.",
        "Trace the model without it.",
    )


def said_again(what: object) -> UserError:
    """What to say when a quantity is said while gradients are being computed."""
    return _recomputed(f"While gradients were computed, {what}.")
