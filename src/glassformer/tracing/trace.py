"""A trace: every number of one step, from the tokens to the updated parameters and forward again."""

from __future__ import annotations

import contextlib
import copy
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from ..errors import UserError
from ..model import Decoder, definitions
from ..notation import Program, Statement, key, silent
from .audit import Audit, audit
from .optimizers import SGD, Moments, Update, moments_after, stepped, take, targets_of
from .record import Arrays, Sample, forward, record, record_forward, with_drawn_masks
from .replay import Replay, replay
from .update import UpdateAnalysis, analyse
from .view import QuantityView
from .witnesses import Witness, Witnesses

Array = np.ndarray[Any, np.dtype[Any]]

SAMPLED_CELLS = 16
"""How many cells of a gradient are checked by central differences unless every cell is asked for."""

EVERY_CELL = 64
"""Gradients up to this many cells are always checked in every cell."""


@dataclass(frozen=True, slots=True)
class Observer:
    """What looking changed: the arithmetic of the run, and the largest difference of logits seen and unseen.

    Both are taken in evaluation mode: with dropout the fused kernel draws masks of its own, so nothing could be compared.
    ``others`` has the same difference where the same model computes in other arithmetic.
    """

    dtype: str
    max_abs_logit_difference: float
    others: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Text:
    """Token texts for readers (data, never markup), the run's title and where its numbers come from.

    ``provenance`` is ``constructed`` (chosen by hand) or ``measured`` (a trained model); ``labels`` are other vocabularies
    the reader may choose, each a mapping with ``id``, ``en``, ``zh`` and ``texts``.
    """

    vocabulary: tuple[str, ...]
    title: Mapping[str, str]
    source: str
    provenance: str
    labels: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Trace:
    """All recorded numbers with the program that defines them.

    ``values`` maps ``id``, ``id.grad``, ``id.new`` (parameters after the update) and ``id.after`` (forward pass after the
    update) to arrays with the axes of the quantity, without batch axis. Witnesses and figures are empty when they were
    not asked for. The lines of the optimizer are quantities too (``W_Q.moment1``, ``optimizer.norm``; see
    ``optimizers.py``). ``derivations`` are those that a file came with, as plain data (None: those of this version).
    """

    program: Program
    update: tuple[Statement, ...]
    values: Mapping[str, Array]
    text: Text
    observer: Observer
    analysis: UpdateAnalysis
    replay: Replay
    witnesses: Mapping[str, Witness] = field(default_factory=dict)
    audit: Audit | None = None
    derivations: tuple[Mapping[str, Any], ...] | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that the update moves."""
        return tuple(targets_of(self.program, self.update))

    @property
    def moments(self) -> Moments | None:
        """What AdamW has kept after this step: the ``state`` of the next one. None after gradient descent."""
        return moments_after(self.program, self.parameters, self.values)

    def __getitem__(self, name: str) -> Array:
        """The array that ``name`` means (``S``, ``W_Q.grad``, ``loss.L.after``); ``UserError`` when unknown or not recorded."""
        id, face, cell = self.program.reference(name)
        array = self.face(id, face)
        return array if cell is None else array[cell]

    def quantity(self, name: str, layer: int | None = None) -> QuantityView:
        """What ``name`` means, with gradient, formula and the way each cell came about.

        ``name`` is an id, a short name (``attn.A``) or one with a face (``A.grad``); ``layer`` (from 0) tells quantities
        of one name apart: ``trace.quantity("attn.A", layer=0).explain(0, 1, 0)``. Raises ``UserError`` when unknown,
        ambiguous or not recorded.
        """
        id, face, cell = self.program.reference(name, layer)
        if cell is not None:
            at = ", ".join(map(str, cell))
            raise UserError(
                f'"{name}" is one cell.',
                "",
                f'Write trace.quantity("{key(id, face)}").explain({at}), or trace["{name}"].',
            )
        return QuantityView(self, id, face)

    def recorded(self, id: str, face: str) -> bool:
        """Whether the array of a quantity's face was recorded."""
        return key(id, face) in self.values

    def face(self, id: str, face: str) -> Array:
        """The recorded array of a quantity's face; ``after`` of a parameter is its new value. ``UserError`` when absent."""
        name = key(id, face)
        if name not in self.values and face == "after" and key(id, "new") in self.values:
            name = key(id, "new")
        if name not in self.values:
            raise UserError(f"{name} is not recorded.", "", _why_absent(self.program, id, face))
        return self.values[name]


def _why_absent(program: Program, id: str, face: str) -> str:
    if face == "grad" and program.quantities[id].quantity.folded:
        return f"The path through {id} is part of the gradient of the quantities it is computed from."
    if face == "grad":
        return f"Nothing differentiable depends on {id}."
    if face == "new":
        return "Only parameters are updated; ask for .after."
    return "It does not change in the update." if face == "after" else "Trace again to record it."


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: on tensors this small a second thread only waits (measured 20 times slower when busy)."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@one_thread()
def trace_sample(
    model: Decoder,
    sample: Sample,
    text: Text,
    update: Update,
    *,
    witness_cells: int | None = SAMPLED_CELLS,
    seed: int = 0,
    dropout: bool = False,
) -> Trace:
    """Record one step of ``update`` of ``model`` at ``sample``, in float64, with witnesses.

    ``model`` is copied, never changed. ``witness_cells`` caps the cells of each gradient that are checked by central
    differences: 0 leaves the witnesses out, None checks every cell. With ``dropout`` the step is one of training mode:
    its masks are drawn once, from torch's generator, and held fixed for everything that follows.
    """
    if not bool(sample.scored.any()):
        raise UserError(
            "No position is scored.", "The loss is a mean over scored positions.", "Give a target for at least one."
        )
    observed = copy.deepcopy(model).double().train(dropout).requires_grad_(True)
    packed = sample.segments is not None
    program = definitions(model.config, sample.length, packed=packed, dropout=dropout)
    if dropout:
        sample = with_drawn_masks(observed, sample)
    # What a model draws while it is given other masks must not advance the generator of the caller.
    with torch.random.fork_rng(devices=()):
        return _trace(observed, sample, text, (program, update), witness_cells, seed)


def _trace(
    observed: Decoder,
    sample: Sample,
    text: Text,
    step: tuple[Program, Update],
    witness_cells: int | None,
    seed: int,
) -> Trace:
    """The trace of ``observed``, which is left with the parameters it had."""
    program, update = stepped(*step)
    values = record(observed, sample, program)
    _step(observed, values, step[1])
    values.update(_after(observed, sample, program))
    _restore(observed, values)
    witnesses = {}
    if witness_cells != 0:
        asked = Witnesses(observed, sample, program, values, seed)
        for name in [k for k in values if k.endswith(".grad") and k != "loss.L.grad"]:
            small = values[name].size <= EVERY_CELL
            witnesses[name.removesuffix(".grad")] = asked.testify(
                name.removesuffix(".grad"), None if small else witness_cells
            )
    return Trace(
        program,
        update,
        values,
        text,
        _observe(observed, sample),
        analyse(program, update, values),
        replay(program, update, values),
        witnesses,
        audit(observed, sample, step[1]),
    )


def _step(model: Decoder, values: Arrays, update: Update) -> None:
    """One joint step of ``update`` on ``model``, from gradients that all belong to the old parameters."""
    parameters = dict(model.named_parameters())
    gradients = {id: torch.from_numpy(values[key(id, "grad")]) for id in parameters}
    told: dict[str, torch.Tensor] = {}
    new = take(update, {id: theta.detach() for id, theta in parameters.items()}, gradients, told.__setitem__)
    # Copies: what is recorded must not change when the model's parameters are put back.
    values.update({name: np.array(tensor.detach().numpy()) for name, tensor in told.items()})
    with torch.no_grad():
        for id, theta in parameters.items():
            theta.copy_(new[id])


def _after(model: Decoder, sample: Sample, program: Program) -> Arrays:
    computed = {s.target for s in program.forward}
    return {key(k, "after"): v for k, v in record_forward(model, sample, program).items() if k in computed}


def _restore(model: Decoder, values: Arrays) -> None:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(values[name]))


def _observe(observed: Decoder, sample: Sample) -> Observer:
    """Compare logits with somebody looking (explicit arithmetic) and nobody looking (fused), in evaluation mode."""
    sample = replace(sample, masks={})
    differences = {
        str(dtype).removeprefix("torch."): _seen_and_unseen(copy.deepcopy(observed).to(dtype).eval(), sample)
        for dtype in (torch.float64, torch.float32, torch.bfloat16)
    }
    return Observer("float64", differences.pop("float64"), differences)


@torch.no_grad()
def _seen_and_unseen(model: Decoder, sample: Sample) -> float:
    """The largest difference of logits in the arithmetic of ``model``."""
    seen: list[torch.Tensor] = []

    def say(quantity: Any, tensor: Any, at: Any) -> Any:
        if quantity.name == "logits":
            seen.append(tensor)
        return tensor

    forward(model, sample, say)
    return float((seen[0] - forward(model, sample, silent).logits).abs().max())


def sample_of(
    tokens: Sequence[int], targets: Sequence[int], scored: Sequence[bool], segments: Sequence[int] | None = None
) -> Sample:
    """A sample from plain sequences of one length."""
    packed = None if segments is None else torch.tensor(list(segments))
    return Sample(torch.tensor(list(tokens)), torch.tensor(list(targets)), torch.tensor(list(scored)), packed)


def trace(
    model: Decoder,
    tokens: Sequence[int],
    targets: Sequence[int] | None = None,
    scored: Sequence[bool] | None = None,
    *,
    segments: Sequence[int] | None = None,
    update: Update | None = None,
    eta: float | None = None,
    vocabulary: Sequence[str] | None = None,
    witness_cells: int | None = SAMPLED_CELLS,
    dropout: bool = False,
) -> Trace:
    """Trace one step of ``update`` of ``model`` at ``tokens`` (token ids, length n).

    ``update`` is ``SGD(lr=0.1)`` unless given; ``eta`` alone means gradient descent at that rate.

    Without ``targets`` each position predicts the next token and the last one is not scored. ``segments`` numbers the
    texts of a packed row, each a run of tokens that reads itself alone; the last of each is not scored. With ``dropout``
    the step is one of training mode, with masks drawn once. ``vocabulary`` gives token texts for readers. Raises
    ``UserError`` when the sample does not fit the model.

    >>> import glassformer
    >>> from glassformer.model import toy24_model
    >>> run = glassformer.trace(toy24_model(), [0, 1], targets=[1, 2], scored=[False, True])
    >>> round(float(run["W_Q.grad[1,0]"]), 6)
    0.133562
    """
    tokens = list(tokens)
    given = {"tokens": tokens, "targets": targets, "scored flags": scored, "segments": segments}
    lengths = {name: len(x) for name, x in given.items() if x is not None}
    if len(set(lengths.values())) > 1:
        raise UserError(
            "The tokens and what goes with each of them differ in length.",
            ", ".join(f"{name}: {length}" for name, length in lengths.items()) + ".",
            "Give one of each per position.",
        )
    if targets is None:
        targets = [*tokens[1:], *tokens[-1:]]
        texts = [0] * len(tokens) if segments is None else segments
        # The token that follows the last one of a text is of another text, or not there at all.
        scored = [*map(operator.eq, texts[1:], texts), False] if scored is None else scored
    scored = [True] * len(tokens) if scored is None else scored
    words = tuple(vocabulary) if vocabulary is not None else tuple(map(str, range(model.config.vocab_size)))
    text = Text(words, {"en": "A trace", "zh": "一次追踪"}, "model", "computed")
    sample = sample_of(tokens, targets, scored, segments)
    return trace_sample(model, sample, text, chosen(update, eta), witness_cells=witness_cells, dropout=dropout)


def chosen(update: Update | None, eta: float | None) -> Update:
    """The step that the two ways to ask for one mean. Raises ``UserError`` for both at once."""
    if update is not None and eta is not None:
        raise UserError("Both update and eta are given.", "eta alone means SGD(lr=eta).", "Give one of them.")
    return update or (SGD() if eta is None else SGD(lr=eta))
