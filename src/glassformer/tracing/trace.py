"""A trace: every number of one step, from the tokens to the updated parameters and forward again."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import UserError
from ..model import Decoder, definitions
from ..notation import Program, Statement, key, silent
from ..text import Tokenizer
from ..training import LoadedRun
from . import notebook
from .audit import Audit, audit
from .losses import losses_with
from .optimizers import SGD, AdamW, Moments, Update, moments_after, stepped, take, targets_of
from .probes import Report
from .probing import probed
from .record import Arrays, Sample, forward, record, record_forward, with_drawn_masks
from .replay import Replay, replay
from .request import Command, Text, Token, asked
from .traceable import require_finite
from .update import UpdateAnalysis, analyse
from .view import QuantityView
from .witnesses import Witness, Witnesses

Array = np.ndarray[Any, np.dtype[Any]]

SAMPLED_CELLS = 16
"""How many cells of a gradient are checked by central differences unless every cell is asked for."""

EVERY_CELL = 32
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
class Companions:
    """What travels with a trace besides its numbers.

    ``derivations`` and ``lemmas`` are those that a file came with, as plain data (None: those of this version);
    ``probes`` what the probes found in the same model and text (None: nobody asked them).
    """

    derivations: tuple[Mapping[str, Any], ...] | None = None
    lemmas: tuple[Mapping[str, Any], ...] | None = None
    probes: tuple[Report, ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """All recorded numbers with the program that defines them: a mapping of their keys to arrays.

    A key names one face of a quantity in full (``blocks.0.attn.W_Q.grad``): ``len``, iteration, ``keys``, ``items`` and
    ``dict(trace)`` go over these. ``trace[...]``, ``in`` and ``get`` take short names and cells too (``W_Q.grad[1,0]``).
    ``quantity`` has the formula beside the numbers. Traces are compared and hashed by identity.

    ``values`` maps ``id``, ``id.grad``, ``id.new`` (parameters after the update) and ``id.after`` (forward pass after the
    update) to arrays with the axes of the quantity, without batch axis. Witnesses and figures are empty when they were
    not asked for. The lines of the optimizer are quantities too (``W_Q.moment1``, ``optimizer.norm``; see
    ``optimizers.py``).
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
    companions: Companions = Companions()

    @property
    def probes(self) -> tuple[Report, ...] | None:
        """What the probes found, where the trace was made ``with_probes``; else None."""
        return self.companions.probes

    def with_probes(self, model: Decoder, layer: int = -1) -> Trace:
        """The same trace with what the probes find in ``model``, the one that was traced; errors as ``probed``.

        They explain the last scored row and its target, where they read one layer in ``layer`` (the last).
        """
        found = probed(model, self.program, self.values, self.text, layer)
        return replace(self, companions=replace(self.companions, probes=found))

    def told(self, command: Command) -> Trace:
        """The same trace, which says that ``command`` made it."""
        return replace(self, text=replace(self.text, command=command))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that the update moves."""
        return tuple(targets_of(self.program, self.update))

    @property
    def gradients(self) -> Mapping[str, Array]:
        """The gradient of the loss by each quantity that has one, by the id of the quantity."""
        faces = {id: self.values.get(key(id, "grad")) for id in self.program.quantities}
        return {id: array for id, array in faces.items() if array is not None}

    @property
    def moments(self) -> Moments | None:
        """What AdamW has kept after this step: the ``state`` of the next one. None after gradient descent."""
        return moments_after(self.program, self.parameters, self.values)

    def __getitem__(self, name: str) -> Array:
        """The array that ``name`` means (``S``, ``W_Q.grad``, ``loss.L.after``); ``UserError`` when unknown or not recorded."""
        if name in self.values:
            return self.values[name]
        id, face, cell = self.program.reference(name)
        array = self.face(id, face)
        return array if cell is None else array[cell]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def keys(self) -> KeysView[str]:
        """The keys of everything recorded, in full."""
        return self.values.keys()

    def items(self) -> ItemsView[str, Array]:
        """Keys and arrays; the arrays alone are ``trace.values.values()``."""
        return self.values.items()

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except UserError:
            return False

    def get(self, name: str, default: Any = None) -> Any:
        """``trace[name]``, or ``default`` where that names nothing recorded."""
        try:
            return self[name]
        except UserError:
            return default

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

    def to_numpy(self, name: str, layer: int | None = None) -> Array:
        """A copy of the numbers of a quantity; errors as ``quantity``."""
        return self.quantity(name, layer).to_numpy()

    def to_torch(self, name: str, layer: int | None = None) -> torch.Tensor:
        """A copy of the numbers of a quantity as a tensor; errors as ``quantity``."""
        return self.quantity(name, layer).to_torch()

    def to_latex(self, name: str, layer: int | None = None) -> str:
        """Formulas and numbers of a quantity for display mode (``QuantityView.to_latex``); errors as ``quantity``."""
        return self.quantity(name, layer).to_latex()

    def save(self, path: str | Path, *, replace: bool = False) -> None:
        """Write the trace as one file, which ``load_trace`` reads; errors as ``save_trace``."""
        from .header import save_trace

        save_trace(self, path, replace=replace)

    def __repr__(self) -> str:
        return notebook.text(self)

    def _repr_html_(self) -> str:
        return notebook.notebook_html(self)

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

    ``model`` is copied, never changed; that it can be traced (``require_traceable``) is for the caller to see to.
    ``witness_cells`` caps the cells of each gradient that are checked by central differences: 0 leaves the witnesses out,
    None checks every cell. With ``dropout`` the step is one of training mode: its masks are drawn once, from torch's
    generator, and held fixed for everything that follows.
    """
    if not bool(sample.scored.any()):
        raise UserError(
            "No position is scored.", "The loss is a mean over scored positions.", "Give a target for at least one."
        )
    observed = copy.deepcopy(model).cpu().double().train(dropout).requires_grad_(True)
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
    require_finite(program, values)
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
        analyse(program, update, values, functools.partial(losses_with, observed, sample)),
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


def trace(
    model: Decoder | LoadedRun,
    text: str | Sequence[Token],
    target: Token | Sequence[Token] | None = None,
    scored: Sequence[bool] | None = None,
    *,
    segments: Sequence[int] | None = None,
    update: Update | None = None,
    tokenizer: Tokenizer | None = None,
    vocabulary: Sequence[str] | None = None,
    witness_cells: int | None = SAMPLED_CELLS,
    dropout: bool = False,
) -> Trace:
    """Trace one step of ``update`` (``SGD(lr=0.1)``) of ``model`` at ``text``: n tokens, as a text or token by token.

    ``model`` is a decoder or what ``load_run`` returns, which brings its tokenizer. ``target`` is the token that is to
    follow the text, and it alone is scored; or one target for each position, and all are. Without it each position
    predicts the next token and the last one is not scored. ``scored`` says which positions count instead.

    ``segments`` numbers the texts of a packed row, each a run of tokens that reads itself alone; the last of each is not
    scored. A token is an id or, where ``tokenizer`` or ``vocabulary`` (the texts alone) tells them apart, a text.
    ``witness_cells`` caps the cells of each gradient that are measured (0: no witnesses; None: every cell). With
    ``dropout`` the step is one of training mode, with masks drawn once. Raises ``UserError`` when something does not fit
    the model, the model cannot be traced (``traceable.py``), or its numbers leave float64.

    >>> import glassformer
    >>> from glassformer.model import toy24_model
    >>> run = glassformer.trace(toy24_model(), [0, 1], target=2)
    >>> round(float(run["W_Q.grad[1,0]"]), 6)
    0.133562
    """
    request = asked(model, text, target, scored, segments=segments, tokenizer=tokenizer, vocabulary=vocabulary)
    return trace_sample(*request, chosen(update), witness_cells=witness_cells, dropout=dropout)


def chosen(update: Update | None) -> Update:
    """The step asked for, ``SGD(lr=0.1)`` unless another. Raises ``UserError`` for what is no step."""
    if update is None:
        return SGD()
    if not isinstance(update, SGD | AdamW):
        raise UserError(
            f"update cannot be a {type(update).__name__}.",
            "It says which step is made, and at which rate.",
            "Give glassformer.SGD(lr=0.1) or glassformer.AdamW(lr=0.01).",
        )
    return update
