"""What goes into and comes out of one layer of a foreign model, through hooks that are gone afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from ..verdict import NotSupported


def _stream(parts: Any) -> Tensor | None:
    """The first floating-point tensor of three axes among what a layer was given or gives."""
    if isinstance(parts, Tensor):
        return parts if parts.ndim == 3 and parts.is_floating_point() else None
    values = parts.values() if isinstance(parts, Mapping) else parts if isinstance(parts, tuple | list) else ()
    return next(
        (part for part in values if isinstance(part, Tensor) and part.ndim == 3 and part.is_floating_point()), None
    )


def _unseen(layer: nn.Module) -> NotSupported:
    kind = type(layer).__name__
    return NotSupported(f"{kind} does not pass a (batch, positions, d) on", f"{kind} 不传递 (批, 位置, d) 张量")


@contextmanager
def heard(layers: Sequence[nn.Module]) -> Iterator[list[Tensor | None]]:
    """The output ``(b, n, d)`` of each of ``layers`` in the call made meanwhile; None of one that was not called."""
    said: list[Tensor | None] = [None for _ in layers]

    def hear(at: int) -> Callable[..., None]:
        def hook(layer: nn.Module, _: Any, output: Any) -> None:
            stream = _stream(output)
            if stream is None:
                raise _unseen(layer)
            said[at] = stream.detach()

        return hook

    with ExitStack() as stack:
        for at, layer in enumerate(layers):
            stack.callback(layer.register_forward_hook(hear(at)).remove)
        yield said


@contextmanager
def changed(layer: nn.Module, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """What ``layer`` is given, ``(b, n, d)``, becomes ``change`` of it."""

    def hook(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        stream = _stream(args)
        if stream is not None:
            return tuple(change(stream) if arg is stream else arg for arg in args), kwargs
        stream = _stream(kwargs)
        if stream is None:
            raise _unseen(layer)
        return args, {name: change(stream) if arg is stream else arg for name, arg in kwargs.items()}

    handle = layer.register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def asked(module: nn.Module, ids: Tensor) -> Iterator[list[nn.Module]]:
    """The tables that are asked for exactly ``ids (b, n)`` in the call made meanwhile, each once."""
    found: list[nn.Module] = []

    def hook(table: nn.Module, args: tuple[Any, ...]) -> None:
        same = args and isinstance(args[0], Tensor) and args[0].shape == ids.shape and bool((args[0] == ids).all())
        if same and table not in found:
            found.append(table)

    with ExitStack() as stack:
        for part in module.modules():
            if isinstance(part, nn.Embedding):
                stack.callback(part.register_forward_pre_hook(hook).remove)
        yield found


def token_table(module: nn.Module, vocab_size: int, read: Sequence[nn.Module] = ()) -> nn.Module | None:
    """The table of token embeddings: what the module says, or its first table with a row for each id.

    Only tables of ``read``, which were asked for the ids of a text, count where there are any: what a model with a source
    says may be the table of the source.
    """
    told = getattr(module, "get_input_embeddings", None)
    if callable(told):
        try:
            table = told()
        except (NotImplementedError, AttributeError):
            table = None
        if isinstance(table, nn.Module) and (not read or table in read):
            return table
    tables = read or [part for part in module.modules() if isinstance(part, nn.Embedding)]
    return next((t for t in tables if isinstance(t, nn.Embedding) and t.num_embeddings >= vocab_size), None)
