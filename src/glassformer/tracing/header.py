"""A trace as plain data: the JSON header that travels in the trace file and in the page, and back.

The header holds the definitions themselves (as trees), so a file explains its numbers without this version's code.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from .. import __version__, notation
from ..errors import UserError
from ..model.derivations import LEMMAS, derivations
from ..notation import Kind, Placed, Program, Quantity, Statement, key
from ..notation.chain import chain_json
from ..notation.latex import index_latex
from ..notation.lemma import lemma_json
from ..notation.matrix import matrix_face
from ..notation.symbols import Style, style_of
from ..notation.tree import from_json, to_json
from .attribution import Attribution, Share
from .audit import Audit
from .file import SCHEMA, read_trace_file, write_trace_file
from .optimizers import of_optimizer
from .probes import report_from
from .reasons import Coincidence, Watched
from .replay import replay
from .request import Command, Text
from .trace import Companions, Observer, Trace
from .update import GroupChange, SequentialUpdate, UpdateAnalysis
from .witnesses import Differences, Directional, Witness

Array = np.ndarray[Any, np.dtype[Any]]
Json = dict[str, Any]

_PACKAGE = PurePath(notation.__file__).parents[1]


def header_of(trace: Trace) -> Json:
    """The header of ``trace``: strict JSON, schema ``SCHEMA``. A figure that left float64 is null."""
    return _strict(_header(trace))


def _strict(data: Any) -> Any:
    """``data`` with null for every number that JSON cannot spell."""
    if isinstance(data, dict):
        return {name: _strict(part) for name, part in data.items()}
    if isinstance(data, list | tuple):
        return [_strict(part) for part in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _figures(data: Any) -> Any:
    """The inverse for figures: NaN for null."""
    if isinstance(data, dict):
        return {name: _figures(part) for name, part in data.items()}
    if isinstance(data, list):
        return [_figures(part) for part in data]
    return math.nan if data is None else data


def _header(trace: Trace) -> Json:
    program = trace.program
    style = style_of(program)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "title": dict(trace.text.title),
        "source": trace.text.source,
        "provenance": trace.text.provenance,
        "scalars": dict(program.scalars),
        "aliases": dict(program.aliases),
        "vocabulary": list(trace.text.vocabulary),
        "labels": [dict(label) for label in trace.text.labels],
        "quantities": [quantity_json(placed, style) for placed in program.quantities.values()],
        "statements": [statement_json(s, program, style) for s in (*program.statements, *trace.update)],
        "derivations": _derivations_json(trace),
        "lemmas": _lemmas_json(trace),
        "witnesses": {id: _witness_json(w) for id, w in trace.witnesses.items()},
        "update": _analysis_json(trace.analysis),
        "replay": {
            "worst": trace.replay.largest,
            "unit": "u*mag",
            "cells": trace.replay.cells,
            "by": dict(trace.replay.worst),
        },
        "audit": None if trace.audit is None else asdict(trace.audit),
        "observer": asdict(trace.observer),
        **_when_there(trace),
    }


def _when_there(trace: Trace) -> Json:
    """What a header has only where it was asked for: the command that made the trace, the probes."""
    command, probes = trace.text.command, trace.probes
    return {
        **({} if command is None else {"command": asdict(command)}),
        **({} if probes is None else {"probes": [report.plain() for report in probes]}),
    }


def save_trace(trace: Trace, path: str | Path, *, replace: bool = False) -> None:
    """Write ``trace`` as one file. Raises ``UserError`` when it exists (and not ``replace``) or cannot be written."""
    write_trace_file(Path(path), header_of(trace), trace.values, replace=replace)


def load_trace(path: str | Path) -> Trace:
    """Read a trace file of this or an earlier version. Raises ``UserError`` when missing, damaged or newer."""
    header, tensors = read_trace_file(Path(path))
    try:
        return trace_from(header, tensors)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise UserError(
            f"{path} is damaged.", f"Its header lacks or garbles something: {error}.", "Write it again."
        ) from None


def trace_from(header: Mapping[str, Any], tensors: Mapping[str, Array]) -> Trace:
    """The trace that ``header`` and ``tensors`` describe; the replay law is checked anew, not believed.

    Raises ``ValueError`` (or ``KeyError``, ``TypeError``) where they do not fit each other.
    """
    program, update = _program_from(header)
    _check_tensors(program, tensors, len(header["vocabulary"]))
    text = Text(
        tuple(header["vocabulary"]),
        header["title"],
        header["source"],
        header["provenance"],
        tuple(header["labels"]),
        _command_from(header.get("command")),
    )
    audit = header["audit"]
    analysis = _analysis_from(header["update"], header["schema"])
    _check_names(program, (*header["witnesses"], *_named(analysis)))
    return Trace(
        program,
        update,
        dict(tensors),
        text,
        Observer(**_figures(header["observer"])),
        analysis,
        replay(program, update, tensors),
        {id: _witness_from(_figures(w)) for id, w in header["witnesses"].items()},
        None if audit is None else Audit(audit["operations"], tuple(audit["uncovered"])),
        _companions_from(header),
    )


def _companions_from(header: Mapping[str, Any]) -> Companions:
    """What a header has besides numbers; a file may be older than lemmas, and probes are there only where asked for."""
    lemmas, probes = header.get("lemmas"), header.get("probes")
    return Companions(
        tuple(header["derivations"]),
        None if lemmas is None else tuple(lemmas),
        None if probes is None else tuple(map(report_from, probes)),
    )


def _command_from(given: Mapping[str, Any] | None) -> Command | None:
    if given is None:
        return None
    words = [given["subject"], *([] if given["text"] is None else [given["text"]]), *given["options"]]
    if not all(isinstance(word, str) for word in words):
        raise ValueError("a command is made of words")
    return Command(given["subject"], given["text"], tuple(given["options"]))


def _check_tensors(program: Program, tensors: Mapping[str, Array], vocabulary: int) -> None:
    """Every quantity is there in its shape, every other face in the shape of its quantity, every token in range."""
    for id in program.quantities:
        if id not in tensors:
            raise ValueError(f"{id} is missing")
    for name, array in tensors.items():
        id = name if name in program.quantities else name.rpartition(".")[0]
        if array.shape != program.shape(id):
            raise ValueError(f"{name} has shape {array.shape}, not {program.shape(id)}")
    # Where a row is not scored its target may be anything.
    for id, read in (("embed.t", tensors["embed.t"]), ("loss.y", tensors["loss.y"][tensors["loss.scored"] > 0])):
        if not ((read >= 0) & (read < vocabulary)).all():
            raise ValueError(f"{id} holds a token outside the vocabulary")


def _check_names(program: Program, ids: Iterable[str]) -> None:
    unknown = sorted(set(ids) - set(program.quantities))
    if unknown:
        raise ValueError(f"it speaks of {unknown[0]!r}, which is no quantity of it")


def _named(a: UpdateAnalysis) -> Iterator[str]:
    """Every id that an analysis speaks of."""
    yield from (group.id for group in a.groups)
    yield from a.sequential.different
    yield from (cell.id for cell in a.watched)
    yield from (id for pair in a.coincidences for id in (pair.a, pair.b))
    yield from (id for share in (a.attribution.shares if a.attribution else ()) for id in share.members)


def place_of(file: str) -> str:
    """Where a definition stands, without the machine's path: ``glassformer/model/attention.py``."""
    path = PurePath(file)
    if not path.is_absolute():
        return file
    return "/".join(path.relative_to(_PACKAGE.parent).parts) if path.is_relative_to(_PACKAGE.parent) else path.name


def quantity_json(placed: Placed, style: Style) -> Json:
    q = placed.quantity
    return {
        "id": placed.id,
        "name": q.name,
        "symbol": q.symbol,
        "latex": style.name(placed.id),
        "layer": placed.layer,
        "path": placed.path,
        "en": q.en,
        "zh": q.zh,
        "kind": q.kind.value,
        "axes": [list(axis) for axis in placed.axes],
        "folded": q.folded,
        "editable": q.kind is Kind.PARAMETER,
        "file": place_of(q.file),
        "line": q.line,
    }


def statement_json(s: Statement, program: Program, style: Style) -> Json:
    matrix = matrix_face(s, program)
    return {
        "target": s.target,
        "face": s.face,
        "letters": [list(letter) for letter in s.letters],
        "expr": to_json(s.expr),
        "consumer": s.consumer,
        "adds": s.adds,
        "latex": {
            "index": index_latex(s, program, style),
            "matrix": None if matrix is None else matrix.latex(program, style),
        },
        "file": place_of(s.quantity.file),
        "line": s.line,
    }


def _derivations_json(trace: Trace) -> list[Json]:
    """The derivations a file came with, or those of the parts that the program has."""
    if trace.companions.derivations is not None:
        return [dict(derivation) for derivation in trace.companions.derivations]
    return [chain_json(chain, trace.program) for chain in derivations(trace.program)]


def _lemmas_json(trace: Trace) -> list[Json]:
    """The lemmas a file came with, or those of this version, whatever the program: they bring programs of their own."""
    if trace.companions.lemmas is not None:
        return [dict(lemma) for lemma in trace.companions.lemmas]
    return [lemma_json(lemma) for lemma in LEMMAS]


def _witness_json(w: Witness) -> Json:
    return {
        "err_autograd": w.err_autograd,
        "within_magnitude": w.within_magnitude,
        "zero_in_theory": w.zero_in_theory,
        "agree": w.agree,
        "central": {
            "step": w.central.step,
            "cells": [list(cell) for cell in w.central.cells],
            "max_abs_diff": w.central.max_abs_diff,
            "estimated_error": w.central.estimated_error,
            "worst_share": w.central.worst_share,
            "all": w.central.every_cell,
        },
        "directional": {
            "definition": w.directional.defined,
            "measured": w.directional.measured,
            "difference": w.directional.difference,
            "estimated_error": w.directional.estimated_error,
        },
    }


def _witness_from(data: Mapping[str, Any]) -> Witness:
    c, d = data["central"], data["directional"]
    cells = tuple((int(at), float(value)) for at, value in c["cells"])
    worst, claimed = c["max_abs_diff"], c["estimated_error"]
    share = c.get("worst_share", worst / claimed)  # earlier files hold all cells to the largest error claimed
    return Witness(
        data["err_autograd"],
        data["within_magnitude"],
        data["zero_in_theory"],
        Differences(c["step"], cells, c["all"], worst, claimed, share),
        Directional(d["definition"], d["measured"], d["estimated_error"]),
    )


def _analysis_json(a: UpdateAnalysis) -> Json:
    return {
        "eta": a.eta,
        "loss": a.loss,
        "groups": [asdict(g) for g in a.groups],
        "predicted": a.predicted,
        "exact": a.exact,
        "joint_loss": a.loss + a.exact,
        "sequential": {"loss": a.sequential.loss, "different": list(a.sequential.different)},
        "line": {"eta": [eta for eta, _ in a.line], "loss": [loss for _, loss in a.line]},
        "missed": a.missed,
        "attribution": None if a.attribution is None else asdict(a.attribution),
        "watched": [asdict(cell) for cell in a.watched],
        "coincidences": [asdict(pair) for pair in a.coincidences],
    }


def _analysis_from(given: Mapping[str, Any], schema: int) -> UpdateAnalysis:
    """The analysis of an update as a file of ``schema`` holds it."""
    data = _figures(given)
    attribution, cells, pairs = None, (), ()
    if schema > 1:
        attribution = _attribution_from(given["attribution"])
        cells = tuple(Watched(**{**cell, "index": tuple(cell["index"])}) for cell in data["watched"])
        pairs = tuple(Coincidence(**pair) for pair in data["coincidences"])
    return UpdateAnalysis(
        data["eta"],
        data["loss"],
        tuple(GroupChange(**g) for g in data["groups"]),
        data["predicted"],
        data["exact"],
        SequentialUpdate(data["sequential"]["loss"], tuple(data["sequential"]["different"])),
        tuple(zip(data["line"]["eta"], data["line"]["loss"], strict=True)),
        attribution,
        cells,
        pairs,
    )


def _attribution_from(given: Mapping[str, Any] | None) -> Attribution | None:
    if given is None:
        return None
    shares = tuple(Share(**{**share, "members": tuple(share["members"])}) for share in _figures(given["shares"]))
    # Null orders and seed are no numbers that left float64: every set of groups was evaluated.
    return Attribution(given["by"], shares, given["evaluations"], given["orders"], given["seed"])


def _program_from(header: Mapping[str, Any]) -> tuple[Program, tuple[Statement, ...]]:
    quantities = {}
    for q in header["quantities"]:
        declared = Quantity(
            q["name"], q["symbol"], q["en"], q["zh"], Kind(q["kind"]), "", q["folded"], q["file"], q["line"]
        )
        axes = tuple((letter, dim) for letter, dim in q["axes"])
        quantities[q["id"]] = Placed(q["id"], declared, axes, q["layer"], q["path"])
    statements = [
        Statement(
            s["target"],
            s["face"],
            tuple((letter, dim) for letter, dim in s["letters"]),
            from_json(s["expr"]),
            s["adds"],
            s["consumer"],
            dataclasses.replace(quantities[s["consumer"]].quantity, file=s["file"]),
            s["line"],
        )
        for s in header["statements"]
    ]
    program = Program(quantities, (), (), header["scalars"], header["aliases"])
    update = tuple(s for s in statements if of_optimizer(program, s))
    of_model = [s for s in statements if not of_optimizer(program, s)]
    forward, backward = (tuple(s for s in of_model if s.face == face) for face in ("", "grad"))
    return dataclasses.replace(program, forward=forward, backward=backward), update


def tensors_of(trace: Trace) -> dict[str, Array]:
    """The arrays of a trace as float64 (token ids and flags included), as the page takes them."""
    return {name: np.asarray(array, dtype=np.float64) for name, array in trace.values.items()}


__all__ = ["header_of", "key", "load_trace", "place_of", "save_trace", "tensors_of", "trace_from"]
