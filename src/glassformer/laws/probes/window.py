"""Windows: a layer with a window of w reads the last w tokens, itself included, in every way of calling."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...bilingual import words
from ..bench import Bench
from ..law import Law, Probe
from ..place import at_module
from ..runs import Claim, block, chunked, once
from ..subjects.base import Kind, Offer
from ..subjects.layers import changed, heard
from ..verdict import Finding, NotApplicable, NotSupported

WIDEST = 64
"""A window beyond this would need longer texts than a quick check reads."""

LAYERS = 8
"""How many layers are tried at most."""


def window_of(bench: Bench) -> int:
    """The window that the settings state; raises where there is none, or none that can be tried."""
    facts = bench.subject.facts
    window = facts.settings.get("window")
    if window is None or bench.subject.kind is Kind.MASKED:
        raise NotApplicable("the settings state no causal window", "设置中没有因果窗口")
    if bench.subject.kind is not Kind.CAUSAL:
        raise NotSupported("windows are tried in decoders alone", "仅在纯解码器中检查窗口")
    if window > WIDEST:
        raise NotSupported(f"the window of {window} is longer than the texts tried", f"窗口 {window} 长于所试文本")
    if facts.context is not None and window >= facts.context:
        raise NotApplicable("the window is as wide as the context", "窗口不小于上下文长度")
    return window


def _length(bench: Bench, window: int, more: int) -> int:
    return min(window + more, bench.subject.facts.context or window + more)


def reads(bench: Bench, ids: Tensor, layer: nn.Module, usual: Tensor) -> Tensor:
    """``(n, n)`` bool: whether the output of ``layer`` at i moves when what it is given at j does."""
    n = ids.shape[1]
    at = torch.arange(n)

    def stir(stream: Tensor) -> Tensor:
        stirred = stream.clone()
        generator = torch.Generator().manual_seed(bench.seed)
        noise = torch.randn(stream.shape[-1], generator=generator, dtype=torch.float64).to(stream.dtype)
        stirred[at, at] += stream.std() * noise
        return stirred

    with heard([layer]) as said, changed(layer, stir):
        bench.logits(once(ids))
    (moved,) = said
    assert moved is not None
    return ((moved - usual).abs().amax(-1) > bench.tolerance * usual.std()).T


def width(read: Tensor) -> int | None:
    """How many of the last tokens each query reads, itself included; None where it is not such a number."""
    n = read.shape[0]
    at = torch.arange(n)
    distance = at[:, None] - at[None, :]
    widest = int(distance[read].max()) + 1 if bool(read.any()) else 0
    return widest if torch.equal(read, (distance >= 0) & (distance < widest)) else None


def convolved(layer: nn.Module) -> frozenset[int]:
    """How many of the last tokens convolutions alone let ``layer`` read: each by itself, or one after another."""
    kernels = [int(part.kernel_size[0]) for part in layer.modules() if isinstance(part, nn.Conv1d)]
    return frozenset({*kernels, 1 + sum(kernel - 1 for kernel in kernels)} if kernels else ())


def forward(bench: Bench) -> Finding:
    """Each layer by itself: what it is given at one position is changed, and which outputs move is seen.

    A layer may have no window beside others that have one. One that reads neither the last tokens nor all (chunks, sinks,
    recurrences) is left out, and one that reads what its convolution is as wide as.
    """
    window = window_of(bench)
    n = _length(bench, window, 3)
    if not bench.rows_apart:
        raise NotSupported("the rows of a batch are not independent", "批内各行不独立")
    ids = bench.texts(1, n, 91).expand(n, n)
    blocks = bench.subject.blocks(bench.module)
    if not blocks:
        raise NotSupported("no repeated layers were found", "没有找到重复的层")
    tried = [
        blocks[k * (len(blocks) - 1) // max(1, min(LAYERS, len(blocks)) - 1)] for k in range(min(LAYERS, len(blocks)))
    ]
    with heard([layer for _, layer in tried]) as usual:
        bench.logits(once(ids))
    found: dict[str, int] = {}
    for (name, layer), output in zip(tried, usual, strict=True):
        if output is None or output.shape[:2] != (n, n):
            raise NotSupported("a layer was not called on the whole text", "有的层没有在整段文本上被调用")
        reach = width(reads(bench, ids, layer, output))
        if reach is not None and (reach == window or reach not in convolved(layer)):
            found[name] = reach
    limited = {name: reach for name, reach in found.items() if reach < n}
    if not limited and len(found) < len(blocks):
        raise NotSupported("no layer that reads its last tokens alone was found", "没有找到只读最后若干词元的层")
    # Of layers that all read everything none has the window.
    name, reach = max((limited or found).items(), key=lambda item: abs(item[1] - window))
    witness = {"seed": bench.seed, "length": n, "window": window, "reads": reach, "layer": name, "layers": found}
    return Finding(measured=abs(reach - window), bound=0, unit="key", witness=witness, place=at_module(bench, name))


def _inside(bench: Bench, claims: list[Claim], window: int) -> None:
    """Raise ``NotSupported`` where the claims fail within the first window too: then it is not the window that does."""
    for claim in claims:
        right_at = claim.left_at if claim.right_at is None else claim.right_at
        early = [int(p) for p in right_at.positions if p < max(1, window // 2)]
        first = int(claim.left_at.positions[0]) - int(right_at.positions[0])
        left_at, own = block([int(claim.left_at.rows[0])], [p + first for p in early]), block([0], early)
        if not bench.loosened(
            bench.test([Claim(left=claim.left, right=claim.right, left_at=left_at, right_at=own)])
        ).kept:
            raise NotSupported("the runs differ within the first window too", "在第一个窗口之内两次运行也不同")


def cached(bench: Bench) -> Finding:
    """Through the cache: steps from within the window to beyond it, and a chunk wider than the window, then steps."""
    window = window_of(bench)
    bench.need(Offer.CACHE)
    n = _length(bench, window, 4)
    ids = bench.texts(1, n, 92)
    whole, first = once(ids), max(1, window - 1)
    cuts = ([first, *[1] * (n - first)], [n - 2, 1, 1] if n - 2 > window else [n - 1, 1])
    claims = [
        Claim(
            left=chunked(ids, cut), right=whole, left_at=block([0], range(n)), facts={"window": window, "chunks": cut}
        )
        for cut in cuts
    ]
    _inside(bench, claims, window)
    return bench.test(claims)


def left_padded(bench: Bench) -> Finding:
    """Behind pads: the window is counted from the token back, whatever stands before the text."""
    window = window_of(bench)
    bench.need_mask()
    n = _length(bench, window, 6)
    pads = max(1, min(2, n - window - 1))
    ids = bench.texts(1, n, 93)
    mask = (torch.arange(n) >= pads).long()[None]
    positions = (mask.cumsum(1) - 1).clamp(min=0) if Offer.POSITIONS in bench.subject.offers else None
    claim = Claim(
        left=once(ids, mask=mask, positions=positions),
        right=once(ids[:, pads:]),
        left_at=block([0], range(pads, n)),
        right_at=block([0], range(n - pads)),
        facts={"window": window, "pads": pads},
    )
    _inside(bench, [claim], window)
    return bench.loosened(bench.test([claim]))


WINDOW = Law(
    id="window",
    statement=words(
        "A layer with a window of w reads exactly the last w tokens, itself included, in every path.",
        "窗口为 w 的层在每条路径上都恰好读取最后 w 个词元（含自身）。",
    ),
    formula=r"J_i = \{\, j : 0 \le i - j < w \,\}",
    conditions=words("The settings state a window shorter than the context.", "设置中给出短于上下文的窗口。"),
    why=words(
        "One key more in one path, and the model that generates is not the one that was trained.",
        "某条路径多读一个键，生成时的模型就不再是训练过的模型。",
    ),
    chapter="7.4",
    probes=(
        Probe(id="window.forward", does=words("each layer by itself", "逐层检查"), run=forward),
        Probe(id="window.cached", does=words("through the cache", "经由缓存"), run=cached),
        Probe(id="window.left-padded", does=words("behind pads", "左侧填充之后"), run=left_padded),
    ),
)
