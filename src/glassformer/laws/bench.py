"""One model on the bench at one precision: texts to try, runs, the bound that rounding sets, and claims put to the test."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from .kept import KeptLogits
from .offered import used
from .runs import Cells, Claim, Inputs, Run, block, once, row_by_row
from .spent import Seen, Spent
from .subjects.base import Kind, ModelSubject, Offer
from .verdict import Finding, NotApplicable, NotSupported
from .weights import amplified, scale, shaken_by, unsettle, usual_factor, without_dropout

FLOOR = {torch.float64: 1e-9, torch.float32: 1e-4}
"""No bound is set lower than this part of the logits' standard deviation: rounding differs between shapes and kernels."""

JITTER = {torch.float64: 1e-12, torch.float32: 2.0**-22}
"""Relative change of the parameters whose effect shows how a model magnifies rounding."""

SLACK = 100.0
"""How many times the effect of that change two runs may differ. A fault is larger by orders of magnitude."""

EFFECT = 1e-3
"""The part of the logits' standard deviation that counts as an effect."""

LENGTH, FRUGAL_LENGTH = 12, 20
"""The usual length of a text. Where few are read they go beyond a block of 16."""

T = TypeVar("T")

WORK = 2 * 10**11
"""Parameters times tokens that one forward pass may cost: 65 rows of 65 tokens for a model of 47 million."""


LOGITS = 8 * 10**6
"""Logits of one forward pass: 64 MB in double precision, of which a claim has a few copies."""


class Bench:
    """A copy of the subject's model in ``dtype`` with weights that make faults show, and what can be done with it.

    ``before`` is what was seen at another precision: probes that repeat it try fewer lengths. A ``frugal`` bench makes as
    few passes as it can: the weights begin with a guess, and rounding and steadiness are asked for only where a claim
    fails; it allows what single precision would. Raises ``NotSupported`` from the constructor where the model cannot be
    run at this precision at all.
    """

    def __init__(
        self, subject: ModelSubject, dtype: torch.dtype, seed: int = 0, spent: Spent | None = None,
        before: Seen | None = None, *, frugal: bool = False,
    ) -> None:  # fmt: skip
        self.subject = subject
        self.dtype = dtype
        self.seed = seed
        self.spent = spent if spent is not None else Spent()
        self.generator = torch.Generator().manual_seed(seed)
        self.module = subject.copied().to(dtype).eval()
        self.frugal, self.repeats = frugal, before is not None
        self._kept = KeptLogits()
        self._plain: dict[tuple[Any, ...], Run] = {}
        self._effects: dict[Offer, float] = {} if before is None else dict(before.effects)
        self._known: dict[str, Any] = {}
        unsettle(self.module, self.generator)
        begin = before.factor if before is not None else usual_factor(self.module) if frugal else 1.0
        self.factor, told = amplified(self.module, self._telling, begin, 3 if frugal else 8, jump=frugal)
        if not told:
            self._kept.forget()
        if not bool(torch.isfinite(self.usual).any()):
            raise NotSupported("every logit is NaN or infinite", "所有 logits 都是 NaN 或无穷")

    # Texts

    @property
    def length(self) -> int:
        """The usual length of a text: short, longer than common windows of tests where the model allows."""
        context = self.subject.facts.context
        usual = FRUGAL_LENGTH if self.frugal else LENGTH
        return usual if context is None else max(2, min(usual, context))

    def texts(self, rows: int, length: int | None = None, seed: int = 0) -> Tensor:
        """``(rows, length)`` random ids, none of them special; the same for the same seed."""
        facts = self.subject.facts
        allowed = torch.tensor([i for i in range(facts.vocab_size) if i not in facts.special])
        generator = torch.Generator().manual_seed(1000 * self.seed + seed)
        shape = (rows, self.length if length is None else length)
        return allowed[torch.randint(len(allowed), shape, generator=generator)]

    def other(self, ids: Tensor) -> Tensor:
        """Ids that differ from ``ids`` in every place, none of them special."""
        facts = self.subject.facts
        allowed = [i for i in range(facts.vocab_size) if i not in facts.special]
        next_one = {a: allowed[(k + max(1, len(allowed) // 3)) % len(allowed)] for k, a in enumerate(allowed)}
        return torch.tensor([next_one.get(i, allowed[0]) for i in ids.reshape(-1).tolist()]).reshape(ids.shape)

    def base(self, n: int) -> Tensor:
        """``(1, n)``: the begin of the longest text, of which several lengths are tried."""
        return self.texts(1, max(n, *self.lengths()))[:, :n]

    def side_by_side(self, ids: Tensor) -> Tensor:
        """``(n + 1, n)``: the text ``ids (1, n)``, in row ``t`` with token ``t`` changed, at last with all but the last.

        One row more than there are positions, lest a mask ``(n, n)`` be taken for rows of positions.
        """
        n = ids.shape[1]
        rows, at, other = ids.repeat(n + 1, 1), torch.arange(1, n), self.other(ids)
        rows[at, at] = other[0, at]
        rows[-1, :-1] = other[0, :-1]
        return rows

    def lengths(self) -> Sequence[int]:
        """Lengths around powers of two and the model's window, up to its context and to what its size lets one try."""
        window = self.subject.facts.settings.get("window")
        wanted = {
            1,
            2,
            self.length,
            17,
            33,
            65,
            *([window - 1, window, window + 1, window + 3] if window else []),
        }
        size = sum(p.numel() for p in self.module.parameters())
        room = math.isqrt(LOGITS // self.subject.facts.vocab_size)
        most = min(self.subject.facts.context or 65, max(self.length, min(room, math.isqrt(WORK // max(1, size)))))
        found = sorted(n for n in wanted if 1 <= n <= most)
        # What another precision changes (constants, dtypes, kernels) does not hang on every length.
        return sorted({*found[:2], self.length, found[-1]} & set(found)) if self.repeats else found

    # Runs

    def logits(self, run: Run) -> Tensor:
        """``(b, n, V)`` in float64: the logits of all calls of ``run``, joined along the positions."""
        if (known := self._kept.of(run)) is not None:
            return known
        logits = torch.cat(list(self.outputs(run)), 1)
        self._kept.keep(run, logits, lasting=run in self._plain.values())
        return logits

    def plain(self, ids: Tensor, **options: Any) -> Run:
        """The call with ``ids (b, n)`` and nothing else but ``options``: one run for all who ask, so that it is made once.

        Not for claims about equal calls, nor while the module is other than the bench has made it.
        """
        key = (*ids.shape, *ids.reshape(-1).tolist(), *sorted(options.items()))
        return self._plain.setdefault(key, once(ids, options=options))

    def outputs(self, run: Run) -> Generator[Tensor, None, None]:
        """The logits of each call of ``run``, made one after the other as they are asked for."""
        cache = None
        with self.mode(run):
            for call in run.calls:
                outputs = self.subject.call(self.module, self.fitted(call), keep=run.cached, cache=cache)
                self.spent.forwards += 1
                cache = outputs.cache
                yield outputs.logits.detach().double()

    def fitted(self, call: Inputs) -> Inputs:
        """``call`` with its embeddings in the precision of the bench, and with a source where the model needs one."""
        if call.embeds is not None:
            call = replace(call, embeds=call.embeds.to(self.dtype))
        if self.subject.kind is Kind.SEQUENCE_TO_SEQUENCE and call.source is None:
            call = replace(call, source=self.texts(1, seed=77).expand(call.ids.shape[0], -1))
        return call

    @contextmanager
    def mode(self, run: Run) -> Iterator[None]:
        """The model as ``run`` wants it: weights, mode, random numbers, grad; as it was afterwards."""
        silent = nullcontext() if run.dropout else without_dropout(self.module)
        with torch.random.fork_rng(devices=[]), torch.set_grad_enabled(run.grad), silent:
            # torch.manual_seed looks for GPUs too, for longer than a small forward pass takes.
            torch.default_generator.manual_seed(run.seed)
            self.module.train(run.training)
            if run.gain != 1:
                scale(self.module, run.gain)
            try:
                yield
            finally:
                self.module.eval()
                if run.gain != 1:  # a power of two: bit for bit what it was
                    scale(self.module, 1 / run.gain)

    def _telling(self, module: nn.Module) -> tuple[float, float]:
        self._kept.forget()
        if self.frugal:
            logits = self.usual
            self.__dict__.pop("usual")  # what it was before the weights grew
        else:
            (logits,) = self.outputs(once(self.side_by_side(self.texts(1))[[0, -1]]))
        spread = float(logits[0].std())
        return spread, float((logits[0, -1] - logits[-1, -1]).abs().max()) / max(spread, 1e-300)

    # Size and rounding

    @cached_property
    def usual_ids(self) -> Tensor:
        """``(b, n)``: two random texts; on a frugal bench what most of its claims are about."""
        return self.side_by_side(self.base(self.length)) if self.frugal else self.texts(2)

    @cached_property
    def usual(self) -> Tensor:
        """``(b, n, V)``: the logits of the usual texts, with which others are compared."""
        return self.logits(self.plain(self.usual_ids))

    @cached_property
    def spread(self) -> float:
        """The standard deviation of the logits of a random text."""
        return float(self.usual.std())

    @cached_property
    def noise(self) -> float:
        """How far a relative change of the parameters by one rounding moves the logits, in their standard deviations."""
        return self._moved_by(JITTER[self.dtype])

    @cached_property
    def single_noise(self) -> float:
        """``noise`` at the rounding of single precision.

        Tried, and not ``noise`` scaled up: parts that always compute in single precision round what is far too small a
        change for them to a whole step, and that step times 2e5 would be a bound that nothing breaks.
        """
        return self.noise if self.dtype is torch.float32 else self._moved_by(JITTER[torch.float32])

    def _moved_by(self, size: float) -> float:
        before, shaken = self.usual, once(self.usual_ids)
        with shaken_by(self.module, size, self.generator):
            (after,) = self.outputs(shaken)
        return float((after - before).abs().max()) / self.spread

    @property
    def tolerance(self) -> float:
        """What two runs may differ by, in standard deviations of the logits."""
        if self.frugal:
            return self.single_tolerance
        return max(FLOOR[self.dtype], SLACK * self.noise) if self.steady else FLOOR[self.dtype]

    @cached_property
    def steady(self) -> bool:
        """Whether two equal calls agree. Where not, their difference would be taken for rounding, and hide everything."""
        left, (right,) = self.usual, self.outputs(once(self.usual_ids))
        apart = torch.where(left == right, 0.0, (left - right).abs()).max()
        return bool(apart <= FLOOR[self.dtype] * left.std())

    @cached_property
    def rows_apart(self) -> bool:
        """Whether the rows of a batch leave each other alone. Where not, other laws are tried row by row."""
        pair, alone = self.usual, self.logits(self.plain(self.usual_ids[:1]))
        return float((pair[0] - alone[0]).abs().max()) <= self.tolerance * self.spread

    @property
    def single_tolerance(self) -> float:
        """``tolerance`` where parts compute in single precision whatever they are given, as tables of angles often do."""
        return max(FLOOR[torch.float32], SLACK * self.single_noise)

    # Claims

    def singly(self, claims: Iterable[Claim]) -> Iterator[Claim]:
        """``claims``; row by row where the rows of a batch do not leave each other alone."""
        for claim in claims:
            yield from [claim] if self.rows_apart else row_by_row(claim)

    def loosened(self, finding: Finding) -> Finding:
        """``finding`` held to the bound of ``single_tolerance``: its two runs count positions from different places.

        Raises ``NotSupported`` where that would let a difference as large as the logits' own spread pass.
        """
        spread = finding.witness["logit_standard_deviation"]
        loose = replace(finding, bound=max(finding.bound, self.single_tolerance * spread))
        self._undecided(loose)
        return loose

    def test(self, claims: Iterable[Claim], *, unsteady: bool = False, **witness: Any) -> Finding:
        """The worst of ``claims``. Raises ``NotSupported`` when there is none.

        Only claims about steadiness itself are put to the test ``unsteady``, on a model whose equal calls differ.
        """
        if not (unsteady or self.frugal or self.steady):
            raise _differ()
        worst: Finding | None = None
        for claim in claims:
            finding = self._tested(claim, witness)
            if worst is None or finding.severity > worst.severity:
                worst = finding
        if worst is None:
            raise NotSupported("there was nothing to compare at this length", "在此长度下没有可比较的内容")
        if self.frugal and not (worst.kept or worst.at_least or unsteady or self.steady):
            raise _differ()
        self._undecided(worst)
        return worst

    def _undecided(self, finding: Finding) -> None:
        """Raise ``NotSupported`` where more than rounding is kept only because rounding is magnified beyond the spread."""
        spread = finding.witness["logit_standard_deviation"]
        hidden = finding.bound >= spread and finding.measured > FLOOR[self.dtype] * spread
        if hidden and finding.kept and not finding.at_least:
            raise NotSupported(
                "rounding alone moves the logits by more than they spread",
                "仅舍入误差造成的变化就超过 logits 的离散程度",
            )

    def _tested(self, claim: Claim, witness: dict[str, Any]) -> Finding:
        right_at = claim.left_at if claim.right_at is None else claim.right_at
        left = claim.left_at.of(self.logits(claim.left))
        right = right_at.of(self.logits(claim.right))
        spread = float(left.std()) if claim.left.gain != 1 else max(float(left.std()), self.spread)
        apart = torch.where(left == right, 0.0, (left - right).abs()).amax(-1)
        at = int(apart.nan_to_num(torch.inf).argmin() if claim.differ else apart.nan_to_num(torch.inf).argmax())
        facts = {"seed": self.seed, "row": int(claim.left_at.rows[at]), "position": int(claim.left_at.positions[at])}
        facts |= {"length": claim.left.length, "logit_standard_deviation": spread, **claim.facts, **witness}
        # A dual asks whether anything at all has moved.
        measured = float(apart.max()) if claim.differ else float(apart[at])
        # On a frugal bench rounding is measured where it could excuse something.
        enough = self.frugal and measured <= FLOOR[torch.float32] * spread
        tolerance = EFFECT if claim.differ else FLOOR[torch.float32] if enough else self.tolerance
        bound = tolerance * spread
        return Finding(measured=measured, bound=bound, at_least=claim.differ, witness=facts, claim=claim)

    def need(self, offer: Offer) -> None:
        """Raise ``NotSupported`` unless the subject takes ``offer`` and it has an effect."""
        self.subject.require(offer)
        if offer not in self._effects:
            self._effects[offer] = self._effect(offer)
        argument = self.subject.offers[offer]
        if math.isnan(self._effects[offer]):
            raise NotSupported(f"with {argument} the logits are not finite", f"给出 {argument} 时 logits 不是有限数")
        if self._effects[offer] < EFFECT:
            raise NotSupported(f"{argument} is accepted and has no effect", f"接受参数 {argument}，但没有任何效果")

    @property
    def seen(self) -> Seen:
        """What another bench of the subject may begin with."""
        return Seen(self.factor, {offer: effect for offer, effect in self._effects.items() if effect >= EFFECT})

    def known(self, question: str, answer: Callable[[], T]) -> T:
        """What ``answer`` gave the first time that ``question`` was asked."""
        if question not in self._known:
            self._known[question] = answer()
        return self._known[question]

    def need_mask(self) -> None:
        """Raise ``NotSupported`` unless the subject takes a mask that has an effect and in which 1 means "may be read"."""
        self.need(Offer.MASK)
        if not self.ones_are_none:
            argument = self.subject.offers[Offer.MASK]
            raise NotSupported(
                f"{argument} of ones changes the logits: it does not say which tokens may be read",
                f"全一的 {argument} 改变了 logits：它并不表示哪些词元可读",
            )

    @cached_property
    def ones_are_none(self) -> bool:
        """Whether a mask of ones is no mask, on a text without ids that some models take for a pad."""
        ids, size = self.texts(1), self.subject.facts.vocab_size
        ids = torch.where((ids > 3) & (ids < size - 1), ids, size // 2)
        at = block([0], range(ids.shape[1]))
        return self._apart(once(ids, mask=torch.ones_like(ids)), self.plain(ids), at, None) <= self.single_tolerance

    def _effect(self, offer: Offer) -> float:
        """How far ``offer`` moves the last logits, in their standard deviations."""
        ids = self.texts(1)
        run, last = used(offer, ids), block([0], [ids.shape[1] - 1])
        if run is None:
            return 1.0  # compared by probes of its own
        if offer is Offer.CACHE:
            # Against the last token alone: what the cache holds must be read.
            return self._apart(run, self.plain(ids[:, -1:]), last, block([0], [0]))
        return self._apart(run, self.plain(ids), last, None)

    def _apart(self, left: Run, right: Run, left_at: Cells, right_at: Cells | None) -> float:
        a, b = left_at.of(self.logits(left)), (right_at or left_at).of(self.logits(right))
        return float((a - b).abs().max()) / self.spread


def _differ() -> NotSupported:
    return NotSupported("two equal calls differ (see determinism)", "两次相同的调用结果不同（见 determinism）")


def causal_only(bench: Bench) -> None:
    """Raise ``NotApplicable`` for a model whose positions read the whole text."""
    if bench.subject.kind is Kind.MASKED:
        raise NotApplicable("this model reads in both directions", "该模型双向阅读")
