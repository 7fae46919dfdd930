"""Scale and heads: scores of unit variance, heads that all count, and keys that are shared as they should be."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from ...bilingual import words
from ..bench import EFFECT, Bench
from ..law import Law, Probe
from ..losses import evaluate, learning
from ..place import at_module
from ..program import opening, tensors
from ..runs import Inputs
from ..spy import SeenAttention, entered, spying
from ..verdict import Finding, NotApplicable, NotSupported

SOFTMAX = (torch.softmax, Tensor.softmax, F.softmax)
PRODUCT = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm)
MOST = 64
"""Rows of the batch in which each head of each attention is silenced once."""

OFF = 1e-6
SCALES = ("attention_multiplier", "query_pre_attn_scalar", "attention_scale", "softmax_scale", "attn_scale")
"""Settings of public code that choose another scale on purpose."""


class Listening(TorchFunctionMode):
    """Keeps the keys of each attention over ``n`` tokens; ``silent`` are (row, attention, head) to take out of it."""

    def __init__(
        self, rows: int, n: int, silent: Sequence[tuple[int, int, int]] = (), within: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.rows, self.n = rows, n
        self.within = within
        self.modules: list[str] = []
        self.silent = silent
        self.keys: list[Tensor] = []
        self.heads: list[int] = []
        self._product: Tensor | None = None

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            query = args[0] if args else kwargs["query"]
            if self._whole(query[..., :1].expand(*query.shape[:-1], self.n)):
                key = (args[1] if len(args) > 1 else kwargs["key"]).detach()
                # A kernel that is told to share keys does so in groups, as the law wants it.
                return self._attention(result, key if key.shape[1] == query.shape[1] else key[:, :0])
        elif func in PRODUCT and self._whole(result):
            self._product = args[1].detach().transpose(-1, -2)
        elif func in SOFTMAX and self._product is not None and self._whole(result):
            key, self._product = self._product, None
            return self._attention(result, key.reshape(self.rows, -1, *key.shape[-2:]) if key.ndim == 3 else key)
        return result

    def _whole(self, x: Any) -> bool:
        """Whether ``x`` has the shape of scores: ``(b, h, n, n)`` or ``(b h, n, n)``."""
        if not isinstance(x, Tensor) or x.shape[-2:] != (self.n, self.n):
            return False
        return (x.ndim == 4 and x.shape[0] == self.rows) or (x.ndim == 3 and x.shape[0] % self.rows == 0)

    def _attention(self, result: Tensor, key: Tensor) -> Tensor:
        which = len(self.keys)
        split = result.reshape(self.rows, -1, *result.shape[-2:])
        self.keys.append(key)
        self.heads.append(split.shape[1])
        self.modules.append(self.within[-1] if self.within else "")
        at = [(row, head) for row, attention, head in self.silent if attention == which]
        if not at:
            return result
        off = torch.ones(split.shape[:2], dtype=result.dtype)
        for row, head in at:
            off[row, head] = 0
        return (split * off[..., None, None]).reshape(result.shape)


def listened(bench: Bench) -> Listening:
    """One run of two rows. Raises ``NotSupported`` where no attention was seen."""
    found = bench.known("attention heard", lambda: _listened(bench))
    if not found.keys:
        raise NotSupported("no attention was seen", "没有观察到注意力")
    return found


def _listened(bench: Bench) -> Listening:
    ids = bench.texts(2)
    with entered(bench.module) as within, Listening(2, ids.shape[1], within=within) as mode:
        evaluate(bench, Inputs(ids=ids))
    return mode


def effect(bench: Bench) -> Finding:
    """Each head of each attention, taken out alone, moves the logits."""
    heads = listened(bench).heads
    places = [(attention, head) for attention, count in enumerate(heads) for head in range(count)]
    if len(places) > MOST:  # the first and the last of all attentions
        places = [place for place in places if place[0] in (0, len(heads) - 1)][:MOST]
    rows = 1 + len(places)
    ids = bench.texts(1).expand(rows, -1)
    mode = Listening(rows, ids.shape[1], [(row, *place) for row, place in enumerate(places, start=1)])
    with mode:
        logits = evaluate(bench, Inputs(ids=ids)).logits.detach().double()
    if mode.heads != heads:
        raise NotSupported("attention is computed otherwise for more rows", "行数变化时注意力的计算方式不同")
    moved = (logits[1:] - logits[:1]).abs().amax((1, 2))
    least, facts = float("inf"), {}
    for attention in {a for a, _ in places}:
        mine = [k for k, (a, _) in enumerate(places) if a == attention]
        if float(moved[mine].max()) < EFFECT * bench.spread:
            continue  # an attention that reaches no logits at all is none of these
        weakest = min(mine, key=lambda k: float(moved[k]))
        if float(moved[weakest]) < least:
            least, facts = float(moved[weakest]), {"attention": attention, "head": places[weakest][1]}
    if not facts:
        raise NotSupported("no attention that was seen reaches the logits", "观察到的注意力都不影响 logits")
    place = at_module(bench, listened(bench).modules[int(facts["attention"])])
    which, head = int(facts["attention"]), int(facts["head"])
    shown = partial(_program, body=SILENCING.format(which=which, head=head), after=SILENCED)
    facts |= {"attentions": len(heads), "heads": heads, "seed": bench.seed}
    return Finding(measured=least, bound=OFF * bench.spread, at_least=True, witness=facts, place=place, shown=shown)


def groups(bench: Bench) -> Finding:
    """Neighbouring query heads share a key head, and every key head is read."""
    told = bench.subject.facts.settings.get("kv_heads")
    wrong, facts, shared = 0, {}, False
    for attention, key in enumerate(listened(bench).keys):
        H = key.shape[1] if key.ndim == 4 else 0
        if H < 2:
            continue
        first = [next(g for g in range(H) if torch.equal(key[:, g], key[:, h])) for h in range(H)]
        G = len(set(first))
        if G == H and not (isinstance(told, int) and told < H):
            continue
        shared = True
        expected = [h // (H // G) * (H // G) for h in range(H)] if H % G == 0 else first
        unread = max(0, told - G) if isinstance(told, int) and told <= H else 0
        off = unread + sum(a != b for a, b in zip(first, expected, strict=True))
        if off > wrong:
            wrong = off
            facts = {"attention": attention, "first_head_with_these_keys": first, "key_heads_never_read": unread}
    if not shared:
        raise NotApplicable("no two heads were seen to share keys", "没有观察到共享键的头")
    place = at_module(bench, listened(bench).modules[int(facts["attention"])]) if facts else None
    witness = {**facts, "seed": bench.seed}
    shown = partial(_program, body=SHARING)
    return Finding(measured=float(wrong), bound=0.0, unit="heads", witness=witness, place=place, shown=shown)


def scale(bench: Bench) -> Finding:
    """Scores are products of queries and keys over the root of d_k."""
    ids = bench.texts(2)
    with spying(bench.module, ids.shape[1]) as spy:
        evaluate(bench, Inputs(ids=ids))
    widths = {
        p.shape[1] for p in learning(bench.module).values() if p.ndim == 2 and len(p) == bench.subject.facts.vocab_size
    }
    worst, facts, decided = 0.0, {}, 0
    for seen in spy.seen:
        factor = _factor(seen)
        if factor is None or seen.d_k is None:
            continue
        right = seen.d_k**-0.5
        slips = {f"1/sqrt(d) with d = {d}": d**-0.5 for d in widths}
        slips |= {"1/sqrt(h) with the number of heads": seen.scores.shape[-3] ** -0.5}
        if abs(factor * right - 1) < OFF and _grows(bench, spy.seen[0]):
            slips["sqrt(d_k), multiplied where it divides"] = factor
        like = next((name for name, slip in slips.items() if abs(factor / slip - 1) < OFF), None)
        if abs(factor / right - 1) < OFF:
            decided += 1
        elif like is not None and not _chosen(bench) and abs(factor - 1) > OFF:
            decided += 1
            worst = max(worst, abs(factor / right - 1))
            facts = {"module": seen.module, "factor": factor, "d_k": seen.d_k, "as_if": like}
    if not decided:
        raise NotSupported(
            "the factor of the scores was not seen, or is a choice", "没有观察到分数的缩放因子，或它是有意的选择"
        )
    witness = {**facts, "attentions": decided, "seed": bench.seed}
    place = at_module(bench, str(facts["module"])) if facts else None
    shown = partial(_program, body=SCALING)
    return Finding(measured=worst, bound=1e-3, unit="relative", witness=witness, place=place, shown=shown)


def _program(bench: Bench, body: str, after: str = "") -> str:
    """Attention seen from outside: ``body`` is what is done at each, ``after`` what follows a call."""
    call = bench.fitted(Inputs(ids=bench.texts(1)))
    names = {name: f"torch.tensor({value.tolist()})" for name, value in tensors(call)}
    return "\n".join((
        *opening(bench),
        SEEING.format(body=textwrap.indent(body.strip(), " " * 8).lstrip()).strip(),
        "",
        "with torch.no_grad(), Seeing():",
        f"    out = {bench.subject.calling(call, names)}",
        f"logits = {bench.subject.reading}",
        *([] if not after else ["with torch.no_grad():", f"    out = {bench.subject.calling(call, names)}",
                                f"usual = {bench.subject.reading}", after]),
        "",
    ))  # fmt: skip


SEEING = """
from torch.overrides import TorchFunctionMode

class Seeing(TorchFunctionMode):  # the product of queries and keys, and what a softmax makes of it
    times = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        made, name = function(*args, **(kwargs or {{}})), function.__name__
        if name in ("matmul", "__matmul__", "bmm"):
            self.q, self.k, self.product = args[0], args[1].transpose(-1, -2), made
        fused = name == "scaled_dot_product_attention"
        if name != "softmax" and not fused:
            return made
        if fused:
            self.q, self.k = args[:2]
        {body}
        self.times += 1
        return made
"""

SCALING = """
d_k = self.q.shape[-1]
factor = (kwargs or {}).get("scale") or d_k**-0.5
if not fused:
    scores, product = args[0][..., -1, :], self.product.reshape(args[0].shape)[..., -1, :]
    factor = float((scores / product)[scores > -1e30].median())
print("largest difference:", abs(factor - d_k**-0.5), "; 1/sqrt(d_k):", d_k**-0.5)
"""

SHARING = """
k = self.k[0]
first = [next(g for g in range(len(k)) if torch.equal(k[g], k[h])) for h in range(len(k))]
print("for each query head, the first with the same keys:", first)
"""

SILENCING = """
if self.times == {which}:
    made = made.clone()
    made[:, {head}] = 0  # one head taken out
"""

SILENCED = (
    'print("with and without a head, largest difference:", float((logits - usual).abs().max()), '
    '"; standard deviation of the logits:", float(usual.std()))'
)


def _grows(bench: Bench, seen: SeenAttention) -> bool:
    """Whether products of queries and keys grow with the weights: those of normed ones do not, and are often multiplied."""
    with spying(bench.module, seen.scores.shape[-2]) as spy:
        evaluate(bench, Inputs(ids=bench.texts(2)), gain=2.0)
    before, after = seen.product, spy.seen[0].product if spy.seen else None
    return before is not None and after is not None and float(after.std()) > 2 * float(before.std())


def _factor(seen: SeenAttention) -> float | None:
    """What products were multiplied with: from two rows, between which biases and masks cancel."""
    if seen.product is None or seen.scores.ndim != 4 or seen.scores.shape[0] != 2:
        return None
    scores, product = (x[0].double() - x[1].double() for x in (seen.scores, seen.product))
    plain = scores.isfinite() & (seen.scores > -1e30).all(0) & (seen.weights > 0).all(0)
    if int(plain.sum()) < 2:
        return None
    x, y = product[plain], scores[plain]
    factor = float((x * y).sum() / x.square().sum().clamp(min=1e-300))
    off = float((y - factor * x).abs().max() / y.abs().max().clamp(min=1e-300))
    return factor if off < OFF and factor > 0 else None


def _chosen(bench: Bench) -> bool:
    """Whether the configuration has a setting for the scale."""
    config = getattr(bench.subject.module, "config", None)
    return any(getattr(config, name, None) is not None for name in SCALES)


HEADS = Law(
    id="heads",
    statement=words(
        "Queries and keys of unit variance give scores of unit variance; every head counts; heads share keys in groups.",
        "单位方差的查询与键给出单位方差的分数；每个头都有作用；共享键的头成组相邻。",
    ),
    formula=r"S_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}}, \quad \mathrm{kv}(h) = \lfloor h G / H \rfloor",
    conditions=words(
        "Attention that torch's softmax or fused kernel computes; a scale that is a setting is not judged.",
        "由 torch 的 softmax 或融合内核计算的注意力；作为设置给出的缩放不作判断。",
    ),
    why=words(
        "A wrong scale or a head that nobody reads costs quality, and a copy task still trains.",
        "缩放错误或无人读取的头会损害质量，而复制任务照样能训练。",
    ),
    chapter="7.2",
    probes=(
        Probe(id="heads.scale", does=words("the factor of the scores", "分数的缩放因子"), run=scale),
        Probe(id="heads.effect", does=words("each head taken out", "逐个去掉每个头"), run=effect),
        Probe(id="heads.groups", does=words("which heads share keys", "哪些头共享键"), run=groups),
    ),
)
