"""A batch and a probe refuse the models that a trace refuses, with the same words."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from glassformer.errors import UserError
from glassformer.model import Decoder, toy24_model
from glassformer.tracing import trace, update_batch
from glassformer.tracing.probes import gradient_norms, reading_of

Door = Callable[[Any], Any]

DOORS: dict[str, Door] = {
    "trace": lambda model: trace(model, [0, 1], target=2, witness_cells=0),
    "update_batch": lambda model: update_batch(model, [[0, 1], [1, 1]], [[1, 2], [1, 1]]),
    "reading_of": lambda model: gradient_norms(reading_of(model, [0, 1, 2])),
}


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Door:
    return DOORS[request.param]


def with_number(value: float) -> Decoder:
    model = toy24_model()
    with torch.no_grad():
        model.get_parameter("head.U")[0, 1] = value
    return model


def compiled_part() -> Decoder:
    model = toy24_model()
    model.blocks[0] = cast(torch.nn.Module, torch.compile(model.blocks[0], backend="eager"))
    return model


def with_replaced_forward() -> Decoder:
    model = toy24_model()
    model.blocks[0].forward = functools.partial(checkpoint, model.blocks[0].forward, use_reentrant=False)
    return model


def with_more() -> Decoder:
    model = toy24_model()
    model.register_parameter("extra", torch.nn.Parameter(torch.zeros(1)))
    return model


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (lambda: with_number(math.nan), r"head\.U\[0,1\] is NaN"),
        (lambda: with_number(math.inf), r"head\.U\[0,1\] is"),
        (lambda: torch.compile(toy24_model(), backend="eager"), r"is compiled"),
        (compiled_part, r"is compiled"),
        (with_replaced_forward, r"forward pass of blocks\.0 was replaced"),
        (with_more, "extra is not a parameter of this decoder"),
        (lambda: toy24_model().to("meta"), "meta device"),
        (lambda: torch.nn.Linear(2, 2), "A Linear cannot be traced"),
    ],
)
def test_what_cannot_be_traced_is_refused_everywhere(door: Door, make: Callable[[], Any], fact: str) -> None:
    with pytest.raises(UserError, match=fact):
        door(make())


@pytest.mark.parametrize("reentrant", [False, True])
def test_hidden_activation_checkpointing_is_refused_everywhere(
    door: Door, reentrant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from glassformer.model import block

    own = block.Block.forward

    def twice(self: Any, *arguments: Any) -> Any:
        return checkpoint(own, self, *arguments, use_reentrant=reentrant)

    monkeypatch.setattr(block.Block, "forward", twice)
    with pytest.raises(UserError, match=r"said twice.*activation checkpointing"):
        door(toy24_model())


def test_sharded_tensors_are_refused_everywhere(door: Door) -> None:
    from torch import distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        model = toy24_model()
        whole = model.get_parameter("head.U").detach()
        model.head.U = torch.nn.Parameter(distribute_tensor(whole, init_device_mesh("cpu", (1,)), [Shard(0)]))
        with pytest.raises(UserError, match=r"head\.U is a DTensor"):
            door(model)
    finally:
        dist.destroy_process_group()


def test_a_plain_model_passes_every_door(door: Door) -> None:
    door(toy24_model())
